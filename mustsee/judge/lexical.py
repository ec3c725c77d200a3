"""Lexical features of two answers: overlap, numbers, order, refusals.

They are baselines for the judges, and half of the features of the judge `mini`.
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
from mustsee.text import NUMBERS

# Letters and digits are separate words, unlike in `mustsee.text.WORD`: "21st" gives 21. The judge
# `mini` was trained on these words.
_WORD = re.compile(r"[^\W\d_]+|\d+(?:\.\d+)?")
STOP = frozenset(
    _WORD.findall(
        "a an the of in on at to for and or is was were are be been by with from as that this it "
        "its his her their he she they which who what where when how did does do has have had"
    )
)
_ORDINAL = _WORD.findall("first second third fourth fifth sixth seventh eighth ninth tenth")
_NUMBER: dict[str, str] = {
    **{word: str(n) for word, n in NUMBERS.items()},
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
NEGATION_REACH_WORDS = 5  # words denied after a negation; words compared on each side of an "or"


# The identity of the judge `lexical` is a hash of this function's source and of `overlap.py`: after
# a change to either, the thresholds in `assets/judge_*.json` need the new hash.
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
    """Return whether the text says that it cannot answer."""
    return bool(_REFUSAL.search(text))


def _best_spelling_match(word: str, others: Sequence[str]) -> float:
    """Return the likeness in spelling, 0 to 1, of the most similar other word.

    Two different numbers have likeness 0.
    """
    if word in others:
        return 1.0
    if word[0].isdigit():
        return 0.0
    alike = (SequenceMatcher(None, word, o).ratio() for o in others if o[0] == word[0])
    return max(alike, default=0.0)


def _trigrams(tokens: Sequence[str]) -> Counter[str]:
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
    """Return the values of `FEATURES` for a triple.

    "New" words are not in the question. `order` is the share of the common words that are in the
    reference's order.
    """
    q, c, r = words(triple.question), words(triple.candidate), words(triple.reference)
    question_words, candidate_words, reference_words = set(q), set(c), set(r)
    content_r = [w for w in r if w not in STOP] or r
    content_c = [w for w in c if w not in STOP] or c
    new_r = [w for w in content_r if w not in question_words] or content_r
    new_c = [w for w in content_c if w not in question_words]
    numbers_r = [w for w in r if w[0].isdigit()]
    numbers_c = [w for w in c if w[0].isdigit()]
    shared = shared_words(c, r)
    precision, recall = share(shared, len(c)), share(shared, len(r))
    run = common(c, r)
    letters_c, letters_r = _trigrams(c), _trigrams(r)
    alike = (letters_c & letters_r).total()
    near = [_best_spelling_match(w, content_c) for w in new_r[:40]]
    text_c, text_r = f" {' '.join(c)} ", f" {' '.join(r)} "
    inside = bool(r) and text_r in text_c
    negated = bool(_NEGATION.search(triple.candidate)), bool(_NEGATION.search(triple.reference))
    missing = [w for w in new_r if w not in candidate_words]
    outside = [w for w in words(_BRACKETS.sub(" ", triple.reference)) if w in set(new_r)] or new_r
    return [
        harmonic(precision, recall),
        precision,
        recall,
        harmonic(share(run, len(c)), share(run, len(r))),
        share(run, len(r)),
        share(sum(w in candidate_words for w in content_r), len(content_r)),
        share(sum(w in candidate_words for w in new_r), len(new_r)),
        share(sum(w in reference_words for w in new_c), len(new_c)),
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
        float("when" in question_words),
        float(q[:1] == ["where"]),
        float("many" in question_words or "much" in question_words),
        share(run, shared) if shared > 1 else 1.0,
        share(
            len(_denied_words(triple.candidate, new_r) - _denied_words(triple.reference, new_r)),
            len(new_r),
        ),
        _offers_choice(triple.candidate, new_r) if not _CHOICE.search(triple.reference) else 0.0,
        _unrelated_share(triple.candidate, reference_words | question_words),
        math.log1p(len(missing)),
        share(
            sum(w in reference_words for w in question_words if w not in STOP),
            len(question_words - STOP),
        ),
        share(sum(w in candidate_words for w in outside), len(outside)),
        text_r.find(text_c) / len(text_r) if c and text_c in text_r else 1.0,
    ]


def _denied_words(text: str, answer: Sequence[str]) -> set[str]:
    """Return the words of `answer` that the text has only after a negation in the same clause."""
    denied, affirmed = set[str](), set[str]()
    for clause in _CLAUSE.split(text):
        negation = _NEGATION.search(clause)
        after = words(clause[negation.end() :])[:NEGATION_REACH_WORDS] if negation else []
        before = words(clause[: negation.start()]) if negation else words(clause)
        denied.update(w for w in after if w in answer)
        affirmed.update(w for w in before if w in answer)
    return denied - affirmed


def _offers_choice(text: str, answer: Sequence[str]) -> float:
    """Return 1 if an "or" has a word of `answer` within reach on one side only, else 0."""
    for separator in _CHOICE.finditer(text):
        before = words(text[: separator.start()])[-NEGATION_REACH_WORDS:]
        after = words(text[separator.end() :])[:NEGATION_REACH_WORDS]
        if before and after and any(w in answer for w in before) != any(w in answer for w in after):
            return 1.0
    return 0.0


def _unrelated_share(text: str, known_words: set[str]) -> float:
    """Return the share of a text's items that are short (up to three words) and share no word
    with `known_words`.
    """
    items = [w for w in (words(part) for part in _ITEM.split(text)) if w and set(w) - STOP]
    short = [w for w in items if len(w) <= 3 and not set(w) & (known_words - STOP)]
    return share(len(short), len(items))
