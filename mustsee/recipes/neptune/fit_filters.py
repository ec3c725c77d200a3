"""Thresholds of video filters by F1 on labelled videos (Neptune, C.1: 50 of them)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from mustsee.errors import UserError
from mustsee.judge import calibrate
from mustsee.records import Video
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


def fit_filters(
    filters: Mapping[str, VideoFilter | None], labels: Labels, videos: Iterable[Video]
) -> dict[str, Any]:
    """Return filter -> labelled and measured videos, F1 of its share, the share with the best F1,
    and the range of shares as good.
    """
    labelled = {video_id for own in labels.values() for video_id in own}
    chosen = [video for video in videos if video.video_id in labelled]
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
        if rows:
            truth, shares, dropped = zip(*rows, strict=True)
            best = calibrate.choose(truth, shares)
            fitted[name] |= {
                "f1": calibrate.f1(truth, dropped),
                "best_f1": best.f1,
                "best_share": best.threshold,
                "range": [best.low, best.high],
            }
    return fitted
