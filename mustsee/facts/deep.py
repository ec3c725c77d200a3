"""What a model asks about a whole video: claims, and open questions with points (`ask=facts`).

    claims, questions = await ask_deep(work, table, settings)

Without a model nothing of it is asked: rules tie no facts together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mustsee.facts.choices import ask_choices, free_claims
from mustsee.facts.claims import add_lines, list_claims
from mustsee.facts.edit import rank_open, write_questions
from mustsee.facts.mix import Level, Skill, allot, read_levels
from mustsee.facts.point_exam import examine_open
from mustsee.facts.points import OpenDraft, Statements, compose_open, make_statements
from mustsee.facts.select import ChosenGroup
from mustsee.facts.settings import DeepRules, FactSettings
from mustsee.facts.table import TruthTable
from mustsee.facts.weigh import weigh_claims
from mustsee.facts.work import VideoWork
from mustsee.records import Claim, MissingQuestions, Question

OPEN_SUBSET, CHOICE_SUBSET = "open", "choices"  # of videos that have both sorts of questions
CLAIMS_OF_QUESTION = 3  # claims among the points of an open question, about; the others are facts
SPARE = "spare: enough others of its skill are asked"
TOO_FEW_CLAIMS = "too few claims hold (ask.settings.deep.claims.claims=N lists more)"
TOO_FEW_PASSED, NOTHING_TO_ASK = "too few passed the exams", "the writer found nothing to ask"
TOO_NEAR = "too few of those that passed"
WITH_CLAIMS = "questions whose options are claims"
TOO_FEW_FREE = "too few claims hold that are no point of an open question"
TOO_FEW_UNGUESSED = "too few were written, read back alike and not guessed"
# name of a count in run.json
OVERUSED = "open questions left out because others have their claims as points"
WORDS = "the words “"  # how the phrase of an on-screen text begins


@dataclass(frozen=True, kw_only=True)
class DeepQuestions:
    """What a model asks about a whole video. `missing`: open questions that are wanted and not
    asked.
    """

    claims: tuple[Claim, ...]
    questions: tuple[Question, ...]
    missing: tuple[MissingQuestions, ...]


async def ask_deep(work: VideoWork, table: TruthTable, settings: FactSettings) -> DeepQuestions:
    """Return the claims of a video, its deep questions, and what is missing of those that are
    wanted; questions that may not be asked, and those that are more than wanted, have the reason in
    `drop`. Raises BadRow if no request of a step could be read.
    """
    assert settings.deep is not None
    rules, seconds = settings.deep, work.span.seconds
    listed = await list_claims(work, table, rules.claims)
    table = add_lines(table, listed, work.video.lines or ())
    claims = await weigh_claims(work, table, listed, rules.claims)
    held = sum(claim.drop is None for claim in claims)
    aimed = settings.wanted_questions(work.video.video_id, rules.open_limit(seconds))
    limit = sum(aimed.values())
    number = min(limit, held * rules.points.of_claim // CLAIMS_OF_QUESTION)
    wanted = _cut_down(aimed, number)
    levels = read_levels(settings.reach)
    statements = make_statements(table, claims, rules.points, settings.skills)
    examined = await ask_open(work, statements, wanted)
    ranked = await rank_open(work, examined, sum(wanted.values()))
    questions = select_open(examined, ranked, wanted, levels, seconds)
    choices, missing = (), ()
    if rules.choices is not None:
        most = round(rules.choices.share * rules.question_limit(seconds))
        free = free_claims(statements.claims, questions)
        choices = await ask_choices(work, free, rules.choices, most)
        if len(choices) < most:
            why = TOO_FEW_FREE if len(free) < rules.choices.options else TOO_FEW_UNGUESSED
            missing = (MissingQuestions(what=WITH_CLAIMS, why=why, number=most - len(choices)),)
    return DeepQuestions(
        claims=claims,
        questions=(*questions, *choices),
        missing=(*list_missing(aimed, wanted, questions, levels, seconds), *missing),
    )


def _cut_down(aimed: Mapping[str, int], number: int) -> dict[str, int]:
    """Return `number` of the questions that are aimed at, of each skill as large a share."""
    skills = [Skill(name=name, share=float(n)) for name, n in aimed.items() if n > 0]
    return allot(number, skills) if skills else {}


async def ask_open(
    work: VideoWork, statements: Statements, wanted: Mapping[str, int]
) -> tuple[Question, ...]:
    """Return the open questions of a video, examined; those that the editor rejected are not."""
    rules = statements.rules
    more = _cut_down(wanted, math.ceil(rules.spare * sum(wanted.values())))
    drafts = await write_questions(work, statements, more)
    passed = [draft for draft in drafts if not draft.remark]
    chosen = limit_claims(passed, rules.of_claim)
    work.count(OVERUSED, len(passed) - len(chosen))
    examined = await examine_open(work, chosen, rules)
    rejected = (
        replace(compose_open(draft, work), drop=f"editor: {draft.remark}")
        for draft in drafts
        if draft.remark
    )
    return (*examined, *rejected)


def limit_claims(drafts: Sequence[OpenDraft], of_claim: int) -> list[OpenDraft]:
    """Return the drafts without those that have a claim that is a point of `of_claim` earlier ones:
    too much of what they ask is asked already.
    """
    used: Counter[str] = Counter()
    kept: list[OpenDraft] = []
    for draft in drafts:
        own = {one.facts[0] for one in draft.statements if len(one.facts) > 1}
        if all(used[name] < of_claim for name in own):
            used.update(own)
            kept.append(draft)
    return kept


def select_open(
    questions: Sequence[Question],
    ranked: Sequence[Question],
    wanted: Mapping[str, int],
    levels: Sequence[Level],
    seconds: float,
) -> tuple[Question, ...]:
    """Return the questions, those with a reason in `drop` that are more than are wanted. Of each
    skill first as many are taken as must reach far, the farthest level first, then the best; what
    skills lack is filled with further ones of others. `ranked`: those that passed, the best first.
    `seconds`: of the video.
    """
    taken: dict[str, Question] = {}
    total = sum(wanted.values())

    def take(some: Sequence[Question], most: int, *, fill: bool = False) -> None:
        for question in some:
            of_skill = sum(q.skill == question.skill for q in taken.values())
            limit = math.inf if fill else wanted.get(question.skill or "", 0)
            if len(taken) < most and of_skill < limit:
                taken.setdefault(question.question_id, question)

    for fill in (False, True):
        for level in levels:
            far = [q for q in ranked if level.holds(q.metrics, seconds)]
            lacking = math.ceil(level.share * total) - sum(
                level.holds(q.metrics, seconds) for q in taken.values()
            )
            take(
                [q for q in far if q.question_id not in taken],
                min(total, len(taken) + max(0, lacking)), fill=fill,
            )  # fmt: skip
        take(ranked, total, fill=fill)
    return tuple(
        q if q.drop is not None or q.question_id in taken else replace(q, drop=SPARE)
        for q in questions
    )


def list_missing(
    aimed: Mapping[str, int],
    wanted: Mapping[str, int],
    questions: Sequence[Question],
    levels: Sequence[Level],
    seconds: float,
) -> tuple[MissingQuestions, ...]:
    """Return which open questions are missing, and why: of each skill fewer than are `aimed` at,
    and fewer than must reach far. `wanted`: of each skill, as many as the claims allow.
    """
    missing: list[MissingQuestions] = []
    asked = [q for q in questions if q.drop is None]
    for skill, number in aimed.items():
        own = [q for q in questions if q.skill == skill]
        lacking = number - sum(q.drop is None for q in own)
        allowed = max(0, min(lacking, wanted.get(skill, 0) - number + lacking))
        for n, why in (
            (lacking - allowed, TOO_FEW_CLAIMS),
            (allowed, TOO_FEW_PASSED if own else NOTHING_TO_ASK),
        ):
            if n > 0:
                missing.append(
                    MissingQuestions(what=f"open questions of the skill {skill}", why=why, number=n)
                )
    for level in levels:
        far = sum(level.holds(q.metrics, seconds) for q in asked)
        if (lacking := math.ceil(level.share * len(asked)) - far) > 0:
            missing.append(MissingQuestions(what=level.wanted_reach, why=TOO_NEAR, number=lacking))
    return tuple(missing)


def set_apart(open_: Sequence[Question], others: Sequence[Question]) -> list[Question]:
    """Return the questions of a video with the subset that each is released in: options name what
    open questions ask for, so that both never stand in one release.
    """
    if not any(question.drop is None and question.points for question in open_):
        return [*open_, *others]
    return [
        replace(q, subsets=(*q.subsets, OPEN_SUBSET if q.points else CHOICE_SUBSET))
        for q in (*open_, *others)
    ]


def settings_for_composed(settings: FactSettings, rules: DeepRules, seconds: float) -> FactSettings:
    """Return the settings of the composed questions beside open ones: fewer of them, or none,
    without the forms that nobody would ask.
    """
    number = rules.question_limit(seconds) - rules.open_limit(seconds)
    select = replace(settings.select, questions=number, least_questions=number)
    forms = {
        name: form for name, form in settings.forms.items() if form and not form.traits.for_rules
    }
    return replace(settings, select=select, forms=forms)


def limit_texts(groups: Sequence[ChosenGroup], most: int) -> list[ChosenGroup]:
    """Return the groups, of those about words on the screen the first ones with at most `most`
    questions.
    """
    kept: list[ChosenGroup] = []
    left = most
    for group in groups:
        size = len(group.members) if is_about_words(group) else 0
        if size <= left:
            left -= size
            kept.append(group)
    return kept


def is_about_words(group: ChosenGroup) -> bool:
    """Whether a question of a group states or offers words on the screen."""
    return any(WORDS in text for one in group.members for text in (one.stem.question, *one.options))
