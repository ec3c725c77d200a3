"""Questions with their answers and wrong answers, read from a reply by its labels.

EgoSchema's chains ask for questions alone, for answers to questions that are known already, or for
all at once. The labels are read as leniently as everywhere (`mustsee.questions.drafts.fields`);
here the labelled lines become drafts, and a reply that drifts from the form asked for is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mustsee.errors import Unparsed
from mustsee.questions.checks import normal
from mustsee.questions.drafts import Draft, Field, fields

_STRICT = re.compile(r"^(Question \d+:|Correct answer: \S|Wrong answer \d+: \S)", re.MULTILINE)
_EMPTY = re.compile(r"[\W_]*(n/?a|none|\[.*\]|the full (answer|question))?[\W_]*", re.IGNORECASE)


def drifted(text: str) -> bool:
    """Whether a labelled line is not exactly of the form asked for ("Wrong Answer A :")."""
    return len(fields(text)) > len(_STRICT.findall(text))


def questions_in(text: str, count: int) -> list[str]:
    """The first `count` questions of a reply. Raises Unparsed where fewer are there, or twice."""
    found = [f.text for f in fields(text) if f.label == "question" and not _no(f.text)]
    if len(found) < count:
        raise Unparsed(f"expected {count} lines 'Question n: ...', found {len(found)}")
    found = found[:count]
    if len({normal(words) for words in found}) < count:
        raise Unparsed("two of the questions are the same")
    return found


def drafts(
    text: str, count: int, *, wrong: int, with_question: bool, with_answer: bool = True
) -> list[Draft]:
    """The first `count` questions of a reply with their answers, or without what is not wanted.

    Raises Unparsed where one lacks a part, has fewer than `wrong` wrong answers, or says the same
    twice.
    """
    groups = [g for g in _grouped(fields(text)) if g.answer or g.wrong]
    if len(groups) < count:
        raise Unparsed(f"expected answers to {count} questions, found them for {len(groups)}")
    done: list[Draft] = []
    for number, group in enumerate(groups[:count], 1):
        if with_question and _no(group.question):
            raise Unparsed(f"item {number} has no line 'Question {number}: ...'")
        if with_answer and _no(group.answer):
            raise Unparsed(f"question {number} has no 'Correct answer: ...'")
        good = [w for w in group.wrong if not _no(w)][:wrong]
        if len(good) < wrong:
            raise Unparsed(f"question {number} has {len(good)} wrong answers instead of {wrong}")
        done.append(whole(Draft(question=group.question, answer=group.answer, decoys=tuple(good))))
    return done


def whole(draft: Draft) -> Draft:
    """The draft, unless two of its answers are the same: then Unparsed."""
    options = [normal(text) for text in (draft.answer, *draft.decoys) if text]
    if len(set(options)) < len(options):
        raise Unparsed(f"two answers to {draft.question or 'a question'!r} are the same")
    return draft


def _no(words: str) -> bool:
    return _EMPTY.fullmatch(words) is not None


@dataclass
class _Group:
    question: str = ""
    answer: str = ""
    wrong: list[str] = field(default_factory=list[str])


def _grouped(parts: Sequence[Field]) -> list[_Group]:
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
