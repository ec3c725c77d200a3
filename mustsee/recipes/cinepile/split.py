"""Splits into train and test by movie, so that all clips of a movie are on one side (CinePile,
section 4).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from mustsee.errors import UserError

SIDES = ("train", "test")


def sides(
    movies: Iterable[str],
    *,
    test_share: float,
    seed: int = 0,
    given: dict[str, str] | None = None,
) -> dict[str, str]:
    """Map each movie to "train" or "test". `given`: sides that a person has chosen.

    A hash of the name decides the other movies, so they stay on their side when movies are added or
    removed. If a side would be empty, the movie with the nearest hash is moved there: with at least
    two movies and a share between 0 and 1, neither side is empty. Raises UserError for an unknown
    side.
    """
    given = {plain(movie): side for movie, side in (given or {}).items()}
    for movie, side in given.items():
        if side not in SIDES:
            raise UserError(f"movie {movie!r}: split {side!r}; it is 'train' or 'test'")
    names = sorted(set(movies))
    hashes = {name: _place(name, seed) for name in names}
    side_of = {
        name: given.get(plain(name), "test" if hashes[name] < test_share else "train")
        for name in names
    }
    movable = sorted({plain(name) for name in names} - set(given), key=lambda n: _place(n, seed))
    has_several = len({plain(name) for name in names}) > 1
    for side, index in (("test", 0), ("train", -1)):
        if has_several and movable and 0 < test_share < 1 and side not in side_of.values():
            side_of.update({name: side for name in names if plain(name) == movable[index]})
    return side_of


def plain(movie: str) -> str:
    """Return a movie's name as a key: lower case, words only."""
    return " ".join(re.findall(r"[^\W_]+", movie.lower())) or movie.strip()


def _place(movie: str, seed: int) -> float:
    """Return the movie's hash as a number in [0, 1)."""
    text = f"{seed}/split/{plain(movie)}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
