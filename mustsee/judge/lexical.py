"""Lexical features of two answers: overlap, numbers, order, refusals.

Baselines for the judges, and half of the features of the judge `mini`. Pure functions of strings.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

from mustsee.judge.prompt import Triple
from mustsee.replies import overlap
from mustsee.replies.overlap import common, harmonic, share, shared_words

# Letters and numbers apart, unlike `mustsee.text.WORD`: "21st" is 21. `mini` was trained on these.
_WORD = re.compile(r"[^\W\d_]+|\d+(?:\.\d+)?")
STOP = frozenset(
    _WORD.findall(
        "a an the of in on at to for and or is was were are be been by with from as that this it "
        "its his her their he she they which who what where when how did does do has have had"
    )
)
_CARDINAL = _WORD.findall(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)
_ORDINAL = _WORD.findall("first second third fourth fifth sixth seventh eighth ninth tenth")
_NUMBER: dict[str, str] = {
    **{w: str(i) for i, w in enumerate(_CARDINAL)},
    **{w: str(i) for i, w in enumerate(_ORDINAL, 1)},
}
_REFUSAL = re.compile(
    r"\b(?:i (?:do not|don't|cannot|can't|am unable|am not able|am not sure)|"
    r"i'm (?:sorry|not sure)|unable to|as an ai|no information|real-time|knowledge cutoff|"
    r"not (?:mentioned|provided|present|available|specified|shown|clear|possible to \w+))\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not(?! (?:only|just|merely)\b)|no|never|without|neither|nor|none|cannot)\b|n['’]t\b",
    re.I,
)
_CLAUSE = re.compile(r"[,.;:!?\n()]+\s|[;!?\n()]|\bbut\b", re.I)
_CHOICE = re.compile(r"\bor\b(?! (?:so|thereabouts)\b)|/", re.I)
_ITEM = re.compile(r"[,;/\n()\[\]]|[.:!?](?:\s|$)|\b(?:or|and|either|maybe)\b", re.I)
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
NEGATION_REACH_WORDS = 5  # words after a negation that it denies, and on both sides of an "or"


def words(text: str) -> list[str]:
    """Lower-case words and numbers, without accents; number words up to twenty and ordinals up to
    ten become digits, thousands lose their comma.
    """
    flat = unicodedata.normalize("NFKD", text).lower().replace("’s", "").replace("'s", "")
    flat = "".join(c for c in flat if not unicodedata.combining(c))
    flat = re.sub(r"(?<=\d),(?=\d{3})", "", flat)
    return [_NUMBER.get(w, w) for w in map(str, _WORD.findall(flat))]


def rouge_l(candidate: str, reference: str) -> float:
    return overlap.rouge_l(candidate, reference, words)


def token_f1(candidate: str, reference: str) -> float:
    return overlap.token_f1(candidate, reference, words)


def token_recall(candidate: str, reference: str) -> float:
    return overlap.token_recall(candidate, reference, words)


MEASURES: dict[str, Callable[[str, str], float]] = {
    "rouge_l": rouge_l,
    "token_f1": token_f1,
    "token_recall": token_recall,
}


def refuses(text: str) -> bool:
    """The text says that it cannot answer."""
    return bool(_REFUSAL.search(text))


def _near(word: str, others: Sequence[str]) -> float:
    """How close the nearest of the other words is in its letters, 0 to 1; a number is like no other
    number.
    """
    if word in others:
        return 1.0
    if word[0].isdigit():
        return 0.0
    alike = (SequenceMatcher(None, word, o).ratio() for o in others if o[0] == word[0])
    return max(alike, default=0.0)


def _letters(tokens: Sequence[str]) -> Counter[str]:
    text = f" {' '.join(tokens)} "
    return Counter(text[i : i + 3] for i in range(len(text) - 2))


FEATURES = tuple(
    re.findall(
        r"\w+",
        """f1 precision recall rouge_l lcs_recall content_recall new_recall new_precision contained
        contained_at equal contains letters_recall letters_precision near_mean near_min
        numbers_recall reference_has_number candidate_has_number other_numbers no_number
        log_candidate log_reference log_new candidate_numbers refusal negation early
        asks_who asks_when asks_where asks_count order denied choice others log_unsaid told_again
        unbracketed_recall inside_at""",
    )
)


def features(triple: Triple) -> list[float]:
    """The values of `FEATURES` for a triple. "New" words are those that the question has not;
    `order` is the share of the shared words that stand in the reference's order.
    """
    q, c, r = words(triple.question), words(triple.candidate), words(triple.reference)
    asked, said, told = set(q), set(c), set(r)
    content_r = [w for w in r if w not in STOP] or r
    content_c = [w for w in c if w not in STOP] or c
    new_r = [w for w in content_r if w not in asked] or content_r
    new_c = [w for w in content_c if w not in asked]
    numbers_r = [w for w in r if w[0].isdigit()]
    numbers_c = [w for w in c if w[0].isdigit()]
    both = shared_words(c, r)
    precision, recall = share(both, len(c)), share(both, len(r))
    run = common(c, r)
    letters_c, letters_r = _letters(c), _letters(r)
    alike = (letters_c & letters_r).total()
    near = [_near(w, content_c) for w in new_r[:40]]
    text_c, text_r = f" {' '.join(c)} ", f" {' '.join(r)} "
    inside = bool(r) and text_r in text_c
    negated = bool(_NEGATION.search(triple.candidate)), bool(_NEGATION.search(triple.reference))
    unsaid = [w for w in new_r if w not in said]
    outside = [w for w in words(_BRACKETS.sub(" ", triple.reference)) if w in set(new_r)] or new_r
    return [
        harmonic(precision, recall),
        precision,
        recall,
        harmonic(share(run, len(c)), share(run, len(r))),
        share(run, len(r)),
        share(sum(w in said for w in content_r), len(content_r)),
        share(sum(w in said for w in new_r), len(new_r)),
        share(sum(w in told for w in new_c), len(new_c)),
        float(inside),
        text_c.find(text_r) / len(text_c) if inside else 1.0,
        float(c == r),
        float(bool(c) and text_c in text_r),
        share(alike, letters_r.total()),
        share(alike, letters_c.total()),
        share(sum(near), len(near)),
        min(near, default=1.0),
        share(sum(w in numbers_c for w in numbers_r), len(numbers_r)) if numbers_r else 0.5,
        float(bool(numbers_r)),
        float(bool(numbers_c)),
        float(bool(numbers_r and numbers_c) and not set(numbers_r) & set(numbers_c)),
        float(bool(numbers_r) and not numbers_c),
        math.log1p(len(c)),
        math.log1p(len(r)),
        math.log1p(len(new_c)),
        share(len(numbers_c), len(c)),
        float(refuses(triple.candidate)),
        float(negated[0]) - float(negated[1]),
        float(bool(set(c[:5]) & set(new_r))),
        float(q[:1] == ["who"]),
        float("when" in asked),
        float(q[:1] == ["where"]),
        float("many" in asked or "much" in asked),
        share(run, both) if both > 1 else 1.0,
        share(len(_denied(triple.candidate, new_r) - _denied(triple.reference, new_r)), len(new_r)),
        _choice(triple.candidate, new_r) if not _CHOICE.search(triple.reference) else 0.0,
        _others(triple.candidate, told | asked),
        math.log1p(len(unsaid)),
        share(sum(w in told for w in asked if w not in STOP), len(asked - STOP)),
        share(sum(w in said for w in outside), len(outside)),
        text_r.find(text_c) / len(text_r) if c and text_c in text_r else 1.0,
    ]


def _denied(text: str, told: Sequence[str]) -> set[str]:
    """The words of `told` that the text has only behind a negation in the same clause."""
    denied, plainly = set[str](), set[str]()
    for clause in _CLAUSE.split(text):
        found = _NEGATION.search(clause)
        behind = words(clause[found.end() :])[:NEGATION_REACH_WORDS] if found else []
        before = words(clause[: found.start()]) if found else words(clause)
        denied.update(w for w in behind if w in told)
        plainly.update(w for w in before if w in told)
    return denied - plainly


def _choice(text: str, told: Sequence[str]) -> float:
    """Whether an "or" in the text has a word of `told` on one side and, of five words, none on the
    other.
    """
    for found in _CHOICE.finditer(text):
        before = words(text[: found.start()])[-NEGATION_REACH_WORDS:]
        behind = words(text[found.end() :])[:NEGATION_REACH_WORDS]
        if before and behind and any(w in told for w in before) != any(w in told for w in behind):
            return 1.0
    return 0.0


def _others(text: str, known: set[str]) -> float:
    """The share of a text's short items (up to three words each) with no word that is known."""
    items = [w for w in (words(part) for part in _ITEM.split(text)) if w and set(w) - STOP]
    short = [w for w in items if len(w) <= 3 and not set(w) & (known - STOP)]
    return share(len(short), len(items))
