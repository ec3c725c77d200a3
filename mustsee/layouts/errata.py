"""Errata: corrections of answer keys in any layout, kept apart from the questions.

    errata = read_errata("errata.jsonl")
    outcome = errata.outcome(reading.questions)          # what applies, and what does not
    corrected = errata.correct_questions(reading.questions)

A line of the file is one entry: `id`, `old` and `new` (an option's text, or its letter where no
option has that text; `new` may be "bad", for a question that cannot be used, or null where the
right option is not known), `span` ([start, end] in seconds, or null), `evidence` (text) and `who`.
An entry whose `new` is its `old` confirms the key. A `who` that begins with "rule:" is a proposal
by a rule; a person's entry on the same question replaces it.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

from mustsee.errors import UserError
from mustsee.files.folders import write_json_lines
from mustsee.files.tables import one_line_error, parse_json
from mustsee.layouts.reading import QuestionFile, Questions, Rereadable, answer_of
from mustsee.records import OPEN, Question, Repair, Span, group_pairs
from mustsee.text import LETTERS, name_some, printable
from mustsee.verify.repair import wording_fields

BAD = "bad"  # `new` of a question that cannot be used
CORRECTED_BY = "errata: "  # begins the `by` of a corrected key's repair
RULE = "rule:"  # begins the `who` of a proposal
KEYS = ("id", "old", "new", "span", "evidence", "who")
UNDECIDED = (
    "not applied, no new key is given (people decide: mustsee rate questions=AUDIT form=errata, "
    "with the folder of the audit)"
)
MAX_NAMED = 10  # ids that a line names
State = Literal["corrected", "bad", "confirmed", "already", "undecided", "mismatched"]


@dataclass(frozen=True, kw_only=True)
class Erratum:
    """One entry of a file. `old` is None for a question without a key, `new` where the right option
    is not known.
    """

    id: str
    old: str | None
    new: str | None
    span: Span | None = None
    evidence: str = ""
    who: str = ""

    @property
    def is_proposal(self) -> bool:
        """Whether a rule wrote it, and no person."""
        return self.who.startswith(RULE)

    def plain(self) -> dict[str, Any]:
        """Return the entry as a line of the file."""
        span = None if self.span is None else [self.span.start, self.span.end]
        return {**asdict(self), "span": span}


@dataclass(frozen=True, kw_only=True)
class KeyMismatch:
    """An entry that was not applied because the question's key is not its `old`."""

    id: str
    old: str | None
    key: str | None


@dataclass(frozen=True, kw_only=True)
class ErrataOutcome:
    """What became of the entries of a file.

    `corrected`, `bad`, `confirmed`: ids of the entries that applied. `proposals`: how many of the
    first two no person confirmed. `already`: ids whose key was `new` before. `undecided`: ids
    without a `new`. `unknown`: ids of no question. `contradictory`: ids with several `new`.
    `siblings`: ids of questions made from corrected or bad ones, which stay as they are.
    """

    path: str
    corrected: tuple[str, ...]
    bad: tuple[str, ...]
    confirmed: tuple[str, ...]
    already: tuple[str, ...]
    undecided: tuple[str, ...]
    unknown: tuple[str, ...]
    contradictory: tuple[str, ...]
    mismatched: tuple[KeyMismatch, ...]
    siblings: tuple[str, ...]
    proposals: int

    @property
    def applied_count(self) -> int:
        """The number of entries that changed a question."""
        return len(self.corrected) + len(self.bad)

    def plain(self) -> dict[str, Any]:
        return {**asdict(self), "applied": self.applied_count}

    def lines(self) -> list[str]:
        """Return what applied, and by name what did not."""
        applied = (
            f"errata={self.path}: {self.applied_count} entries applied ({len(self.corrected)} keys "
            f"corrected, {len(self.bad)} bad questions left out), {len(self.confirmed)} keys "
            "confirmed"
        )
        if self.proposals:
            applied += f"; {self.proposals} of those applied are proposals that no person confirmed"
        mismatched = [f"{m.id} (old {m.old!r}, key {m.key!r})" for m in self.mismatched]
        named = (
            ("not applied, the ids are of no question", self.unknown),
            ("not applied, the key is not the entry's old", mismatched),
            ("not applied, several entries contradict each other", self.contradictory),
            (UNDECIDED, self.undecided),
            ("the key was the entry's new before", self.already),
            ("made from a corrected or bad question, and unchanged", self.siblings),
        )
        return [printable(applied)] + [
            printable(f"  {what}: {len(ids)}: {name_ids(ids)}") for what, ids in named if ids
        ]


def name_ids(ids: Sequence[str]) -> str:
    return name_some(ids, MAX_NAMED)


