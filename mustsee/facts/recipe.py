"""Facts, from extraction to composed questions (`ask=facts`), on one video.

    seats = Seats(writer=..., verifier=..., guesser=...)
    video = await ask_facts(video, seats, frames, encode, settings)

A writer lists timed facts. A draft of all questions says which entries of the truth table they
need; a verifier looks at these, one moment at a time. A fact that is not seen where it is claimed
is dropped. The forms then make all questions that the table allows. More are drafted than are
wanted, a guesser without the video sits an exam of them, and what it answers right goes.
"""

from __future__ import annotations

import asyncio
from asyncio import gather
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from mustsee.calls.llm import Asker, is_rules
from mustsee.calls.request_tally import RequestTally
from mustsee.errors import BadRow
from mustsee.facts.cases import by_chance, shared_seconds
from mustsee.facts.claims import add_lines
from mustsee.facts.deep import (
    Seats,
    ask_deep,
    limit_texts,
    set_apart,
    settings_for_composed,
)
from mustsee.facts.deep_settings import DeepRules
from mustsee.facts.draw import draw_groups
from mustsee.facts.exam import examine
from mustsee.facts.funnel import count_forms, explain_no_questions
from mustsee.facts.listing import list_facts
from mustsee.facts.look import look
from mustsee.facts.moments import find_alike, moments_of, scenes_of
from mustsee.facts.open import open_sibling
from mustsee.facts.points import RECIPE
from mustsee.facts.search import Encode, search_moments
from mustsee.facts.select import ChosenGroup, choose
from mustsee.facts.settings import FactSettings
from mustsee.facts.stem import Stem
from mustsee.facts.steps import explains_steps, is_of_words_alone
from mustsee.facts.table import Entry, TruthTable, doubt_lost_things, find_touched
from mustsee.facts.unread import StepTally
from mustsee.facts.when import ask_when
from mustsee.facts.wording import word_groups
from mustsee.questions.drafts import Draft, evidence_metrics, question_id
from mustsee.records import Fact, FormCount, Frame, Provenance, Question, Span, Video
from mustsee.verify.conditions.seen import Condition, plan, video_span
from mustsee.verify.conditions.video_frames import VideoFrames

MIN_DECOY_GAP_S = (
    1.5  # least time between a question's evidence and an event that is a wrong answer
)
LOOKS = "looks"  # `what` of the requests


async def ask_facts(
    video: Video,
    seats: Seats,
    frames: VideoFrames,
    encode: Encode,
    settings: FactSettings,
    count: Callable[[str, int], None] = lambda name, number: None,
) -> Video:
    """Return the video with its facts, claims and questions, or the reason why there are none, with
    what became of the questions of each form, and with the number of requests without a readable
    reply. Claims and open questions only with a model as writer. `count`: adds to a count of
    `run.json`.

    Raises BadRow if no window, no look or no exam has one.
    """
    requests, seconds = RequestTally(), video_span(video).seconds
    tally = StepTally(requests, count)
    deep = None if is_rules(seats.writer.llm.identity) else settings.deep
    if deep is not None:
        settings = settings_for_composed(settings, deep, seconds)
    moments = moments_of(video, settings.moments)
    listed = await list_facts(video, moments, seats.writer, frames, settings, requests)
    facts = listed.facts
    table = TruthTable(
        facts=facts, moments=moments, scenes=scenes_of(moments, video.frames or (), facts)
    )
    table = replace(table, truth=spoken_entries(table))
    table = replace(
        table,
        searched=await asyncio.to_thread(
            search_moments, facts, moments, frames=video.frames or (),
            vectors=video.image_vectors or (), captions=video.captions or (),
            encode=encode, most=settings.search,
        ),
    )  # fmt: skip
    table = await look_at(table, video, seats.verifier, frames, settings, requests)
    table = replace(table, truth=doubt_lost_things(table, video.shots or ()))
    looked_at = table
    composed = ComposedQuestions()
    if deep is None or settings.select.question_limit(seconds):
        composed = await draft_and_choose(
            video, table, seats, encode, settings, deep, requests, tally, seconds
        )
    by = Provenance(
        llm=" + ".join(dict.fromkeys((seats.writer.llm.identity, seats.guesser.llm.identity))),
        prompts=seats.writer.prompts.digest(settings.area),
    )
    questions = [q for group in composed.groups for q in compose(group, video.video_id, by)]
    if settings.open:
        traits = [one.stem.traits for group in composed.groups for one in group.members]
        siblings = map(open_sibling, questions, traits)
        questions = [*questions, *(q for q in siblings if q is not None)]
    claims = missing = None
    if deep is not None:
        asked = await ask_deep(video, table, seats, frames, settings, tally, by)
        claims, missing = asked.claims, asked.missing
        table = add_lines(table, claims, video.lines or ())
        questions = set_apart(asked.questions, questions)
    when = await ask_when(video, looked_at, seats.verifier, frames, settings, tally, by)
    questions = [*questions, *when.questions]
    done = replace(
        video,
        facts=table.facts,
        listed=listed.spans,
        claims=claims,
        missing=missing,
        questions=tuple(questions),
        forms=(*composed.forms, *when.forms),
        requests=requests.counts,
    )
    if questions:
        return done
    return replace(done, unasked=explain_no_questions(done, seats.writer.llm.identity))


