"""Figures on a dataset's card: the lengths of videos, questions, answers and wrong options, and the
scores of models beside people, as `mustsee compare` has compared them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, TypeVar

from mustsee.errors import UserError
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
        lines.append(_length_row("clips" if clips else "videos", cells, seconds.total()))
    for name, counts in words.items():
        if number := sum(counts.values()):
            cells = [f"{at_share(counts, share)}" for share in SHARES]
            lines.append(_length_row(name, cells, number))
    text = "\n".join(lines)
    if seconds:
        total = sum(value * count for value, count in seconds.items())
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


def _length_row(name: str, cells: Sequence[str], number: int) -> str:
    return f"| {name} | {' | '.join(cells)} | {number} |"


KEY = "layout.card.compared.folder"
RUBRIC = "rubric"  # kind of a measure whose scores are from 2 to 10; those of others are shares


def read_compared(folder: str | None) -> Mapping[str, Any]:
    """Return the `compare.json` of `mustsee compare evaluations=`; empty for None. Raises UserError
    if the folder has none.
    """
    if folder is None:
        return {}
    file = Path(folder) / "compare.json"
    if not file.exists():
        raise UserError(
            f"no compare.json in {folder!r}: set {KEY}= to the output folder of `mustsee compare "
            "evaluations=... rated=...`"
        )
    record = json.loads(file.read_text(encoding="utf-8"))
    tables = record.get("tables")
    if not tables or not all("title" in table for table in tables):
        raise UserError(
            f"{str(file)!r} compares no models: set {KEY}= to the output folder of `mustsee "
            "compare evaluations=...`; what an earlier version wrote must be written again"
        )
    return record


def compared_ids(compared: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of all questions that were compared."""
    tables = compared.get("tables", ())
    return frozenset(name for table in tables for name in table["columns"][0]["questions"])


def scores_text(compared: Mapping[str, Any], question_ids: Set[str], count: int) -> str:
    """Return a table for each measure: people, models, and guessing among the options.

    `question_ids`: those of the dataset's `count` questions that were compared. Raises UserError if
    none was.
    """
    tables = [(table, set(table["columns"][0]["questions"])) for table in compared["tables"]]
    own = [(table, asked) for table, asked in tables if asked & question_ids]
    if not own:
        raise UserError(f"{KEY}=: it compares models on none of the {count} questions")
    return "\n\n".join(_table_text(table, asked, question_ids) for table, asked in own)


def _table_text(table: Mapping[str, Any], asked: Set[str], question_ids: Set[str]) -> str:
    title, others = table["title"], len(asked - question_ids)
    outside = f", {others} of which are not in this dataset" if others else ""
    return "\n".join(
        [
            f"{title[:1].upper()}{title[1:]}, on {len(asked)} questions{outside}. "
            "In brackets the 95 % interval, with the questions of a video as one cluster.",
            "",
            "| | score | questions | videos |",
            "|---|---:|---:|---:|",
            *_rows(table),
        ]
    )


def _rows(table: Mapping[str, Any]) -> Iterator[str]:
    kind = table["measure"]["kind"]
    for name, estimates in table["people"].items():
        yield _row(f"**people: {name}**", estimates[0], kind)
    for model in table["rows"]:
        yield _row(", ".join((f"`{model['name']}`", *model["tags"])), model["estimates"][0], kind)
    if (chance := table["columns"][0]["chance"]) is not None:
        yield f"| guessing among the options | {_number(chance, kind)} | | |"


def _row(name: str, estimate: Mapping[str, Any] | None, kind: str) -> str:
    if estimate is None:
        return f"| {name} | none | | |"
    low, high = estimate["low"], estimate["high"]
    span = "" if low is None else f" ({_number(low, kind)} to {_number(high, kind)})"
    score = f"{_number(estimate['value'], kind)}{span}"
    return f"| {name} | {score} | {estimate['n']} | {estimate['clusters']} |"


def _number(value: float, kind: str) -> str:
    return f"{value:.2f}" if kind == RUBRIC else f"{100 * min(1.0, max(0.0, value)):.1f}"
