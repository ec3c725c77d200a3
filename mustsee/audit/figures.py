"""The figures of an audit: how many questions have a shortcut, and what the video adds.

**Shortcut ratio.** A question has a shortcut where some condition that withholds what the dataset
is about (no video, one picture, pictures out of order) still names the right option in every turn.
Guessing does that, too, and over several conditions more often than one thinks, so it is corrected
for without assuming how a model guesses: where nothing is known, the options that are named are as
likely to be wrong ones as the right one. Of a question with K options of which s are named, all
wrong, guessing would have named the right one in s of K - s as many cases, which count against it:
u = 1 where the right one is named, else -s / (K - s), and the ratio is the mean of u. For one
condition with one reply that is the usual (right - 1/K) / (1 - 1/K).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mustsee import stats
from mustsee.audit.battery import SHORTCUTS, ConditionRun, Replies
from mustsee.records import Question, Video
from mustsee.stats import Difference, Estimate, Floats

LENGTHS = (60.0, 180.0, 600.0, 1800.0, 3600.0)  # seconds: the borders of the groups by length


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """`ratio`: corrected for guessing (below 0: wrong options are named more than the right one);
    `raw`: before. `untold`: questions of which every option was named, which say nothing.
    """

    ratio: Estimate | None
    raw: float
    untold: int


@dataclass(frozen=True, kw_only=True)
class FewestFrames:
    """Questions by the fewest pictures with which, and with all that is more, every turn is right:
    0 is blind. `never`: not even with the most. A guess may stand for a proof here: read it beside
    the chance of the battery.
    """

    counts: Mapping[int, int]
    never: int
    median: float | None


@dataclass(frozen=True, kw_only=True)
class AnswererFigures:
    """Of one answerer. `blind_gap`: whole less blind; `visual_gain`: whole less transcript;
    `temporal_gain`: pictures in order less the same out of order; `needed`: without another
    stretch of the same length less without the evidence. `recovery`: CG-Bench's clue recovery rate,
    min(whole, evidence) / evidence.
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
    question: Question, replies: Replies, asked: Sequence[ConditionRun]
) -> float | None:
    """u of one question; null where nothing was asked or every option was named."""
    named = options_named(question, replies, asked)
    count = len(question.options)
    if named is None or len(named) == count:
        return None
    return 1.0 if question.answer_index in named else -len(named) / (count - len(named))


def options_named(
    question: Question, replies: Replies, asked: Sequence[ConditionRun]
) -> set[int] | None:
    """The options that some shortcut condition names in every turn; null where none was asked."""
    tries = [a for a in asked if a.condition in SHORTCUTS and replies.answered_replies(question, a)]
    if not tries:
        return None
    found = (replies.steady(question, a) for a in tries)
    return {option for option in found if option is not None}


def ratio(
    questions: Sequence[Question],
    replies: Replies,
    asked: Sequence[ConditionRun],
    clusters: Mapping[str, str],
) -> Ratio:
    """The shortcut ratio over all of `asked`."""
    told = [q for q in questions if options_named(q, replies, asked) is not None]
    pairs = [(q, shortcut_of_question(q, replies, asked)) for q in told]
    counted = [(q, u) for q, u in pairs if u is not None]
    raw = sum(u == 1 for _, u in counted) / len(counted) if counted else 0.0
    where = [clusters.get(q.video_id, q.video_id) for q, _ in counted]
    return Ratio(
        ratio=_cut(stats.mean([u for _, u in counted], where)) if counted else None,
        raw=raw,
        untold=len(pairs) - len(counted),
    )


def _cut(found: Estimate) -> Estimate:
    """No more than all have one."""
    return found if found.high is None else replace(found, high=min(1.0, found.high))


