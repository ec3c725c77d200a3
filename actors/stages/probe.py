"""`probe`: what a container says of itself, and the digest of its bytes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from actors.part import Opened, RunContext
from mustsee.errors import BadRow
from mustsee.records import Video

# That a video may lack at its end: containers round, and streams end apart.
MISSING_SECONDS, MISSING_SHARE = 2.0, 0.05


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Facts and content digest of each file. Rows shorter than `min_seconds` or longer than
    `max_seconds` are dropped (a clip is measured by its own length).

    A file that cannot be read, has no video (cover art is none), no decodable frame or no duration,
    or that ends before its time, is a BadRow that names it.
    """

    version: ClassVar[str] = "4"
    reads: ClassVar[tuple[str, ...]] = ("uri", "size", "modified", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = (
        "digest",
        "duration",
        "fps",
        "width",
        "height",
        "has_audio",
        "has_video",
        "drop",
    )

    min_seconds: float | None = None
    max_seconds: float | None = None

    def open(self, run: RunContext) -> Opened:
        from mustsee.media.video import content_digest, facts, last_packet_time

        def probe(video: Video) -> Video:
            found = facts(video.uri)
            if not found.has_video:
                raise BadRow(f"no video stream in {video.uri!r}")
            if not found.duration > 0:
                raise BadRow(f"zero duration: {video.uri!r} holds no moving picture")
            there = last_packet_time(video.uri, found.duration)
            if there < found.duration - max(MISSING_SECONDS, MISSING_SHARE * found.duration):
                raise BadRow(
                    f"cut off: {video.uri!r} says that it lasts {found.duration:.1f} s, but holds "
                    f"{there:.1f} s ({there / found.duration:.0%}); fetch the whole file again"
                )
            if video.start is not None and video.start >= found.duration:
                raise BadRow(
                    f"the clip begins at {video.start!r} s, but {video.uri!r} ends at "
                    f"{found.duration:.2f} s"
                )
            seconds = _seconds(video, found.duration)
            return dataclasses.replace(
                video,
                digest=content_digest(video.uri),
                duration=seconds,
                fps=found.fps,
                width=found.width,
                height=found.height,
                has_audio=found.has_audio,
                has_video=True,
                drop=video.drop or self.unfit(seconds),
            )

        return probe

    def unfit(self, seconds: float) -> str | None:
        """Why a row of this length is not wanted, or null."""
        if self.min_seconds is not None and seconds < self.min_seconds:
            return (
                f"too short: {seconds:.1f} s, at least {self.min_seconds:g} s asked for; "
                "probe.min_seconds=null keeps it"
            )
        if self.max_seconds is not None and seconds > self.max_seconds:
            return (
                f"too long: {seconds:.1f} s, at most {self.max_seconds:g} s asked for; "
                "probe.max_seconds=null keeps it"
            )
        return None


def _seconds(video: Video, duration: float) -> float:
    end = duration if video.end is None else min(video.end, duration)
    return end - (video.start or 0.0)
