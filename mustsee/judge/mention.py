"""Detect answers that mention the reference without stating it.

Human-labelled answers seldom deny, or offer several answers to choose from, so a judge trained on
them takes mention for equivalence. The rules here cover only forms of English that leave no doubt:
of 16,583 human-labelled pairs (EVOUNA's NQ and NQ301) they change one verdict. Texts are single
lines, as made by `triple`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mustsee.judge.lexical import STOP, words
from mustsee.judge.prompt import Triple

_NEGATOR = (
    r"(?:not(?! (?:only|just|merely|until(?! after))\b)|never|cannot|hardly|scarcely|\w+n['’]t)"
)
NEGATION = re.compile(rf"\b(?:{_NEGATOR}|no|nothing|nobody|without|neither|nor|none)\b", re.I)
# These deny an answer after them in the same clause.
_DENIED_BEFORE = re.compile(
    rf"\b(?:{_NEGATOR}|neither|nor|without|except(?: for)?|other than|instead of|rather than"
    r"|far from|nowhere near|opposite of|lacks?|used to be|(?<!no )doubts?|false|untrue|wrong"
    r"|mistaken"
    r"|(?<!no )(?:fewer|less|more) than)\b|\bnon-$",
    re.I,
)
# These deny an answer before them; at most two words may be between, and no conjunction.
_DENIED_AFTER = re.compile(
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
_ALL_BUT = re.compile(r"\b((?:any|every)\w*(?: \w+)?) but\b", re.I)
_NONE_BUT = re.compile(r"\b(?:nothing|nobody|none|no one) but\b", re.I)
_HEDGE = re.compile(r"\b(?:possibly|maybe|perhaps|probably|(?:could|might|may) be)\b", re.I)
_LIST_SEPARATOR = re.compile(
    r"\s*(?:[;|]|\bvs?\b\.?|\bversus\b|(?:^|\s)\(?(?:\d|[A-Ea-e])[).:]\s)\s*"
)
_ENUMERATION = re.compile(r"\s*(?:,|\band\b|\bor\b(?! (?:so|thereabouts)\b))\s*")
_ASKS_FOR_SEVERAL = re.compile(
    r"\b(?:are|were|list|names?|all|each|top|[a-z]{3,}s that"
    r"|(?:what|which)(?: (?!does\b)\w+)? (?!does\b|this\b)\w{3,}s)\b",
    re.I,
)
# These retract the answer before them and introduce another one.
_CORRECTED = re.compile(
    r"^\W*(?:(?:no|nope|nah|wait|correction|actually no|oh no)\b\s*[,;:.!–—-]+\s*(?=\w)"
    r"|no wait\b|scratch that\b|make that\b|i mean\b)",
    re.I,
)
_STEP_MARKER = re.compile(
    r"(?:^|[,;.]|\band\b|\s)\s*\b(?:then|next|finally|lastly|afterwards|after that|followed by"
    r"|subsequently|first(?:ly)?|second(?:ly)?|third(?:ly)?)\b",
    re.I,
)
_REVERSED_STEPS = re.compile(r"\b(?:before|after(?! that)|until|prior to|preceded)\b", re.I)
RULES = "mention-2"  # part of the identity of judges that use these rules: change it with them
DENIAL_REACH_WORDS = 6  # words before the answer in which a denial counts
MAX_LISTED_WORDS = 3  # words of one item of a list
MIN_STUFFED_REPEATS = 3  # occurrences of each answer word in an answer that repeats it as bait


def answer_words(triple: Triple) -> list[str]:
    """Return the content words of the reference, without the question's if others remain."""
    question_words = set(words(triple.question))
    content_words = [
        w for w in words(triple.reference) if w not in STOP and not NEGATION.fullmatch(w)
    ]
    return [w for w in content_words if w not in question_words] or content_words


def only_mentioned(triple: Triple) -> bool:
    """Return whether the candidate has the reference's words but certainly does not state it.

    It denies them, offers alternatives beside them, states what the reference denies, or gives the
    reference's steps in another order. Except for steps, questions with a negation are never so
    marked.
    """
    answer, candidate_words = answer_words(triple), words(triple.candidate)
    if is_reordered(triple.candidate, triple.reference):
        return True
    if (
        not answer
        or not {*answer} <= {*candidate_words}
        or candidate_words == words(triple.reference)
    ):
        return False
    if NEGATION.search(triple.question):
        return False
    if NEGATION.search(triple.reference):
        reference_words = {*words(NEGATION.sub(" ", triple.reference))} - STOP
        return (
            len(reference_words) > 1
            and reference_words <= {*candidate_words}
            and not NEGATION.search(triple.candidate)
        )
    if _ASKS_FOR_SEVERAL.search(triple.question):
        return is_denied(triple, answer)
    return (
        is_denied(triple, answer)
        or is_one_of_several(triple.candidate, triple.reference, answer)
        or is_stuffed(candidate_words, triple, answer)
    )


