"""The options that a reply without a letter may mean, read from its explanation.

"The man is climbing. There is no sign of a rope, so he is not abseiling": the sentence that repeats
the question names the answer, and the rest argues for it. An option that is denied, supposed or
asked about does not count. A sentence names an option in its words or nearly in its words; each
matcher of `MATCHERS` is narrower than it could be, because no letter is better than a wrong one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mustsee.replies.extract.text import mentions
from mustsee.replies.extract.words import (
    ASIDE,
    DENIED,
    ENDS_A_CLAUSE,
    LEADING,
    LISTED,
    NEGATION,
    NO,
    NONE_OF,
    PREDICATE,
    RULED_OUT,
    SUPPOSED,
    TURN,
)

_ENDS = re.compile(r"(?<![^\w][a-z])[.!?][\"')]*(?:\s+|$)|\n+")  # "b. swimming" goes on
_NEAR_WORDS = 6  # a denial counts within as many words before an option
Match = tuple[int, int, int]  # start, end, index of the option
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_ARTICLES = frozenset(
    ("a", "an", "the", "its", "his", "her", "their", "this", "that", "these", "those", "some")
)
# An ending is removed only where at least as many letters remain.
_ENDINGS = (("ing", 2), ("ed", 3), ("es", 2), ("s", 3))
_VOWEL = re.compile("[aeiouy]")
_JOINED = re.compile(r"[\"')]*\s*,?\s*(?:or|and|and then|then)\s+")
_MIN_LETTERS = 3  # letters of an option without its verb, at least


@dataclass(frozen=True, kw_only=True)
class _Mention:
    """An option that a sentence names.

    `closes`: a clause ends behind it. `aside`: it is only compared with, or called possible.
    """

    index: int
    sentence: int
    closes: bool
    aside: bool


def meant_options(reply: str, options: Sequence[str]) -> tuple[int, ...]:
    """Return the indices of the options that a reply may mean; a single one where it is clear.

    `reply`: in lower case. `options`: normalised texts.
    """
    sentences = tuple(_sentences(reply))
    mentions: list[_Mention] = []
    for matchers in MATCHERS:
        for number, sentence in enumerate(sentences):
            matches = [match for matcher in matchers for match in matcher(sentence, options)]
            matches += [other for m in matches for other in joined_to(sentence, m[1], options)]
            mentions += _mentions(number, sentence, matches)
        if mentions:
            break
    mentions = [m for m in mentions if not m.aside] or mentions
    named = tuple(dict.fromkeys(m.index for m in mentions))
    if len(named) < 2 or mentions[0].aside:
        return named
    first = mentions[0].sentence
    leading = {m.index for m in mentions if m.sentence == first}
    if len(leading) > 1 or not any(m.closes for m in mentions if m.sentence == first):
        return named
    is_taken_back = any(TURN.match(sentence) for sentence in sentences[first + 1 :])
    return named if is_taken_back else tuple(leading)


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences that are not questions, because a question claims nothing."""
    start = 0
    for match in _ENDS.finditer(text):
        if "?" not in match[0]:
            yield text[start : match.start()]
        start = match.end()
    yield text[start:]


def _mentions(number: int, sentence: str, spans: Sequence[Match]) -> Iterator[_Mention]:
    """Yield the options that a sentence names without denying them, in order.

    Of matches that overlap only the longest counts.
    """
    if SUPPOSED.search(sentence):
        return
    for start, end, index in sorted(set(spans)):
        within = any(a <= start and end <= b and b - a > end - start for a, b, _ in spans)
        if within or _is_denied(sentence, start, end):
            continue
        near = _near(sentence[:start])
        closes = ENDS_A_CLAUSE.match(sentence, end) is not None
        aside = ASIDE.search(near) is not None
        yield _Mention(index=index, sentence=number, closes=closes, aside=aside)


def _near(before: str) -> str:
    """Return the last words of the last clause."""
    return " ".join(re.split(r"[;:,]|\bbut\b", before)[-1].split()[-_NEAR_WORDS:])


def _is_denied(sentence: str, start: int, end: int) -> bool:
    """Whether the words between two places are denied, alone or in a list: "no A, B or C"."""
    if RULED_OUT.match(sentence, end):
        return True
    before = sentence[:start]
    near = _near(before)
    if LISTED.match(sentence, end) or re.search(r"\b(?:or|nor)\b", near):
        near = re.split(r"[;:]|\bbut\b", before)[-1]
        return any(word.search(near) for word in (NEGATION, DENIED, NONE_OF))
    return any(word.search(near) for word in (NEGATION, DENIED)) or NO.search(before) is not None


@dataclass(frozen=True)
class _Word:
    key: str
    start: int
    end: int


