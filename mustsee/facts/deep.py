"""What a model asks about a whole video: claims, and open questions with points (`ask=facts`).

    claims, questions = await ask_deep(video, table, composed, seats, frames, settings, tally)

Without a model nothing of it is asked: rules tie no facts together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mustsee.calls.llm import Asker
from mustsee.facts.claims import list_claims
from mustsee.facts.deep_settings import DeepRules, PointRules, Skill, allot, read_mix
from mustsee.facts.point_exam import PointSeats, examine_open
from mustsee.facts.points import OpenDraft, make_statements, write_questions
from mustsee.facts.select import ChosenGroup
from mustsee.facts.settings import FactSettings
from mustsee.facts.table import TruthTable
from mustsee.facts.unread import StepTally
from mustsee.facts.weigh import weigh_claims
from mustsee.records import COUNTED, Claim, Provenance, Question, Video
from mustsee.verify.conditions.seen import video_span
from mustsee.verify.conditions.video_frames import VideoFrames

SPARE = "spare: enough others of its skill are asked"
TOO_FEW_CLAIMS = "open questions missing because too few claims hold"  # names of counts in run.json
OVERUSED = "open questions left out because others have their claims as points"
WORDS = "the words “"  # how the phrase of an on-screen text begins


@dataclass(frozen=True, kw_only=True)
class Seats:
    """The models. The `writer` lists, words and grades. The `guesser` selects; another should
    measure.
    """

    writer: Asker
    verifier: Asker
    guesser: Asker


async def ask_deep(
    video: Video,
    table: TruthTable,
    composed: Sequence[Question],
    seats: Seats,
    frames: VideoFrames,
    settings: FactSettings,
    tally: StepTally,
    by: Provenance,
) -> tuple[tuple[Claim, ...], tuple[Question, ...]]:
    """Return the claims of a video and its open questions; those that may not be asked, and those
    that are more than wanted, have the reason in `drop`. `composed`: its other questions. Raises
    BadRow if no request of a step could be read.
    """
    assert settings.deep is not None
    rules, seed = settings.deep, settings.seed
    listed = await list_claims(video, table, seats.writer, frames, rules.claims, tally, seed=seed)
    claims = await weigh_claims(
        video, table, listed, seats.verifier, seats.guesser, frames, rules.claims, tally, seed=seed
    )
    skills = read_mix(settings.mix)
    held = sum(claim.drop is None for claim in claims)
    limit = rules.open_limit(video_span(video).seconds)
    number = min(limit, held * rules.points.of_claim // rules.points.least)
    tally.add(TOO_FEW_CLAIMS, limit - number)
    wanted = allot(number, skills)
    questions = await ask_open(
        video, table, claims, composed, seats, frames, rules, wanted, skills, tally, by, seed=seed
    )
    for reason, missing in list_missing(wanted, questions).items():
        tally.add(reason, missing)
    return claims, questions


async def ask_open(
    video: Video,
    table: TruthTable,
    claims: Sequence[Claim],
    composed: Sequence[Question],
    seats: Seats,
    frames: VideoFrames,
    rules: DeepRules,
    wanted: Mapping[str, int],
    skills: Sequence[Skill],
    tally: StepTally,
    by: Provenance,
    *,
    seed: int,
) -> tuple[Question, ...]:
    """Return the open questions of a video, examined and selected."""
    statements = make_statements(table, claims)
    more = allot(math.ceil(rules.points.spare * sum(wanted.values())), skills)
    drafts = await write_questions(
        video, statements, seats.writer, more, skills, rules.points, seed=seed
    )
    chosen = limit_claims(drafts, rules.points.of_claim)
    tally.add(OVERUSED, len(drafts) - len(chosen))
    exam_seats = PointSeats(guesser=seats.guesser, verifier=seats.verifier, grader=seats.writer)
    examined = await examine_open(
        chosen, composed, video, exam_seats, frames, rules.points, tally, by, seed=seed
    )
    return select_open(examined, wanted, rules.points)


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
    questions: Sequence[Question], wanted: Mapping[str, int], rules: PointRules
) -> tuple[Question, ...]:
    """Return the questions, those with a reason in `drop` that are more than are wanted. Of each
    skill those are taken first that need `rules.seconds` of video in sum, and of these the ones
    with most weight left; what other skills lack is filled with further ones.
    """
    taken: dict[str, Question] = {}
    ranked = sorted(
        (question for question in questions if question.drop is None),
        key=lambda q: (q.metrics["reach_seconds"] < rules.seconds, -_weight_left(q), q.question_id),
    )
    for fill in (False, True):
        for question in ranked:
            of_skill = sum(q.skill == question.skill for q in taken.values())
            limit = math.inf if fill else wanted.get(question.skill or "", 0)
            room = len(taken) < sum(wanted.values()) and of_skill < limit
            if room:
                taken.setdefault(question.question_id, question)
    return tuple(
        q if q.drop is not None or q.question_id in taken else replace(q, drop=SPARE)
        for q in questions
    )


def _weight_left(question: Question) -> int:
    return sum(point.weight for point in question.points if point.state == COUNTED)


def list_missing(wanted: Mapping[str, int], questions: Sequence[Question]) -> dict[str, int]:
    """Return for each skill of which fewer questions are asked than wanted a line with the reason,
    and how many are missing.
    """
    missing: dict[str, int] = {}
    for skill, number in wanted.items():
        own = [q for q in questions if q.skill == skill]
        asked = sum(q.drop is None for q in own)
        if asked >= number:
            continue
        reason = "too few passed the exams" if own else "the writer found nothing to ask"
        missing[f"open questions missing of the skill {skill}: {reason}"] = number - asked
    return missing


def settings_for_composed(settings: FactSettings, rules: DeepRules, seconds: float) -> FactSettings:
    """Return the settings of the composed questions beside open ones: fewer of them, without the
    forms that nobody would ask.
    """
    number = max(1, rules.question_limit(seconds) - rules.open_limit(seconds))
    select = replace(settings.select, questions=number, least_questions=number)
    forms = {name: form for name, form in settings.forms.items() if name not in rules.unwanted}
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
