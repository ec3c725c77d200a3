"""Lengths on a dataset's card: of the videos, the questions, the answers and the wrong options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from mustsee.records import Question, Video
from mustsee.text import clock, length

LONG_VIDEO_S = 600.0  # median length from which a card has the tag "long-video"
Length = TypeVar("Length", int, float)
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # the columns: share of the items that are at most as long


class TextLengths:
    """Words of the questions, of their answers and of their wrong options: length -> number."""

    def __init__(self) -> None:
        self.questions = Counter[int]()
        self.answers = Counter[int]()
        self.wrong_options = Counter[int]()

    def add(self, question: Question) -> None:
        self.questions[length(question.question)] += 1
        if question.answer:
            self.answers[length(question.answer)] += 1
        if question.answer_index is not None:
            for place, option in enumerate(question.options):
                self.wrong_options[length(option)] += place != question.answer_index


def lengths_text(texts: TextLengths, videos: Sequence[Video]) -> str:
    """Return a table of lengths: the shortest, the longest, and those of a quarter, a half and
    three quarters. A clip has its own length. Videos of unknown length are counted below.
    """
    seconds = Counter(v.duration for v in videos if v.duration is not None)
    clips = any(v.start is not None for v in videos)
    words: dict[str, Mapping[int, int]] = {
        "questions, words": texts.questions,
        "answers, words": texts.answers,
        "wrong options, words": texts.wrong_options,
    }
    lines = [
        "| | shortest | 25 % | median | 75 % | longest | number |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    if seconds:
        cells = [clock(at_share(seconds, share)) for share in SHARES]
        lines.append(_row("clips" if clips else "videos", cells, seconds.total()))
    for name, counts in words.items():
        if number := sum(counts.values()):
            cells = [f"{at_share(counts, share)}" for share in SHARES]
            lines.append(_row(name, cells, number))
    text = "\n".join(lines)
    if seconds:
        total = _sum(seconds)
        text += (
            f"\n\nLength of all {'clips' if clips else 'videos'}: {clock(total)}, on average "
            f"{clock(total / seconds.total())}."
        )
    if videos and (unknown := len(videos) - seconds.total()):
        text += f"\n\nThe length of {unknown} of {len(videos)} videos is not known."
    return text


def are_long(videos: Sequence[Video]) -> bool:
    """Return whether half of the videos of known length last `LONG_VIDEO_S` or more."""
    seconds = Counter(v.duration for v in videos if v.duration is not None)
    return bool(seconds) and at_share(seconds, 0.5) >= LONG_VIDEO_S


def at_share(counts: Mapping[Length, int], share: float) -> Length:
    """Return the least of the counted values that at least this share of them do not exceed."""
    wanted, seen = share * sum(counts.values()), 0
    for value, count in sorted(counts.items()):
        seen += count
        if count and seen >= wanted:
            return value
    raise ValueError("no value is counted")


def _sum(counts: Mapping[float, int]) -> float:
    return sum(value * count for value, count in counts.items())


def _row(name: str, cells: Sequence[str], number: int) -> str:
    return f"| {name} | {' | '.join(cells)} | {number} |"