@dataclass(frozen=True, kw_only=True)
class ComposedQuestions:
    """Composed questions that were chosen, and the number of each form after each step."""

    groups: tuple[ChosenGroup, ...] = ()
    forms: tuple[FormCount, ...] = ()


async def draft_and_choose(
    video: Video,
    table: TruthTable,
    seats: Seats,
    encode: Encode,
    settings: FactSettings,
    deep: DeepRules | None,
    requests: RequestTally,
    tally: StepTally,
    seconds: float,
) -> ComposedQuestions:
    """Return the questions that the forms make of the table, without those that the guesser answers
    right, worded by the writer where it is a model. `deep`: null: it is not.
    """
    stems = await asyncio.to_thread(
        lambda: drop_near_acts(drop_twins(make_stems(table, settings), table), table)
    )
    stems = [stem for stem in stems if not stem.traits.asks_time]
    likeness = await asyncio.to_thread(VectorLikeness, encode, stems)
    drafts = await asyncio.to_thread(
        draw_groups, stems, draw_rankings(stems, settings), likeness,
        settings.select.for_drafts(settings.drafts), seconds=seconds, seed=settings.seed,
        alike=AlikeMoments(table, video.frames or ()),
    )  # fmt: skip
    unguessed, guessed = await examine(drafts, seats.guesser, likeness, settings, requests)
    if deep is not None:
        most = round(deep.text_share * deep.question_limit(seconds))
        unguessed, guessed = limit_texts(unguessed, most), limit_texts(guessed, 0)
    groups = await asyncio.to_thread(
        choose, unguessed, guessed, settings.select, seconds=seconds, seed=settings.seed
    )
    if deep is not None and deep.wording:
        groups = await word_groups(
            groups, table, seats.writer, seats.guesser, tally, together=deep.wording,
            seed=settings.seed,
        )  # fmt: skip
    return ComposedQuestions(
        groups=tuple(groups), forms=count_forms(stems, drafts, unguessed, guessed, groups)
    )


def spoken_entries(table: TruthTable) -> dict[Entry, bool | None]:
    """Return the entries of transcript lines, which are known without a look."""
    return {
        (fact.fact_id, moment): moment in table.claims[fact.fact_id]
        for fact in table.facts
        if fact.kind == "line"
        for moment in range(len(table.moments))
    }


def make_stems(table: TruthTable, settings: FactSettings) -> list[Stem]:
    """Return all stems of all forms, each question once; none of words alone where the lines
    explain steps.
    """
    stems: dict[str, Stem] = {}
    for name, form in settings.forms.items():
        if form is not None:
            for stem in form.stems(table, Random(f"{settings.seed}/{name}")):
                stems.setdefault(stem.question, replace(stem, key=name, traits=form.traits))
    steps = explains_steps(table.facts)
    return [stem for stem in stems.values() if not (steps and is_of_words_alone(stem))]


