"""Exams of open questions: what a reader without the video says does not count, nor what a viewer
does not say.

    questions = await examine_open(work, drafts, rules)

A guesser answers each question alone, and once more with all others of the video in view: those
without options, since the ones with options are released apart.
The verifier answers from the frames and lines of the evidence. A grader, who is not told whose
answers they are, says which points each of the three states.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from mustsee.calls.llm import Asker
from mustsee.errors import Unparsed
from mustsee.facts.claims import MAX_WORDS
from mustsee.facts.point_grades import grade_answers
from mustsee.facts.points import OpenDraft, Statement, compose_open, evidence_of
from mustsee.facts.settings import PointRules
from mustsee.facts.work import VideoWork, divide_by
from mustsee.judge.points import PointsGrade
from mustsee.questions.checks import normal
from mustsee.questions.drafts import evidence_metrics, needed_seconds, reach
from mustsee.questions.rows import Row, Rows, numbered_rows, rows_form
from mustsee.records import COUNTED, GIVEN, UNREACHED, Question, Span
from mustsee.replies.forms import Form

T = TypeVar("T")
BLIND, SEEN = "facts/answer_blind", "facts/answer_seen"
BLIND_ANSWERS = "answers without the video"  # `what` of the requests
SEEN_ANSWERS = "answers with the video"  # `what` of the requests
GRADES = "grades of answers"  # `what` of the requests
POINTS_GIVEN = "points that a reader without the video said"
POINTS_UNREACHED = "points that a viewer did not say"
BLIND_TOGETHER = 12  # questions that are answered at once with all others in view
SPOKEN_MARGIN_S = 2.0  # seconds around the evidence of which lines are shown
SHORT_VIDEO = 8  # a video of less than so many times the seconds that are needed is short
MIN_WRONG_WORDS = 5  # words of a guesser's wrong statement that others may make, too, at least


@dataclass(frozen=True)
class SeenAnswer:
    """A viewer's answer. `fault`: what the question takes for granted wrongly; empty: nothing."""

    answer: str
    fault: str = ""


@dataclass(frozen=True, kw_only=True)
class PointGrades:
    """The grades of the answers to one question.

    `alone`: without the video. `in_view`: without it, with all open questions of it in view.
    `seeing`: from the evidence. `written`: by the writer, who knows the points.
    """

    alone: PointsGrade
    in_view: PointsGrade
    seeing: PointsGrade
    written: PointsGrade


async def examine_open(
    work: VideoWork, drafts: Sequence[OpenDraft], rules: PointRules
) -> tuple[Question, ...]:
    """Return the drafts as questions with the state of each point; those with too few points left,
    or from too little video, have the reason in `drop`. Raises BadRow if no request of a step could
    be read.
    """
    questions = [compose_open(draft, work) for draft in drafts]
    if not questions:
        return ()
    alone, in_view, seen = await asyncio.gather(
        answer_alone(work, questions),
        answer_in_view(work, questions),
        answer_seen(work, questions, rules),
    )
    wrong = [wrong_statements(draft, rules.contradictions) for draft in drafts]

    async def grade(
        n: int, alone: str, in_view: str, view: SeenAnswer, known: Sequence[str]
    ) -> PointGrades:
        question, written = questions[n], drafts[n].answer
        texts = {"alone": alone, "in_view": in_view, "seeing": view.answer, "written": written}
        grades = await grade_answers(
            question.question, texts, question.points, known, work.roles.writer, seed=work.seed
        )
        return PointGrades(**grades)

    asked = [
        (n, grade(n, one, other, view, known))
        for n, (one, other, view, known) in enumerate(zip(alone, in_view, seen, wrong, strict=True))
        if one is not None and other is not None and view is not None
    ]
    found = await work.gather_readable([request for _, request in asked], GRADES)
    grades = dict(zip((n for n, _ in asked), found, strict=True))
    doubted = {
        point.facts
        for n, graded in grades.items()
        if graded is not None
        for point, verdict in zip(questions[n].points, graded.seeing.verdicts, strict=True)
        if verdict == -1
    }
    done = tuple(
        settle_points(
            question, draft, work.span, rules, known, grades.get(n),
            view.fault if view else "", doubted,
        )
        for n, (question, draft, known, view) in enumerate(
            zip(questions, drafts, wrong, seen, strict=True)
        )
    )  # fmt: skip
    states = Counter(point.state for question in done for point in question.points)
    work.count(POINTS_GIVEN, states[GIVEN])
    work.count(POINTS_UNREACHED, states[UNREACHED])
    return done


async def answer_alone(work: VideoWork, questions: Sequence[Question]) -> list[str | None]:
    """Return an answer to each question by a reader who sees nothing else; null: unreadable."""

    async def answer_one(question: Question) -> str:
        (answer,) = await answer_blind([question], [], work.roles.guesser, seed=work.seed)
        return answer

    requests = [answer_one(question) for question in questions]
    return await work.gather_readable(requests, BLIND_ANSWERS)


