"""Filters of videos (Neptune, C.1), by metadata, where nothing changes, and where a person talks
into the camera; their thresholds by F1 on labelled videos (50 in the paper).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.judge import calibrate
from mustsee.media.samples import clusters
from mustsee.questions.decision import Decision
from mustsee.records import Frame, Video
from mustsee.verify.filters import VideoFilter


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


@dataclass(frozen=True, kw_only=True)
class Static:
    """Similar frames form a cluster. A video is static if its largest cluster holds at least
    `share` of the frames: the rest are a fade or a title. At 1.0 it must be the only cluster. A
    video without frames is kept.
    """

    after: str = "look"
    apart: float = 0.025
    """Distance of frame descriptors (root mean square, 0-1) that separates clusters."""
    share: float = 0.95
    """Share of the frames in the largest cluster from which a video is dropped as static."""

    def __call__(self, video: Video) -> str | None:
        """Return a reason to drop the video, or null."""
        largest, count = self._largest(video)
        if not count or largest < self.share * count:
            return None
        return f"static: {largest} of {count} frames look the same"

    def measure(self, video: Video) -> float | None:
        """Return the share that is compared with `share`; null without measurements."""
        largest, count = self._largest(video)
        return largest / count if count else None

    def _largest(self, video: Video) -> tuple[int, int]:
        """Return the number of frames in the largest cluster, and of all frames."""
        if not video.frames:
            return 0, 0
        sizes = np.bincount(clusters(video.frames, self.apart))
        return int(sizes.max()), len(video.frames)


@dataclass(frozen=True, kw_only=True)
class TalkingHead:
    """A talking-head frame has a frontal face that is higher than `height` of the frame, and with
    `speaking` something is said. A video is dropped if more than `share` of its frames are such. A
    video without face detection is kept, and with `speaking` one without transcript.
    """

    after: str = "hear"
    height: float = 0.2
    """Height of a frontal face, as a share of the frame, above which the frame counts as a
    talking head."""
    share: float = 0.3
    """Share of such frames above which a video is dropped."""
    speaking: bool = True
    """Count a frame only while something is said; the paper does not ask for it."""

    def __call__(self, video: Video) -> str | None:
        """Return a reason to drop the video, or null."""
        heads, searched = self._count(video)
        if heads <= self.share * searched:
            return None
        return f"talking head: {heads} of {searched} frames"

    def measure(self, video: Video) -> float | None:
        """Return the share that is compared with `share`; null without measurements."""
        heads, searched = self._count(video)
        unheard = self.speaking and video.lines is None
        return None if unheard or not searched else heads / searched

    def _count(self, video: Video) -> tuple[int, int]:
        """Return the number of talking-head frames, and of frames searched for faces."""
        searched = [frame for frame in video.frames or () if frame.faces is not None]
        return sum(self._is_head(video, frame) for frame in searched), len(searched)

    def _is_head(self, video: Video, frame: Frame) -> bool:
        if self.speaking and not _is_speaking(video, frame):
            return False
        return any(face.frontal and face.height > self.height for face in frame.faces or ())


def _is_speaking(video: Video, frame: Frame) -> bool:
    return any(line.start <= frame.time < line.end for line in video.lines or ())


TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
Labels = Mapping[str, Mapping[str, bool]]  # filter -> video id -> whether it is to be dropped


@runtime_checkable
class MeasuredFilter(Protocol):
    """A filter that compares a share of a video's frames with its own `share`."""

    @property
    def share(self) -> float: ...

    def measure(self, video: Video) -> float | None: ...

    def __call__(self, video: Video) -> str | None: ...


def read_labels(videos: pa.Table, filters: Mapping[str, VideoFilter | None]) -> Labels:
    """Return the labels in columns of `videos` that are named like a filter with a share.

    Raises UserError for a value that is neither yes nor no.
    """
    labels: dict[str, dict[str, bool]] = {}
    for name in filters.keys() & {*videos.column_names}:
        if not isinstance(filters[name], MeasuredFilter):
            continue
        labels[name] = {}
        for video_id, value in zip(
            *(videos[column].to_pylist() for column in ("video_id", name)), strict=True
        ):
            text = "" if value is None else str(value).strip().lower().removesuffix(".0")
            if text and text not in TRUTH:
                raise UserError(f"video {video_id!r}: {name}={value!r}: expected true or false")
            if text:
                labels[name][video_id] = TRUTH[text]
    return {name: own for name, own in labels.items() if own}


@dataclass(kw_only=True)
class FilterFit:
    """A decider that drops nothing: it fits the filters to the rows that it is called with."""

    filters: Mapping[str, VideoFilter | None]
    labels: Labels
    columns: tuple[str, ...] = ("frames", "lines")
    fitted: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __call__(self, rows: pa.Table) -> Decision:
        names = [n for n in ("video_id", "uri", *self.columns) if n in rows.column_names]
        labelled = {name for own in self.labels.values() for name in own}
        is_labelled = pa.array([name in labelled for name in rows["video_id"].to_pylist()])
        chosen = rows.select(names).filter(is_labelled).to_pylist()
        videos = (schemas.load(Video, row) for row in chosen)
        self.fitted = fit_filters(self.filters, self.labels, videos)
        return Decision()

    @property
    def record(self) -> dict[str, Any]:
        """What it adds to `run.json`: nothing without labels."""
        return {"video_filters": self.fitted} if self.labels else {}


def fit_filters(
    filters: Mapping[str, VideoFilter | None], labels: Labels, videos: Iterable[Video]
) -> dict[str, Any]:
    """Return filter -> labelled and measured videos, F1 of its share, the share with the best F1,
    and the range of shares as good.
    """
    chosen = list(videos)
    fitted: dict[str, Any] = {}
    for name, own in sorted(labels.items()):
        rule = filters[name]
        assert isinstance(rule, MeasuredFilter)
        rows = [
            (own[video.video_id], share, rule(video) is not None)
            for video in chosen
            if video.video_id in own and (share := rule.measure(video)) is not None
        ]
        fitted[name] = {"labelled": len(own), "measured": len(rows), "share": rule.share}
        if len({label for label, *_ in rows}) == 2:  # without both, any share is as good
            truth, shares, dropped = zip(*rows, strict=True)
            best = calibrate.choose(truth, shares)
            fitted[name] |= {
                "f1": calibrate.f1(truth, dropped),
                "best_f1": best.f1,
                "best_share": best.threshold,
                "range": [best.low, best.high],
            }
    return fitted
