"""Video filters: rules that drop a row after a stage, with a reason.

A new filter is a class with the members of `VideoFilter`, in its own module, and an entry in
`conf/filters/*.yaml`. The key that keeps the video is appended to its reason.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mustsee.errors import UserError
from mustsee.records import Video


class VideoFilter(Protocol):
    """A rule for one row. `after`: the stage whose columns it needs.

    Its result is not stored, so that a changed threshold recomputes no stage.
    """

    @property
    def after(self) -> str: ...

    def __call__(self, video: Video) -> str | None:
        """Return a reason to drop the video, or None."""
        ...


@dataclass(frozen=True)
class NamedVideoFilter:
    """A filter with its name in the configuration, by which its reasons say how to keep a video."""

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
    """Return stage -> its filters, in the order of the configuration, without those set to null.
    Raises UserError for a stage that the job does not have.
    """
    grouped: dict[str, list[VideoFilter]] = {stage: [] for stage in stages}
    for name, each in filters.items():
        if each is None:
            continue
        if each.after not in grouped:
            raise UserError(
                f"filters.{name}.after={each.after!r}: expected one of {', '.join(stages)}"
            )
        grouped[each.after].append(NamedVideoFilter(name, each))
    return {stage: tuple(members) for stage, members in grouped.items()}