@dataclass(frozen=True, kw_only=True)
class Errata:
    """The entries of a file: one for each id, and the ids of those that contradict each other."""

    path: str
    entries: Mapping[str, Erratum]
    contradictory: tuple[str, ...] = ()

    def state(self, question: Question) -> State | None:
        """Return what the question's entry does; None for a question without one."""
        entry = self.entries.get(question.question_id)
        if entry is None:
            return None
        if not _is_key(question, entry.old):
            done = entry.new not in (BAD, None) and _is_key(question, entry.new)
            return "already" if done else "mismatched"
        if entry.new is None:
            return "undecided"
        if entry.new == BAD:
            return "bad"
        if _is_key(question, entry.new):
            return "confirmed"
        return "mismatched" if option_index(question, entry.new) is None else "corrected"

    def apply(self, question: Question) -> Question:
        """Return the question with its entry applied. A twin asked without the options follows the
        question that it was made from.
        """
        state = self.state(question)
        if state == "corrected":
            return _with_key(question, self.entries[question.question_id])
        if state == "bad":
            return _dropped(question, self.entries[question.question_id])
        return self._apply_to_twin(question)

    def correct_questions(self, questions: Questions) -> Rereadable[Question]:
        """Return the questions with the entries applied, each time that they are read."""
        return Rereadable(lambda: map(self.apply, questions))

    def outcome(self, questions: Questions) -> ErrataOutcome:
        """Say what the entries do to `questions`. Raises UserError if none is on one of them."""
        by_state: defaultdict[State, list[str]] = defaultdict(list)
        mismatched: list[KeyMismatch] = []
        siblings: list[tuple[str, str]] = []  # id, and that of the question it was made from
        ids = set[str]()
        for question in questions:
            ids.add(question.question_id)
            state = self.state(question)
            if state is not None:
                by_state[state].append(question.question_id)
            if state == "mismatched":
                name, old = question.question_id, self.entries[question.question_id].old
                mismatched.append(KeyMismatch(id=name, old=old, key=key_of(question)))
            if question.sibling_of in self.entries and self.apply(question) == question:
                siblings.append((question.question_id, question.sibling_of or ""))
        unknown = [name for name in self.entries if name not in ids]
        if self.entries and len(unknown) == len(self.entries):
            example = next(iter(ids), "none")
            raise UserError(
                f"errata={self.path!r}: none of its {len(unknown)} ids, such as {unknown[0]!r}, is "
                f"one of the {len(ids)} questions', such as {example!r}"
            )
        changed = {*by_state["corrected"], *by_state["bad"]}
        return ErrataOutcome(
            path=self.path,
            **{s: tuple(by_state[s]) for s in get_args(State) if s != "mismatched"},
            unknown=tuple(unknown),
            contradictory=self.contradictory,
            mismatched=tuple(mismatched),
            siblings=tuple(name for name, source in siblings if source in changed),
            proposals=sum(self.entries[name].is_proposal for name in changed),
        )

    def _apply_to_twin(self, question: Question) -> Question:
        entry = self.entries.get(question.sibling_of or "")
        if entry is None or entry.new is None or question.relation != OPEN:
            return question
        if question.answer != entry.old or entry.new == entry.old:
            return question
        if entry.new == BAD:
            return _dropped(question, entry)
        return replace(question, answer=entry.new, variants=(), trace=None, rationale=None)


@dataclass(frozen=True, kw_only=True)
class AppliedErrata:
    """The errata of a job's `errata=`, and what they did to its questions."""

    errata: Errata
    outcome: ErrataOutcome

    @property
    def confirmed_by_people(self) -> set[str]:
        """The ids of the questions on whose key, as it is now, a person decided."""
        decided = (*self.outcome.confirmed, *self.outcome.corrected, *self.outcome.already)
        return {name for name in decided if not self.errata.entries[name].is_proposal}


def correct_keys(
    reading: QuestionFile, path: str | None
) -> tuple[QuestionFile, AppliedErrata | None]:
    """Return the questions with the errata of a file applied. Raises UserError (`read_errata`)."""
    if path is None:
        return reading, None
    errata = read_errata(path)
    applied = AppliedErrata(errata=errata, outcome=errata.outcome(reading.questions))
    corrected = tuple(map(errata.apply, reading.questions))
    return replace(reading, questions=corrected), applied


def option_index(question: Question, value: str | None) -> int | None:
    """Return the index of the option with this text, or else with this letter; None without one."""
    if value is None:
        return None
    texts = [option.strip() for option in question.options]
    if value.strip() in texts:
        return texts.index(value.strip())
    letter = value.strip().upper()
    if len(letter) == 1 and letter in LETTERS[: len(texts)]:
        return LETTERS.index(letter)
    return None