def is_denied(triple: Triple, answer: Sequence[str]) -> bool:
    """Return whether every clause with a word of the answer denies it in words that are not the
    question's.
    """
    question_words, candidate = set(words(triple.question)), triple.candidate
    candidate = _NONE_BUT.sub("", _ALL_BUT.sub(r"\1 except", candidate))
    sentences = [s for s in _SENTENCE.split(candidate) if s.strip()]
    verdicts: list[bool] = []
    for sentence, next_sentence in zip(sentences, [*sentences[1:], ""], strict=True):
        end_of_clause = 0
        for clause in _CLAUSE.split(sentence):
            span = _answer_span(clause, answer)
            end_of_clause = sentence.find(clause, end_of_clause) + len(clause)
            if span is not None:
                begin, end = span
                near = " ".join(clause[:begin].split()[-DENIAL_REACH_WORDS:])
                near += " " if clause[:begin].endswith(" ") else ""
                denials = (_DENIED_BEFORE.search(near), _DENIED_AFTER.search(clause[end:]))
                denied = any(
                    m and not {*words(m.group())} - STOP <= question_words for m in denials
                )
                rest = sentence[end_of_clause:]
                retracted = (
                    _RETRACTED.match(next_sentence)
                    or is_corrected(next_sentence)
                    or is_corrected(rest)
                )
                verdicts.append(denied or bool(retracted))
    return bool(verdicts) and all(verdicts)


def is_corrected(rest: str) -> bool:
    """Return whether the text after an answer retracts it and gives another: "no, blue"."""
    correction = _CORRECTED.match(rest)
    return correction is not None and not NEGATION.search(rest[correction.end() :])


def _answer_span(clause: str, answer: Sequence[str]) -> tuple[int, int] | None:
    """Return (start, end) of the answer's words in a clause, or None."""
    spans = [m.span() for m in re.finditer(r"[^\W_]+", clause) if {*words(m.group())} & {*answer}]
    return (spans[0][0], spans[-1][1]) if spans else None


def is_one_of_several(candidate: str, reference: str, answer: Sequence[str]) -> bool:
    """Return whether the candidate lists several answers where the reference has one."""
    if len(_items(reference)) > 1:
        return False
    if len(_HEDGE.findall(candidate)) > 1:
        return True
    items = _items(candidate)
    return len(items) > 1 and sum(bool({*words(p)} & {*answer}) for p in items) == 1


def is_stuffed(candidate_words: Sequence[str], triple: Triple, answer: Sequence[str]) -> bool:
    """Return whether the candidate repeats the answer's words among unrelated ones, without
    forming a sentence.
    """
    expected_words = {*answer, *words(triple.question), *words(triple.reference)}
    if {*candidate_words} & STOP - expected_words or {*candidate_words} <= expected_words:
        return False
    reference_words = words(triple.reference)
    return all(
        candidate_words.count(w) - reference_words.count(w) >= MIN_STUFFED_REPEATS - 1
        for w in {*answer}
    )


def is_reordered(candidate: str, reference: str) -> bool:
    """Return whether both texts list the same steps ("first ..., then ...") in different orders."""
    steps = [_steps(text) for text in (candidate, reference)]
    if any(len(listed) < 2 for listed in steps):
        return False
    positions: list[int] = []
    for step in steps[1]:
        shares = [len(step & other) / len(step) for other in steps[0]]
        best = max(shares)
        if best <= 0.5 or shares.count(best) > 1:
            return False
        positions.append(shares.index(best))
    return len({*positions}) == len(positions) and positions != sorted(positions)


def _steps(text: str) -> list[set[str]]:
    """Return the words of each step of a text, in order; empty if it may list them in reverse."""
    if _REVERSED_STEPS.search(text) or not _STEP_MARKER.search(text):
        return []
    return [
        step_words for step in _STEP_MARKER.split(text) if (step_words := {*words(step)} - STOP)
    ]


def _items(text: str) -> list[str]:
    """Return the items of a listed answer, or the whole text as one item.

    Items are separated by signs that only lists have, or are three or more short ones in lower
    case (the lower case excludes place names with commas).
    """
    separated = [p for p in _LIST_SEPARATOR.split(text) if words(p)]
    if len(separated) > 1 and all(len(words(p)) <= MAX_LISTED_WORDS for p in separated):
        return separated
    listed = [p.strip(" .") for p in _ENUMERATION.split(re.sub(r"^one of ", "", text, flags=re.I))]
    listed = [p for p in listed if p]
    short = len(listed) > 2 and all(len(words(p)) <= MAX_LISTED_WORDS for p in listed)
    return listed if short and all(p[0].islower() for p in listed[1:]) else [text]
