"""Drops videos with few views, new videos, and videos with an unsafe tag (Neptune, C.1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from mustsee.errors import UserError
from mustsee.records import Video


@dataclass(frozen=True, kw_only=True)
class MetadataFilter:
    """Three rules, each for videos that have its column. Raises UserError if `today` is not a
    date. Case of tags does not matter.
    """

    after: str = "probe"
    """Stage after which the filter runs."""
    min_views: int | None = 100
    """Least number of views; null: any."""
    min_days: int | None = 90
    """Least age since publication, days; null: any."""
    today: str | None = None
    """Date from which the age is counted, ISO date."""
    unsafe_tags: tuple[str, ...] = ("racy", "mature", "controversial")
    """Tags that drop a video."""

    def __post_init__(self) -> None:
        if self.today is not None and _day(self.today) is None:
            raise UserError(f"today={self.today!r} is not a date; write it as 2026-01-31")

    def __call__(self, video: Video) -> str | None:
        """Return a reason to drop the video, or null."""
        if self.min_views is not None and video.views is not None and video.views < self.min_views:
            return f"views: {video.views}, fewer than {self.min_views}"
        unsafe = {label.strip().casefold() for label in self.unsafe_tags}
        tag = next((label for label in video.tags if label.strip().casefold() in unsafe), None)
        if tag is not None:
            return f"unsafe tag: {tag}"
        return self._age(video.published)

    def _age(self, published: str | None) -> str | None:
        if self.min_days is None or self.today is None or not published:
            return None
        since, today = _day(published), _day(self.today)
        if since is None or today is None:
            return f"published: {published!r} is not a date; write it as 2026-01-31"
        if (today - since).days < self.min_days:
            return f"published: {since}, less than {self.min_days} days before {today}"
        return None


def _day(text: str) -> date | None:
    """Return the day of an ISO date or date and time, or null."""
    try:
        return date.fromisoformat(text.strip()[:10])
    except ValueError:
        return None
