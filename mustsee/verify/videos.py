"""What a video filter is: it looks at each row after a stage, and says why the video is left out.

A new one is a class with these members, in a module of its own, and an entry in a
`conf/filters/*.yaml`. Its reason need not say how to keep the video: that is added, by its name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mustsee.errors import UserError
from mustsee.records import Video


class VideoFilter(Protocol):
    """`after`: the stage whose columns it needs. It is not stored: another threshold computes
    nothing anew.
    """

    @property
    def after(self) -> str: ...

    def __call__(self, video: Video) -> str | None:
        """A reason to drop the video, or null."""
        ...


@dataclass(frozen=True)
class NamedVideoFilter:
    """A filter with its name in the configuration: its reasons say how to keep the video."""

    name: str
    rule: VideoFilter

    @property
    def after(self) -> str:
        return self.rule.after

    def __call__(self, video: Video) -> str | None:
        reason = self.rule(video)
        return reason and f"{reason}; filters.{self.name}=null keeps it"


def by_stage(
    filters: Mapping[str, VideoFilter | None], stages: Collection[str]
) -> dict[str, Sequence[VideoFilter]]:
    """Stage -> its filters, in the order of the configuration; null turns one off. Raises UserError
    for a stage that the job does not have.
    """
    found: dict[str, list[VideoFilter]] = {stage: [] for stage in stages}
    for name, each in filters.items():
        if each is None:
            continue
        if each.after not in found:
            raise UserError(
                f"filters.{name}.after={each.after!r}: expected one of {', '.join(stages)}"
            )
        found[each.after].append(NamedVideoFilter(name, each))
    return {stage: tuple(some) for stage, some in found.items()}
