"""Finds a clip in its movie's audio description (CinePile, 2.1, "Scene localization in AD").

The clip's first and last lines are searched among the description's lines by their embeddings
(FAISS). Their hits, and the pairs of words that both transcripts share, vote in a rolling window
over the description for the place where the clip begins. The best places are then compared word by
word: a monotone alignment of the clip's words with the description's words inside a band of time.
The alignment gives start and end to the word (the lines of two transcripts never coincide), the
rate (a video sped up from 24 to 25 frames per second), and the share of the clip's words that
match, which is the score.

    alignment = align(clip_lines, description_lines, encoder.encode)
    if alignment.refused is None:
        print(alignment.span, alignment.score, len(alignment.lines))

Everything is linear in the number of description lines; `Description` is built once per movie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median_low

import numpy as np
from numpy.typing import NDArray

from mustsee.align import description
from mustsee.align.description import Description, Embed, Floats, Ints, SpokenWords
from mustsee.nn.vectors import unit
from mustsee.records import Line, Span
from mustsee.text import WORD

_REACH_S = 10.0  # seconds by which a word may differ from its expected time in the first alignment
_MIN_STRAIGHT_SHARE = 0.6  # share of the matches on a straight line if the video never pauses
# Matches on each side that set the offset; 1 missed 1.1 % of the spans, 4 missed 0.2 %.
_NEIGHBOUR_MATCHES = 4


@dataclass(frozen=True, kw_only=True)
class MatchOptions:
    """What a match must reach.

    The least score is `threshold` + `evidence` / (the clip's words, weighted by rarity), because a
    few words are found by chance more easily. Calibrated on the sweep of `benchmarks/align.py`.
    """

    anchors: int = 3
    """Lines embedded at each end of the clip (the paper: 3)."""
    neighbours: int = 16
    """Description lines retrieved for each of them."""
    candidates: int = 6
    """Places that are aligned word by word."""
    threshold: float = 0.44
    """Least share of the clip's words found at the place; from the sweep of what=align."""
    evidence: float = 0.3
    """Addition to threshold, divided by the weight of the clip's words: short clips must show
    more."""
    margin: float = 0.08
    """Least lead of the best place over any other, in score."""
    tolerance: float = 6.0
    """Largest difference between the matched interval's duration and the clip's, seconds."""
    tolerance_share: float = 0.08
    """Further tolerance, as a share of the clip's duration."""
    rates: tuple[float, ...] = (1.0, 25 / 24, 24 / 25)
    """Playback rates tried, description seconds per clip second (25/24, 24/25)."""
    few: float = 3.0
    """Least words of a clip, weighted by rarity."""
    gap: float = 25.0
    """Longest run of speech that may be missing, seconds."""

    def allowed_difference(self, seconds: float) -> float:
        """Return by how many seconds a matched interval may differ from that of a clip of
        `seconds`.
        """
        return self.tolerance + self.tolerance_share * seconds


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """Where a clip lies in a description, or why it was refused.

    `span`: from the clip's first spoken word to its last, in description seconds; null with
    `refused`. `score`: 0 to 1. `head`, `tail`: cosines of the clip's first and last lines with the
    description at the matched place. `words`: share of the clip's words matched in order and in
    time. `rate`: description seconds per clip second. `offset`: description second of the clip's
    second 0. `lines`: the description's lines between start and end, unchanged.
    """

    span: Span | None
    score: float
    head: float
    tail: float
    words: float
    rate: float = 1.0
    offset: float = 0.0
    lines: tuple[Line, ...] = ()
    refused: str | None = None


@dataclass(frozen=True, kw_only=True)
class PlaceReading:
    """The word alignment at one place.

    `clip_positions`, `positions`: matched positions in the clip and in the description; `share`:
    share of words matched; `start`, `end`: in description seconds.
    """

    clip_positions: Ints
    positions: Ints
    share: float
    rate: float
    start: float
    end: float


@dataclass(frozen=True, kw_only=True)
class _Search:
    """A clip that is looked for in a description. `ids`, `weights`: of its words. `vectors`: of its
    first and last lines.
    """

    movie: Description
    clip: SpokenWords
    lines: Sequence[Line]
    ids: Ints
    weights: Floats
    vectors: NDArray[np.float32]
    options: MatchOptions


def align(
    clip_lines: Sequence[Line],
    description_lines: Sequence[Line] | Description,
    embed: Embed,
    *,
    duration: float | None = None,
    options: MatchOptions | None = None,
) -> Alignment:
    """Place a clip in a description.

    `embed`: texts -> float32 [n, d]. `duration`: the clip's seconds, where known. A clip that
    cannot be placed raises nothing: `refused` gives the reason.
    """
    options = options or MatchOptions()
    movie = (
        description_lines
        if isinstance(description_lines, Description)
        else Description(description_lines, embed)
    )
    lines = sorted(
        (line for line in clip_lines if WORD.search(description.clean(line.text))),
        key=lambda line: (line.start, line.end),
    )
    clip = description.spoken_words(lines)
    if not clip.words:
        return _refuse(
            "the clip has no spoken words; a transcriber (hear=) that returns some keeps it"
        )
    if not movie.spoken.words:
        return _refuse("the description has no words; another one in descriptions= keeps it")
    ids = np.array([movie.vocabulary.get(word, -1) for word in clip.words], dtype=np.int64)
    weights = movie.weights(ids)
    if weights.sum() < options.few:
        return _refuse(
            f"the clip has only {len(clip.words)} words, {weights.sum():.1f} weighted by rarity; "
            f"at least {options.few:g} are needed; a lower align.options.few keeps it"
        )
    texts = [description.clean(line.text) for line in lines]
    count = min(options.anchors, len(lines))
    vectors = unit(embed([*texts[:count], *texts[-count:]]))
    search = _Search(
        movie=movie, clip=clip, lines=lines, ids=ids, weights=weights, vectors=vectors,
        options=options,
    )  # fmt: skip
    found = (_read(search, place) for place in _places(search))
    readings = _distinct([r for r in found if r is not None])
    if not readings:
        return _refuse(
            "no words in common with the description; the right one in descriptions= keeps it"
        )
    return _judge(search, readings, duration)


def _refuse(reason: str) -> Alignment:
    return Alignment(span=None, score=0.0, head=0.0, tail=0.0, words=0.0, refused=reason)


def _places(search: _Search) -> list[float]:
    """Description seconds at which the clip's second 0 may lie, best first: the peaks of the votes
    in a rolling window.
    """
    movie, clip, lines, vectors = search.movie, search.clip, search.lines, search.vectors
    clip_positions, description_positions, votes = movie.shared_pairs(search.ids)
    offsets = movie.spoken.start[description_positions] - clip.start[clip_positions]
    count = len(vectors) // 2
    anchors = [*lines[:count], *lines[-count:]]
    similarities, hits = movie.index.search(
        vectors, min(search.options.neighbours, len(movie.lines))
    )
    begins = np.array([line.start for line in anchors])
    line_votes = np.maximum(0.0, similarities) ** 4  # 0.9 counts ten times as much as 0.5
    offsets = np.concatenate([offsets, (movie.starts[hits] - begins[:, None]).ravel()])
    votes = np.concatenate([votes, line_votes.ravel()])
    # A rate other than 1 moves the offset by up to 4 % along the clip: the window is that wide.
    width = _REACH_S / 2 + 0.02 * float(clip.end[-1])
    order = np.argsort(offsets, kind="stable")
    offsets, votes = offsets[order], votes[order]
    total = np.concatenate([[0.0], np.cumsum(votes)])
    sums = total[np.searchsorted(offsets, offsets + width, side="right")] - total[: len(offsets)]
    peaks: list[float] = []
    for index in np.argsort(-sums, kind="stable"):
        middle = float(offsets[index]) + width / 2
        if all(abs(middle - other) > width / 2 for other in peaks):
            peaks.append(middle)
        if len(peaks) == search.options.candidates:
            break
    return peaks


def _read(search: _Search, place: float) -> PlaceReading | None:
    """Align the clip's words with the description around `place`: first in a wide band, which gives
    the rate and the offset along the clip, then in a narrow one.
    """
    movie, clip, ids, weights = search.movie, search.clip, search.ids, search.weights
    reach = _REACH_S + search.options.tolerance_share * float(clip.end[-1])
    times, begins = movie.spoken.start, clip.start
    clip_positions, positions = description.match_words(
        movie, ids, weights, begins + place - reach, begins + place + reach
    )
    if len(clip_positions) < 2:
        return None
    rate, local = _track(begins, clip_positions, times[positions], place, search.options)
    clip_positions, positions = description.match_words(
        movie, ids, weights, begins + local - 2.5, begins + local + 2.5
    )
    if len(clip_positions) < 2:
        return None
    local = _smooth(begins, clip_positions, times[positions] - begins[clip_positions], rate)
    return PlaceReading(
        clip_positions=clip_positions,
        positions=positions,
        share=float(weights[clip_positions].sum() / weights.sum()),
        rate=rate,
        start=float(begins[0] + local[0]),
        end=float(clip.end[-1] + local[-1] + (rate - 1.0) * (clip.end[-1] - begins[-1])),
    )


def _track(
    times: Floats, clip_positions: Ints, positions: Floats, place: float, options: MatchOptions
) -> tuple[float, Floats]:
    """The rate that explains most matches, and the offset [n] at each of the clip's words."""
    best, best_rate, middle = -1.0, 1.0, place
    shift = positions - times[clip_positions]
    for rate in options.rates:
        straight = shift - (rate - 1.0) * times[clip_positions]
        order = np.sort(straight)
        inside = np.searchsorted(order, order + 2.0, side="right") - np.arange(len(order))
        at = int(np.argmax(inside))
        if inside[at] > best * 1.1:  # Another rate must explain clearly more matches.
            best, best_rate = float(inside[at]), rate
            middle = float(np.median(order[at : at + int(inside[at])]))
    line = middle + (best_rate - 1.0) * times
    is_near = np.abs(shift - line[clip_positions]) <= 3.0
    if is_near.sum() < _MIN_STRAIGHT_SHARE * len(clip_positions):
        # A description that halts the video for its narrator drifts away from the straight line.
        is_near = np.abs(shift - line[clip_positions]) <= options.allowed_difference(
            float(times[-1] - times[0])
        )
    return best_rate, _smooth(times, clip_positions[is_near], shift[is_near], best_rate)


def _smooth(times: Floats, clip_positions: Ints, shift: Floats, rate: float) -> Floats:
    """The offset at each of the clip's words: the median of the nearest matches' offsets, without
    the rate's drift.
    """
    values = (shift - (rate - 1.0) * times[clip_positions]).tolist()
    last = max(0, len(values) - 2 * _NEIGHBOUR_MATCHES - 1)
    begins = [min(max(0, i - _NEIGHBOUR_MATCHES), last) for i in range(len(values))]
    windows = [median_low(values[b : b + 2 * _NEIGHBOUR_MATCHES + 1]) for b in begins]
    return np.interp(times, times[clip_positions], windows) + (rate - 1.0) * times


def _distinct(readings: Sequence[PlaceReading]) -> list[PlaceReading]:
    """The readings, best first, without those at the place of a better one."""
    kept: list[PlaceReading] = []
    for reading in sorted(readings, key=lambda r: -r.share):
        if all(min(abs(reading.start - k.start), abs(reading.end - k.end)) > 3.0 for k in kept):
            kept.append(reading)
    return kept


def _judge(search: _Search, readings: Sequence[PlaceReading], duration: float | None) -> Alignment:
    """Score the best reading, and refuse what does not hold."""
    movie, clip, lines, vectors = search.movie, search.clip, search.lines, search.vectors
    best, count = readings[0], len(search.vectors) // 2
    spans = (
        (best.start, best.start + best.rate * (lines[count - 1].end - clip.start[0])),
        (best.end - best.rate * (clip.end[-1] - lines[-count].start), best.end),
    )
    head, tail = (
        _cosine(vectors[rows].sum(axis=0), movie.mean(*span))
        for rows, span in zip((slice(None, count), slice(count, None)), spans, strict=True)
    )
    alignment = Alignment(
        span=Span(max(0.0, best.start), max(0.0, best.start, best.end)),
        score=min(1.0, best.share),
        head=head,
        tail=tail,
        words=best.share,
        rate=best.rate,
        offset=best.start - best.rate * float(clip.start[0]),
        lines=lines_inside(movie.lines, best.start, best.end),
    )
    reason = _reason_to_refuse(search, readings, duration)
    return alignment if reason is None else replace(alignment, span=None, lines=(), refused=reason)


def _reason_to_refuse(
    search: _Search, readings: Sequence[PlaceReading], duration: float | None
) -> str | None:
    """Why the best alignment is rejected, or None."""
    best, clip, options = readings[0], search.clip, search.options
    score = min(1.0, best.share)
    threshold = options.threshold + options.evidence / float(search.weights.sum())
    if score < threshold:
        return (
            f"score {score:.2f} is below the threshold {threshold:.2f}: {best.share:.0%} of the "
            f"clip's words match at {best.start:.0f} s (another work, or too few words); a "
            "description with the dialogue, or a lower align.options.threshold, keeps it"
        )
    length = float(clip.end[-1] - clip.start[0])
    matched_seconds, expected_seconds = best.end - best.start, best.rate * length
    if abs(matched_seconds - expected_seconds) > options.allowed_difference(length):
        return (
            f"the matched interval lasts {matched_seconds:.1f} s, the clip's speech "
            f"{expected_seconds:.1f} s; a higher align.options.tolerance keeps it"
        )
    if duration is not None and duration < length - options.allowed_difference(length):
        return (
            f"the clip's lines last {length:.1f} s, but the clip only {duration:.1f} s; a higher "
            "align.options.tolerance keeps it"
        )
    if len(readings) > 1 and readings[1].share > best.share - options.margin:
        return (
            f"ambiguous: the words match at {best.start:.0f} s ({best.share:.0%}) and at "
            f"{readings[1].start:.0f} s ({readings[1].share:.0%}), as in a song or a repeated "
            "scene; a lower align.options.margin keeps it"
        )
    matched_times = np.concatenate([clip.start[:1], clip.start[best.clip_positions], clip.end[-1:]])
    longest_gap = float(np.diff(matched_times).max())
    words_in_gap = np.diff(np.searchsorted(clip.start, matched_times))[
        int(np.argmax(np.diff(matched_times)))
    ]
    if longest_gap > options.gap and words_in_gap > longest_gap / 2:
        return (
            f"{longest_gap:.0f} s of the clip's speech in a row are missing from the description "
            "(an edited clip, or an incomplete description); a higher align.options.gap keeps it"
        )
    return None


def _cosine(left: NDArray[np.float32], right: NDArray[np.float32] | None) -> float:
    if right is None:
        return 0.0
    return float(left @ right / max(1e-12, float(np.linalg.norm(left) * np.linalg.norm(right))))


def lines_inside(lines: Sequence[Line], start: float, end: float) -> tuple[Line, ...]:
    """Return the lines with at least their middle between two times (seconds)."""
    return tuple(line for line in lines if start <= (line.start + line.end) / 2 <= end)
