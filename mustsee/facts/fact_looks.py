"""Looks at facts: which entries of the truth table a verifier judges, and what becomes of them.

    table = await look_at(work, table, plan_own_looks(table, settings), closer_from=6)

Where questions are composed, a look judges one moment: all that is claimed there, and what drafts
of the questions must know to be false there (`plan_table_looks`). Where nothing is composed, facts
only have to be right: a look judges some moments at once, and each fact where it is claimed, among
some that nobody claims there (`plan_own_looks`).
"""

from __future__ import annotations

import math
from asyncio import gather
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from random import Random
from typing import TypeVar

from mustsee.errors import BadRow
from mustsee.facts.look import look
from mustsee.facts.settings import FactSettings
from mustsee.facts.stem import QuestionForm
from mustsee.facts.table import Entry, Need, TruthTable
from mustsee.facts.work import VideoWork
from mustsee.records import Fact, Span
from mustsee.verify.conditions.seen import Condition

LOOKS = "looks"  # `what` of the requests
UNCLAIMED_SHARE = (
    0.25  # of the entries of a look at several moments: facts that nobody claims there
)
FACTS_WEIGHT = 4.0  # weight of where facts may hold; without that there is no question, 1: the rest
UNCLAIMED_KINDS = ("event", "object", "state")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class PlannedLook:
    """The `entries` that one look judges, and which frames of their moments it sees. `closer`:
    those of a second look at what the first leaves open; null: none.
    """

    entries: tuple[Entry, ...]
    see: Condition
    closer: Condition | None = None


def plan_table_looks(table: TruthTable, settings: FactSettings) -> list[PlannedLook]:
    """Return looks at one moment each: at the facts that are claimed there, and of the others at
    those that most drafts of questions need. Each form's drafts count alike, but those that ask
    what is seen beside something, of which few are taken, by the share that these may have.
    """
    draft = replace(table, is_draft=True)
    weights: dict[Entry, float] = {}
    for name, form in settings.forms.items():
        if form is None:
            continue
        share = settings.select.beside_share if form.traits.is_beside else 1.0
        needs = weigh_needs(form, draft, Random(f"{settings.seed}/{name}"))
        for entry, weight in needs.items():
            weights[entry] = weights.get(entry, 0.0) + share * weight
    needed: dict[int, list[tuple[float, str]]] = {}
    for (name, moment), weight in weights.items():
        claimed = moment in table.claims[name]
        needed.setdefault(moment, []).append((-float("inf") if claimed else -weight, name))
    return [
        PlannedLook(
            entries=tuple((name, moment) for _, name in part),
            see=settings.look,
            closer=settings.closer,
        )
        for moment, entries in sorted(needed.items())
        for part in _parts(sorted(entries)[: settings.phrases * settings.looks], settings.phrases)
    ]


def weigh_needs(form: QuestionForm, draft: TruthTable, rng: Random) -> dict[Entry, float]:
    """Return the entries without a look that a form needs for a draft, with a weight by how many of
    its facts and of its questions need each. All facts that these name are needed where they are
    claimed.
    """
    checked = [(fact.fact_id, draft.to_check(fact)) for fact in form.facts(draft)]
    named = {name for name, _ in checked}
    of_stems = Counter[Entry]()
    for stem in form.stems(draft, rng):
        of_stems.update(_open_entries(draft, stem.needs))
        named |= stem.about & draft.by_id.keys()
        named.update(name for name, _ in stem.needs)
    of_facts = Counter(_open_entries(draft, [*checked, *((n, draft.claims[n]) for n in named)]))
    weights: dict[Entry, float] = {}
    for counts, weight in ((of_facts, FACTS_WEIGHT), (of_stems, 1.0)):
        for entry, times in counts.items():
            weights[entry] = weights.get(entry, 0.0) + weight * times / counts.total()
    return weights


def _open_entries(table: TruthTable, needs: Iterable[Need]) -> Iterator[Entry]:
    """Yield the entries that are not known without a look."""
    for name, moments in needs:
        for moment in moments:
            if 0 <= moment < len(table.moments) and (name, moment) not in table.truth:
                yield name, moment


