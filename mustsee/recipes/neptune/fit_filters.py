"""Thresholds of video filters by F1 on labelled videos (Neptune, C.1: 50 of them)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from mustsee import schemas
from mustsee.errors import UserError
from mustsee.judge import calibrate
from mustsee.records import Video
from mustsee.run.decision import Decision
from mustsee.verify.videos import VideoFilter

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
