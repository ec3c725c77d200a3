"""The temporal certificate by a model (Neptune, appendix E): how much of a video a question needs.

Clips grow from the middle of the video, longer and at more frames per second, until the model
answers rightly: once as a driver, then with two other seeds as verifiers. The least clip that holds
is the certificate; its frames and seconds say how much must be seen, and the effort is the largest
number of frames that still gave a wrong answer over the smallest that gave a right one.

The steps of the paper are data here. What holds is sought as everywhere (`mustsee.verify.fewest`):
by bisection of the lengths at each rate, after the model was wrong without the video.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mustsee.errors import UserError
from mustsee.records import Span


@dataclass(frozen=True, kw_only=True)
class CertificateSteps:
    """Which clips are tried. Lengths grow by `growth` from `shortest` seconds up to the whole
    video, each at every rate of `rates` (frames per second) that gives at least one frame.
    `verifiers`: further looks, with other seeds and orders of the options, that must agree.
    """

    shortest: float = 1.0
    growth: float = 1.5
    rates: tuple[float, ...] = (0.5, 1.0, 2.0)
    most_frames: int = 256
    verifiers: int = 2

    def __post_init__(self) -> None:
        if self.shortest <= 0 or self.growth <= 1 or not self.rates or min(self.rates) <= 0:
            raise UserError(
                f"steps: shortest={self.shortest!r} and rates={list(self.rates)!r} must be above "
                f"0, growth={self.growth!r} above 1"
            )

    def lengths(self, duration: float) -> tuple[float, ...]:
        """Seconds, growing; the whole video is the last."""
        found, length = list[float](), min(self.shortest, duration)
        while length < duration:
            found.append(length)
            length *= self.growth
        return (*found, duration)

    def ladders(self, video: Span) -> tuple[tuple[CertificateClip, ...], ...]:
        """For each rate its clips, each around the one before. Raises ValueError for a video whose
        length is not above 0.
        """
        if not video.seconds > 0 or not math.isfinite(video.seconds):
            raise ValueError(f"a video of {video.seconds!r} s: expected seconds above 0")
        return tuple(self._at(rate, video) for rate in self.rates)

    def _at(self, rate: float, video: Span) -> tuple[CertificateClip, ...]:
        found: list[CertificateClip] = []
        for length in self.lengths(video.seconds):
            frames = max(1, round(length * rate))
            if frames <= self.most_frames:
                start = video.start + (video.seconds - length) / 2
                span = Span(start, start + length)
                found.append(CertificateClip(span=span, fps=frames / length, frames=frames))
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class CertificateClip:
    span: Span
    fps: float
    frames: int


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What one question needs. `clip` is null where no clip gave a right answer, and has no frames
    where the question is answered without the video. `most_wrong`: frames of the largest clip
    within the certificate's that failed; 0 where the least sufficed. `unanswered`: of the `calls`
    those whose reply could not be read.
    """

    question_id: str
    video_id: str
    duration: float
    clip: CertificateClip | None = None
    most_wrong: int
    calls: int
    unanswered: int

    @property
    def effort(self) -> float | None:
        """Most frames that failed over fewest that sufficed."""
        return self.most_wrong / self.clip.frames if self.clip and self.clip.frames else None


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Means with 95 % intervals by video over the questions that have a certificate; `without`
    counts those that have none, `blind` those that need no video and have one of no frames. Means
    are of frames, seconds, and the effort score (of those that need the video).
    """

    questions: int
    without: int
    blind: int
    unanswered: int
    means: Mapping[str, object]


def summarise(found: Sequence[Certificate]) -> Summary:
    """The means of a set of certificates."""
    from mustsee import stats

    held = [(c, c.clip) for c in found if c.clip is not None]
    means: dict[str, object] = {}
    if held:
        videos = [c.video_id for c, _ in held]
        means = {
            "frames": stats.mean([float(clip.frames) for _, clip in held], videos),
            "seconds": stats.mean([clip.span.seconds for _, clip in held], videos),
        }
        efforts = [(c.effort, c.video_id) for c, _ in held if c.effort is not None]
        if efforts:
            means["effort"] = stats.mean([e for e, _ in efforts], [v for _, v in efforts])
    return Summary(
        questions=len(found),
        without=len(found) - len(held),
        blind=sum(clip.frames == 0 for _, clip in held),
        unanswered=sum(c.unanswered for c in found),
        means=means,
    )