def figures(
    questions: Sequence[Question],
    replies: Replies,
    asked: Sequence[ConditionRun],
    clusters: Mapping[str, str],
    *,
    seed: int = 0,
) -> list[AnswererFigures]:
    """The figures of each answerer."""
    found: list[AnswererFigures] = []
    for name in dict.fromkeys(a.answerer for a in asked):
        mine = [a for a in asked if a.answerer == name]
        by = {a.condition: a for a in mine}

        def gap(more: str, less: str, by: Mapping[str, ConditionRun] = by) -> Difference | None:
            return paired_difference(questions, replies, by.get(more), by.get(less), clusters)

        found.append(
            AnswererFigures(
                answerer=name,
                shortcuts=ratio(questions, replies, mine, clusters),
                blind_gap=gap("whole", "blind"),
                visual_gain=gap("whole", "transcript"),
                temporal_gain=gap("frames", "shuffled"),
                needed=gap("control", "without_evidence"),
                recovery=recovery(
                    questions, replies, by.get("whole"), by.get("evidence"), clusters, seed=seed
                ),
                fewest=fewest(questions, replies, mine),
            )
        )
    return found


def paired_difference(
    questions: Sequence[Question],
    replies: Replies,
    more: ConditionRun | None,
    less: ConditionRun | None,
    clusters: Mapping[str, str],
) -> Difference | None:
    """The difference on the questions that both answered."""
    if more is None or less is None:
        return None
    rows = [(q, replies.right(q, more), replies.right(q, less)) for q in questions]
    both = [(q, a, b) for q, a, b in rows if a is not None and b is not None]
    if not both:
        return None
    where = [clusters.get(q.video_id, q.video_id) for q, _, _ in both]
    return stats.paired_difference([a for _, a, _ in both], [b for _, _, b in both], where)


def recovery(
    questions: Sequence[Question],
    replies: Replies,
    whole: ConditionRun | None,
    clue: ConditionRun | None,
    clusters: Mapping[str, str],
    *,
    seed: int = 0,
) -> Estimate | None:
    """How much of what the evidence alone tells is found in the whole video."""
    if whole is None or clue is None:
        return None
    rows = [(q, replies.right(q, whole), replies.right(q, clue)) for q in questions]
    both = [(q, a, b) for q, a, b in rows if a is not None and b is not None]
    if not both or not any(b for _, _, b in both):
        return None
    import numpy as np

    longs, clues = (np.array(x, dtype=np.float64) for x in zip(*[r[1:] for r in both], strict=True))

    def rate(weights: Floats) -> float:
        clue = float((weights * clues).sum())
        return min(float((weights * longs).sum()), clue) / clue if clue else float("nan")

    where = [clusters.get(q.video_id, q.video_id) for q, _, _ in both]
    return stats.bootstrap(rate, len(both), where, seed=seed, within=(0.0, 1.0))


def fewest(
    questions: Sequence[Question], replies: Replies, asked: Sequence[ConditionRun]
) -> FewestFrames | None:
    """By rungs: blind, one picture, a few, as many as `frames`; null without pictures."""
    rungs = {a.frames: a for a in asked if a.condition in ("blind", "one_frame", "few", "frames")}
    order = sorted((n, a) for n, a in rungs.items() if n is not None)
    if len(order) < 2:
        return None
    found: list[int | None] = []
    for question in questions:
        if any(not replies.answered_replies(question, a) for _, a in order):
            continue
        least: int | None = None
        for number, each in reversed(order):
            if replies.steady(question, each) != question.answer_index:
                break
            least = number
        found.append(least)
    told = sorted(n for n in found if n is not None)
    if not found:
        return None
    counts = Counter(told)
    return FewestFrames(
        counts={n: counts[n] for n, _ in order},
        never=len(found) - len(told),
        median=float(told[len(told) // 2]) if told else None,
    )


def groups(
    questions: Sequence[Question], name: Callable[[Question], str | None]
) -> dict[str, list[Question]]:
    """The questions by a name of theirs; those without one are left out."""
    found: dict[str, list[Question]] = {}
    for question in questions:
        if (which := name(question)) is not None:
            found.setdefault(which, []).append(question)
    return dict(sorted(found.items()))


def length_of(videos: Sequence[Video]) -> Callable[[Question], str | None]:
    """The group of a question by how long its video is; null where that is not known."""
    known = {v.video_id: v.duration for v in videos if v.duration}

    def name(question: Question) -> str | None:
        seconds = known.get(question.video_id)
        if seconds is None:
            return None
        at = sum(seconds >= border for border in LENGTHS)
        return NAMES[at]

    return name


NAMES = ("0 to 1 min", "1 to 3 min", "3 to 10 min", "10 to 30 min", "30 to 60 min", "over 1 h")
