"""Grading of a blind reader's reply to a row without options: rules, and a judge where they end."""

from __future__ import annotations

import re

from mustsee.clean.columns import TrainingRow, number_in
from mustsee.replies.overlap import normalize
from mustsee.text import NUMBERS, words

GRADERS = {  # kind of answer -> how a reply to it is graded
    "choice": "the letter that the reply names",
    "yes/no": "yes or no, the only one of the two that the reply has",
    "number": "the only number of the reply, equal as a number",
    "text": "equal, or within the reply, in lower case without punctuation",
    "open": "equal without case, articles and punctuation; else by the judge",
}
_FIGURE = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_YES, _NO = {"yes", "true"}, {"no", "false"}


def grade_by_rules(row: TrainingRow, reply: str) -> bool | None:
    """Return whether a reply has a row's answer; None where only a judge can tell."""
    if row.kind == "yes/no":
        said = set(words(reply))
        yes, no = bool(said & _YES), bool(said & _NO)
        return yes != no and yes == (normalize(row.answer) in _YES)
    if row.kind == "number":
        return _numbers(reply) == {number_in(row.answer)}
    if row.kind == "text":
        return f" {_bare(row.answer)} " in f" {_bare(reply)} "
    if normalize(row.answer) == normalize(reply):
        return True
    return None if reply.strip() else False


def _bare(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _numbers(reply: str) -> set[float | None]:
    figures = {float(f.replace(",", "")) for f in _FIGURE.findall(reply)}
    if figures:
        return {*figures}
    return {float(NUMBERS[w]) for w in words(reply) if w in NUMBERS}
