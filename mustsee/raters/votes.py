"""What raters are asked, what they may answer, and what becomes of a question by their votes.

The curation follows EgoSchema's sheet (section 11.1): five conditions, GOOD, BAD or MAYBE, in two
rounds. `assign` deals out the human benchmark in its five settings (section 12.4).
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mustsee.errors import UserError
from mustsee.raters.marks import Conventions, length
from mustsee.records import Question, Span, Verdict

GOOD, BAD, MAYBE = "GOOD", "BAD", "MAYBE"
STRICTNESS = (GOOD, MAYBE, BAD)
# Section 11.1 expects no more than 3 in 100 to be MAYBE, and 20 to 25 in 100 to be GOOD.
MAYBE_SHARE, GOOD_SHARE = 0.03, (0.20, 0.25)


@dataclass(frozen=True)
class Condition:
    """One line of the curators' sheet."""

    letter: str
    title: str
    text: str


CONDITIONS = (
    Condition(
        "A", "Answerable", "The video answers the question, and a second of it would not do."
    ),
    Condition("B", "Answer right", "The answer marked as correct is the correct one."),
    Condition(
        "C",
        "Others wrong",
        "Each of the other answers is less correct than the marked one. One that is true but says "
        "less may stay; if a single one is as correct, the set is bad.",
    ),
    Condition(
        "D",
        "Long-term",
        "To be sure of the answer one must see at least 30 seconds of the video, all parts "
        "together. Mark those parts.",
    ),
    Condition("E", "No counting", "The question does not ask how often something happens."),
)
LETTERS = tuple(condition.letter for condition in CONDITIONS)


@dataclass(frozen=True, kw_only=True)
class Vote:
    """One rater's view of one question. `failed`: letters of the conditions that do not hold.
    `marks`: the parts of the video that one must see. `like`: another question that this repeats.
    """

    rater: str
    question_id: str
    label: str
    round: int = 1
    failed: tuple[str, ...] = ()
    marks: tuple[Span, ...] = ()
    comment: str = ""
    like: str = ""


