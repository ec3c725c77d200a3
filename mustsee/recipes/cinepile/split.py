"""Splits into train and test by movie, so that all clips of a movie are on one side (CinePile,
section 4).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

from mustsee.errors import UserError

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
    by_stratum: dict[str, list[str]] = {}
    for name in names:
        by_stratum.setdefault(strata.get(name, ""), []).append(name)
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
