"""How many helpers each of a stage's long films may have (`actors.engine.chunks`), so that they and
the workers that have such films are never more than `workers.max`.
"""

from __future__ import annotations


class HelperQuotas:
    """The films of each stage that are done in pieces now, each with one worker and its helpers."""

    def __init__(self) -> None:
        self._helpers: dict[str, dict[str, int]] = {}

    def acquire(self, stage: str, film: str, wanted: int, most: int) -> int:
        """Helpers that a film may have, of those that it wants in all. It is asked again for each
        piece: where others have come since, they are fewer, and the film is to let some go.
        """
        films = self._helpers.setdefault(stage, {})
        others = sum(1 + n for name, n in films.items() if name != film)
        films[film] = max(0, min(wanted, most - 1 - others))
        return films[film]

    def release(self, stage: str, film: str) -> None:
        """A film is done, and has no helpers any more."""
        self._helpers.get(stage, {}).pop(film, None)