async def answer_in_view(work: VideoWork, questions: Sequence[Question]) -> list[str | None]:
    """Return an answer to each question by a reader who sees all the others; null: unreadable."""
    chunks, guesser = divide_by(questions, BLIND_TOGETHER), work.roles.guesser
    requests = [
        answer_blind(chunk, [q for q in questions if q not in chunk], guesser, seed=work.seed + 1)
        for chunk in chunks
    ]
    found = await work.gather_readable(requests, BLIND_ANSWERS)
    return _flat(chunks, found)


async def answer_blind(
    questions: Sequence[Question], others: Sequence[Question], guesser: Asker, *, seed: int
) -> tuple[str, ...]:
    """Return answers to questions by a reader without the video, in one request."""
    return await guesser.ask(
        BLIND,
        answers_form(len(questions)),
        seed=seed,
        asked=tuple(question.question for question in questions),
        others=tuple(question.question for question in others),
    )


async def answer_seen(
    work: VideoWork, questions: Sequence[Question], rules: PointRules
) -> list[SeenAnswer | None]:
    """Return an answer to each question by a viewer of its evidence; null: unreadable. Questions
    whose evidence begins at about the same time are answered together.
    """

    async def answer_some(chunk: Sequence[Question]) -> tuple[SeenAnswer, ...]:
        spans = [span for question in chunk for span in question.evidence]
        return await work.roles.verifier.ask(
            SEEN,
            seen_answers_form(len(chunk)),
            seed=work.seed,
            **await work.show_spans(spans, rules.see, spoken=SPOKEN_MARGIN_S),
            asked=tuple(question.question for question in chunk),
        )

    order = sorted(range(len(questions)), key=lambda n: questions[n].evidence[0].start)
    chunks = divide_by([questions[n] for n in order], rules.together)
    found = await work.gather_readable([answer_some(c) for c in chunks], SEEN_ANSWERS)
    by_place = dict(zip(order, _flat(chunks, found), strict=True))
    return [by_place[n] for n in range(len(questions))]


def answers_form(count: int) -> Form[tuple[str, ...]]:
    """Return the form of a reply with an answer to each of `count` questions. Its `read` raises
    Unparsed unless each has exactly one.
    """
    cells = {"answer": {"answer": "the answer to the question of this number"}}

    def read_answers(rows: Rows) -> tuple[str, ...]:
        return tuple(_answer_text(row) for row in numbered_rows(rows["answer"], count, "question"))

    return rows_form(cells, paragraphs=True).map(read_answers)


def seen_answers_form(count: int) -> Form[tuple[SeenAnswer, ...]]:
    """Return the form of a reply with an answer to each of `count` questions, and what the question
    takes for granted wrongly. Its `read` raises Unparsed unless each has exactly one.
    """
    cells = {
        "answer": {
            "fault": "what the question takes for granted wrongly; NONE if it does not",
            "answer": "the answer to the question of this number",
        }
    }

    def read_answer(row: Row) -> SeenAnswer:
        is_sound = normal(row["fault"]) in ("none", "n a", "no", "no fault", "nothing", "")
        return SeenAnswer(_answer_text(row), "" if is_sound else row["fault"])

    def read_answers(rows: Rows) -> tuple[SeenAnswer, ...]:
        return tuple(map(read_answer, numbered_rows(rows["answer"], count, "question")))

    return rows_form(cells, paragraphs=True).map(read_answers)


def _answer_text(row: Row) -> str:
    if not any(c.isalnum() for c in row["answer"]):
        raise Unparsed(f"the answer to question {row.number} is empty")
    return row["answer"]


def settle_points(
    question: Question,
    draft: OpenDraft,
    video: Span,
    rules: PointRules,
    wrong: Sequence[str],
    grades: PointGrades | None,
    fault: str,
    doubted: Collection[tuple[str, ...]] = (),
) -> Question:
    """Return a question with the state of its points, its evidence and its contradictions, and the
    reason in `drop` if it may not be asked. `doubted`: the facts of points that a viewer
    contradicts in the answer to any question: they count in none.
    """
    if grades is None:
        return replace(question, drop="exam: an answer or a grade could not be read")
    alone, in_view, seeing = grades.alone, grades.in_view, grades.seeing
    guesses = zip(alone.verdicts, in_view.verdicts, seeing.verdicts, strict=True)
    states = [
        GIVEN if 1 in (a, b) else COUNTED if s == 1 and p.facts not in doubted else UNREACHED
        for p, (a, b, s) in zip(question.points, guesses, strict=True)
    ]
    points = tuple(
        replace(point, state=state) for point, state in zip(question.points, states, strict=True)
    )
    left = [s for s, state in zip(draft.statements, states, strict=True) if state == COUNTED]
    told = [
        one
        for one, verdict in zip(draft.statements, seeing.verdicts, strict=True)
        if verdict == 1 and one.facts not in doubted
    ]
    evidence = evidence_of(left, video)
    metrics = {
        "points_blind": _share(alone),
        "points_in_view": _share(in_view),
        "points_seen": _share(seeing),
        **evidence_metrics(evidence),
    }
    return replace(
        question,
        points=points,
        contradictions=contradictions(wrong, grades, rules.contradictions),
        evidence=evidence or question.evidence,
        answer=full_answer(draft, told, states, grades.written, doubted) or question.answer,
        depth=len({name for statement in left for name in statement.facts}) or None,
        metrics={**question.metrics, **metrics},
        drop=_drop_reason(states, draft.weights, evidence, video, rules, fault),
    )


