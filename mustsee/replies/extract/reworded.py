"""Where a sentence names an option, in its words or nearly in its words.

Each way is narrower than it could be: a reply that no way reads has no letter, which is better than
a wrong one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mustsee.replies.extract.text import mentions
from mustsee.replies.extract.words import LEADING, PREDICATE

Found = tuple[int, int, int]  # start, end, index of the option
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_ARTICLES = frozenset(
    ("a", "an", "the", "its", "his", "her", "their", "this", "that", "these", "those", "some")
)
_ENDINGS = (("ing", 2), ("ed", 3), ("es", 2), ("s", 3))  # and the letters that must be left
_VOWEL = re.compile("[aeiouy]")
_JOINED = re.compile(r"[\"')]*\s*,?\s*(?:or|and|and then|then)\s+")
_SHORTEST = 3  # letters of what is left of an option without its verb


@dataclass(frozen=True)
class _Word:
    key: str
    start: int
    end: int


@lru_cache(maxsize=8192)
def _key(word: str) -> str:
    """A word without hyphens and endings: diving and dive, spinning and spins, slowly and slow."""
    bare = word.replace("-", "")
    if bare.endswith("ly") and len(bare) > 5:
        bare = bare[:-2]
    for ending, least in _ENDINGS:
        rest = bare.removesuffix(ending)
        if rest != bare and len(rest) >= least and _VOWEL.search(rest) and rest[-1] != ending[0]:
            bare = rest
            break
    return re.sub(r"(.)\1$", r"\1", bare.rstrip("e") or bare)


def _words(text: str) -> list[_Word]:
    """The words of a text in lower case, articles left out."""
    found = (m for m in _WORD.finditer(text) if m[0] not in _ARTICLES)
    return [_Word(_key(m[0]), m.start(), m.end()) for m in found]


@lru_cache(maxsize=1024)
def _keys(text: str) -> tuple[str, ...]:
    return tuple(word.key for word in _words(text))


def _runs(words: Sequence[_Word], keys: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where the words follow each other that an option is made of."""
    for at in range(len(words) - len(keys) + 1):
        if all(words[at + n].key == key for n, key in enumerate(keys)):
            yield words[at].start, words[at + len(keys) - 1].end


def _as_written(sentence: str, options: Sequence[str]) -> Iterator[Found]:
    """ "is diving into water" for "diving into water"."""
    for index, own in enumerate(options):
        if not (len(own) == 1 and own.isalpha()):
            for start, end in mentions(sentence, own):
                yield start, end, index


def _other_endings(sentence: str, options: Sequence[str]) -> Iterator[Found]:
    """ "dive into the water" for "diving into water"; of a single word, only its article and its
    adverb: "horizontally" for "horizontal". Options that differ in no more than that are left out.
    """
    known = Counter(map(_keys, options))
    words = _words(sentence)
    for index, own in enumerate(options):
        keys = _keys(own)
        if not keys or known[keys] > 1:
            continue
        for start, end in _runs(words, keys):
            if len(keys) > 1 or _same_word(sentence[start:end], own):
                yield start, end, index


def _same_word(said: str, own: str) -> bool:
    """Whether two words differ by a hyphen or an adverb's ending only."""
    said, own = (w.replace("-", "").removesuffix("ly") for w in (said, own.split()[-1]))
    return said == own and len(own) > 1


def _without_verb(sentence: str, options: Sequence[str]) -> Iterator[Found]:
    """What is left of an option without the verb that others begin with too, or that says little,
    where the sentence says that of its subject: "moves counter-clockwise" for "spinning
    counter-clockwise", "the sport is basketball" for "playing basketball".
    """
    words = _words(sentence)
    for index, keys in enumerate(_cores(tuple(options))):
        for start, end in _runs(words, keys) if keys else ():
            if PREDICATE.search(sentence[:start]):
                yield start, end, index


def _cut(options: Sequence[str]) -> list[tuple[str, ...]]:
    """Each option's words without its first verb, where that says little or others have it too."""
    keys = [_keys(own) for own in options]
    first = Counter(key[0] for key in keys if len(key) > 1)
    return [
        key[1:] if len(key) > 1 and (first[key[0]] > 1 or LEADING.match(own)) else key
        for key, own in zip(keys, options, strict=True)
    ]


@lru_cache(maxsize=256)
def _cores(options: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """What `_cut` leaves; nothing of an option that stays whole, or whose rest another holds."""
    cut = _cut(options)
    spread = [f" {' '.join(key)} " for key in cut]
    return tuple(
        core
        if len(core) < len(_keys(own))
        and sum(text in other for other in spread) == 1
        and len("".join(core)) >= _SHORTEST
        else ()
        for core, own, text in zip(cut, options, spread, strict=True)
    )


def joined_to(sentence: str, end: int, options: Sequence[str]) -> Iterator[Found]:
    """The option that goes on behind another one: "moving up or down"."""
    if match := _JOINED.match(sentence, end):
        words = _words(sentence[match.end() :])
        for index, keys in enumerate(_cut(options)):
            if keys and tuple(word.key for word in words[: len(keys)]) == keys:
                yield match.end(), match.end() + words[len(keys) - 1].end, index


# In order: a later line is asked only where those before it name nothing that is not denied.
WAYS: tuple[tuple[Callable[[str, Sequence[str]], Iterator[Found]], ...], ...] = (
    (_as_written, _other_endings),
    (_without_verb,),
)
