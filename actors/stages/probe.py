"""`probe`: a container's own facts, and the digest of its bytes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from actors.part import Opened, RunContext
from mustsee.errors import BadRow
from mustsee.records import Video

# Seconds, and share of the duration, that may be missing at the end of a complete file: containers
# round their durations, and streams end at different times.
MISSING_SECONDS, MISSING_SHARE = 2.0, 0.05


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Writes facts and content digest of each file. Drops rows shorter than `min_seconds` or longer
    than `max_seconds`; for a clip its own length counts.

    A file that cannot be read, has no video stream (cover art does not count), no decodable frame
    or no duration, or that is truncated, is a BadRow that names it.
    """

    version: ClassVar[str] = "5"
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
    """Shortest video, seconds; shorter ones are dropped; null: no limit."""
    max_seconds: float | None = None
    """Longest video, seconds; longer ones are dropped; null: no limit."""

    def open(self, run: RunContext) -> Opened:
        from mustsee.media.video import content_digest, facts, last_packet_time

        def probe(video: Video) -> Video:
            if not video.uri:
                raise BadRow("no file of this video is known: videos= has none of its name")
            container = facts(video.uri)
            if not container.has_video:
                raise BadRow(f"no video stream in {video.uri!r}")
            duration = container.duration
            if not duration > 0:
                raise BadRow(f"zero duration: {video.uri!r} contains no moving image")
            present = last_packet_time(video.uri, duration)
            if present < duration - max(MISSING_SECONDS, MISSING_SHARE * duration):
                raise BadRow(
                    f"truncated: {video.uri!r} has a duration of {duration:.1f} s, but data for "
                    f"{present:.1f} s ({present / duration:.0%}); fetch the whole file again"
                )
            if video.start is not None and video.start >= duration:
                raise BadRow(
                    f"the clip begins at {video.start!r} s, but {video.uri!r} ends at "
                    f"{duration:.2f} s"
                )
            seconds = _seconds(video, duration)
            return dataclasses.replace(
                video,
                digest=content_digest(video.uri),
                duration=seconds,
                fps=container.fps,
                width=container.width,
                height=container.height,
                has_audio=container.has_audio,
                has_video=True,
                drop=video.drop or self.unfit(seconds),
            )

        return probe

    def unfit(self, seconds: float) -> str | None:
        """The reason to drop a row of this length; None: it is kept."""
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
