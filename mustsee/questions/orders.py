"""Options that code makes (orders of the same things, combinations of the same values), and orders
that everybody knows.

A writer's own wrong orders vary the right one, so that it shares most neighbours with the others,
and whoever counts finds it. Here no option differs from the others in anything that can be counted:

- Three things: all six orders.
- Four to six things: as many orders as things. Each thing stands at each place once, and beside
  each other thing twice (a quasi-complete Latin square). All orders follow from any one of them by
  the same exchange of things, and none is another one rotated.
- An answer of two parts ("red; blue"): all combinations of two values and two, or two and three.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, permutations, product

from mustsee.questions.checks import entries, is_order, normal
from mustsee.questions.drafts import Draft
from mustsee.text import words

MAX_THINGS = 6  # things of an order, at most; a longer one keeps its writer's wrong answers
SEPARATOR = "; "  # what stands between the parts of an answer


def build_options(draft: Draft) -> Draft:
    """Return the draft with decoys made by code: wrong orders if it asks for an order, wrong
    combinations if all its options have two parts. Other drafts are returned as they are.
    """
    if is_order(draft.question, draft.answer):
        things = entries(draft.answer)
        rng = random.Random(f"{draft.question}/{draft.answer}/orders")
        orders = [things, *wrong_orders(things, rng)]
        options = [SEPARATOR.join(order) for order in orders]
        if _is_sentence_case(things, draft.question):
            first = things[0]
            plain = {first: first[:1].lower() + first[1:]}
            options = [SEPARATOR.join(plain.get(x, x) for x in order) for order in orders]
            options = [option[:1].upper() + option[1:] for option in options]
    else:
        options = _combinations([draft.answer, *draft.decoys])
    return replace(draft, answer=options[0], decoys=tuple(options[1:])) if options[1:] else draft


def wrong_orders(things: Sequence[str], rng: random.Random) -> list[tuple[str, ...]]:
    """Return the other orders of a balanced set that holds the given order; none if fewer than
    three things, more than `MAX_THINGS`, or equal ones are given.
    """
    count = len(things)
    if not 3 <= count <= MAX_THINGS or len({normal(thing) for thing in things}) < count:
        return []
    if count == 3:  # the three orders that balance places are rotations of one order
        rows = list(permutations(range(count)))
    else:
        rows = rng.choice(list(_balanced_sets(count)))
    return [tuple(things[n] for n in row) for row in rows[1:]]


def _balanced_sets(count: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield sets of `count` orders of 0, 1, 2, ..., beginning with that order, in which each thing
    stands beside each other one equally often. An order of a set is the one before it with each
    thing exchanged for the next one of a cycle, so each thing stands at each place once.
    """
    for others in permutations(range(1, count)):
        cycle = (0, *others)
        following = dict(zip(cycle, (*others, 0), strict=True))
        rows = [tuple(range(count))]
        while len(rows) < count:
            rows.append(tuple(following[thing] for thing in rows[-1]))
        beside = Counter(frozenset(pair) for row in rows for pair in pairwise(row))
        if set(beside.values()) == {2}:
            yield rows


def _is_sentence_case(things: Sequence[str], question: str) -> bool:
    """Whether the first thing has a capital letter only because the answer begins with it."""
    first, *others = things
    word = first.split()[0]
    is_name = first in question or word[1:] != word[1:].lower() or len(word) < 2
    return first[:1].isupper() and not is_name and not any(x[:1].isupper() for x in others)


def _combinations(options: Sequence[str]) -> list[str]:
    """Return all combinations of the parts of the options, the first option first; none unless all
    options have two parts, and each part has two values.
    """
    pairs = [[part.strip() for part in option.split(";")] for option in options]
    if any(len(pair) != 2 or not all(map(normal, pair)) for pair in pairs):
        return []
    firsts, seconds = (_values([pair[place] for pair in pairs]) for place in (0, 1))
    if min(len(firsts), len(seconds)) < 2:
        return []
    sizes = (3, 2) if len(firsts) > len(seconds) else (2, 3)
    combined = product(firsts[: sizes[0]], seconds[: sizes[1]])
    return [SEPARATOR.join(pair) for pair in combined]


def _values(parts: Sequence[str]) -> list[str]:
    """Return the distinct texts: the first, then the most frequent."""
    right, *others = map(normal, parts)
    texts = {normal(part): part for part in reversed(parts)}
    frequent = (key for key, _ in Counter(others).most_common() if key != right)
    return [texts[key] for key in (right, *frequent)]


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
