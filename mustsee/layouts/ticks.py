"""Ticks: what a person who looks through the served report says of questions, kept beside them.

`ticks.jsonl` in the folder of a run has a line for each tick; the last one on a question counts.
Whoever reads the folder's questions reads them with the ticks (`mustsee.layouts.ours`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mustsee.errors import UserError
from mustsee.records import Question

FILE = "ticks.jsonl"
VERDICTS = ("keep", "drop", "none")
MAX_REASON = 500  # characters


@dataclass(frozen=True, kw_only=True)
class Tick:
    """One tick. `verdict`: "keep", "drop", or "none", which takes back an earlier one. `when`: Unix
    seconds.
    """

    question_id: str
    verdict: str
    reason: str = ""
    when: float = 0.0

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise UserError(f"verdict {self.verdict!r}: choose one of {', '.join(VERDICTS)}")
        if len(self.reason) > MAX_REASON or not self.reason.isprintable():
            raise UserError(f"a reason is one line of at most {MAX_REASON} characters")


def append_tick(folder: Path, tick: Tick) -> None:
    """Add a tick to the folder, in one write, on the disk when this returns."""
    line = json.dumps(asdict(tick), ensure_ascii=False) + "\n"
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def read_ticks(folder: Path) -> dict[str, Tick]:
    """Return the tick that counts, by question. Raises UserError for a damaged line; the last line
    may be cut off, as by a full disk, and then it does not count.
    """
    path = folder / FILE
    if not path.is_file():
        return {}
    ticks: dict[str, Tick] = {}
    lines = path.read_text("utf-8").split("\n")
    for number, line in enumerate(lines[:-1], 1):
        try:
            tick = Tick(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise UserError(f"{str(path)!r}, line {number}: {error}") from error
        ticks[tick.question_id] = tick
    return {name: tick for name, tick in ticks.items() if tick.verdict != "none"}


def apply_tick(question: Question, ticks: Mapping[str, Tick]) -> Question:
    """Return the question dropped or taken back, as its tick says."""
    tick = ticks.get(question.question_id)
    if tick is None or (tick.verdict == "keep") == (question.drop is None):
        return question
    if tick.verdict == "keep":
        return replace(question, drop=None, subsets=("full",))
    reason = f"by hand: {tick.reason}" if tick.reason else "by hand"
    return replace(question, drop=reason, subsets=())
