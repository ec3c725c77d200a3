"""Train and test by movie: a movie's clips are all on one side (CinePile, section 4)."""

from __future__ import annotations

import hashlib


def split_of(movie: str, *, test_share: float, seed: int = 0) -> str:
    """The side, train or test, by a hash of the movie's name: whatever other movies there are."""
    name = " ".join(movie.lower().split())
    number = int.from_bytes(hashlib.sha256(f"{seed}/split/{name}".encode()).digest()[:8], "big")
    return "test" if number < test_share * 2**64 else "train"