@lru_cache(maxsize=8192)
def _key(word: str) -> str:
    """Return a word without hyphens and endings: the same for diving and dive, slowly and slow."""
    bare = word.replace("-", "")
    if bare.endswith("ly") and len(bare) > 5:
        bare = bare[:-2]
    for ending, letters in _ENDINGS:
        rest = bare.removesuffix(ending)
        if rest != bare and len(rest) >= letters and _VOWEL.search(rest) and rest[-1] != ending[0]:
            bare = rest
            break
    return re.sub(r"(.)\1$", r"\1", bare.rstrip("e") or bare)


def _words(text: str) -> list[_Word]:
    """Return the words of a text in lower case, without articles."""
    matches = (m for m in _WORD.finditer(text) if m[0] not in _ARTICLES)
    return [_Word(_key(m[0]), m.start(), m.end()) for m in matches]


@lru_cache(maxsize=1024)
def _keys(text: str) -> tuple[str, ...]:
    return tuple(word.key for word in _words(text))


def _runs(words: Sequence[_Word], keys: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each place where the words with these keys are consecutive."""
    for at in range(len(words) - len(keys) + 1):
        if all(words[at + n].key == key for n, key in enumerate(keys)):
            yield words[at].start, words[at + len(keys) - 1].end


def _verbatim(sentence: str, options: Sequence[str]) -> Iterator[Match]:
    """Match "is diving into water" for "diving into water"."""
    for index, option in enumerate(options):
        if not (len(option) == 1 and option.isalpha()):
            for start, end in mentions(sentence, option):
                yield start, end, index


def _other_endings(sentence: str, options: Sequence[str]) -> Iterator[Match]:
    """Match "dive into the water" for "diving into water".

    A single word may differ only in its article and its adverb's ending: "horizontally" for
    "horizontal". Options that differ from each other only so are not matched.
    """
    options_with = Counter(map(_keys, options))
    words = _words(sentence)
    for index, option in enumerate(options):
        keys = _keys(option)
        if not keys or options_with[keys] > 1:
            continue
        for start, end in _runs(words, keys):
            if len(keys) > 1 or _is_same_word(sentence[start:end], option):
                yield start, end, index


def _is_same_word(word: str, option: str) -> bool:
    """Whether a word differs from the option's last one only by hyphens or an adverb's ending."""
    one, other = (w.replace("-", "").removesuffix("ly") for w in (word, option.split()[-1]))
    return one == other and len(other) > 1


def _without_verb(sentence: str, options: Sequence[str]) -> Iterator[Match]:
    """Match an option without its leading verb, where the sentence has the rest as a predicate.

    "moves counter-clockwise" matches "spinning counter-clockwise", and "the sport is basketball"
    matches "playing basketball". A verb is left out where other options begin with it too, or where
    it adds little.
    """
    words = _words(sentence)
    for index, keys in enumerate(_cores(tuple(options))):
        for start, end in _runs(words, keys) if keys else ():
            if PREDICATE.search(sentence[:start]):
                yield start, end, index


def _without_first_verb(options: Sequence[str]) -> list[tuple[str, ...]]:
    """Return each option's keys, without a first verb that adds little or that others share."""
    keys = [_keys(option) for option in options]
    first = Counter(key[0] for key in keys if len(key) > 1)
    return [
        key[1:] if len(key) > 1 and (first[key[0]] > 1 or LEADING.match(option)) else key
        for key, option in zip(keys, options, strict=True)
    ]


@lru_cache(maxsize=256)
def _cores(options: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return each option's keys without its verb.

    The keys are empty for an option without such a verb, and where another option contains the
    rest.
    """
    without_verb = _without_first_verb(options)
    texts = [f" {' '.join(key)} " for key in without_verb]
    return tuple(
        core
        if len(core) < len(_keys(option))
        and sum(text in other for other in texts) == 1
        and len("".join(core)) >= _MIN_LETTERS
        else ()
        for core, option, text in zip(without_verb, options, texts, strict=True)
    )


def joined_to(sentence: str, end: int, options: Sequence[str]) -> Iterator[Match]:
    """Yield the option joined on at `end`, behind another one: "moving up or down"."""
    if match := _JOINED.match(sentence, end):
        words = _words(sentence[match.end() :])
        for index, keys in enumerate(_without_first_verb(options)):
            if keys and tuple(word.key for word in words[: len(keys)]) == keys:
                yield match.end(), match.end() + words[len(keys) - 1].end, index


# In order: a later line is used only where the earlier ones match nothing, or only denied options.
MATCHERS: tuple[tuple[Callable[[str, Sequence[str]], Iterator[Match]], ...], ...] = (
    (_verbatim, _other_endings),
    (_without_verb,),
)