def plan_own_looks(table: TruthTable, settings: FactSettings) -> list[PlannedLook]:
    """Return looks at some moments each, at the facts that are claimed there and are not known
    without a look; among them some that are claimed elsewhere.
    """
    claimed = sorted(
        (moment, name)
        for name, moments in table.claims.items()
        for moment in moments
        if (name, moment) not in table.truth
    )
    looks: list[PlannedLook] = []
    for _, some in groupby(claimed, key=lambda entry: entry[0] // settings.moments.window):
        own = [(name, moment) for moment, name in some]
        entries = [*own, *_draw_unclaimed(table, own, settings.seed)]
        looks += [
            PlannedLook(entries=tuple(part), see=settings.look_own)
            for part in _parts(sorted(entries, key=lambda e: e[1]), settings.phrases)
        ]
    return looks


def _draw_unclaimed(table: TruthTable, own: Sequence[Entry], seed: int) -> list[Entry]:
    """Return entries of facts at some moments of a look, at which and beside which they are not
    claimed: a verifier that finds all of them is not looking.
    """
    moments = sorted({moment for _, moment in own})
    possible = [
        (fact.fact_id, moment)
        for fact in table.of_kind(*UNCLAIMED_KINDS)
        for moment in moments
        if all(abs(moment - other) > 1 for other in table.claims[fact.fact_id])
    ]
    number = min(len(possible), math.ceil(UNCLAIMED_SHARE * len(own)))
    return Random(f"{seed}/{moments[0]}/unclaimed").sample(possible, number)


def _parts(some: Sequence[T], size: int) -> list[Sequence[T]]:
    return [some[start : start + size] for start in range(0, len(some), size)]


async def look_at(
    work: VideoWork, table: TruthTable, looks: Sequence[PlannedLook], closer_from: int
) -> TruthTable:
    """Return the table with the entries that looks settle.

    A second, closer look judges what the first leaves open, and what it finds although nobody
    claims it there: that is true only if both looks say so, and unknown where too little is open
    for a second look. Facts that are seen at none of the moments at which they are claimed are
    dropped. A look without a readable reply leaves its entries unknown, and is counted; raises
    BadRow if all do. `closer_from`: entries left open from which there is a second look.
    """
    unread, verifier = list[BadRow](), work.roles.verifier

    async def look_once(
        entries: Sequence[Entry], see: Condition, number: int
    ) -> dict[Entry, bool | None]:
        spans = [table.moments[moment] for moment in sorted({moment for _, moment in entries})]
        asked = [(table.by_id[name], table.moments[moment]) for name, moment in entries]
        work.requests.add_sent(LOOKS)
        try:
            times, images = await work.show(see, spans)
            verdicts = await look(asked, images, times, verifier, seed=work.seed + number)
        except BadRow as error:
            work.requests.add_unread(LOOKS, error)
            unread.append(error)
            return {}
        return dict(zip(entries, verdicts, strict=True))

    async def settle(number: int, planned: PlannedLook) -> dict[Entry, bool | None]:
        first = await look_once(planned.entries, planned.see, 2 * number)
        doubted = [
            (name, moment)
            for (name, moment), truth in first.items()
            if truth is None or (truth and moment not in table.claims[name])
        ]
        second: dict[Entry, bool | None] = {}
        if planned.closer is not None and len(doubted) >= closer_from:
            second = await look_once(doubted, planned.closer, 2 * number + 1)
        confirmed = {e: truth for e, truth in second.items() if first[e] in (None, truth)}
        return first | dict.fromkeys(doubted) | confirmed

    settled = await gather(*(settle(number, one) for number, one in enumerate(looks)))
    if unread and not any(settled):
        raise BadRow(f"none of the {len(settled)} looks at its moments was readable: {unread[-1]}")
    truth = dict(table.truth)
    for entries in settled:
        truth.update(entries)
    found: dict[str, dict[int, bool | None]] = defaultdict(dict)
    for (name, moment), entry in sorted(truth.items()):
        found[name][moment] = entry
    facts = tuple(_with_looks(fact, table, found[fact.fact_id]) for fact in table.facts)
    return replace(table, facts=facts, truth=truth)


def _with_looks(fact: Fact, table: TruthTable, truth: Mapping[int, bool | None]) -> Fact:
    """Return a fact with what looks found of it. `truth`: by moment, in order."""
    found: dict[bool | None, list[Span]] = {True: [], False: [], None: []}
    for moment, entry in truth.items():
        found[entry].append(table.moments[moment])
    own = [truth[m] for m in table.claims[fact.fact_id] if m in truth]
    drop = None
    if own and True not in own:
        drop = "not seen where it is claimed" if False in own else "not settled where it is claimed"
    return replace(
        fact,
        seen=tuple(found[True]),
        unseen=tuple(found[False]),
        unsure=tuple(found[None]),
        drop=drop,
    )
