"""Candidate moments: where else in a video something that a question claims may hold.

A question of order, count, first, last, only or never is about the whole video, and its writer
names only a few stretches. The other moments that may decide it are those whose caption, on-screen
text or transcript line has the words of the question or of an option, and those that look like the
evidence. `sight` looks at them densely.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from mustsee.records import Question, Span, Video
from mustsee.text import term_vectors
from mustsee.verify.conditions.seen import merge_spans

MOMENT_S = 1.5  # seconds before and after a candidate's time
# Likeness of the words of a caption, text or line to those asked about, at least.
MIN_LIKENESS = 0.2
MAX_DISTANCE = 0.08  # root mean square between descriptors of frames that look alike
WIDE_TYPES = ("Temporal Ordering", "Counting")  # question types about the whole video
_WIDE = re.compile(
    r"\b(?:first|last|earliest|latest|before|after|then|next|until|order|sequence|how many"
    r"|how often|times|twice|once|again|only|never|always|every|each|all|none|no|most|least"
    r"|longest|any)\b",
    re.IGNORECASE,
)


def is_wide(question: Question) -> bool:
    """Whether a question claims something of order, number, or the whole video."""
    wide_type = question.question_type in WIDE_TYPES
    return wide_type or _WIDE.search(question.question) is not None


def candidate_moments(question: Question, video: Video, most: int) -> tuple[Span, ...]:
    """Return at most `most` spans outside of the evidence, in order; none unless `is_wide`."""
    if not most or not is_wide(question):
        return ()
    ranked = [*_by_words(question, video), _by_looks(question, video)]
    chosen: list[Span] = []
    for place in range(max(map(len, ranked), default=0)):
        for times in ranked:
            if place < len(times) and len(chosen) < most:
                span = Span(max(0.0, times[place] - MOMENT_S), times[place] + MOMENT_S)
                if not _near(span, (*question.evidence, *chosen)):
                    chosen.append(span)
    return merge_spans(chosen, Span(0.0, float("inf")))


def _near(span: Span, others: Sequence[Span]) -> bool:
    return any(span.start < o.end and o.start < span.end for o in others)


def _by_words(question: Question, video: Video) -> list[list[float]]:
    """Return for the question, and for each thing that an option names, the times of the texts that
    are most like it, the likest first.
    """
    texts = [
        *((c.time, c.text) for c in video.captions or ()),
        *((t.time, t.text) for t in video.texts or ()),
        *(((x.start + x.end) / 2, x.text) for x in video.lines or ()),
    ]
    if not texts:
        return []
    vectors = term_vectors(tuple(text for _, text in texts))
    things = dict.fromkeys(
        thing.strip() for option in question.options for thing in re.split(r";|, then ", option)
    )
    ranked: list[list[float]] = []
    for wanted in (question.question, *things):
        likeness = vectors.likeness(wanted)
        order = np.argsort(-likeness, kind="stable")
        ranked.append([texts[i][0] for i in order if likeness[i] >= MIN_LIKENESS])
    return ranked


def _by_looks(question: Question, video: Video) -> list[float]:
    """Return the times of the frames that look like the middle of the evidence, likest first."""
    frames = video.frames or ()
    if not frames or not question.evidence:
        return []
    looks = np.array([frame.descriptor for frame in frames], np.float32)
    times = np.array([frame.time for frame in frames])
    middles = [(span.start + span.end) / 2 for span in question.evidence]
    nearest = looks[[int(np.abs(times - middle).argmin()) for middle in middles]]
    distance = np.sqrt(((looks[:, None] - nearest[None]) ** 2).mean(axis=2)).min(axis=1)
    order = np.argsort(distance, kind="stable")
    return [float(times[i]) for i in order if distance[i] <= MAX_DISTANCE]
