"""Whether questions are worth asking, as a rater model sees it. It is printed, and selects nothing.

    video = await rate_worth(video, rater, frames, WorthRules(), requests, seed=0)

Of a few of the kept questions the rater grades the English, the worth and the depth from their
words alone, and says from the frames of their evidence which of five conditions they meet: those by
which the curators of EgoSchema chose questions (arXiv 2308.09126).
"""

from __future__ import annotations

import hashlib
import json
from asyncio import gather
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mustsee.calls.llm import Asker
from mustsee.calls.usage import RequestTally
from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.questions.rows import Row, Rows, numbered_rows, parse_choice, rows_form
from mustsee.records import Question, Verdict, Video
from mustsee.replies.forms import Form
from mustsee.verify.conditions.seen import Condition
from mustsee.verify.conditions.video_frames import VideoFrames, show_spans

NAME = "worth"  # `filter` of the verdicts
PROMPT, CONDITIONS_PROMPT = "filters/worth", "filters/conditions"
GRADES = ("english", "worth", "depth")
CONDITIONS = ("a", "b", "c", "d", "e")
RATED = "rated_"  # begins the metrics
RATINGS = "ratings of worth"  # `what` of the requests
SPOKEN_MARGIN_S = 2.0  # seconds around what is shown of which lines are, too
CHOICES = {"YES": 1.0, "NO": 0.0}


@dataclass(frozen=True, kw_only=True)
class WorthRules:
    """How many questions are rated."""

    questions: int = 8
    """Questions of each video that are rated, at most, drawn by their ids."""
    together: int = 4
    """Questions that the rater checks in one look."""
    see: Condition = field(
        default_factory=lambda: Condition(condition="evidence", fps=1.0, least=2, most=64)
    )
    """Frames of their evidence."""

    def __post_init__(self) -> None:
        for name in ("questions", "together"):
            if getattr(self, name) < 1:
                raise UserError(f"vet.worth.{name}={getattr(self, name)!r}: at least 1")


@dataclass(frozen=True)
class Rating:
    """What the rater says of one question: a number by name, and why."""

    values: tuple[tuple[str, float], ...]
    reason: str = ""


def draw_rated(questions: Iterable[Question], most: int) -> list[Question]:
    """Return at most `most` of the questions that no filter drops, drawn by their ids."""
    kept = [question for question in questions if question.drop is None]
    return sorted(kept, key=lambda q: hashlib.sha256(f"rated/{q.question_id}".encode()).digest())[
        :most
    ]


async def rate_worth(
    video: Video,
    rater: Asker,
    frames: VideoFrames,
    rules: WorthRules,
    requests: RequestTally,
    *,
    seed: int,
    looks: bool = True,
) -> Video:
    """Return the video with the ratings of some of its questions, as metrics and a verdict of each.
    `looks`: whether the rater takes images; otherwise it checks no conditions. What has no readable
    reply is counted in `requests`, and has no rating.
    """
    drawn = draw_rated(video.questions or (), rules.questions)
    if not drawn:
        return video
    asked = [rate_words(drawn, rater, seed=seed)]
    parts = [drawn]
    if looks:
        chunks = [drawn[n : n + rules.together] for n in range(0, len(drawn), rules.together)]
        asked += [check_conditions(c, video, rater, frames, rules, seed=seed) for c in chunks]
        parts += chunks
    requests.add_sent(RATINGS, len(asked))
    ratings: dict[str, list[Rating]] = {}
    for part, found in zip(parts, await gather(*asked, return_exceptions=True), strict=True):
        if isinstance(found, BadRow):
            requests.add_unread(RATINGS, found)
        elif isinstance(found, BaseException):
            raise found
        else:
            for question, rating in zip(part, found, strict=True):
                ratings.setdefault(question.question_id, []).append(rating)
    model, prompt = rater.llm.identity, rater.prompts.digest(PROMPT)
    rated = [
        _add_ratings(q, ratings[q.question_id], Verdict(
            filter=NAME, model=model, seed=seed, prompt=prompt))
        if q.question_id in ratings else q
        for q in video.questions or ()
    ]  # fmt: skip
    return replace(video, questions=tuple(rated))


def _add_ratings(question: Question, ratings: Sequence[Rating], verdict: Verdict) -> Question:
    values = dict(pair for rating in ratings for pair in rating.values)
    said = {**values, "reasons": [rating.reason for rating in ratings if rating.reason]}
    return replace(
        question,
        metrics={**question.metrics, **{f"{RATED}{name}": n for name, n in values.items()}},
        verdicts=(*question.verdicts, replace(verdict, detail=json.dumps(said))),
    )


async def rate_words(
    questions: Sequence[Question], rater: Asker, *, seed: int
) -> tuple[Rating, ...]:
    """Return the grades of questions from their words alone, in one request."""
    asked = tuple({"question": q.question, "options": q.options} for q in questions)
    return await rater.ask(PROMPT, grades_form(len(questions)), seed=seed, asked=asked)


