"""Sequences of events that everybody knows, and words of beginnings and ends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from mustsee.questions.checks import is_order
from mustsee.text import words

SEQUENCES: tuple[tuple[tuple[str, ...], ...], ...] = tuple(
    tuple(tuple(step.split("/")) for step in steps.split())
    for steps in (
        "spring summer autumn/fall winter",
        "january/jan february/feb march/mar april/apr may june/jun july/jul august/aug "
        "september/sep/sept october/oct november/nov december/dec",
        "monday/mon tuesday/tue wednesday/wed thursday/thu friday/fri saturday/sat sunday/sun",
        "morning/sunrise/dawn noon/midday afternoon evening/sunset/dusk night/midnight",
        "breakfast lunch dinner/supper",
        "first/1st second/2nd third/3rd fourth/4th fifth/5th sixth/6th seventh/7th eighth/8th",
        "one/1/i two/2/ii three/3/iii four/4/iv five/5/v six/6/vi seven/7/vii eight/8/viii",
        "yesterday today tomorrow",
        "before during after",
        "small medium large",
        "begin/beginning/start/intro/introduction/welcome/hello/opening/episode/presents middle "
        "end/ending/credits/goodbye/bye/thanks/thank/finally/conclusion/outro/subscribe/enjoy",
    )
)
_AFTER, _BEFORE = re.compile(r"\bafter\b", re.IGNORECASE), re.compile(r"\bbefore\b", re.IGNORECASE)


def steps_in(text: str) -> dict[int, int]:
    """Return the sequences of which a text names a step, each with the number of the step."""
    spoken = set(words(text))
    return {
        number: place
        for number, sequence in enumerate(SEQUENCES)
        for place, names in enumerate(sequence)
        if spoken.intersection(names)
    }


def naturalness(question: str, option: str) -> float:
    """Return how far an option follows a known sequence: the share of pairs of an order that do,
    less of those that do not, or 1 for the step next to one that the question names, or for the
    same one where the question asks for the same time.
    """
    if is_order(question, option):
        places = [steps_in(thing) for thing in option.split(";")]
        pairs = [
            (one[n], other[n])
            for one, other in combinations(places, 2)
            for n in one.keys() & other.keys()
        ]
        return sum((a < b) - (a > b) for a, b in pairs) / len(pairs) if pairs else 0.0
    step = 1 if _AFTER.search(question) else -1 if _BEFORE.search(question) else 0
    named, own = steps_in(question), steps_in(option)
    return float(any(own.get(n) == place + step for n, place in named.items()))


def has_known_place(text: str, others: Sequence[str]) -> bool:
    """Whether the place of a text is known without the video: it is of a beginning or an end, or
    names a step of a sequence of which another text names another.
    """
    own = steps_in(text)
    places = [steps_in(other) for other in others]
    return EDGES in own or any(n in p and p[n] != place for p in places for n, place in own.items())


EDGES = len(SEQUENCES) - 1  # the sequence of beginnings and ends
