"""How many questions a form must be given so that the 95 % interval of its result is as narrow as
wanted: a share of right questions, people's accuracy, or their agreement.

Each of these is a mean over questions of values from 0 to 1, whose variance is at most
`share * (1 - share)` (the binomial bound). Questions of one video are alike, so their mean varies
more than that of independent ones. How much is known once there are votes: the interval of the
results has videos as clusters, and its half width falls with the root of the number of questions.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from mustsee.errors import UserError
from mustsee.raters.correctness import MeasuredCorrectness
from mustsee.raters.results import RatingResults
from mustsee.stats import Estimate, wilson

NORMAL_95 = 1.96  # quantile of the normal distribution
MIN_WITHIN, MAX_WITHIN = 0.001, 0.5  # half widths that may be asked for
MAX_QUESTIONS = 1_000_000  # more than `MIN_WITHIN` needs of any share


@dataclass(frozen=True, kw_only=True)
class MeasuredWidth:
    """The half width of the interval of a result on `questions` questions, and the standard error
    with videos as clusters; null where it is not known.
    """

    name: str
    questions: int
    value: float
    half: float
    se: float | None


def check_within(within: float) -> None:
    """Raise UserError for a half width that no number of questions is looked for."""
    if not MIN_WITHIN <= within < MAX_WITHIN:
        raise UserError(
            f"within={within!r}: must be at least {MIN_WITHIN} and below {MAX_WITHIN}, such as 0.05"
        )


def half_width(questions: int, share: float = 0.5) -> float:
    """Return half of the width of Wilson's 95 % interval of a share of independent questions."""
    low, high = wilson(share * questions, questions)
    return (high - low) / 2


def needed_questions(within: float, share: float = 0.5) -> int:
    """Return the least number of independent questions at which `half_width` is at most `within`.
    At `share` 0.5 it suffices for each share.
    """
    counts = range(1, MAX_QUESTIONS)
    return counts[bisect_left(counts, True, key=lambda n: half_width(n, share) <= within)]


def measured_widths(outcome: RatingResults, votes_each: int) -> Iterator[MeasuredWidth]:
    """Yield the results so far with an interval, whose clusters are videos.

    `votes_each`: votes on a question of a round, by which people's own answers are counted.
    """
    if (checked := outcome.checked) is not None:
        yield from _width("right questions", checked.n, checked.right / checked.n, checked)
    for name, share in outcome.answered.items():
        yield from _width(name, math.ceil(share.n / votes_each), share.value, share)
    for name, agreed in outcome.fields.items():
        if (same := agreed.same) is not None:
            yield from _width(f"agreement on {name}", agreed.units, same.value, same)


def _width(
    name: str, questions: int, value: float, of: Estimate | MeasuredCorrectness
) -> Iterator[MeasuredWidth]:
    if of.low is not None and of.high is not None:
        half = (of.high - of.low) / 2
        yield MeasuredWidth(name=name, questions=questions, value=value, half=half, se=of.se)


def needed_by_votes(measured: MeasuredWidth, within: float) -> int:
    """Return the number of questions at which the interval is `within` wide to each side, if the
    further ones come with as many further videos.

    By the standard error with videos as clusters, without Student's quantile for the few videos of
    now; where it is 0 (all the same so far), by the interval itself.
    """
    half = NORMAL_95 * measured.se if measured.se else measured.half
    return math.ceil(measured.questions * (half / within) ** 2)


def describe_need(
    within: float,
    *,
    drawn: int,
    videos: int,
    votes_each: int,
    wanted: float,
    outcome: RatingResults,
) -> Iterator[str]:
    """Yield lines on how many questions an interval of plus or minus `within` needs, and on what
    the `drawn` ones on `videos` videos give.

    `votes_each`: votes that a question gets; `wanted`: share of right questions that is expected.
    """
    points = f"±{100 * within:g} points"
    any_share, as_wanted = needed_questions(within), needed_questions(within, wanted)
    yield (
        f"for a 95 % interval of {points} (within={within:g}): {_count(any_share, votes_each)}, "
        f"whatever people find; {_count(as_wanted, votes_each)} if {wanted:.0%} is right or "
        "agreed on (wanted=)"
    )
    yield (
        f"  this is the binomial bound, which takes questions as independent; the {drawn} drawn "
        f"give ±{100 * half_width(drawn):.1f} points at most by it"
    )
    if videos < drawn:
        yield (
            f"  they are on {videos} video{'' if videos == 1 else 's'}: questions of one video are "
            "alike, so it takes more; questions on further videos help most"
        )
    widths = list(measured_widths(outcome, votes_each))
    if widths:
        widest = max(widths, key=lambda one: needed_by_votes(one, within))
        yield (
            f"  by the votes so far, with videos as clusters: {widest.name} "
            f"{widest.value:.1%} ±{100 * widest.half:.1f} points on {widest.questions} questions, "
            f"so {points} take about {_count(needed_by_votes(widest, within), votes_each)}, if "
            "further ones are on further videos"
        )


def _count(questions: int, votes_each: int) -> str:
    if votes_each == 1:
        return f"{questions:,} questions"
    return f"{questions:,} questions by {votes_each} raters each ({questions * votes_each:,} votes)"
