"""Facts, from extraction to composed questions (`ask=facts`), on one video.

    roles = Roles(writer=..., verifier=..., guesser=...)
    video = await ask_facts(video, roles, frames, encode, settings)

A writer lists timed facts, and a verifier looks at them; one that is not seen where it is claimed
is dropped. With a model, open questions are made of those that are left (`mustsee.facts.deep`). By
rules, or on request, questions are composed: a draft of all says which entries of the truth table
they need, and the verifier looks at these, one moment at a time; the forms then make all questions
that the table allows. More are drafted than are wanted, a guesser without the video sits an exam of
them, and what it answers right goes.

On request, composed questions are asked without their options, too: options help whoever can
exclude some of them. That takes a form with an answer that one can say in words, and a wording that
names no options. Its options are known to be wrong, but what else is true there is not known:
`sight` and a judge decide on written answers.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mustsee.facts.blind_exam import examine
from mustsee.facts.cases import by_chance
from mustsee.facts.claims import add_lines
from mustsee.facts.deep import ask_deep, limit_texts, set_apart, settings_for_composed
from mustsee.facts.draw import draw_groups
from mustsee.facts.fact_looks import look_at, plan_own_looks, plan_table_looks
from mustsee.facts.listing import list_facts
from mustsee.facts.moments import Encode, find_alike, moments_of, scenes_of, search_moments
from mustsee.facts.select import ChosenGroup, choose
from mustsee.facts.settings import DeepRules, FactSettings
from mustsee.facts.stem import FormTraits, Stem
from mustsee.facts.stems import drop_near_acts, drop_twins, explains_steps, make_stems
from mustsee.facts.table import Entry, TruthTable, doubt_lost_things, find_touched
from mustsee.facts.when import ask_when, asks_when
from mustsee.facts.wording import word_groups
from mustsee.facts.work import Roles, VideoWork
from mustsee.questions.checks import MAX_JUDGED_WORDS, fault
from mustsee.questions.drafts import Draft, evidence_metrics, question_id
from mustsee.questions.fact_funnel import explain_loss, funnel_of_video
from mustsee.records import OPEN, FormCount, Frame, Provenance, Question, Video, is_rules
from mustsee.text import length, terms
from mustsee.verify.conditions.video_frames import VideoFrames

_NEEDS_OPTIONS = re.compile(
    r"\bof (?:these|those|the (?:following|options))\b|\b(?:the following|these options)\b|"
    r"^what is seen\b",
    re.IGNORECASE,
)
_QUOTED_WORDS = re.compile(r"^the words “(.+)”$")


async def ask_facts(
    video: Video,
    roles: Roles,
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
    by = Provenance(
        llm=" + ".join(dict.fromkeys((roles.writer.llm.identity, roles.guesser.llm.identity))),
        prompts=roles.writer.prompts.digest(settings.area),
    )
    work = VideoWork(
        video=video, frames=frames, roles=roles, by=by, seed=settings.seed, count=count
    )
    deep = None if is_rules(roles.writer.llm.identity) else settings.deep
    if deep is not None:
        settings = settings_for_composed(settings, deep, work.span.seconds)
    moments = moments_of(video, settings.moments)
    listed = await list_facts(work, moments, settings)
    facts = listed.facts
    table = TruthTable(
        facts=facts, moments=moments, scenes=scenes_of(moments, video.frames or (), facts)
    )
    table = replace(table, truth=spoken_entries(table))
    composes = deep is None or settings.select.question_limit(work.span.seconds) > 0
    if composes or asks_when(settings):
        searched = await asyncio.to_thread(
            search_moments, facts, moments, frames=video.frames or (),
            vectors=video.image_vectors or (), captions=video.captions or (),
            encode=encode, most=settings.search,
        )  # fmt: skip
        table = replace(table, searched=searched)
        looks = await asyncio.to_thread(plan_table_looks, table, settings)
    else:
        looks = plan_own_looks(table, settings)
    table = await look_at(work, table, looks, settings.closer_from)
    table = replace(table, truth=doubt_lost_things(table, video.shots or ()))
    looked_at = table
    composed = ComposedQuestions()
    if composes:
        composed = await draft_and_choose(work, table, encode, settings, deep)
    questions = [q for group in composed.groups for q in compose(group, work)]
    if settings.open:
        traits = [one.stem.traits for group in composed.groups for one in group.members]
        siblings = map(open_sibling, questions, traits)
        questions = [*questions, *(q for q in siblings if q is not None)]
    claims = missing = None
    if deep is not None:
        asked = await ask_deep(work, table, settings)
        claims, missing = asked.claims, asked.missing
        table = add_lines(table, claims, video.lines or ())
        questions = set_apart(asked.questions, questions)
    when = await ask_when(work, looked_at, settings)
    questions = [*questions, *when.questions]
    done = replace(
        video,
        facts=table.facts,
        listed=listed.spans,
        claims=claims,
        missing=missing,
        questions=tuple(questions),
        forms=(*composed.forms, *when.forms),
        requests=work.requests.counts,
    )
    if questions:
        return done
    return replace(done, unasked=explain_no_questions(done, roles.writer.llm.identity))


@dataclass(frozen=True, kw_only=True)
class ComposedQuestions:
    """Composed questions that were chosen, and the number of each form after each step."""

    groups: tuple[ChosenGroup, ...] = ()
    forms: tuple[FormCount, ...] = ()


async def draft_and_choose(
    work: VideoWork,
    table: TruthTable,
    encode: Encode,
    settings: FactSettings,
    deep: DeepRules | None,
) -> ComposedQuestions:
    """Return the questions that the forms make of the table, without those that the guesser answers
    right, worded by the writer where it is a model. `deep`: null: it is not.
    """
    seconds = work.span.seconds
    stems = await asyncio.to_thread(
        lambda: drop_near_acts(drop_twins(make_stems(table, settings), table), table)
    )
    stems = [stem for stem in stems if not stem.traits.asks_time]
    likeness = await asyncio.to_thread(VectorLikeness, encode, stems)
    drafts = await asyncio.to_thread(
        draw_groups, stems, draw_rankings(stems, settings), likeness,
        settings.select.for_drafts(settings.drafts), seconds=seconds, seed=settings.seed,
        alike=AlikeMoments(table, work.video.frames or ()),
    )  # fmt: skip
    unguessed, guessed = await examine(work, drafts, likeness, settings)
    if deep is not None:
        most = round(deep.text_share * deep.question_limit(seconds))
        unguessed, guessed = limit_texts(unguessed, most), limit_texts(guessed, 0)
    groups = await asyncio.to_thread(
        choose, unguessed, guessed, settings.select, seconds=seconds, seed=settings.seed
    )
    if deep is not None and deep.wording:
        groups = await word_groups(work, groups, table, deep.wording)
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


def compose(group: ChosenGroup, work: VideoWork) -> list[Question]:
    """Return the questions of a group. Those of a set or a pair share its name and its options."""
    questions: list[Question] = []
    for chosen in group.members:
        stem = chosen.stem
        decoys = tuple(option for option in chosen.options if option != stem.answer)
        draft = Draft(question=stem.question, answer=stem.answer, decoys=decoys)
        question = work.make_question(
            draft,
            question_type=stem.question_type,
            options=chosen.options,
            answer_index=chosen.options.index(stem.answer),
            evidence=stem.evidence,
            metrics={**evidence_metrics(stem.evidence), "rank": float(chosen.rank)},
            form=stem.key,
        )
        questions.append(question)
    if group.relation is None:
        return questions
    first = questions[0].question_id
    return [replace(q, group=first, relation=group.relation) for q in questions]


def count_forms(
    possible: Iterable[Stem],
    drafts: Sequence[ChosenGroup],
    unguessed: Sequence[ChosenGroup],
    guessed: Sequence[ChosenGroup],
    chosen: Sequence[ChosenGroup],
) -> tuple[FormCount, ...]:
    """Return the number of questions of each form after each step. Of the `drafts`, those that are
    neither `unguessed` nor `guessed` are those whose exam had no readable reply.
    """
    by_form = Counter(stem.key for stem in possible)
    drafted, left, known, taken = map(_by_question, (drafts, unguessed, guessed, chosen))
    unread = {question: form for question, form in drafted.items() if question not in left | known}
    counts = [Counter(names.values()) for names in (drafted, known, unread, taken)]
    return tuple(
        FormCount(
            form=form, possible=number, drafted=counts[0][form], guessed=counts[1][form],
            unread=counts[2][form], chosen=counts[3][form],
        )
        for form, number in by_form.items()
    )  # fmt: skip


def _by_question(groups: Sequence[ChosenGroup]) -> dict[str, str]:
    """Return the key of the form of each question of some groups."""
    return {one.stem.question: one.stem.key for group in groups for one in group.members}


def explain_no_questions(video: Video, writer: str) -> str:
    """Return why a video with facts has no question, and what to do. `writer`: identity of the
    model that listed the facts.
    """
    written = sum(question.skill is not None for question in video.questions or ())
    funnel = funnel_of_video(video, written=written)
    reason = explain_loss(funnel, video.requests, by_rules=is_rules(writer))
    if explains_steps(video.facts or ()):
        reason += "; its lines explain steps, so nothing is asked of its words alone"
    return reason


def open_sibling(question: Question, traits: FormTraits) -> Question | None:
    """Return the question without its options, as a sibling of it that is in no set; None where its
    form, of these `traits`, or its wording needs options, or it holds the words of its answer.
    """
    if traits.needs_options or _NEEDS_OPTIONS.search(question.question):
        return None
    answer_terms = set(terms(question.answer))
    if answer_terms and answer_terms <= set(terms(question.question)):
        return None
    too_long = length(question.answer) > MAX_JUDGED_WORDS
    if too_long or fault(question.question, question.answer, (), count=0):
        return None
    draft = Draft(question=question.question, answer=question.answer)
    words = _QUOTED_WORDS.match(question.answer)
    return replace(
        question,
        question_id=question_id(question.video_id, question.recipe, draft),
        options=(),
        answer_index=None,
        variants=(words[1],) if words else (),
        verdicts=(),
        metrics=evidence_metrics(question.evidence),
        sibling_of=question.question_id,
        relation=OPEN,
        group=None,
    )
