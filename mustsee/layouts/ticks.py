"""Ticks: what a person who looks through the served report says of questions, kept beside them.

`ticks.jsonl` in the folder of a run has a line for each tick; the last one on a question counts.
Whoever reads the folder's questions reads them with the ticks (`mustsee.layouts.ours`). An edited
question leaves all subsets but `full`, until it is tested again (`mustsee.layouts.added`): what was
verified had other words.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mustsee.errors import UserError
from mustsee.layouts.reading import answer_of
from mustsee.records import Question, Repair
from mustsee.verify.repair import wording_fields

FILE = "ticks.jsonl"
VERDICTS = ("keep", "drop", "edit", "none")
BY_HAND = "by hand"  # who makes the repair of an edit
MAX_REASON = 500  # characters
MAX_WORDS = 2000  # characters of a question or an option


@dataclass(frozen=True, kw_only=True)
class Tick:
    """One tick. `verdict`: "keep", "drop", "edit" (keep with other words), or "none", which takes
    back an earlier one. `question`, `options`: the words of an edited question; the right option
    keeps its place. `when`: Unix seconds.
    """

    question_id: str
    verdict: str
    reason: str = ""
    when: float = 0.0
    question: str = ""
    options: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise UserError(f"verdict {self.verdict!r}: choose one of {', '.join(VERDICTS)}")
        if len(self.reason) > MAX_REASON or not self.reason.isprintable():
            raise UserError(f"a reason is one line of at most {MAX_REASON} characters")
        words = [self.question, *self.options] if self.verdict == "edit" else []
        for text in words:
            if not text.strip() or len(text) > MAX_WORDS or not text.isprintable():
                raise UserError(
                    f"{text[:50]!r}: a question and an option are a line of 1 to {MAX_WORDS} "
                    "characters"
                )
        if len({option.strip().lower() for option in self.options}) < len(self.options):
            raise UserError("two options are equal: change one of them")


def append_tick(folder: Path, tick: Tick) -> None:
    """Add a tick to the folder, in one write, on the disk when this returns. What a full disk left
    of an earlier line goes.
    """
    line = json.dumps(asdict(tick), ensure_ascii=False) + "\n"
    with (folder / FILE).open("a+b") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(line.encode())
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
    """Return the question dropped, taken back or with other words, as its tick says."""
    tick = ticks.get(question.question_id)
    if tick is None:
        return question
    if tick.verdict == "edit":
        edited = _edit(question, tick)
        if words_of(edited) != words_of(question):
            return edited
    keeps = tick.verdict != "drop"
    if keeps == (question.drop is None):
        return question
    if keeps:
        return replace(question, drop=None, subsets=("full",))
    return replace(question, drop=_with_reason(BY_HAND, tick), subsets=())


def words_of(question: Question) -> tuple[object, ...]:
    """Return what makes another question of it if it changes: text, options, answer and its index.

    Blanks at the ends do not count.
    """
    texts = (question.question, *question.options, answer_of(question))
    return (*(text.strip() for text in texts), question.answer_index)


def _edit(question: Question, tick: Tick) -> Question:
    """Return the question with the tick's words. Raises UserError for another number of options."""
    options = tuple(tick.options)
    if len(options) != len(question.options):
        raise UserError(
            f"{FILE}: {len(options)} options for {question.question_id}, which has "
            f"{len(question.options)}: edit it again, or delete this line"
        )
    index = question.answer_index
    answer = question.answer if index is None or not options else options[index]
    new = replace(question, question=tick.question, options=options, answer=answer)
    return edit_by_hand(question, new, _with_reason("edited by hand", tick))


def edit_by_hand(question: Question, new: Question, reason: str) -> Question:
    """Return the question with the words, key and evidence of `new`, and its own ones in `repairs`.
    Other options take it out of its set or pair.
    """
    before = json.dumps(wording_fields(question), ensure_ascii=False)
    repair = Repair(kind="wording", reason=reason, by=BY_HAND, before=before)
    same = sorted(new.options) == sorted(question.options)
    return replace(
        question,
        question=new.question,
        options=new.options,
        answer_index=new.answer_index,
        answer=answer_of(new),
        evidence=new.evidence,
        drop=None,
        subsets=("full",),
        repairs=(*question.repairs, repair),
        group=question.group if same else None,
        relation=question.relation if same else None,
    )


def _with_reason(what: str, tick: Tick) -> str:
    return f"{what}: {tick.reason}" if tick.reason else what
