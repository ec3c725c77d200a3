"""The figures of an audit: how many questions have a shortcut, and what the video adds.

**Shortcut ratio.** A question has a shortcut if a condition that withholds the video (no video, one
frame, frames out of order) names the right option in every rotation. Guesses do so as well, and the
more conditions, the more often. The ratio corrects for guesses without a model of how they are
made: a guess names each of K options equally often. If the runs name s options of a question, all
wrong, then for every K - s such questions guessing names the right option in s others. So u = 1 if
the right option is named, else u = -s / (K - s), and the ratio is the mean of u. For one condition
with one reply this is the usual (right - 1/K) / (1 - 1/K).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mustsee import stats
from mustsee.audit.battery import SHORTCUTS, ConditionRun, Replies
from mustsee.records import Question, Video, group_pairs
from mustsee.stats import Difference, Estimate, Floats

LENGTHS = (60.0, 180.0, 600.0, 1800.0, 3600.0)  # seconds: borders between the ranges of NAMES


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """The shortcut ratio of a set of questions.

    `ratio`: corrected for guessing; below 0 if wrong options are named more often than the right
    one. `raw`: uncorrected. `untold`: number of questions with every option named, which are left
    out.
    """

    ratio: Estimate | None
    raw: float
    untold: int


@dataclass(frozen=True, kw_only=True)
class FewestFrames:
    """The number of questions by the fewest frames from which on every rotation is right.

    `counts`: number of frames (0: blind) -> questions. `never`: questions that are wrong with the
    most frames. Lucky guesses are included: compare with the chance of the battery.
    """

    counts: Mapping[int, int]
    never: int
    median: float | None


@dataclass(frozen=True, kw_only=True)
class AnswererFigures:
    """The figures of one answerer.

    `blind_gap`: whole minus blind. `visual_gain`: whole minus transcript. `temporal_gain`: frames
    in order minus the same shuffled. `needed`: control (without other spans of the same length)
    minus without evidence. `recovery`: CG-Bench's clue recovery rate, min(whole, evidence) /
    evidence.
    """

    answerer: str
    shortcuts: Ratio
    blind_gap: Difference | None
    visual_gain: Difference | None
    temporal_gain: Difference | None
    needed: Difference | None
    recovery: Estimate | None
    fewest: FewestFrames | None


def shortcut_of_question(
    question: Question, replies: Replies, runs: Sequence[ConditionRun]
) -> float | None:
    """Return u of one question; None if no shortcut condition was run or every option was named."""
    named = options_named(question, replies, runs)
    count = len(question.options)
    if named is None or len(named) == count:
        return None
    return 1.0 if question.answer_index in named else -len(named) / (count - len(named))


def options_named(
    question: Question, replies: Replies, runs: Sequence[ConditionRun]
) -> set[int] | None:
    """Return the options that any shortcut condition names in every rotation; None if no such
    condition was run.
    """
    answered = [
        a for a in runs if a.condition in SHORTCUTS and replies.answered_replies(question, a)
    ]
    if not answered:
        return None
    steady = (replies.find_steady_option(question, run) for run in answered)
    return {option for option in steady if option is not None}


def ratio(questions: Sequence[Question], replies: Replies, runs: Sequence[ConditionRun]) -> Ratio:
    """Return the shortcut ratio over all `runs`."""
    answered = [q for q in questions if options_named(q, replies, runs) is not None]
    pairs = [(q, shortcut_of_question(q, replies, runs)) for q in answered]
    counted = [(q, u) for q, u in pairs if u is not None]
    raw = sum(u == 1 for _, u in counted) / len(counted) if counted else 0.0
    places = [replies.place(q) for q, _ in counted]
    return Ratio(
        ratio=_at_most_one(stats.mean([u for _, u in counted], places)) if counted else None,
        raw=raw,
        untold=len(pairs) - len(counted),
    )


def _at_most_one(estimate: Estimate) -> Estimate:
    """Limit the interval of a ratio, which is at most 1."""
    return estimate if estimate.high is None else replace(estimate, high=min(1.0, estimate.high))


def figures(
    questions: Sequence[Question], replies: Replies, runs: Sequence[ConditionRun], seed: int = 0
) -> list[AnswererFigures]:
    """Return the figures of each answerer."""
    by_answerer: list[AnswererFigures] = []
    for name in dict.fromkeys(a.answerer for a in runs):
        mine = [a for a in runs if a.answerer == name]
        by = {a.condition: a for a in mine}

        def gap(more: str, less: str, by: Mapping[str, ConditionRun] = by) -> Difference | None:
            return paired_difference(questions, replies, by.get(more), by.get(less))

        by_answerer.append(
            AnswererFigures(
                answerer=name,
                shortcuts=ratio(questions, replies, mine),
                blind_gap=gap("whole", "blind"),
                visual_gain=gap("whole", "transcript"),
                temporal_gain=gap("frames", "shuffled"),
                needed=gap("control", "without_evidence"),
                recovery=recovery(
                    questions, replies, by.get("whole"), by.get("evidence"), seed=seed
                ),
                fewest=fewest(questions, replies, mine),
            )
        )
    return by_answerer


def paired_difference(
    questions: Sequence[Question],
    replies: Replies,
    more: ConditionRun | None,
    less: ConditionRun | None,
) -> Difference | None:
    """Return the difference in accuracy of two runs on the questions that both answered; None
    without any.
    """
    one, other, places = _scores_of_both(questions, replies, more, less)
    return stats.paired_difference(one, other, places) if places else None


def _scores_of_both(
    questions: Sequence[Question],
    replies: Replies,
    one: ConditionRun | None,
    other: ConditionRun | None,
) -> tuple[list[float], list[float], list[str]]:
    """Return the scores of two runs on the questions that both answered, and the clusters of these;
    none where one was not run.
    """
    ones, others, places = list[float](), list[float](), list[str]()
    for question in questions if one is not None and other is not None else ():
        a, b = (replies.right(question, run) for run in (one, other) if run is not None)
        if a is not None and b is not None:
            ones.append(a)
            others.append(b)
            places.append(replies.place(question))
    return ones, others, places


def recovery(
    questions: Sequence[Question],
    replies: Replies,
    whole: ConditionRun | None,
    clue: ConditionRun | None,
    *,
    seed: int = 0,
) -> Estimate | None:
    """Return the clue recovery rate: accuracy on the whole video over accuracy on the evidence, at
    most 1; None if it is undefined.
    """
    on_whole, on_clue, places = _scores_of_both(questions, replies, whole, clue)
    if not any(on_clue):
        return None

    def rate(weights: Floats) -> float:
        clue = float(weights @ on_clue)
        return min(float(weights @ on_whole), clue) / clue if clue else float("nan")

    return stats.bootstrap(rate, len(places), places, seed=seed, within=(0.0, 1.0))


def fewest(
    questions: Sequence[Question], replies: Replies, runs: Sequence[ConditionRun]
) -> FewestFrames | None:
    """Count questions by the fewest frames that suffice, of the runs `blind`, `one_frame`, `few`
    and `frames`; None if fewer than two of these were run.
    """
    rungs = {a.frames: a for a in runs if a.condition in ("blind", "one_frame", "few", "frames")}
    order = sorted((n, a) for n, a in rungs.items() if n is not None)
    if len(order) < 2:
        return None
    fewest_by_question: list[int | None] = []
    for question in questions:
        if any(not replies.answered_replies(question, a) for _, a in order):
            continue
        least: int | None = None
        for number, run in reversed(order):
            if replies.find_steady_option(question, run) != question.answer_index:
                break
            least = number
        fewest_by_question.append(least)
    if not fewest_by_question:
        return None
    solved = sorted(n for n in fewest_by_question if n is not None)
    counts = Counter(solved)
    return FewestFrames(
        counts={n: counts[n] for n, _ in order},
        never=len(fewest_by_question) - len(solved),
        median=float(solved[len(solved) // 2]) if solved else None,
    )


def groups(
    questions: Sequence[Question], name: Callable[[Question], str | None]
) -> dict[str, list[Question]]:
    """Group questions by name; questions whose name is None are left out."""
    named = ((group, q) for q in questions if (group := name(q)) is not None)
    return dict(sorted(group_pairs(named).items()))


def length_of(videos: Sequence[Video]) -> Callable[[Question], str | None]:
    """Return a function from a question to the range of its video's length; None if unknown."""
    durations = {v.video_id: v.duration for v in videos if v.duration}

    def name(question: Question) -> str | None:
        seconds = durations.get(question.video_id)
        if seconds is None:
            return None
        return NAMES[sum(seconds >= border for border in LENGTHS)]

    return name


NAMES = ("0 to 1 min", "1 to 3 min", "3 to 10 min", "10 to 30 min", "30 to 60 min", "over 1 h")
