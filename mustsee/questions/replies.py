"""The forms of replies that hold questions: how they are read from JSON, and from labelled text.

    drafts = await asker.ask("neptune/questions", questions(most=8, evidence=True), ...)

Both legs give `NumberedDraft`, what a reply has of each question; what makes a whole question of it
is the same for both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from mustsee.errors import Unparsed
from mustsee.questions.checks import normal
from mustsee.questions.drafts import Draft, LabelledField, fields, plain, spans
from mustsee.records import Span
from mustsee.replies.forms import Form, Shape, form, list_of, number, object_with, record, words

MIN_SAME_RATIO = 0.6  # two wordings of one question share at least this much (difflib ratio)


@dataclass(frozen=True, kw_only=True)
class NumberedDraft:
    """A question as far as a reply has it, with the number that it stands under there."""

    number: str
    draft: Draft


def _span(start: float, end: float) -> Span:
    if min(start, end) < 0:
        raise Unparsed("a stretch begins before the video does")
    return Span(min(start, end), max(start, end))


def stretches(about: str) -> Shape[tuple[Span, ...]]:
    """Time spans, in seconds, in order."""
    one = record(_span, start=number("its first second"), end=number("its last second"))
    return list_of(one, about).map(lambda found: tuple(sorted(found, key=_ends)))


def _ends(span: Span) -> tuple[float, float]:
    return span.start, span.end


def question(
    *, kind: str = "", answer: bool = True, evidence: bool = False, wrong: int = 0
) -> Shape[Draft]:
    """A question in JSON, with the parts that are asked for. `kind`: what stands in its brackets;
    `wrong`: how many wrong answers, each a part of its own.
    """
    parts: dict[str, Shape[Any]] = {}
    if kind:
        parts["kind"] = words(kind)
    parts["question"] = words("the question")
    if answer:
        parts["correct_answer"] = words("the answer")
    for n in range(1, wrong + 1):
        parts[f"wrong_answer_{n}"] = words("an answer that is wrong")
    if evidence:
        parts["evidence"] = stretches("the stretches that show the answer, in seconds")
    return record(_draft, **parts)


def _draft(
    *,
    kind: str = "",
    question: str,
    correct_answer: str = "",
    evidence: tuple[Span, ...] = (),
    **wrong: str,
) -> Draft:
    decoys = tuple(text for answer in wrong.values() if (text := plain(answer)))
    return Draft(question=plain(question), answer=plain(correct_answer), tag=plain(kind),
                 evidence=evidence, decoys=decoys)  # fmt: skip


def question_list(one: Shape[Draft], about: str = "") -> Shape[tuple[NumberedDraft, ...]]:
    """Questions in JSON, numbered as they stand."""

    def number_drafts(drafts: Sequence[Draft]) -> tuple[NumberedDraft, ...]:
        return tuple(NumberedDraft(number=str(n), draft=draft) for n, draft in enumerate(drafts, 1))

    said = about or "the questions; empty where the answer would be NONE"
    return object_with("questions", list_of(one, said)).map(number_drafts)


def questions(
    most: int | None = None, *, kind: str = "the kind", evidence: bool = False, wrong: int = 0
) -> Form[tuple[Draft, ...]]:
    """Questions with their answers, at most `most`; none where the reply is the word NONE. One
    without its text or its answer is left out, unless none is left.
    """

    def whole(asked: Sequence[NumberedDraft]) -> tuple[Draft, ...]:
        found = [one.draft for one in asked if one.draft.question and one.draft.answer]
        if asked and not found:
            raise Unparsed(_lacking(asked[0]))
        return tuple(found[:most])

    shape = question_list(question(kind=kind, evidence=evidence, wrong=wrong))
    return form(text=_written, shape=shape).map(whole)


def _lacking(one: NumberedDraft) -> str:
    if not one.draft.question:
        return f"QUESTION {one.number or 1} has no text"
    return (
        f"the question {one.draft.question[:60]!r} is not followed by a line 'CORRECT ANSWER: ...'"
    )


def is_none(reply: str) -> bool:
    """Whether a reply is the word NONE: there is nothing to ask about."""
    return bool(re.fullmatch(r"[\W_]*none[\W_]*", reply, re.IGNORECASE))


def _written(reply: str) -> tuple[NumberedDraft, ...]:
    """The questions of a text. Raises Unparsed where there is none, unless it says so."""
    found = tuple(map(draft_from_fields, blocks(reply)))
    if not found and not is_none(reply):
        raise Unparsed("it holds no line of the form 'QUESTION 1: (capability) ...'")
    return found


def blocks(reply: str) -> list[list[LabelledField]]:
    """The fields of a text by question: each list begins with a "question" field."""
    found: list[list[LabelledField]] = []
    for field in fields(reply):
        if field.label == "question":
            found.append([field])
        elif found:
            found[-1].append(field)
    return found


def draft_from_fields(block: Sequence[LabelledField]) -> NumberedDraft:
    """The question that the fields of a block make."""

    def texts(label: str) -> tuple[str, ...]:
        return tuple(f.text for f in block if f.label == label and f.text)

    draft = Draft(
        question=block[0].text,
        answer=next(iter(texts("answer")), ""),
        tag=block[0].tag,
        evidence=spans(" ".join(texts("evidence"))),
        decoys=texts("wrong"),
    )
    return NumberedDraft(number=block[0].number, draft=draft)


def decoys(asked: Sequence[Draft], count: int) -> Form[tuple[Draft, ...]]:
    """The questions asked about, in their order, each with `count` decoys from the reply, or with
    none where the reply has too few for it.

    A question of the reply belongs to the one that it repeats, in whatever order; where it repeats
    none clearly, to the one of its number. Unparsed when all have too few.
    """

    def match_decoys(found: Sequence[NumberedDraft]) -> tuple[Draft, ...]:
        done: list[Draft] = []
        faults: list[str] = []
        for place, (draft, given) in enumerate(
            zip(asked, match_repeats(asked, found), strict=True), 1
        ):
            if len(given) < count:
                faults.append(
                    f"QUESTION {place} ({draft.question[:60]!r}) has {len(given)} lines "
                    f"'WRONG ANSWER n: ...' where {count} are wanted"
                )
                given = ()
            done.append(replace(draft, decoys=given[:count]))
        if asked and len(faults) == len(asked):
            raise Unparsed(faults[0])
        return tuple(done)

    shape = question_list(question(kind="the kind", wrong=count), "all questions, each repeated")
    return form(text=_written, shape=shape).map(match_decoys)


def match_repeats(asked: Sequence[Draft], found: Sequence[NumberedDraft]) -> list[tuple[str, ...]]:
    """For each question the decoys of the one that repeats it. Each repeats the one question that
    it is most like, so that of two questions alike neither takes the other's.
    """
    places = range(1, len(asked) + 1)
    wanted = [normal(draft.question) for draft in asked]
    best: dict[int, tuple[float, tuple[str, ...]]] = {}
    for one in found:
        text = normal(one.draft.question)
        alike = [SequenceMatcher(None, each, text).ratio() for each in wanted]
        likeness, _, place = max((alike[n - 1], str(n) == one.number, n) for n in places)
        if likeness < MIN_SAME_RATIO:
            place = int(one.number) if one.number.isdecimal() else 0
        rank = likeness if likeness >= MIN_SAME_RATIO else 0.0
        if place not in best or best[place][0] < rank:
            best[place] = (rank, one.draft.decoys)
    return [best[n][1] if n in best else () for n in places]