def option_value(question: Question, index: int) -> str:
    """Return an option as an entry's `old` or `new`: its text, or its letter where the text has
    another meaning.
    """
    text = question.options[index].strip()
    clear = text != BAD and option_index(question, text) == index
    return text if clear else LETTERS[index]


def key_of(question: Question) -> str | None:
    """Return the key as an entry's `old`; None without one."""
    if not question.options:
        return question.answer or None
    return None if question.answer_index is None else option_value(question, question.answer_index)


def _is_key(question: Question, value: str | None) -> bool:
    if not question.options:
        return (answer_of(question) or None) == value
    if value is None or question.answer_index is None:
        return value is None and question.answer_index is None
    return option_index(question, value) == question.answer_index


def _with_key(question: Question, entry: Erratum) -> Question:
    """Return the question with the new key, and without what explains the old one."""
    index = option_index(question, entry.new)
    assert index is not None
    repair = Repair(
        kind="wording",
        reason=f"key corrected: {entry.evidence}".rstrip(": "),
        by=f"{CORRECTED_BY}{entry.who}",
        before=json.dumps(wording_fields(question), ensure_ascii=False),
    )
    return replace(
        question,
        answer_index=index,
        answer=question.options[index],
        variants=(),
        rationale=None,
        trace=None,
        evidence=_evidence(question, entry),
        repairs=(*question.repairs, repair),
    )


def _evidence(question: Question, entry: Erratum) -> tuple[Span, ...]:
    """Return the entry's span, or the question's own spans where the entry only repeats these."""
    if entry.span is None or entry.span == whole_span(question):
        return question.evidence
    return (entry.span,)


def whole_span(question: Question) -> Span | None:
    """Return the span from the first to the last moment of evidence; None without evidence."""
    spans = question.evidence
    return Span(min(s.start for s in spans), max(s.end for s in spans)) if spans else None


def _dropped(question: Question, entry: Erratum) -> Question:
    reason = f"errata: bad question, {entry.who}: {entry.evidence}".rstrip(": ")
    return replace(question, drop=question.drop or reason)


def read_errata(path: str | Path) -> Errata:
    """Read a file of entries. Raises UserError for a file or a line that cannot be read."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read errata={str(path)!r}: {one_line_error(error)}") from error
    where = f"errata={str(path)!r}, line "
    listed = [_entry(x, f"{where}{n}") for n, x in enumerate(lines, 1) if x.strip()]
    by_id = group_pairs((entry.id, entry) for entry in listed)
    if not by_id:
        raise UserError(f"errata={str(path)!r} has no entries")
    entries: dict[str, Erratum] = {}
    contradictory: list[str] = []
    for name, several in by_id.items():
        deciding = [e for e in several if not e.is_proposal] or several
        if len({(e.old, e.new) for e in deciding}) > 1:
            contradictory.append(name)
        else:
            entries[name] = deciding[-1]
    return Errata(path=str(path), entries=entries, contradictory=tuple(contradictory))


def _entry(line: str, where: str) -> Erratum:
    try:
        row = parse_json(line)
    except ValueError as error:
        raise UserError(f"{where}: {one_line_error(error)}") from error
    if not isinstance(row, dict):
        raise UserError(f"{where}: not an object with {', '.join(KEYS)}")
    values = cast(dict[str, Any], row)
    if missing := [key for key in ("id", "old", "new") if key not in values]:
        raise UserError(f"{where}: no {', '.join(missing)}; an entry has {', '.join(KEYS)}")
    for key in ("old", "new", "evidence", "who"):
        if not isinstance(values.get(key), str | None):
            raise UserError(f"{where}: {key}={values[key]!r}: expected a text or null")
    if not isinstance(values["id"], str | int) or isinstance(values["id"], bool):
        raise UserError(f"{where}: id={values['id']!r}: expected the id of a question")
    return Erratum(
        id=str(values["id"]),
        old=values["old"],
        new=values["new"],
        span=_span(values.get("span"), where),
        evidence=values.get("evidence") or "",
        who=values.get("who") or "",
    )


def _span(value: Any, where: str) -> Span | None:
    if value is None:
        return None
    times: list[Any] = list(value) if isinstance(value, list) else []
    numbers = [float(t) for t in times if isinstance(t, int | float) and not isinstance(t, bool)]
    if len(times) != 2 or len(numbers) != 2 or not 0 <= numbers[0] <= numbers[1] < math.inf:
        raise UserError(f"{where}: span={value!r}: expected [start, end] in seconds, or null")
    return Span(*numbers)


def write_errata(entries: Iterable[Erratum], path: Path) -> None:
    """Write one line for each entry."""
    write_json_lines(path, (entry.plain() for entry in entries))
