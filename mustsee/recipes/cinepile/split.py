"""Train and test by movie: a movie's clips are all on one side (CinePile, section 4)."""

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
    """Movie -> "train" or "test". `given`: movies whose side a person has chosen.

    The others go by a hash of their names, so that a movie stays on its side when others come or
    go. Where that leaves a side empty, the movie whose hash is nearest goes over: with two movies
    or more, and a share other than 0 and 1, both sides hold one. Raises UserError.
    """
    given = {plain(movie): side for movie, side in (given or {}).items()}
    for movie, side in given.items():
        if side not in SIDES:
            raise UserError(f"movie {movie!r}: split {side!r}; it is 'train' or 'test'")
    names = sorted(set(movies))
    places = {name: _place(name, seed) for name in names}
    found = {
        name: given.get(plain(name), "test" if places[name] < test_share else "train")
        for name in names
    }
    free = sorted({plain(name) for name in names} - set(given), key=lambda n: _place(n, seed))
    several = len({plain(name) for name in names}) > 1
    for side, at in (("test", 0), ("train", -1)):
        if several and free and 0 < test_share < 1 and side not in found.values():
            found.update({name: side for name in names if plain(name) == free[at]})
    return found


def plain(movie: str) -> str:
    """A movie's name as a key: lower case, words only."""
    return " ".join(re.findall(r"[^\W_]+", movie.lower())) or movie.strip()


def _place(movie: str, seed: int) -> float:
    """Where in [0, 1) the movie's hash lies."""
    text = f"{seed}/split/{plain(movie)}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
