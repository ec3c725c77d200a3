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
# behind the answer: it is taken back, and something else is said
_CORRECTED = re.compile(
    r"^\W*(?:(?:no|nope|nah|wait|correction|actually no|oh no)\b\s*[,;:.!–—-]+\s*(?=\w)"
    r"|no wait\b|scratch that\b|make that\b|i mean\b)",
    re.I,
)
_NEXT = re.compile(
    r"(?:^|[,;.]|\band\b|\s)\s*\b(?:then|next|finally|lastly|afterwards|after that|followed by"
    r"|subsequently|first(?:ly)?|second(?:ly)?|third(?:ly)?)\b",
    re.I,
)
_BACKWARDS = re.compile(r"\b(?:before|after(?! that)|until|prior to|preceded)\b", re.I)
RULES = "mention-2"  # what a judge that asks them says of itself: to be changed with them
DENIAL_REACH_WORDS = 6  # words in front of the answer that a denial may stand in
MAX_LISTED_WORDS = 3  # words of one answer in a list
MIN_STUFFED_REPEATS = 3  # times that an answer's words are said beside others, in no sentence


def answer_words(triple: Triple) -> list[str]:
    """The words of the reference that carry it: those that the question has not."""
    asked = set(words(triple.question))
    known = [w for w in words(triple.reference) if w not in STOP and not NEGATION.fullmatch(w)]
    return [w for w in known if w not in asked] or known


def only_mentioned(triple: Triple) -> bool:
    """The candidate has all of the reference's own words, and denies them or offers others beside
    them; or the reference denies what the candidate says; or both tell the same steps in another
    order. A question that denies is left alone.
    """
    answer, said = answer_words(triple), words(triple.candidate)
    if is_reordered(triple.candidate, triple.reference):
        return True
    if not answer or not {*answer} <= {*said} or said == words(triple.reference):
        return False
    if NEGATION.search(triple.question):
        return False
    if NEGATION.search(triple.reference):
        whole = {*words(NEGATION.sub(" ", triple.reference))} - STOP
        return len(whole) > 1 and whole <= {*said} and not NEGATION.search(triple.candidate)
    if _SEVERAL.search(triple.question):
        return is_denied(triple, answer)
    return (
        is_denied(triple, answer)
        or is_one_of_several(triple.candidate, triple.reference, answer)
        or is_stuffed(said, triple, answer)
    )


def is_denied(triple: Triple, answer: Sequence[str]) -> bool:
    """Every clause with a word of the answer denies it, and not in words of the question."""
    asked, candidate = set(words(triple.question)), triple.candidate
    candidate = _ONLY.sub("", _EXCEPT.sub(r"\1 except", candidate))
    sentences = [s for s in _SENTENCE.split(candidate) if s.strip()]
    verdicts: list[bool] = []
    for sentence, after in zip(sentences, [*sentences[1:], ""], strict=True):
        end_of_clause = 0
        for clause in _CLAUSE.split(sentence):
            place = _place(clause, answer)
            end_of_clause = sentence.find(clause, end_of_clause) + len(clause)
            if place is not None:
                begin, end = place
                near = " ".join(clause[:begin].split()[-DENIAL_REACH_WORDS:])
                near += " " if clause[:begin].endswith(" ") else ""
                found = (_BEFORE.search(near), _BEHIND.search(clause[end:]))
                own = any(m and not {*words(m.group())} - STOP <= asked for m in found)
                rest = sentence[end_of_clause:]
                behind = _RETRACTED.match(after) or is_corrected(after) or is_corrected(rest)
                verdicts.append(own or bool(behind))
    return bool(verdicts) and all(verdicts)


def is_corrected(rest: str) -> bool:
    """What follows the answer takes it back and says something else: "no, blue"."""
    found = _CORRECTED.match(rest)
    return found is not None and not NEGATION.search(rest[found.end() :])


def _place(clause: str, answer: Sequence[str]) -> tuple[int, int] | None:
    """From where to where the answer's words are in a clause."""
    found = [m.span() for m in re.finditer(r"[^\W_]+", clause) if {*words(m.group())} & {*answer}]
    return (found[0][0], found[-1][1]) if found else None


def is_one_of_several(candidate: str, reference: str, answer: Sequence[str]) -> bool:
    """The answer is one of several to choose from, and the reference is a single one."""
    if len(_items(reference)) > 1:
        return False
    if len(_HEDGE.findall(candidate)) > 1:
        return True
    parts = _items(candidate)
    return len(parts) > 1 and sum(bool({*words(p)} & {*answer}) for p in parts) == 1


def is_stuffed(said: Sequence[str], triple: Triple, answer: Sequence[str]) -> bool:
    """The answer's words again and again beside others that nobody asked about, in no sentence."""
    known = {*answer, *words(triple.question), *words(triple.reference)}
    if {*said} & STOP - known or {*said} <= known:
        return False
    reference = words(triple.reference)
    return all(said.count(w) - reference.count(w) >= MIN_STUFFED_REPEATS - 1 for w in {*answer})


def is_reordered(candidate: str, reference: str) -> bool:
    """Both tell steps in an order ("first ..., then ..."), the same steps, in different orders."""
    steps = [_steps(text) for text in (candidate, reference)]
    if any(len(found) < 2 for found in steps):
        return False
    places: list[int] = []
    for step in steps[1]:
        shares = [len(step & other) / len(step) for other in steps[0]]
        best = max(shares)
        if best <= 0.5 or shares.count(best) > 1:
            return False
        places.append(shares.index(best))
    return len({*places}) == len(places) and places != sorted(places)


def _steps(text: str) -> list[set[str]]:
    """The words of each step of a text that tells several, in their order; none where it may tell
    them backwards.
    """
    if _BACKWARDS.search(text) or not _NEXT.search(text):
        return []
    return [found for part in _NEXT.split(text) if (found := {*words(part)} - STOP)]


def _items(text: str) -> list[str]:
    """The answers of a list: parted by signs that only a list has, or three and more short ones in
    small letters (names of places have commas, too).
    """
    parts = [p for p in _PARTED.split(text) if words(p)]
    if len(parts) > 1 and all(len(words(p)) <= MAX_LISTED_WORDS for p in parts):
        return parts
    listed = [p.strip(" .") for p in _LISTED.split(re.sub(r"^one of ", "", text, flags=re.I))]
    listed = [p for p in listed if p]
    short = len(listed) > 2 and all(len(words(p)) <= MAX_LISTED_WORDS for p in listed)
    return listed if short and all(p[0].islower() for p in listed[1:]) else [text]
