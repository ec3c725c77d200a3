"""Objects that C handles in narrations, with the times.

A narration is a verb, its particle and a noun phrase ("#C C picks up the wooden spoon", "put knife
in drawer"). Only the noun of that phrase is a handled object; other nouns of the line (places,
tools, things of other people) are mentioned. Nouns that may mean the same thing are relatives: a
mention of one also counts for the others.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from mustsee.text import stem

_LINE = re.compile(r"(\d+) - (.*)")
_TOKEN = re.compile(r"[A-Za-z][A-Za-z'-]*|[^\sA-Za-z]")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ACTOR = _set("c i we you he she they")
_OTHERS = _set("a an the another man woman person lady boy girl child people men women")
_AGAIN = _set(  # verbs and adverbs before the main verb
    """still continue continues keep keeps start starts begin begins finish finishes stop stops try
    tries then again now also to"""
)
_PARTICLE = _set("up down on off out away back over apart aside together around")
_PLACING = _set(  # verbs with a place as object, as in "put on table"
    """put puts putting place places placing lay lays laying drop drops dropping set sets setting
    leave leaves leaving step steps stepping walk walks walking lean leans leaning sit sits sitting
    stand stands standing look looks looking move moves moving"""
)
_DETERMINER = _set(
    """a an the his her their its my your our some any this that these those each both another other
    one two three four five six few several more all"""
)
_END = _set(  # words behind a noun phrase
    """from to into onto in on off of at by for and or with without up down out over under around
    through inside outside near between behind beside above below against across along towards
    before after while until as then that which who when where so but is are it them him back away
    again together aside apart there here once twice too also more using still properly"""
)
_MEASURE = _set(
    """piece pieces slice slices bit bits bunch pair couple lot rest part parts half drop handful
    amount pinch set some"""
)
_NO_NAME = _set(  # adjectives, and nouns that are too general
    """white black red green blue brown yellow grey wooden plastic metal small
    large big little hot cold dirty clean empty full wet dry same new old first second last next
    left right top bottom side front remaining whole different wrong correct raw fresh hand hands
    finger fingers arm arms leg legs foot feet thumb palm body head something anything nothing
    everything thing things stuff item items object objects way time place room kitchen house
    floor ground direction video camera position end ends man woman person people boy girl lady
    child x y p food foods vegetable vegetables ingredient ingredients cutlery utensil utensils
    content contents dish dishes cut open close middle corner area one ones other others lot
    work step steps surface temperature rubbish trash garbage waste residue remains support mixture
    chunk chunks base section sections layer put chop past minced leftover leftovers half peel"""
)
_RELATED = (
    "fridge refrigerator freezer", "tap faucet", "hob stove cooker oven burner gas heat",
    "cupboard cabinet shelf", "bin trash rubbish garbage waste", "phone mobile cellphone",
    "cloth rag towel napkin tissue paper", "pan saucepan pot skillet wok", "cup mug glass",
    "plate dish bowl tray", "container box tupperware jar can tin", "bag packet pack package sack",
    "spatula turner spoon ladle", "knife blade", "sponge scrubber", "water tap kettle",
    "detergent soap liquid", "meat chicken beef pork steak fish tuna", "dough batter flour",
    "board countertop counter table worktop", "lid cap cover top", "bottle flask",
    "screw bolt nut", "wood plank board timber", "brush paintbrush", "cable wire cord rope string",
    "plant flower leaf grass weed", "bread toast baguette", "milk cream", "switch button light",
)  # fmt: skip


def root(word: str) -> str:
    """Return the root that forms of a noun share: knife and knives, leaf and leaves."""
    bare = stem(word.lower())
    return bare[:-1] + "f" if bare.endswith(("iv", "eav", "oav", "elv")) else bare


_RELATIVES: dict[str, set[str]] = defaultdict(set)
for _group in _RELATED:
    _members = {root(word) for word in _group.split()}
    for _member in _members:
        _RELATIVES[_member] |= _members


@dataclass(frozen=True, kw_only=True)
class NarratedObject:
    """An object. `handled`: seconds of the narrations in which it is the verb's object.
    `mentioned`: seconds of all narrations that name it or a relative.
    """

    name: str
    root: str
    handled: tuple[int, ...]
    mentioned: tuple[int, ...]

    def among(self, first: float, last: float) -> int:
        """Count how often it is handled between two seconds."""
        return sum(first <= second <= last for second in self.handled)

    def is_mentioned(self, first: float, last: float) -> bool:
        """Whether it is mentioned between two seconds."""
        return any(first <= second <= last for second in self.mentioned)


@dataclass(frozen=True, kw_only=True)
class NarratedObjects:
    """`things`: the most handled first; `last`: second of the last narration; `roots`: of all
    words.
    """

    things: tuple[NarratedObject, ...]
    last: int
    roots: frozenset[str]

    def lacks(self, word: str) -> bool:
        """Whether neither a noun nor a relative is mentioned."""
        return not (relatives(root(word)) & self.roots)


def relatives(noun: str) -> frozenset[str]:
    """Return the roots that may mean the same as the root `noun`, including itself."""
    return frozenset(_RELATIVES.get(noun, ())) | {noun}


def read_narrations(text: str) -> NarratedObjects:
    """Parse narrations as in a prompt, one `<second> - <sentence>` a line."""
    lines = [(int(match[1]), match[2]) for match in map(_LINE.match, text.splitlines()) if match]
    words = [
        (second, frozenset(root(w) for w in _TOKEN.findall(line) if w[0].isalpha()))
        for second, line in lines
    ]
    handled: dict[str, list[int]] = defaultdict(list)
    names: dict[str, Counter[str]] = defaultdict(Counter)
    for second, line in lines:
        phrase = object_of(line)
        if phrase:
            head = root(phrase[-1])
            handled[head].append(second)
            names[head][" ".join(phrase)] += 1
    things = [
        NarratedObject(
            name=_name(names[head]),
            root=head,
            handled=tuple(times),
            mentioned=tuple(second for second, roots in words if roots & relatives(head)),
        )
        for head, times in handled.items()
    ]
    return NarratedObjects(
        things=tuple(sorted(things, key=lambda thing: (-len(thing.handled), thing.name))),
        last=max((second for second, _ in lines), default=0),
        roots=frozenset(r for _, roots in words for r in roots),
    )


def object_of(sentence: str) -> list[str]:
    """Return the noun phrase that is the object of a narration's verb, without its determiner;
    empty if there is none, or it is too general.
    """
    tokens = [token.lower() for token in _TOKEN.findall(sentence)]
    if tokens and tokens[0] in _ACTOR:
        tokens = tokens[1:]
    elif tokens and tokens[0] in _OTHERS:
        return []  # Another person acts, or the line is a description.
    while tokens and tokens[0] in _AGAIN:
        tokens = tokens[1:]
    if not tokens:
        return []
    verb, rest = tokens[0], tokens[1:]
    if rest and rest[0] == "and":  # "open and close drawer"
        verb, rest = (rest[1], rest[2:]) if len(rest) > 2 else (verb, [])
    while rest and rest[0] in _PARTICLE and not (verb in _PLACING and rest[0] in ("on", "over")):
        rest = rest[1:]
    return _phrase(rest)


def _phrase(tokens: Sequence[str]) -> list[str]:
    nouns: list[str] = []
    for index, token in enumerate(tokens):
        if token == "of" and nouns and nouns[-1] in _MEASURE:
            return _phrase(tokens[index + 1 :])
        if token in _END or not token[0].isalpha() or _is_adverb(token):
            break
        if token in _DETERMINER:
            if nouns:
                break
            continue
        nouns.append(token)
    while len(nouns) > 1 and (nouns[0] in _NO_NAME or _is_participle(nouns[0])):
        nouns = nouns[1:]
    if not 0 < len(nouns) <= 3 or len(nouns[-1]) < 3 or nouns[-1].endswith("ing"):
        return []
    return [] if nouns[-1] in _NO_NAME | _MEASURE else nouns


def _is_adverb(word: str) -> bool:
    return len(word) > 5 and word.endswith("ly")


def _is_participle(word: str) -> bool:
    return len(word) > 4 and word.endswith("ed")


def _name(phrases: Counter[str]) -> str:
    """Return the only phrase of a thing, or else its noun in the most frequent form."""
    if len(phrases) == 1:
        return next(iter(phrases))
    nouns: Counter[str] = Counter()
    for phrase, count in phrases.items():
        nouns[phrase.rpartition(" ")[2]] += count
    return min(nouns, key=lambda noun: (-nouns[noun], noun))
