"""The forms of EgoSchema's chains: questions alone, answers to questions that are known already, or
all at once.

The labels are read as leniently as everywhere (`mustsee.questions.drafts.fields`); a reply that
drifts from the form asked for is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mustsee.errors import Unparsed
from mustsee.questions.checks import normal
from mustsee.questions.drafts import Draft, LabelledField, fields
from mustsee.questions.replies import NumberedDraft, question, question_list
from mustsee.replies.forms import Form, form, list_of, object_with, words

_STRICT = re.compile(r"^(Question \d+:|Correct answer: \S|Wrong answer \d+: \S)", re.MULTILINE)
_EMPTY = re.compile(r"[\W_]*(n/?a|none|\[.*\]|the full (answer|question))?[\W_]*", re.IGNORECASE)

_NONE = re.compile(r"[\W_]*none[\W_]*", re.IGNORECASE)


def is_malformed(text: str) -> bool:
    """Whether a labelled line is not exactly of the form asked for ("Wrong Answer A :")."""
    return len(fields(text)) > len(_STRICT.findall(text))


def questions_in(count: int) -> Form[list[str]]:
    """The first `count` questions of a reply, fewer where it says "none" instead of one. Unparsed
    where one is missing without a word, or there twice.
    """

    def first(asked: Sequence[str]) -> list[str]:
        found = [text for text in asked if not _no(text)]
        if len(found) + _refused(asked) < count:
            raise Unparsed(f"expected {count} lines 'Question n: ...', found {len(found)}")
        found = found[:count]
        if len({normal(text) for text in found}) < len(found):
            raise Unparsed("two of the questions are the same")
        return found

    shape = object_with("questions", list_of(words("a question"), "the questions"))
    return form(text=_questions, shape=shape).map(first)


def _questions(text: str) -> tuple[str, ...]:
    return tuple(f.text for f in fields(text) if f.label == "question")


def drafts(
    count: int, *, wrong: int, with_question: bool, with_answer: bool = True
) -> Form[list[Draft]]:
    """The first `count` questions of a reply with their answers, or without what is not wanted.

    Fewer where it says "none" instead of a question. Unparsed where one lacks a part, has fewer
    than `wrong` wrong answers, or says the same twice.
    """

    def check_drafts(asked: Sequence[NumberedDraft]) -> list[Draft]:
        found = [one.draft for one in asked if one.draft.answer or one.draft.decoys]
        if len(found) + _refused([one.draft.question for one in asked]) < count:
            raise Unparsed(f"expected answers to {count} questions, found them for {len(found)}")
        done: list[Draft] = []
        for number, one in enumerate(found[:count], 1):
            if with_question and _no(one.question):
                raise Unparsed(f"item {number} has no line 'Question {number}: ...'")
            if with_answer and _no(one.answer):
                raise Unparsed(f"question {number} has no 'Correct answer: ...'")
            good = [w for w in one.decoys if not _no(w)][:wrong]
            if len(good) < wrong:
                said = f"question {number} has {len(good)} wrong answers instead of {wrong}"
                raise Unparsed(said)
            given = Draft(question=one.question, answer=one.answer, decoys=tuple(good))
            done.append(whole(given))
        return done

    shape = question_list(question(answer=with_answer, wrong=wrong), "the questions")
    return form(text=_written, shape=shape).map(check_drafts)


def whole(draft: Draft) -> Draft:
    """The draft, unless two of its answers are the same: then Unparsed."""
    options = [normal(text) for text in (draft.answer, *draft.decoys) if text]
    if len(set(options)) < len(options):
        raise Unparsed(f"two answers to {draft.question or 'a question'!r} are the same")
    return draft


def _no(words: str) -> bool:
    return _EMPTY.fullmatch(words) is not None


def _refused(asked: Sequence[str]) -> int:
    """How many questions a reply says that it has none for."""
    return sum(_NONE.fullmatch(text) is not None for text in asked)


@dataclass
class _Group:
    question: str = ""
    answer: str = ""
    wrong: list[str] = field(default_factory=list[str])


def _written(text: str) -> tuple[NumberedDraft, ...]:
    return tuple(
        NumberedDraft(
            number="", draft=Draft(question=g.question, answer=g.answer, decoys=tuple(g.wrong))
        )
        for g in _grouped(fields(text))
    )


def _grouped(parts: Sequence[LabelledField]) -> list[_Group]:
    """A question, a second correct answer, or wrong answers that begin again at 1 or A, begin a new
    group.
    """
    groups: list[_Group] = []
    for part in parts:
        now = groups[-1] if groups else _Group()
        begins = (
            not groups
            or part.label == "question"
            or (part.label == "answer" and bool(now.answer or now.wrong))
            or (part.label == "wrong" and part.number in ("1", "A") and bool(now.wrong))
        )
        if begins:
            now = _Group()
            groups.append(now)
        if part.label == "question":
            now.question = part.text
        elif part.label == "answer":
            now.answer = part.text
        elif part.label == "wrong":
            now.wrong.append(part.text)
    return groups
