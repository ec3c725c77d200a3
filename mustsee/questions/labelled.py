"""Forms of the replies in EgoSchema's chains: questions alone, answers to given questions, or both.

Labels are parsed leniently, as everywhere (`mustsee.questions.drafts.fields`); `is_malformed`
detects replies that differ from the required form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from mustsee.errors import Unparsed
from mustsee.questions.checks import normal
from mustsee.questions.drafts import Draft, fields
from mustsee.questions.replies import NumberedDraft, is_none, question, question_list
from mustsee.replies.forms import Form, form, list_of, object_with, words

_STRICT = re.compile(r"^(Question \d+:|Correct answer: \S|Wrong answer \d+: \S)", re.MULTILINE)
_EMPTY = re.compile(r"[\W_]*(n/?a|none|\[.*\]|the full (answer|question))?[\W_]*", re.IGNORECASE)


def is_malformed(text: str) -> bool:
    """Whether a labelled line differs from the required form ("Wrong Answer A :")."""
    return len(fields(text)) > len(_STRICT.findall(text))


def questions_in(count: int) -> Form[list[str]]:
    """Return the form of a reply with `count` questions, or fewer where it says "none" for one.

    Its `read` raises Unparsed for a missing or a repeated question, and ignores further ones.
    """

    def first(texts: Sequence[str]) -> list[str]:
        questions = [text for text in texts if not _is_empty(text)]
        if len(questions) + _count_none(texts) < count:
            raise Unparsed(f"expected {count} lines 'Question n: ...', found {len(questions)}")
        questions = questions[:count]
        if len({normal(text) for text in questions}) < len(questions):
            raise Unparsed("two of the questions are the same")
        return questions

    shape = object_with("questions", list_of(words("a question"), f"{count} in all"))
    return form(text=_questions, shape=shape).map(first)


def _questions(text: str) -> tuple[str, ...]:
    return tuple(f.text for f in fields(text) if f.label == "question")


def drafts(
    count: int, *, wrong: int, with_question: bool, with_answer: bool = True
) -> Form[list[Draft]]:
    """Return the form of a reply with `count` questions and their answers, or fewer where it says
    "none" for a question.

    Its `read` raises Unparsed for a question without its text or answer (unless these are not
    required), with fewer than `wrong` wrong answers, or with two equal answers.
    """

    def check_drafts(numbered: Sequence[NumberedDraft]) -> list[Draft]:
        answered = [one.draft for one in numbered if one.draft.answer or one.draft.decoys]
        if len(answered) + _count_none([one.draft.question for one in numbered]) < count:
            raise Unparsed(f"expected answers to {count} questions, found them for {len(answered)}")
        checked: list[Draft] = []
        for number, one in enumerate(answered[:count], 1):
            if with_question and _is_empty(one.question):
                raise Unparsed(f"item {number} has no line 'Question {number}: ...'")
            if with_answer and _is_empty(one.answer):
                raise Unparsed(f"question {number} has no 'Correct answer: ...'")
            good = [w for w in one.decoys if not _is_empty(w)][:wrong]
            if len(good) < wrong:
                raise Unparsed(
                    f"question {number} has {len(good)} wrong answers instead of {wrong}"
                )
            draft = Draft(question=one.question, answer=one.answer, decoys=tuple(good))
            checked.append(whole(draft))
        return checked

    about = f"{count} in all, in the order of their numbers"
    shape = question_list(question(answer=with_answer, wrong=wrong), about)
    return form(text=_parse_text, shape=shape).map(check_drafts)


def whole(draft: Draft) -> Draft:
    """Return the draft. Raises Unparsed if two of its answers are the same."""
    options = [normal(text) for text in (draft.answer, *draft.decoys) if text]
    if len(set(options)) < len(options):
        raise Unparsed(f"two answers to {draft.question or 'a question'!r} are the same")
    return draft


def _is_empty(text: str) -> bool:
    return _EMPTY.fullmatch(text) is not None


def _count_none(texts: Sequence[str]) -> int:
    """Return the number of questions in whose place a reply says "none"."""
    return sum(map(is_none, texts))


def _parse_text(text: str) -> tuple[NumberedDraft, ...]:
    """Group the fields by question. A question, a second correct answer, and a wrong answer 1 or A
    after other wrong answers begin a new group.
    """
    groups: list[Draft] = []
    for one in fields(text):
        group = groups[-1] if groups else None
        if (
            group is None
            or one.label == "question"
            or (one.label == "answer" and (group.answer or group.decoys))
            or (one.label == "wrong" and one.number in ("1", "A") and group.decoys)
        ):
            group = Draft(question="", answer="")
            groups.append(group)
        if one.label in ("question", "answer"):
            groups[-1] = replace(group, **{one.label: one.text})
        elif one.label == "wrong":
            groups[-1] = replace(group, decoys=(*group.decoys, one.text))
    return tuple(NumberedDraft(number="", draft=group) for group in groups)
