"""Whether an answer says what the reference says, or only has its words: what no label teaches.

People's labels seldom deny, or offer several answers to choose from, so a judge trained on them
takes mention for equivalence. The rules here are strict: they know the forms of English that leave
no doubt, and say nothing of the rest: of 16,583 pairs that people labelled (EVOUNA's NQ and NQ301)
they turn one. Texts are on one line, as `triple` makes them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mustsee.judge.lexical import STOP, words
from mustsee.judge.prompt import Triple

_NO = r"(?:not(?! (?:only|just|merely|until(?! after))\b)|never|cannot|hardly|scarcely|\w+n['’]t)"
NEGATION = re.compile(rf"\b(?:{_NO}|no|nothing|nobody|without|neither|nor|none)\b", re.I)
# in front of the answer, in its clause
_BEFORE = re.compile(
    rf"\b(?:{_NO}|neither|nor|without|except(?: for)?|other than|instead of|rather than|far from"
    r"|nowhere near|opposite of|lacks?|used to be|(?<!no )doubts?|false|untrue|wrong|mistaken"
    r"|(?<!no )(?:fewer|less|more) than)\b|\bnon-$",
    re.I,
)
# behind the answer, with at most a word between that joins nothing
_BEHIND = re.compile(
    r"^\W*(?:(?!and|or|but|who|which|that)\w+ ){0,2}?"
    r"(?:(?:is|was|are|were|would be)(?: \w+)? (?:wrong|false|untrue|mistaken|incorrect)\b"
    r"|(?:is|was|are|were|did|does|do|has|had|have|would|could|can)(?: not\b|n['’]t\b)"
    r"|it (?:is|was) not\b|lost\b)",
    re.I,
)
_RETRACTED = re.compile(
    r"^\W*(?:\w+ly )?(?:no|not|wrong|false|untrue|incorrect|never)\b\W*(?:true)?\W*$", re.I
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|;")
_CLAUSE = re.compile(r"[,:]\s+|\bbut\b|\s[–—-]\s|[()]", re.I)
_EXCEPT = re.compile(r"\b((?:any|every)\w*(?: \w+)?) but\b", re.I)
_ONLY = re.compile(r"\b(?:nothing|nobody|none|no one) but\b", re.I)
_HEDGE = re.compile(r"\b(?:possibly|maybe|perhaps|probably|(?:could|might|may) be)\b", re.I)
_PARTED = re.compile(r"\s*(?:[;|]|\bvs?\b\.?|\bversus\b|(?:^|\s)\(?(?:\d|[A-Ea-e])[).:]\s)\s*")
_LISTED = re.compile(r"\s*(?:,|\band\b|\bor\b(?! (?:so|thereabouts)\b))\s*")
_SEVERAL = re.compile(
    r"\b(?:are|were|list|names?|all|each|top|[a-z]{3,}s that"
    r"|(?:what|which)(?: (?!does\b)\w+)? (?!does\b|this\b)\w{3,}s)\b",
    re.I,
)
RULES = "mention-1"  # what a judge that asks them says of itself: to be changed with them
REACH = 6  # words in front of the answer that a denial may stand in
SHORT = 3  # words of one answer in a list


def told(triple: Triple) -> list[str]:
    """The words of the reference that carry it: those that the question has not."""
    asked = set(words(triple.question))
    known = [w for w in words(triple.reference) if w not in STOP and not NEGATION.fullmatch(w)]
    return [w for w in known if w not in asked] or known


def only_mentioned(triple: Triple) -> bool:
    """The candidate has all of the reference's own words, and denies them or offers others beside
    them; or the reference denies what the candidate says. A question that denies is left alone.
    """
    answer, said = told(triple), words(triple.candidate)
    if not answer or not {*answer} <= {*said} or said == words(triple.reference):
        return False
    if NEGATION.search(triple.question):
        return False
    if NEGATION.search(triple.reference):
        whole = {*words(NEGATION.sub(" ", triple.reference))} - STOP
        return len(whole) > 1 and whole <= {*said} and not NEGATION.search(triple.candidate)
    if _SEVERAL.search(triple.question):
        return denied(triple, answer)
    return denied(triple, answer) or offered(triple.candidate, triple.reference, answer)


def denied(triple: Triple, answer: Sequence[str]) -> bool:
    """Every clause with a word of the answer denies it, and not in words of the question."""
    asked, candidate = set(words(triple.question)), triple.candidate
    candidate = _ONLY.sub("", _EXCEPT.sub(r"\1 except", candidate))
    sentences = [s for s in _SENTENCE.split(candidate) if s.strip()]
    verdicts: list[bool] = []
    for sentence, after in zip(sentences, [*sentences[1:], ""], strict=True):
        for clause in _CLAUSE.split(sentence):
            place = _place(clause, answer)
            if place is not None:
                begin, end = place
                near = " ".join(clause[:begin].split()[-REACH:])
                near += " " if clause[:begin].endswith(" ") else ""
                found = (_BEFORE.search(near), _BEHIND.search(clause[end:]))
                own = any(m and not {*words(m.group())} - STOP <= asked for m in found)
                verdicts.append(own or bool(_RETRACTED.match(after)))
    return bool(verdicts) and all(verdicts)


def _place(clause: str, answer: Sequence[str]) -> tuple[int, int] | None:
    """From where to where the answer's words are in a clause."""
    found = [m.span() for m in re.finditer(r"[^\W_]+", clause) if {*words(m.group())} & {*answer}]
    return (found[0][0], found[-1][1]) if found else None


def offered(candidate: str, reference: str, answer: Sequence[str]) -> bool:
    """The answer is one of several to choose from, and the reference is a single one."""
    if len(_items(reference)) > 1:
        return False
    if len(_HEDGE.findall(candidate)) > 1:
        return True
    parts = _items(candidate)
    return len(parts) > 1 and sum(bool({*words(p)} & {*answer}) for p in parts) == 1


def _items(text: str) -> list[str]:
    """The answers of a list: parted by signs that only a list has, or three and more short ones in
    small letters (names of places have commas, too).
    """
    parts = [p for p in _PARTED.split(text) if words(p)]
    if len(parts) > 1 and all(len(words(p)) <= SHORT for p in parts):
        return parts
    listed = [p.strip(" .") for p in _LISTED.split(re.sub(r"^one of ", "", text, flags=re.I))]
    listed = [p for p in listed if p]
    short = len(listed) > 2 and all(len(words(p)) <= SHORT for p in listed)
    return listed if short and all(p[0].islower() for p in listed[1:]) else [text]
