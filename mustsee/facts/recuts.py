"""Re-cuts: a video with two stretches swapped, and questions that it and the video answer
differently.

    rows = recut_rows(video, settings)      # of a video with facts: itself and its re-cut

Two stretches of the video change places, at cuts that no line is spoken across. The truth table of
the re-cut is that of the video with its moments moved, so no model looks again. A form that makes
the same question of both tables, with another answer of which each is known to be wrong in the
other video, gives a pair: the words are the same, so whoever does not look has one right at most.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random

from mustsee import schemas
from mustsee.errors import UserError
from mustsee.facts.cases import by_chance
from mustsee.facts.draw import is_coherent
from mustsee.facts.moments import moments_of, scenes_of
from mustsee.facts.recipe import compose, spoken_entries
from mustsee.facts.select import Chosen, ChosenGroup, SelectRules
from mustsee.facts.settings import FactSettings
from mustsee.facts.stem import Stem
from mustsee.facts.table import TruthTable
from mustsee.questions.drafts import evidence_metrics
from mustsee.records import PAIR, Provenance, Question, Span, Video
from mustsee.synth.plan import InsertedProbe, Insertion, InsertionPlan
from mustsee.verify.conditions.seen import merge_spans, video_span

ALWAYS = Span(0.0, float("inf"))
TRIES = 12  # re-cuts of a video that are tried; the one with most pairs is taken
SAME_TIME_S = 0.05  # between a cut and a border of moments, or the end of a line, at most
NO_PAIRS = "no two stretches of it can change places so that a question gets another answer"


@dataclass(frozen=True)
class Recut:
    """`pieces`: numbers of moments that stay together, in their new order."""

    moments: tuple[Span, ...]
    pieces: tuple[range, ...]

    @property
    def spans(self) -> list[Span]:
        """The pieces in the time of the video."""
        return [Span(self.moments[p[0]].start, self.moments[p[-1]].end) for p in self.pieces]

    def move(self, spans: Iterable[Span]) -> tuple[Span, ...]:
        """Return spans of the video in the time of the re-cut, in order; one across a cut is
        divided.
        """
        ends = list(accumulate(span.seconds for span in self.spans))
        moved: list[Span] = []
        for span in spans:
            for piece, end in zip(self.spans, ends, strict=True):
                shift = end - piece.end
                first, last = max(span.start, piece.start), min(span.end, piece.end)
                if first < last or (first == last == span.start == span.end < piece.end):
                    moved.append(Span(first + shift, last + shift))
        return tuple(sorted(moved, key=lambda span: span.start))

    def move_table(self, table: TruthTable) -> TruthTable:
        """Return the truth table of the re-cut."""
        order = [number for piece in self.pieces for number in piece]
        place = {old: new for new, old in enumerate(order)}
        facts = [
            replace(
                fact,
                spans=merge_spans(self.move(fact.spans), ALWAYS),
                seen=self.move(fact.seen),
                unseen=self.move(fact.unseen),
                unsure=self.move(fact.unsure),
            )
            for fact in table.facts
        ]
        return TruthTable(
            facts=tuple(sorted(facts, key=lambda f: (f.spans[0].start, f.fact_id))),
            moments=tuple(self.move([table.moments[old]])[0] for old in order),
            scenes=tuple(table.scenes[old] for old in order),
            truth={(name, place[moment]): entry for (name, moment), entry in table.truth.items()},
        )

    def plan(self, uri: str) -> InsertionPlan:
        """Return the plan of the re-cut's file: the first piece, and the others inserted behind."""
        first, *others = self.spans
        probes = [InsertedProbe(uri=uri, start=span.start, end=span.end) for span in others]
        inserted = tuple(Insertion(at=first.end, probe=probe) for probe in probes)
        return InsertionPlan(background=uri, start=first.start, end=first.end, insertions=inserted)


def recut_rows(video: Video, settings: FactSettings) -> list[Video]:
    """Return the row with its questions of pairs, and the row of its re-cut with theirs; the row
    alone, with the reason, if there are none. `settings`: those that its facts were listed with.
    """
    table = table_of(video, settings)
    best: tuple[Recut, list[tuple[Chosen, Chosen]]] | None = None
    rng = Random(f"{settings.seed}/{video.video_id}/recut")
    borders = find_borders(table.moments, video)
    for _ in range(TRIES if len(borders) > 2 else 0):
        recut = draw_recut(table.moments, borders, rng)
        moved = recut.move_table(table)
        pairs = draw_pairs(table, moved, settings, seconds=video_span(video).seconds)
        if best is None or len(pairs) > len(best[1]):
            best = recut, pairs
    if best is None or not best[1]:
        return [replace(video, questions=(), unasked=NO_PAIRS)]
    recut, pairs = best
    recut_id = f"{video.video_id}_recut"
    questions = [_compose_pair(pair, video.video_id, recut_id) for pair in pairs]
    plan = recut.plan(video.uri)
    return [
        replace(video, questions=tuple(one for one, _ in questions)),
        replace(
            video,
            video_id=recut_id,
            source=video.video_id,
            plan=json.dumps(schemas.dump(plan), sort_keys=True),
            start=None,
            end=None,
            size=None,
            modified=None,
            digest=None,
            subtitles=None,
            subtitles_digest=None,
            duration=plan.seconds,
            shots=recut.move(video.shots or ()),
            keyframes=None,
            frames=None,
            texts=None,
            lines=tuple(
                replace(line, start=span.start, end=span.end, words=())
                for line in video.lines or ()
                for span in recut.move([Span(line.start, line.end)])[:1]
            ),
            captions=None,
            facts=recut.move_table(table).facts,
            questions=tuple(other for _, other in questions),
        ),
    ]


