"""Forms of replies that contain questions, as JSON or as labelled text.

    drafts = await asker.ask("neptune/questions", questions(most=8, evidence=True), ...)

Both parsers return a `NumberedDraft` for each question; the checks after them are shared.
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

MIN_SAME_RATIO = 0.6  # difflib ratio from which two texts are wordings of one question


@dataclass(frozen=True, kw_only=True)
class NumberedDraft:
    """A question of a reply, possibly incomplete, with its number there."""

    number: str
    draft: Draft


def _span(start: float, end: float) -> Span:
    if min(start, end) < 0:
        raise Unparsed("a stretch begins before the video does")
    return Span(min(start, end), max(start, end))


def span_list(about: str) -> Shape[tuple[Span, ...]]:
    """Return the JSON shape of a list of time spans in seconds, which are sorted when read."""
    one = record(_span, start=number("its first second"), end=number("its last second"))
    return list_of(one, about).map(lambda spans: tuple(sorted(spans, key=_start_and_end)))


def _start_and_end(span: Span) -> tuple[float, float]:
    return span.start, span.end


def question(
    *, kind: str = "", answer: bool = True, evidence: bool = False, wrong: int = 0
) -> Shape[Draft]:
    """Return the JSON shape of a question.

    `kind`: description of its kind; without it there is no such key. `answer`, `evidence`: whether
    it has these keys. `wrong`: number of wrong answers, each with a key of its own.
    """
    keys: dict[str, Shape[Any]] = {}
    if kind:
        keys["kind"] = words(kind)
    keys["question"] = words("the question")
    if answer:
        keys["correct_answer"] = words("the answer")
    for n in range(1, wrong + 1):
        keys[f"wrong_answer_{n}"] = words("an answer that is wrong")
    if evidence:
        keys["evidence"] = span_list(
            "the stretches that show the answer, as short as they can be, in seconds; moments that "
            "lie apart are stretches of their own"
        )
    return record(_draft, **keys)


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
    """Return the JSON shape of a list of questions, numbered in order when read."""

    def number_drafts(drafts: Sequence[Draft]) -> tuple[NumberedDraft, ...]:
        return tuple(NumberedDraft(number=str(n), draft=draft) for n, draft in enumerate(drafts, 1))

    description = about or "the questions; empty if you write none"
    return object_with("questions", list_of(one, description)).map(number_drafts)


def questions(
    most: int | None = None, *, kind: str = "its kind", evidence: bool = False, wrong: int = 0
) -> Form[tuple[Draft, ...]]:
    """Return the form of a reply with at most `most` questions and their answers, or NONE.

    Questions without text or answer are left out. Its `read` raises Unparsed if all are.
    """

    def complete_drafts(numbered: Sequence[NumberedDraft]) -> tuple[Draft, ...]:
        complete = [one.draft for one in numbered if one.draft.question and one.draft.answer]
        if numbered and not complete:
            raise Unparsed(_missing_text(numbered[0]))
        return tuple(complete[:most])

    shape = question_list(question(kind=kind, evidence=evidence, wrong=wrong))
    return form(text=_parse_text, shape=shape).map(complete_drafts)


def _missing_text(one: NumberedDraft) -> str:
    if not one.draft.question:
        return f"QUESTION {one.number or 1} has no text"
    return (
        f"the question {one.draft.question[:60]!r} is not followed by a line 'CORRECT ANSWER: ...'"
    )


def is_none(reply: str) -> bool:
    """Whether a reply is the word NONE."""
    return bool(re.fullmatch(r"[\W_]*none[\W_]*", reply, re.IGNORECASE))


def _parse_text(reply: str) -> tuple[NumberedDraft, ...]:
    """Return the questions of a text. Raises Unparsed for a text without any, unless it is NONE."""
    drafts = tuple(map(draft_from_fields, blocks(reply)))
    if not drafts and not is_none(reply):
        raise Unparsed("it holds no line of the form 'QUESTION 1: (capability) ...'")
    return drafts


def blocks(reply: str) -> list[list[LabelledField]]:
    """Return the fields of a text by question; each list begins with a "question" field."""
    groups: list[list[LabelledField]] = []
    for field in fields(reply):
        if field.label == "question":
            groups.append([field])
        elif groups:
            groups[-1].append(field)
    return groups


def draft_from_fields(block: Sequence[LabelledField]) -> NumberedDraft:
    """Return the question of a block of `blocks`."""

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


def decoys(drafts: Sequence[Draft], count: int) -> Form[tuple[Draft, ...]]:
    """Return the form of a reply that repeats the questions of `drafts`, each with `count` decoys.

    Reading it returns `drafts` with the decoys; a question with fewer than `count` gets none. A
    question of the reply belongs to the one that it repeats, whatever their order, or else to the
    one of its number. Raises Unparsed if every question has too few decoys.
    """

    def match_decoys(repeats: Sequence[NumberedDraft]) -> tuple[Draft, ...]:
        completed: list[Draft] = []
        faults: list[str] = []
        for place, (draft, given) in enumerate(
            zip(drafts, match_repeats(drafts, repeats), strict=True), 1
        ):
            if len(given) < count:
                faults.append(
                    f"QUESTION {place} ({draft.question[:60]!r}) has {len(given)} lines "
                    f"'WRONG ANSWER n: ...' where {count} are wanted"
                )
                given = ()
            completed.append(replace(draft, decoys=given[:count]))
        if drafts and len(faults) == len(drafts):
            raise Unparsed(faults[0])
        return tuple(completed)

    shape = question_list(
        question(kind="its kind", wrong=count), "every question, repeated word for word"
    )
    return form(text=_parse_text, shape=shape).map(match_decoys)


def match_repeats(
    drafts: Sequence[Draft], repeats: Sequence[NumberedDraft]
) -> list[tuple[str, ...]]:
    """Return for each question the decoys of its repeat.

    A repeat belongs to the question that it resembles most, so that two similar questions keep
    their own decoys.
    """
    places = range(1, len(drafts) + 1)
    texts = [normal(draft.question) for draft in drafts]
    best: dict[int, tuple[float, tuple[str, ...]]] = {}
    for one in repeats:
        text = normal(one.draft.question)
        ratios = [SequenceMatcher(None, each, text).ratio() for each in texts]
        ratio, _, place = max((ratios[n - 1], str(n) == one.number, n) for n in places)
        if ratio < MIN_SAME_RATIO:
            place = int(one.number) if one.number.isdecimal() else 0
        rank = ratio if ratio >= MIN_SAME_RATIO else 0.0
        if place not in best or best[place][0] < rank:
            best[place] = (rank, one.draft.decoys)
    return [best[n][1] if n in best else () for n in places]
