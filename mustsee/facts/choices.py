"""Deep questions with options: the stem is the writer's, and every option is a verified claim.

    questions = await ask_choices(work, claims, rules, count)

All options are true of the video, so that nothing in them is invented. A reader of the claims must
find the right one, and no second one. Then two guessers without the video sit an exam; what either
answers right gets other options twice, and then goes: options tell depth, whatever they are made
of. No option is a point of an open question of the video: beside it, it would tell the point.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from mustsee.errors import BadRow, Unparsed
from mustsee.facts.cases import by_chance
from mustsee.facts.claims import read_ids
from mustsee.facts.points import Statement
from mustsee.facts.settings import ChoiceRules
from mustsee.facts.wording import READ_BACK, Timed, readings_form
from mustsee.facts.work import VideoWork
from mustsee.questions.drafts import Draft, evidence_metrics
from mustsee.questions.rows import Row, Rows, rows_form
from mustsee.records import Question
from mustsee.replies.forms import Form
from mustsee.verify.conditions.seen import merge_spans
from mustsee.verify.guess.ask import rank

PROMPT = "facts/choices"
FORM = "claim"  # `form` of the questions
QUESTION_TYPE = "Other"
TOGETHER = 12  # questions that are read back, or guessed, in one request
TRIES = 3  # exams: with the first options, and with others twice
CHOICE_LISTS = "lists of questions with claims as options"  # `what` of the requests
CHOICE_READINGS = "readings of questions with claims as options"  # `what` of the requests
CHOICE_EXAMS = "exams of questions with claims as options"  # `what` of the requests
NOT_READ = "questions with claims as options that have no one right answer"
GUESSED_CHOICES = "questions with claims as options that guessers know without the video"


@dataclass(frozen=True, kw_only=True)
class ChoiceDraft:
    """A question and its options before an exam: places of statements, the right one first.
    `used`: of all options that it has had.
    """

    question: str
    places: tuple[int, ...]
    used: frozenset[int]


def free_claims(claims: Sequence[Statement], asked: Sequence[Question]) -> tuple[Statement, ...]:
    """Return the claims that are no point of an open question that is asked."""
    taken = {point.facts[0] for q in asked if q.drop is None for point in q.points if point.facts}
    return tuple(claim for claim in claims if claim.facts[0] not in taken)


async def ask_choices(
    work: VideoWork, claims: Sequence[Statement], rules: ChoiceRules, count: int
) -> tuple[Question, ...]:
    """Return at most `count` questions whose options are some of the claims, each read back as
    having one answer, and known to none of the guessers. Steps without a readable reply are
    counted, and give no question.
    """
    if count < 1 or len(claims) < rules.options:
        return ()
    try:
        pending = await write_choices(work, claims, rules, count)
        passed: list[ChoiceDraft] = []
        for attempt in range(TRIES):
            again_work = work.with_seed(attempt)
            sound = await read_choices(again_work, pending, claims)
            work.count(NOT_READ, len(pending) - len(sound))
            guessed = await guess_choices(again_work, sound, claims)
            passed += [draft for draft in sound if draft.question not in guessed]
            again = [draft for draft in sound if draft.question in guessed]
            others = [redraw_options(d, claims, rules, seed=work.seed) for d in again]
            pending = [draft for draft in others if draft is not None]
            last = attempt == TRIES - 1
            work.count(GUESSED_CHOICES, len(again) if last else len(again) - len(pending))
            if not pending:
                break
    except BadRow:  # It is counted; the other questions of the video stand without these.
        return ()
    return tuple(_compose(work, draft, claims) for draft in passed[:count])


async def write_choices(
    work: VideoWork, claims: Sequence[Statement], rules: ChoiceRules, count: int
) -> list[ChoiceDraft]:
    """Return `rules.drafts` times as many questions as are wanted, as far as the claims allow, with
    options of about one length and each with its own right answer.
    """
    request = work.roles.writer.ask(
        PROMPT,
        choices_form(len(claims), rules.options),
        seed=work.seed,
        seconds=work.span.seconds,
        claims=tuple(claims),
        count=math.ceil(rules.drafts * count),
        wrong=rules.options - 1,
    )
    (drafts,) = await work.gather_readable([request], CHOICE_LISTS)
    by_answer: dict[int, ChoiceDraft] = {}
    for draft in drafts or ():
        if are_alike_long([claims[place].text for place in draft.places], rules.longest):
            by_answer.setdefault(draft.places[0], draft)
    return list(by_answer.values())


def choices_form(claims: int, options: int) -> Form[tuple[ChoiceDraft, ...]]:
    """Return the form of a reply with questions on some of as many claims. Its `read` raises
    Unparsed for an unknown id, and for a question without as many different options.
    """
    cells = {
        "right": "the id of the right answer, such as C4",
        "wrong": f"the ids of the {options - 1} wrong answers, such as C2, C9",
        "question": "the question, as a person would ask it aloud",
    }

    def read_draft(row: Row) -> ChoiceDraft:
        what = f"question {row.number}"
        right, wrong = (
            read_ids(re.sub(r"(?i)\bC\s*(?=\d)", "F", row[name]), claims, what)
            for name in ("right", "wrong")
        )
        places = tuple(dict.fromkeys((*right, *wrong)))
        if len(right) != 1 or len(places) != options:
            raise Unparsed(
                f"{what} has {len(right)} right and {len(wrong)} wrong answers; expected one id "
                f"and {options - 1} others"
            )
        if not row["question"].rstrip(' "”').endswith("?"):
            raise Unparsed(f"{what} does not end with a question mark")
        return ChoiceDraft(question=row["question"], places=places, used=frozenset(places))

    def read_drafts(rows: Rows) -> tuple[ChoiceDraft, ...]:
        return tuple(map(read_draft, rows["question"]))

    return rows_form({"question": cells}, optional=("question",)).map(read_drafts)


def are_alike_long(texts: Collection[str], most: float) -> bool:
    """Whether the longest of some texts has at most `most` times the words of the shortest."""
    words = [len(text.split()) for text in texts]
    return max(words) <= most * min(words)


def _show(
    draft: ChoiceDraft, claims: Sequence[Statement], seed: int
) -> tuple[tuple[int, ...], int]:
    """Return the options of a draft in an order drawn by chance, and the place of the right one."""
    order = tuple(by_chance(f"{seed}/{draft.question}", draft.places, lambda n: claims[n].text))
    return order, order.index(draft.places[0])


async def read_choices(
    work: VideoWork, drafts: Sequence[ChoiceDraft], claims: Sequence[Statement]
) -> list[ChoiceDraft]:
    """Return the drafts of which a reader of the claims with their times finds the right answer,
    and no other that fits.
    """
    parts = [drafts[n : n + TOGETHER] for n in range(0, len(drafts), TOGETHER)]

    async def read_part(part: Sequence[ChoiceDraft]) -> tuple[bool, ...]:
        shown = [_show(draft, claims, work.seed) for draft in part]
        notes = sorted({place for order, _ in shown for place in order})
        read = await work.roles.guesser.ask(
            READ_BACK,
            readings_form([len(order) for order, _ in shown]),
            seed=work.seed,
            facts=tuple(Timed(phrase=claims[n].text, spans=claims[n].spans) for n in notes),
            asked=tuple(
                {"question": d.question, "options": tuple(claims[n].text for n in order)}
                for d, (order, _) in zip(part, shown, strict=True)
            ),
            right=tuple(right for _, right in shown),  # for a dry run; not in the prompt
        )
        pairs = zip(read, shown, strict=True)
        return tuple(fitting == (right,) for fitting, (_, right) in pairs)

    found = await work.gather_readable([read_part(part) for part in parts], CHOICE_READINGS)
    verdicts = zip(parts, found, strict=True)
    return [
        draft for part, sound in verdicts if sound is not None
        for draft, is_sound in zip(part, sound, strict=True) if is_sound
    ]  # fmt: skip


async def guess_choices(
    work: VideoWork, drafts: Sequence[ChoiceDraft], claims: Sequence[Statement]
) -> set[str]:
    """Return the questions that one of the guessers answers right without the video, or whose exam
    cannot be read: they may not be asked.
    """
    guessers = [one for one in (work.roles.guesser, work.roles.guesser_2) if one is not None]
    parts = [
        (number, drafts[n : n + TOGETHER])
        for number in range(len(guessers))
        for n in range(0, len(drafts), TOGETHER)
    ]

    async def guess_part(number: int, part: Sequence[ChoiceDraft]) -> set[str]:
        shown = [_show(draft, claims, work.seed + number) for draft in part]
        asked = [
            (draft.question, tuple(claims[n].text for n in order))
            for draft, (order, _) in zip(part, shown, strict=True)
        ]
        ranked = await rank(asked, guessers[number], seed=work.seed + number)
        return {
            draft.question
            for draft, order, (_, right) in zip(part, ranked, shown, strict=True)
            if order[0] == right
        }

    found = await work.gather_readable([guess_part(*part) for part in parts], CHOICE_EXAMS)
    known: set[str] = set()
    for (_, part), guessed in zip(parts, found, strict=True):
        known |= {draft.question for draft in part} if guessed is None else guessed
    return known


def redraw_options(
    draft: ChoiceDraft, claims: Sequence[Statement], rules: ChoiceRules, *, seed: int
) -> ChoiceDraft | None:
    """Return a draft with other wrong answers: claims that it has not had, that rest on other facts
    than its answer, of about its length; None if there are too few.
    """
    right = claims[draft.places[0]]
    words = len(right.text.split())
    others = [
        n
        for n, claim in enumerate(claims)
        if n not in draft.used
        and not {*claim.facts} & {*right.facts}
        and are_alike_long((claim.text, right.text), math.sqrt(rules.longest))
    ]
    drawn = by_chance(f"{seed}/{draft.question}/other", others, lambda n: claims[n].text)
    nearest = sorted(drawn, key=lambda n: abs(len(claims[n].text.split()) - words))
    wrong = nearest[: rules.options - 1]
    if len(wrong) < rules.options - 1:
        return None
    return replace(draft, places=(draft.places[0], *wrong), used=draft.used | {*wrong})


def _compose(work: VideoWork, draft: ChoiceDraft, claims: Sequence[Statement]) -> Question:
    order, right = _show(draft, claims, work.seed)
    options = tuple(claims[n].text for n in order)
    answer = claims[draft.places[0]]
    evidence = merge_spans(answer.spans, work.span)
    decoys = tuple(option for option in options if option != answer.text)
    return work.make_question(
        Draft(question=draft.question, answer=answer.text, decoys=decoys),
        question_type=QUESTION_TYPE,
        options=options,
        answer_index=right,
        evidence=evidence,
        metrics=evidence_metrics(evidence),
        form=FORM,
        depth=len(answer.facts),
    )