def table_of(video: Video, settings: FactSettings) -> TruthTable:
    """Return the truth table of a finished row, as far as its facts' looks tell it. Scenes are
    known by their places only. Raises UserError where the looks were at other moments.
    """
    facts = video.facts or ()
    moments = moments_of(video, settings.moments)
    number = {round(moment.start, 3): n for n, moment in enumerate(moments)}
    table = TruthTable(facts=facts, moments=moments, scenes=scenes_of(moments, (), facts))
    truth = spoken_entries(table)
    for fact in facts:
        for spans, entry in ((fact.seen, True), (fact.unseen, False), (fact.unsure, None)):
            for start in (round(span.start, 3) for span in spans):
                if start not in number:
                    raise UserError(
                        f"{video.video_id!r} was looked at from {start:g} s on, where no moment "
                        "begins: give ask.settings.moments.* as in the run in made="
                    )
                truth[fact.fact_id, number[start]] = entry
    return replace(table, truth=truth)


def find_borders(moments: Sequence[Span], video: Video) -> list[int]:
    """Return the numbers of the moments that begin with a cut which no line is spoken across."""
    cuts = [shot.start for shot in video.shots or ()]
    return [
        n
        for n, moment in enumerate(moments)
        if n > 0
        and any(abs(cut - moment.start) <= SAME_TIME_S for cut in cuts)
        and not any(
            line.start + SAME_TIME_S < moment.start < line.end - SAME_TIME_S
            for line in video.lines or ()
        )
    ]


def draw_recut(moments: tuple[Span, ...], borders: Sequence[int], rng: Random) -> Recut:
    """Draw two stretches between borders, at least three, and return the re-cut in which they have
    changed places. The first and the last moments keep theirs.
    """
    a, b, *between, c = sorted(rng.sample(borders, min(rng.choice((3, 4)), len(borders))))
    d = between[0] if between else b
    pieces = (range(a), range(d, c), range(b, d), range(a, b), range(c, len(moments)))
    return Recut(moments, tuple(piece for piece in pieces if piece))


def draw_pairs(
    table: TruthTable, moved: TruthTable, settings: FactSettings, *, seconds: float
) -> list[tuple[Chosen, Chosen]]:
    """Return questions that both tables have with different answers, each with the same options."""
    rules, uses = settings.select, Counter[str]()
    found: list[tuple[Chosen, Chosen]] = []
    for name, form in settings.forms.items():
        if form is None or form.traits.asks_time:  # It has no options to share.
            continue
        seed = f"{settings.seed}/{name}"
        others = _by_question(name, form.stems(moved, Random(seed)))
        own = _by_question(name, form.stems(table, Random(seed)))
        for question in by_chance(seed, [q for q in own if q in others], str):
            pairs = [(one, other) for one in own[question] for other in others[question]]
            options = ((pair, _draw_options(*pair, rules, seed)) for pair in pairs)
            (one, other), shared = next((p for p in options if p[1]), (pairs[0], ()))
            about = one.about | other.about
            if shared and all(uses[n] < (1 if "/" in n else rules.of_fact) for n in about):
                uses.update(about)
                first, second = (Chosen(stem=s, options=shared, rank=0) for s in (one, other))
                found.append((first, second))
    return found[: rules.question_limit(seconds)]


def _by_question(key: str, stems: Iterable[Stem]) -> Mapping[str, list[Stem]]:
    """Return the stems of the form `key` by their questions."""
    found: dict[str, list[Stem]] = {}
    for stem in stems:
        found.setdefault(stem.question, []).append(replace(stem, key=key))
    return found


def _draw_options(one: Stem, other: Stem, rules: SelectRules, seed: str) -> tuple[str, ...]:
    """Return options for both stems: both answers, each known to be wrong for the other, and some
    that are wrong for both; empty if there are too few.
    """
    if other.answer not in one.pool or one.answer not in other.pool:
        return ()
    rng = Random(f"{seed}/{one.question}")
    shared = [a for a in one.pool if a in other.pool]
    if len(shared) < rules.options - 2:
        return ()
    options = [one.answer, other.answer, *rng.sample(shared, rules.options - 2)]
    if not (is_coherent(one, options) and is_coherent(other, options)):
        return ()
    return tuple(rng.sample(options, len(options)))


def _compose_pair(
    pair: tuple[Chosen, Chosen], video_id: str, recut_id: str
) -> tuple[Question, Question]:
    by = Provenance(llm="none", prompts="")
    one, other = (
        compose(ChosenGroup(members=(chosen,)), name, by)[0]
        for chosen, name in zip(pair, (video_id, recut_id), strict=True)
    )

    def join(question: Question) -> Question:
        metrics = evidence_metrics(question.evidence)  # Nobody ranked the options.
        return replace(question, group=one.question_id, relation=PAIR, metrics=metrics)

    return join(one), join(other)
