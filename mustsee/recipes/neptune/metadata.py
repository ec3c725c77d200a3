"""Videos that nobody watched, that are too new, or that carry an unsafe tag (Neptune, C.1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from mustsee.errors import UserError
from mustsee.records import Video


@dataclass(frozen=True, kw_only=True)
class MetadataFilter:
    """Why a video's metadata rule it out. Each rule judges only where its column is present.

    `today`: the ISO date that age is counted to; null judges no age. Tags are compared without
    regard to case. Raises UserError for a `today` that is no date.
    """

    after: str = "probe"
    min_views: int | None = 100
    min_days: int | None = 90
    today: str | None = None
    unsafe_tags: tuple[str, ...] = ("racy", "mature", "controversial")

    def __post_init__(self) -> None:
        if self.today is not None and _day(self.today) is None:
            raise UserError(f"today={self.today!r} is no date; write it as 2026-01-31")

    def __call__(self, video: Video) -> str | None:
        """A reason to drop the video, or null."""
        if self.min_views is not None and video.views is not None and video.views < self.min_views:
            return f"views: {video.views}, at least {self.min_views} asked for"
        unsafe = {tag.strip().casefold() for tag in self.unsafe_tags}
        found = next((tag for tag in video.tags if tag.strip().casefold() in unsafe), None)
        if found is not None:
            return f"unsafe tag: {found}"
        return self._age(video.published)

    def _age(self, published: str | None) -> str | None:
        if self.min_days is None or self.today is None or not published:
            return None
        since, today = _day(published), _day(self.today)
        if since is None or today is None:
            return f"published: {published!r} is no date; write it as 2026-01-31"
        if (today - since).days < self.min_days:
            return f"published: {since}, less than {self.min_days} days before {today}"
        return None


def _day(text: str) -> date | None:
    """The day of an ISO date or date and time."""
    try:
        return date.fromisoformat(text.strip()[:10])
    except ValueError:
        return None