def drop_twins(stems: Sequence[Stem], table: TruthTable) -> list[Stem]:
    """Return the stems, each without wrong answers that may be another one of it in other words."""
    by_phrase = {fact.phrase: fact for fact in table.facts}

    def are_twins(one: str, other: str) -> bool:
        first, second = by_phrase.get(one), by_phrase.get(other)
        return first is not None and second is not None and table.are_twins(first, second)

    return [
        replace(
            stem,
            pool=tuple(
                phrase
                for n, phrase in enumerate(stem.pool)
                if not any(are_twins(phrase, earlier) for earlier in stem.pool[:n])
            ),
        )
        for stem in stems
    ]


def drop_near_acts(stems: Sequence[Stem], table: TruthTable) -> list[Stem]:
    """Return the stems, each without events as wrong answers that are claimed less than
    `MIN_DECOY_GAP_S` from its evidence: they may reach into it, and looks judge whole moments.
    """
    events = {fact.phrase: fact.spans for fact in table.facts if fact.kind == "event"}

    def is_near(phrase: str, evidence: Sequence[Span]) -> bool:
        spans = events.get(phrase, ())
        return any(
            shared_seconds(one, other) > -MIN_DECOY_GAP_S for one in spans for other in evidence
        )

    return [
        replace(stem, pool=tuple(p for p in stem.pool if not is_near(p, stem.evidence)))
        for stem in stems
    ]


def wanted_entries(table: TruthTable, settings: FactSettings) -> dict[int, list[Fact]]:
    """Return for each moment the facts to look for: those that are claimed there, and of the others
    those that most drafts of questions need. Each form's drafts count alike, but those that ask
    what is seen beside something, of which few are taken, by the share that these may have.
    """
    shares: dict[Entry, float] = {}
    for name in settings.forms:
        draft = replace(table, wanted=Counter())
        assert draft.wanted is not None
        stems = make_stems(draft, replace(settings, forms={name: settings.forms[name]}))
        beside = any(stem.traits.is_beside for stem in stems)
        weight = settings.select.beside_share if beside else 1.0
        total = draft.wanted.total()
        for entry, times in draft.wanted.items():
            shares[entry] = shares.get(entry, 0.0) + weight * times / total
    needed: dict[int, list[tuple[float, str]]] = {}
    for (name, moment), share in shares.items():
        claimed = moment in table.claims[name]
        needed.setdefault(moment, []).append((-float("inf") if claimed else -share, name))
    most = settings.phrases * settings.looks
    return {
        moment: [table.by_id[name] for _, name in sorted(entries)[:most]]
        for moment, entries in sorted(needed.items())
    }