async def check_conditions(
    questions: Sequence[Question],
    video: Video,
    rater: Asker,
    frames: VideoFrames,
    rules: WorthRules,
    *,
    seed: int,
) -> tuple[Rating, ...]:
    """Return the conditions that questions meet, by what is seen of their evidence."""
    spans = [span for question in questions for span in question.evidence]
    return await rater.ask(
        CONDITIONS_PROMPT,
        conditions_form(len(questions)),
        seed=seed,
        **await show_spans(video, spans, rules.see, frames, spoken=SPOKEN_MARGIN_S),
        asked=tuple(
            {"question": q.question, "options": q.options, "answer": q.answer} for q in questions
        ),
    )


def grades_form(count: int) -> Form[tuple[Rating, ...]]:
    """Return the form of a reply with three grades of each of `count` questions. Its `read` raises
    Unparsed unless each has exactly one of 1 to 5.
    """
    cells = dict.fromkeys(GRADES, "1 to 5") | {"reason": "what decided it, in a few words"}
    return _ratings_form(cells, count, _grade)


def _ratings_form(
    cells: Mapping[str, str], count: int, read: Callable[[Row, str], float]
) -> Form[tuple[Rating, ...]]:
    """Return the form of a reply with these cells of each of `count` questions, of which `read`
    reads all but the reason.
    """

    def read_rating(row: Row) -> Rating:
        values = tuple((name, read(row, name)) for name in cells if name != "reason")
        return Rating(values, row["reason"])

    def read_ratings(rows: Rows) -> tuple[Rating, ...]:
        return tuple(map(read_rating, numbered_rows(rows["question"], count, "question")))

    return rows_form({"question": cells}, brief=("question",)).map(read_ratings)


def _grade(row: Row, name: str) -> float:
    text = row[name].strip(" ()*").removesuffix("/5").strip()
    if text not in ("1", "2", "3", "4", "5"):
        raise Unparsed(f"{name} of question {row.number} is {row[name][:20]!r}; expected 1 to 5")
    return float(text)


def conditions_form(count: int) -> Form[tuple[Rating, ...]]:
    """Return the form of a reply with five conditions of each of `count` questions. Its `read`
    raises Unparsed unless each is YES or NO.
    """
    cells = dict.fromkeys(CONDITIONS, "YES or NO") | {"reason": "what speaks against it"}

    def read_choice(row: Row, name: str) -> float:
        return CHOICES[parse_choice(row[name], CHOICES, f"{name} of question {row.number}")]

    return _ratings_form(cells, count, read_choice)


@dataclass(frozen=True, kw_only=True)
class WorthCounts:
    """The ratings of a run. `rated`: questions with grades; `means`: of the grades, 1 to 5.
    `checked`: questions whose conditions were checked; `met`: how many meet each; `all_met`: all.
    `raters`: the models. `own`: whether one of them wrote or examined the questions.
    """

    rated: int = 0
    means: dict[str, float] = field(default_factory=dict[str, float])
    checked: int = 0
    met: dict[str, int] = field(default_factory=dict[str, int])
    all_met: int = 0
    raters: tuple[str, ...] = ()
    own: bool = False

    @property
    def summary_line(self) -> str:
        """The ratings in a sentence."""
        parts = list[str]()
        if self.rated:
            grades = ", ".join(f"{name} {mean:.1f}" for name, mean in self.means.items())
            parts.append(f"{grades} of 5 ({self.rated} questions)")
        if self.checked:
            met = ", ".join(f"{name.upper()} {n}" for name, n in self.met.items())
            parts.append(
                f"EgoSchema's conditions met by {self.all_met} of {self.checked} in all ({met})"
            )
        by = " and ".join(self.raters)
        whose = ", a model of the run itself: set vet/rater= to another" if self.own else ""
        return f"worth: {'; '.join(parts)}; rated by {by}{whose}; nothing is selected by it"


def count_worth(questions: Iterable[Question]) -> WorthCounts | None:
    """Return the ratings of the kept questions; None where none was rated."""
    graded, checked = list[Question](), list[Question]()
    raters, own = dict[str, None](), False
    for question in questions:
        by = [verdict.model for verdict in question.verdicts if verdict.filter == NAME]
        if question.drop is not None or not by:
            continue
        raters.update(dict.fromkeys(by))
        others = {verdict.model for verdict in question.verdicts if verdict.filter != NAME}
        if question.provenance is not None:
            others |= {*question.provenance.llm.split(" + ")}
        own |= not others.isdisjoint(by)
        if f"{RATED}{GRADES[0]}" in question.metrics:
            graded.append(question)
        if f"{RATED}{CONDITIONS[0]}" in question.metrics:
            checked.append(question)
    if not raters:
        return None

    def total(some: Sequence[Question], name: str) -> float:
        return sum(q.metrics[f"{RATED}{name}"] for q in some)

    return WorthCounts(
        rated=len(graded),
        means={name: round(total(graded, name) / len(graded), 3) for name in GRADES if graded},
        checked=len(checked),
        met={name: round(total(checked, name)) for name in CONDITIONS if checked},
        all_met=sum(all(q.metrics[f"{RATED}{n}"] == 1 for n in CONDITIONS) for q in checked),
        raters=tuple(raters),
        own=own,
    )