def faults(vote: Vote, rule: Conventions | None = None, duration: float | None = None) -> list[str]:
    """What is wrong with a filled-in form, for the rater to mend; empty when nothing is."""
    rule = rule or Conventions()
    wrong: list[str] = []
    if vote.label not in STRICTNESS:
        wrong.append(f"the label is GOOD, BAD or MAYBE, not {vote.label!r}")
    if vote.round not in (1, 2):
        wrong.append(f"there are rounds 1 and 2, not {vote.round!r}")
    strange = sorted(set(vote.failed) - set(LETTERS))
    if strange:
        wrong.append(f"the conditions are A to E, not {strange!r}")
    try:
        seconds = length(vote.marks, rule, duration)
    except ValueError as error:
        return [*wrong, str(error)]
    if vote.label == GOOD:
        if vote.failed:
            wrong.append(f"GOOD, but conditions {', '.join(vote.failed)} do not hold: it is BAD")
        if seconds < rule.keep_from - 1e-9:
            wrong.append(
                f"GOOD, but the marked parts last {seconds:.1f} s in all, fewer than "
                f"{rule.keep_from:g} s: mark all that is needed, or fail condition D"
            )
    elif vote.label == BAD and not (vote.failed or vote.like):
        wrong.append("BAD, but no condition failed and no question that it repeats: say which")
    elif vote.label == MAYBE and not vote.comment.strip():
        wrong.append("MAYBE needs a comment that says what to change for round 2")
    return wrong


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What the votes make of a question: its label after the last round that it was in, whether it
    is kept, goes to the next round, or falls, and why.
    """

    question_id: str
    label: str
    round: int
    state: str  # "keep" | "next" | "drop"
    reason: str = ""


def decide(votes: Sequence[Vote]) -> Decision:
    """The state of one question. In each round the strictest label of its raters counts.

    Round 1: GOOD and MAYBE (mended) go on, BAD falls. Round 2: only GOOD is kept. A vote in round 2
    without one that let it through round 1 is a ValueError, and so are votes for several questions.
    """
    names = {vote.question_id for vote in votes}
    if len(names) != 1:
        raise ValueError(f"votes for one question are needed, these are for {sorted(names)!r}")
    (name,) = names
    rounds: dict[int, list[Vote]] = defaultdict(list)
    for vote in votes:
        rounds[vote.round].append(vote)
    if 1 not in rounds:
        raise ValueError(f"question {name!r} has votes of round 2 but none of round 1")
    first = max((v.label for v in rounds[1]), key=STRICTNESS.index)
    if first == BAD:
        if 2 in rounds:
            raise ValueError(f"question {name!r} fell in round 1 and yet has votes of round 2")
        return Decision(
            question_id=name, label=BAD, round=1, state="drop", reason=_reason(rounds[1])
        )
    if 2 not in rounds:
        return Decision(question_id=name, label=first, round=1, state="next")
    second = max((v.label for v in rounds[2]), key=STRICTNESS.index)
    if second == GOOD:
        return Decision(question_id=name, label=GOOD, round=2, state="keep")
    return Decision(
        question_id=name, label=second, round=2, state="drop", reason=_reason(rounds[2])
    )


def _reason(votes: Iterable[Vote]) -> str:
    votes = list(votes)
    letters = sorted({letter for vote in votes for letter in vote.failed})
    if letters:
        return "curation: condition " + ", ".join(letters)
    like = next((vote.like for vote in votes if vote.like), "")
    return f"curation: repeats {like}" if like else "curation: still MAYBE"


def curated(questions: Sequence[Question], votes: Sequence[Vote]) -> list[Question]:
    """Questions with their votes as verdicts, the reason in `drop` where they fall, and the marks
    of the last good vote as `evidence`. Questions without votes stay as they are.
    """
    by_question: dict[str, list[Vote]] = defaultdict(list)
    for vote in votes:
        by_question[vote.question_id].append(vote)
    done: list[Question] = []
    for question in questions:
        cast = by_question.get(question.question_id)
        if not cast:
            done.append(question)
            continue
        decision = decide(cast)
        verdicts = tuple(
            Verdict(
                filter=f"curation_{vote.round}",
                model=f"rater:{vote.rater}",
                reply=vote.label,
                passed=vote.label != BAD,
                detail=" ".join([*vote.failed, vote.comment]).strip(),
            )
            for vote in cast
        )
        marks = next((v.marks for v in reversed(cast) if v.label == GOOD), question.evidence)
        done.append(
            replace(
                question,
                verdicts=(*question.verdicts, *verdicts),
                evidence=marks,
                drop=question.drop or (decision.reason if decision.state == "drop" else None),
            )
        )
    return done


def shares(votes: Iterable[Vote]) -> dict[str, float]:
    """The share of each label among votes, to hold against `MAYBE_SHARE` and `GOOD_SHARE`."""
    counts = Counter(vote.label for vote in votes)
    total = counts.total()
    return {label: counts[label] / total if total else 0.0 for label in STRICTNESS}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One way in which people are tested. `seconds`: time for a question, everything included.
    `fps`: the pictures shown a second (null: all). `video_first`: the text is shown only after the
    video, and there is no way back. `hours`: work in this setting, of all raters together.
    """

    name: str
    seconds: float | None = None
    fps: float | None = None
    video_first: bool = False
    hours: float | None = None


SETTINGS = (
    Setting(name="unlimited"),
    Setting(name="one_minute", seconds=60),
    Setting(name="three_minutes", seconds=180),
    Setting(name="video_then_text", video_first=True, hours=5),
    Setting(name="frames", fps=1, hours=5),
)


@dataclass(frozen=True, kw_only=True)
class Task:
    """One question for one rater in one setting. `order[k]` is the option shown in place k."""

    question_id: str
    rater: str
    setting: str
    order: tuple[int, ...]


def assign(
    questions: Mapping[str, int],
    raters: Sequence[str],
    settings: Sequence[Setting] = SETTINGS,
    *,
    seed: int = 0,
    minutes: float = 5.0,
) -> list[Task]:
    """Deal questions (id -> number of options) to raters, each question once in every setting.

    Nobody meets a question twice, and in each setting the raters' shares differ by at most one. A
    setting with `hours` gets as many questions as fit at `minutes` each. Needs at least as many
    raters as settings, else UserError.
    """
    if len(set(raters)) < len(settings):
        raise UserError(
            f"{len(settings)} settings need at least as many raters, so that nobody meets a "
            f"question twice: there are {len(set(raters))}"
        )
    order = sorted(questions)
    random.Random(f"{seed}/human/questions").shuffle(order)
    people = sorted(set(raters))
    random.Random(f"{seed}/human/raters").shuffle(people)
    tasks: list[Task] = []
    for turn, setting in enumerate(settings):
        room = len(order) if setting.hours is None else int(setting.hours * 60 / minutes)
        for place, name in enumerate(order[:room]):
            options = list(range(questions[name]))
            random.Random(f"{seed}/{name}/{setting.name}/options").shuffle(options)
            tasks.append(
                Task(
                    question_id=name,
                    rater=people[(place + turn) % len(people)],
                    setting=setting.name,
                    order=tuple(options),
                )
            )
    return tasks


def chosen_option(task: Task, place: int) -> int:
    """The question's own option behind the one that a rater picked by its place."""
    return task.order[place]