async def look_at(
    table: TruthTable,
    video: Video,
    verifier: Asker,
    frames: VideoFrames,
    settings: FactSettings,
    requests: RequestTally,
) -> TruthTable:
    """Return the table with the entries that looks settle.

    A second, closer look at a moment judges what the first leaves open, and what it finds although
    nobody claims it there: that is true only if both looks say so, and unknown where too little is
    open for a second look. Facts that are seen at none of the moments at which they are claimed are
    dropped. A look without a readable reply leaves its entries unknown, and is counted; raises
    BadRow if all do.
    """
    unread = list[BadRow]()

    async def look_once(
        moment: int, facts: Sequence[Fact], see: Condition, number: int
    ) -> dict[Entry, bool | None]:
        here = table.moments[moment]
        planned = plan(see, video_span(video), (here,))
        times = planned.times if planned else ()
        requests.add_sent(LOOKS)
        try:
            images = await frames.jpegs(times, see)
            seen = await look(facts, images, times, here, verifier, seed=settings.seed + number)
        except BadRow as error:
            requests.add_unread(LOOKS, error)
            unread.append(error)
            return {}
        return {(name, moment): truth for name, truth in seen.items()}

    async def settle(moment: int, facts: Sequence[Fact], number: int) -> dict[Entry, bool | None]:
        first = await look_once(moment, facts, settings.look, number)
        claimed = {(f.fact_id, moment) for f in facts if moment in table.claims[f.fact_id]}
        doubted = {e for e, truth in first.items() if truth is None or (truth and e not in claimed)}
        again = [fact for fact in facts if (fact.fact_id, moment) in doubted]
        if settings.closer is None:
            return first
        second: dict[Entry, bool | None] = {}
        if len(again) >= settings.closer_from:
            second = await look_once(moment, again, settings.closer, number + 1)
        confirmed = {e: truth for e, truth in second.items() if first[e] in (None, truth)}
        return first | dict.fromkeys(doubted) | confirmed

    truth = dict(table.truth)
    wanted = await asyncio.to_thread(wanted_entries, table, settings)
    settled = await gather(
        *(
            settle(moment, facts[start : start + settings.phrases], 2 * number)
            for moment, facts in wanted.items()
            for number, start in enumerate(range(0, len(facts), settings.phrases))
        )
    )
    if unread and not any(settled):
        raise BadRow(f"none of the {len(settled)} looks at its moments was readable: {unread[-1]}")
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


def draw_rankings(stems: Sequence[Stem], settings: FactSettings) -> dict[int, tuple[str, ...]]:
    """Return for each stem's number its answers in an order drawn by chance: drafts have options of
    any plausibility.
    """
    return {
        n: tuple(
            by_chance(
                f"{settings.seed}/{stem.question}", stem.options or (stem.answer, *stem.pool), str
            )
        )
        for n, stem in enumerate(stems)
        if stem.options or len(stem.pool) >= settings.select.least_options - 1
    }


class VectorLikeness:
    """How alike a question and each of some answers are, by their vectors. Of stems that come with
    their options nobody asks.
    """

    def __init__(self, encode: Encode, stems: Sequence[Stem]) -> None:
        texts = sorted({t for s in stems if not s.options for t in (s.question, s.answer, *s.pool)})
        self._vectors = dict(zip(texts, encode(texts), strict=True)) if texts else {}

    def __call__(self, question: str, answers: Sequence[str]) -> list[float]:
        return [float(self._vectors[question] @ self._vectors[a]) for a in answers]


class AlikeMoments:
    """Whether the moments that two questions name first look alike, or are of one scene."""

    def __init__(self, table: TruthTable, frames: Sequence[Frame]) -> None:
        self._moments = table.moments
        self._alike = find_alike(table.moments, frames, table.scenes)

    def __call__(self, one: Stem, other: Stem) -> bool:
        first, second = (find_touched(stem.evidence[:1], self._moments) for stem in (one, other))
        return first != second and bool(self._alike[np.ix_(first, second)].any())


def compose(group: ChosenGroup, video_id: str, by: Provenance) -> list[Question]:
    """Return the questions of a group. Those of a set or a pair share its name and its options."""
    questions: list[Question] = []
    for chosen in group.members:
        stem = chosen.stem
        decoys = tuple(option for option in chosen.options if option != stem.answer)
        draft = Draft(question=stem.question, answer=stem.answer, decoys=decoys)
        questions.append(
            Question(
                question_id=question_id(video_id, RECIPE, draft),
                video_id=video_id,
                recipe=RECIPE,
                question=stem.question,
                question_type=stem.question_type,
                options=chosen.options,
                answer_index=chosen.options.index(stem.answer),
                answer=stem.answer,
                evidence=stem.evidence,
                metrics={**evidence_metrics(stem.evidence), "rank": float(chosen.rank)},
                subsets=("full",),
                provenance=by,
                form=stem.key,
            )
        )
    if group.relation is None:
        return questions
    first = questions[0].question_id
    return [replace(q, group=first, relation=group.relation) for q in questions]
