"""CinePile's dataset as a whole: it is split into train and test by movie, so that all clips of a
movie are on one side (section 4), and categories have a vision reliance and a hardness (Fig. 6).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mustsee import stats
from mustsee.errors import UserError
from mustsee.evaluate.drawing import new_axes
from mustsee.records import Question, group_pairs
from mustsee.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDES = ("train", "test")


def sides(
    movies: Iterable[str],
    *,
    test_share: float,
    seed: int = 0,
    given: dict[str, str] | None = None,
    strata: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Map each movie to "train" or "test". `given`: sides that a person has chosen.

    A hash of the name decides the other movies, so they stay on their side when movies are added or
    removed. With `strata` (movie -> its genre and decade, for example), each stratum gives its
    share of the test movies, those of the lowest hashes: both sides then hold the strata alike
    (section 4), and a movie may change sides when others are added. If a side would be empty, the
    movie with the nearest hash is moved there: with at least two movies and a share between 0 and
    1, neither side is empty. Raises UserError for an unknown side.
    """
    given = {plain(movie): side for movie, side in (given or {}).items()}
    for movie, side in given.items():
        if side not in SIDES:
            raise UserError(f"movie {movie!r}: split {side!r}; it is 'train' or 'test'")
    names = sorted(set(movies))
    hashes = {name: _place(name, seed) for name in names}
    drawn = {name for name in names if hashes[name] < test_share}
    if strata is not None:
        free = [name for name in names if plain(name) not in given]
        drawn = _drawn_evenly(free, strata, hashes, test_share)
    side_of = {name: given.get(plain(name), "test" if name in drawn else "train") for name in names}
    movable = sorted({plain(name) for name in names} - set(given), key=lambda n: _place(n, seed))
    has_several = len({plain(name) for name in names}) > 1
    for side, index in (("test", 0), ("train", -1)):
        if has_several and movable and 0 < test_share < 1 and side not in side_of.values():
            side_of.update({name: side for name in names if plain(name) == movable[index]})
    return side_of


def _drawn_evenly(
    names: Sequence[str], strata: Mapping[str, str], hashes: Mapping[str, float], share: float
) -> set[str]:
    """Draw the share of each stratum; what rounding leaves over goes to the next one."""
    by_stratum = group_pairs((strata.get(name, ""), name) for name in names)
    drawn, passed = set[str](), 0
    for stratum in sorted(by_stratum):
        passed += len(by_stratum[stratum])
        count = int(share * passed + 0.5) - len(drawn)
        drawn |= set(sorted(by_stratum[stratum], key=lambda name: hashes[name])[: max(0, count)])
    return drawn


def plain(movie: str) -> str:
    """Return a movie's name as a key: lower case, words only."""
    return " ".join(re.findall(r"[^\W_]+", movie.lower())) or movie.strip()


def _place(movie: str, seed: int) -> float:
    """Return the movie's hash as a number in [0, 1)."""
    text = f"{seed}/split/{plain(movie)}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64


MEASURES = ("vision_reliance", "hardness")


@dataclass(frozen=True, kw_only=True)
class CategoryRates:
    """The share of a category's questions that are vision-reliant, and that are hard, with 95 %
    intervals by clip; null where none was measured.
    """

    category: str
    questions: int
    vision_reliance: Estimate | None
    hardness: Estimate | None


def rates_by_category(questions: Iterable[Question]) -> list[CategoryRates]:
    """Return the rates of all categories among the kept questions, in alphabetical order."""
    by_category = group_pairs((q.question_type or "", q) for q in questions if q.drop is None)
    return [
        CategoryRates(
            category=category,
            questions=len(group),
            vision_reliance=_share(group, "vision_reliance"),
            hardness=_share(group, "hardness"),
        )
        for category, group in sorted(by_category.items())
    ]


def _share(questions: Sequence[Question], measure: str) -> Estimate | None:
    measured = [q for q in questions if measure in q.metrics]
    if not measured:
        return None
    return stats.mean([q.metrics[measure] for q in measured], [q.video_id for q in measured])


def draw_rates(rates: Sequence[CategoryRates]) -> Figure:
    """Draw two bars for each category, with their intervals."""
    figure, axes = new_axes(7.0, 1.2 + 0.6 * len(rates))
    for offset, measure in zip((-0.18, 0.18), MEASURES, strict=True):
        found = [(n, e) for n, r in enumerate(rates) if (e := getattr(r, measure)) is not None]
        values = [100 * e.value for _, e in found]
        below = [100 * (e.value - (e.value if e.low is None else e.low)) for _, e in found]
        above = [100 * ((e.value if e.high is None else e.high) - e.value) for _, e in found]
        axes.barh(
            [n + offset for n, _ in found],
            values,
            height=0.34,
            xerr=[below, above],
            label=measure.replace("_", " "),
        )
    axes.set_yticks(range(len(rates)), [f"{r.category} ({r.questions})" for r in rates])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the category's questions")
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    return figure
