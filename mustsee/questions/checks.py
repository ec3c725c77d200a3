"""Checks on the text of a question that a model wrote, without a model.

Source: Neptune's prompts (C.2.3, C.2.4) ask for content, without times or option letters, without
leaks, and with decoys that could each be true.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from mustsee.text import words as all_words

MAX_JUDGED_WORDS = 60  # words of a reference that a judge can compare answers with
_ARTICLES = frozenset({"a", "an", "the"})
_CLOCK = r"\b\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?\b(?!\s*(?:[ap]\.?m\b|o'clock))"
_TIMES = (
    re.compile(_CLOCK),
    re.compile(r"\btime ?stamps?\b", re.IGNORECASE),
    re.compile(
        r"\b\d+(?:\.\d+)?[- ]?(?:s|secs?|seconds?|minutes?)[- ](?:mark|into)\b", re.IGNORECASE
    ),
    re.compile(r"\b(?:at|after|around|from|between) (?:second|minute)s? \d", re.IGNORECASE),
    re.compile(r"\[\d+(?:\.\d+)?\s*[-–]\s*\d+(?:\.\d+)?\]"),
)
_OPTION_TIMES = (re.compile(rf"(?:\b(?:at|from|until)\s+|[\[(]\s*){_CLOCK}"), *_TIMES[1:])
_LETTERS = (
    re.compile(r"\b(?i:options?|choices?|answers?)\s+\(?[A-H]\)?(?![\w'’])"),
    re.compile(r"^\(?[A-H][).]\s"),
    re.compile(
        r"\b(?:all|none|both|any) of (?:the )?(?:above|below|these options)\b", re.IGNORECASE
    ),
    re.compile(r"\bboth \(?[A-H]\)? and \(?[A-H]\)?\b"),
)
# "Segments" alone is a plain noun: of an orange, or "the most important segments of the video", as
# in EgoSchema's own example. A numbered segment belongs to a script.
_SOURCES = re.compile(
    r"\b(?:transcripts?|captions?|subtitles?|segments? \d+|(?:first|second|third|fourth|fifth|"
    r"last|final|opening|closing|next|previous|following|\d+(?:st|nd|rd|th)) segments?(?! of)|"
    r"video script|the script|visual support|"
    r"scene story|shot list|according to the (?:text|description|notes))\b",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"\b(?:in (?:what|which) (?:\w+ )?(?:order|sequence)|(?:correct|right|chronological) (?:\w+ )?"
    r"(?:order|sequence)|arrange|put .* in order|order of (?:the following|these)|sequence of)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=65536)
def words(text: str) -> tuple[str, ...]:
    """Return the words for comparing texts: in lower case and without articles, unless the text has
    only articles.
    """
    all_of = all_words(text)
    return tuple(w for w in all_of if w not in _ARTICLES) or tuple(all_of)


@lru_cache(maxsize=65536)
def normal(text: str) -> str:
    """Return the text as its `words`: equal for texts that differ in case, articles and punctuation
    only.
    """
    return " ".join(words(text))


def holds(outer: str, inner: str) -> bool:
    """Whether the words of `inner` appear in `outer`, adjacent and in order."""
    return bool(words(inner)) and f" {normal(inner)} " in f" {normal(outer)} "


def entries(option: str) -> tuple[str, ...]:
    """Return the entries of an option that lists things in an order, without their numbers; the
    option itself if it is no list.
    """
    text = option.strip().rstrip(".")
    for mark in (
        r"\s*(?:-+>|→|⟶)\s*",
        r"\s*[;；؛]\s*",
        r"\s*[,，、،]\s*(?:and\s+)?(?:then\s+)?|\s+and\s+then\s+",
    ):
        parts = [p for p in re.split(mark, text) if p.strip()]
        if len(parts) > 1:
            break
    else:
        return (option,)
    numbers = r"^\s*(?:\(?\d+[.)]\s+|(?:and|then|finally)\s+)"
    return tuple(re.sub(numbers, "", part).strip() for part in parts)


def items(option: str) -> tuple[str, ...]:
    """Return the `entries` of an option as texts for comparing."""
    return tuple(map(normal, entries(option)))


def is_order(question: str, answer: str) -> bool:
    """Whether the question asks for an order of at least three things."""
    return bool(_ORDERS.search(question)) and len(items(answer)) >= 3


def fault(question: str, answer: str, decoys: Sequence[str], *, count: int = 4) -> str | None:
    """Return the first fault of a question with `count` decoys, in a few words, or None.

    Texts are compared by their `words`.
    """
    options = (answer, *decoys)
    if any(not words(text) for text in (question, *options)):
        return "an empty text"
    if len(decoys) != count:
        return f"{len(decoys)} wrong answers, not {count}"
    if len({normal(option) for option in options}) != len(options):
        return "two options are the same"
    if is_order(question, answer):
        content_fault = _order_fault(question, answer, decoys)
    else:
        content_fault = _overlap_fault(question, answer, decoys)
    return content_fault or _wording_fault(question, options)


def _overlap_fault(question: str, answer: str, decoys: Sequence[str]) -> str | None:
    for decoy in decoys:
        if holds(answer, decoy) or holds(decoy, answer):
            return f"the wrong answer {decoy[:60]!r} and the answer contain each other"
    named = [option for option in (answer, *decoys) if holds(question, option)]
    if len(named) == 1:  # naming several gives none away: "Was the wall blue or red before?"
        return f"the question gives away the option {named[0][:60]!r}"
    return None


def _order_fault(question: str, answer: str, decoys: Sequence[str]) -> str | None:
    right = items(answer)
    if len(set(right)) != len(right):
        return "an order names one thing twice"
    for decoy in decoys:
        if sorted(items(decoy)) != sorted(right):
            return "the orders are not of the same things"
    text = normal(question)
    places = [text.find(item) for item in right]
    if min(places) >= 0 and places == sorted(places):
        return "the question lists the things in the order of the answer"
    return None


def _wording_fault(question: str, options: Sequence[str]) -> str | None:
    if any(pattern.search(question) for pattern in _TIMES):
        return "a timestamp in the question"
    if any(pattern.search(option) for pattern in _OPTION_TIMES for option in options):
        return "a timestamp in an option"
    for text in (question, *options):
        if any(pattern.search(text) for pattern in _LETTERS):
            return f"option letters in {text[:60]!r}"
        if match := _SOURCES.search(text):
            return f"it speaks of {match.group().lower()!r}"
    return None