def full_answer(
    draft: OpenDraft,
    told: Sequence[Statement],
    states: Sequence[str],
    written: PointsGrade,
    doubted: Collection[tuple[str, ...]],
) -> str:
    """Return the writer's answer, with the points that count and that it does not state after it;
    or, if it states a point that a viewer contradicts (`doubted`) or what is known to be wrong, the
    points that the viewer told, one after the other.
    """
    verdicts = dict(zip((one.facts for one in draft.statements), written.verdicts, strict=True))
    is_sound = (
        not any(verdicts.get(facts) == 1 for facts in doubted)
        and -1 not in written.verdicts
        and not any(written.asserted)
    )
    if not draft.answer or not is_sound:
        return " ".join(statement.text for statement in told)
    unsaid = [
        one.text
        for one, state in zip(draft.statements, states, strict=True)
        if state == COUNTED and verdicts[one.facts] != 1
    ]
    return " ".join((draft.answer, *unsaid))


def _share(grade: PointsGrade) -> float:
    return round(grade.reached_weight / grade.total_weight, 4) if grade.total_weight else 0.0


def _drop_reason(
    states: Sequence[str],
    weights: Sequence[int],
    evidence: Sequence[Span],
    video: Span,
    rules: PointRules,
    fault: str,
) -> str | None:
    if fault:
        return f"exam: it takes for granted what is not so ({fault})"
    counts = Counter(states)
    wanted = min(rules.left, rules.least)
    left = sum(weight for weight, state in zip(weights, states, strict=True) if state == COUNTED)
    if counts[COUNTED] < wanted or 2 * left < sum(weights):
        return (
            f"exam: {counts[COUNTED]} of {len(states)} points are left ({counts[GIVEN]} said "
            f"without the video, {counts[UNREACHED]} not said by a viewer), with {left} of "
            f"{sum(weights)} weights; at least {wanted}, and half of the weight"
        )
    if not spans_enough(evidence, video, rules.seconds):
        return (
            f"exam: its points are shown in {needed_seconds(evidence):.0f} s of the video; at "
            f"least {rules.seconds:.0f} s are wanted"
        )
    return None


def spans_enough(evidence: Sequence[Span], video: Span, seconds: float) -> bool:
    """Whether evidence takes at least `seconds` of video in sum; in a short video, whether so many
    lie between its first and its last moment.
    """
    is_short = video.seconds < SHORT_VIDEO * seconds
    return needed_seconds(evidence) >= seconds or (is_short and reach(evidence) >= seconds)


def wrong_statements(draft: OpenDraft, most: int) -> tuple[str, ...]:
    """Return altered versions of a question's claims that looks refused, one of each claim first,
    at most `most`.
    """
    lists = [statement.wrong for statement in draft.statements if statement.wrong]
    longest = max(map(len, lists), default=0)
    turns = (wrong[n] for n in range(longest) for wrong in lists if n < len(wrong))
    return tuple(dict.fromkeys(turns))[:most]


def contradictions(wrong: Sequence[str], grades: PointGrades, most: int) -> tuple[str, ...]:
    """Return the wrong statements that cost: refused altered versions, but for those that the
    viewer makes, and what a guesser said against a point.
    """
    kept = [text for text, made in zip(wrong, grades.seeing.asserted, strict=True) if not made]
    guessed = [
        words
        for grade in (grades.alone, grades.in_view)
        for verdict, words in zip(grade.verdicts, grade.words, strict=False)
        if verdict == -1 and MIN_WRONG_WORDS <= len(words.split()) <= MAX_WORDS
    ]
    return tuple(dict.fromkeys((*guessed[: most // 2], *kept)))[:most]


def _flat(
    chunks: Sequence[Sequence[Question]], found: Sequence[Sequence[T] | None]
) -> list[T | None]:
    """Return the results of all chunks in one list, null for each item of one without any."""
    return [
        one
        for chunk, results in zip(chunks, found, strict=True)
        for one in (results if results is not None else [None] * len(chunk))
    ]
