"""Truth tables with known truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from mustsee.calls.llm import Asker
from mustsee.facts.fact_looks import weigh_needs
from mustsee.facts.stem import QuestionForm, Stem
from mustsee.facts.table import Entry, TruthTable
from mustsee.facts.work import Roles, VideoWork
from mustsee.records import Fact, Provenance, Span, Video
from mustsee.verify.conditions.video_frames import VideoFrames

MOMENT_S = 6.0
WHO = ("a baker", "a sailor", "a nurse", "a clown", "a judge", "a farmer")
DOES = ("lifts", "paints", "drops", "opens", "breaks", "washes", "hides", "weighs", "burns")
WHAT = ("barrel", "window", "ladder", "piano", "lantern", "carpet", "statue", "bottle", "anchor")
LOOKS = ("green", "rusty", "wooden", "narrow", "golden", "striped", "broken", "velvet", "hollow")
PHRASES = {
    "event": "{who} {does} the {looks} {what}",
    "place": "a {looks} hall with a {what}",
    "person": "{who} in a {looks} {what} shirt",
    "object": "a {looks} {what}",
    "state": "the {what} is {looks}",
    "text": "the words “{LOOKS} {WHAT}”",
    "line": "“{does} my {looks} {what}”",
    "sound": "a {looks} {what} sound",
    "cause": "because the {what} was too {looks}",
}


def phrases(kind: str, count: int, rng: Random) -> list[str]:
    """Return different phrases of a kind. Some share words."""
    found: set[str] = set()
    while len(found) < count:
        who, does, looks, what = map(rng.choice, (WHO, DOES, LOOKS, WHAT))
        found.add(
            PHRASES[kind].format(
                who=who, does=does, looks=looks, what=what, LOOKS=looks.upper(), WHAT=what.upper()
            )
        )
    return rng.sample(sorted(found), count)


def fact_of(kind: str, phrase: str, places: Sequence[int], *, name: str = "", of: str = "") -> Fact:
    """Return a fact that is claimed at some moments, one span for each run of them."""
    runs: list[Span] = []
    for place in sorted(places):
        if runs and runs[-1].end == place * MOMENT_S:
            runs[-1] = Span(runs[-1].start, (place + 1) * MOMENT_S)
        else:
            runs.append(Span(place * MOMENT_S, (place + 1) * MOMENT_S))
    return Fact(
        fact_id=name or phrase, kind=kind, phrase=phrase, spans=tuple(runs), source="test", of=of
    )


def table_of(
    facts: Sequence[tuple[str, str, Sequence[int]]],
    scenes: Sequence[int],
    *,
    truth: Mapping[Entry, bool | None] | None = None,
) -> TruthTable:
    """Return a table in which each fact (kind, phrase, moments) holds at its moments only, and
    every entry is known but those that `truth` changes.
    """
    rows = [fact_of(*fact) for fact in facts]
    known: dict[Entry, bool | None] = {
        (row.fact_id, moment): moment in places
        for row, (_, _, places) in zip(rows, facts, strict=True)
        for moment in range(len(scenes))
    }
    return TruthTable(
        facts=tuple(rows),
        moments=moments_of(len(scenes)),
        scenes=tuple(scenes),
        truth={**known, **(truth or {})},
    )


def moments_of(count: int) -> tuple[Span, ...]:
    return tuple(Span(n * MOMENT_S, (n + 1) * MOMENT_S) for n in range(count))


def random_table(
    rng: Random, kinds: Mapping[str, int], *, moments: int = 24, unknown: float = 0.0
) -> TruthTable:
    """Return a table with some facts of each kind, whose claims are mostly true. Every entry is
    set, a share of them to null.
    """
    scenes: list[int] = []
    while len(scenes) < moments:
        scenes += [rng.randrange(4)] * rng.randint(1, 5)
    facts: list[Fact] = []
    truth: dict[Entry, bool | None] = {}
    for kind, count in kinds.items():
        for phrase in phrases(kind, count, rng):
            runs = 1 if kind in ("event", "line", "cause") else rng.randint(1, 4)
            places: set[int] = set()
            for _ in range(runs):
                first = rng.randrange(moments)
                places.update(range(first, min(moments, first + rng.randint(1, 3))))
            fact = fact_of(kind, phrase, sorted(places), name=f"{kind}{len(facts)}")
            facts.append(fact)
            for moment in range(moments):
                holds = moment in places
                if kind != "line" and rng.random() < 0.02:
                    holds = not holds
                truth[fact.fact_id, moment] = holds
                if kind != "line" and rng.random() < unknown:
                    truth[fact.fact_id, moment] = None
    facts.sort(key=lambda fact: fact.spans[0].start)
    table = TruthTable(
        facts=tuple(facts), moments=moments_of(moments), scenes=tuple(scenes[:moments]), truth=truth
    )
    return replace(table, facts=tuple(_with_causes(table, rng)))


def _with_causes(table: TruthTable, rng: Random) -> list[Fact]:
    """Return the facts, each cause with an event that it explains."""
    events = [fact for fact in table.facts if fact.kind == "event"]
    return [
        replace(fact, of=rng.choice(events).phrase) if fact.kind == "cause" and events else fact
        for fact in table.facts
    ]


def lost_drafts(form: QuestionForm, table: TruthTable, seed: int) -> list[Stem]:
    """Return the questions of a draft that are not made after looks at what it needs alone, all of
    which find what is claimed.
    """
    lines = {e: truth for e, truth in table.truth.items() if table.by_id[e[0]].kind == "line"}
    draft = replace(table, truth=lines, is_draft=True)
    needs = weigh_needs(form, draft, Random(seed))
    looked = {(name, n): n in table.claims[name] for name, n in needs}
    final = form.stems(replace(table, truth=lines | looked), Random(seed))
    made = [replace(stem, needs=()) for stem in final]
    drafts = [replace(stem, needs=()) for stem in form.stems(draft, Random(seed))]
    return [stem for stem in drafts if stem not in made]


def complete(table: TruthTable, *, unknown: bool) -> TruthTable:
    """Return the table with one truth in place of all unknown ones."""
    truth = {entry: unknown if yes is None else yes for entry, yes in table.truth.items()}
    return replace(table, truth=truth)


def work_on(video: Video, frames: VideoFrames, asker: Asker, **more: Any) -> VideoWork:
    """The work on a video in which one model has all roles."""
    roles = Roles(writer=asker, verifier=asker, guesser=asker)
    by = more.pop("by", Provenance(llm="m", prompts=""))
    return VideoWork(video=video, frames=frames, roles=roles, by=by, **more)
