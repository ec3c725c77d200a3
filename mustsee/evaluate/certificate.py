"""The temporal certificate by a model (Neptune, appendix E): how much of a video a question needs.

Clips grow from the middle of the video, longer and at more frames per second, until the model
answers rightly: once as a driver, then with two other seeds as verifiers. The first clip that holds
is the certificate; its frames and seconds say how much must be seen, and the effort is the largest
number of frames that still gave a wrong answer over the smallest that gave a right one.

The driver here is pure: `answers(question, span, fps, seed)` looks at a clip and says whether the
answer was right, or None where there was no answer.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from mustsee.errors import UserError
from mustsee.records import Question, Span

Answers = Callable[[Question, Span, float, int], Awaitable[bool | None]]


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Which clips are tried. Lengths grow by `growth` from `shortest` seconds up to the whole
    video, each at every rate of `rates` (frames per second) that gives at least one frame; of
    equal frame counts the shorter clip comes first. `verifiers`: further seeds that must agree.
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

    def clips(self, duration: float, middle: float | None = None) -> tuple[Clip, ...]:
        """The clips in the order in which they are tried: by frames, then by length."""
        centre = duration / 2 if middle is None else middle
        found: dict[tuple[float, float], Clip] = {}
        for length in self.lengths(duration):
            start = min(max(0.0, centre - length / 2), duration - length)
            for rate in self.rates:
                frames = max(1, round(length * rate))
                if frames <= self.most_frames:
                    span = Span(start, start + length)
                    clip = Clip(span=span, fps=frames / length if length else rate, frames=frames)
                    found.setdefault((length, frames), clip)
        return tuple(sorted(found.values(), key=lambda c: (c.frames, c.span.seconds)))


@dataclass(frozen=True, kw_only=True)
class Clip:
    span: Span
    fps: float
    frames: int


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What one question needs. `clip` is null where not even the whole video gave a right answer.

    `tries`: every clip with the driver's answer (null: none came); a right one that a verifier did
    not confirm counts as wrong. `most_wrong`: frames of the largest clip before the certificate
    that failed; 0 where the first clip sufficed.
    """

    question_id: str
    video_id: str
    duration: float
    clip: Clip | None = None
    most_wrong: int
    calls: int
    unanswered: int
    tries: tuple[tuple[Clip, bool | None], ...] = ()

    @property
    def effort(self) -> float | None:
        """Most frames that failed over fewest that sufficed."""
        return None if self.clip is None else self.most_wrong / self.clip.frames


async def certify(
    question: Question,
    duration: float,
    answers: Answers,
    steps: Steps | None = None,
    *,
    middle: float | None = None,
    seed: int = 0,
) -> Certificate:
    """Try the clips in order until one holds. `middle`: where clips grow from, in seconds, if not
    from the middle of the video. Raises ValueError for a duration that is not above 0.
    """
    if not duration > 0 or not math.isfinite(duration):
        raise ValueError(f"duration={duration!r}: expected seconds above 0")
    steps = steps or Steps()
    tries: list[tuple[Clip, bool | None]] = []
    calls = unanswered = most_wrong = 0
    for clip in steps.clips(duration, middle):
        holds: bool | None = True
        for run in range(1 + steps.verifiers):
            said = await answers(question, clip.span, clip.fps, seed + run)
            calls += 1
            unanswered += said is None
            if not said:
                holds = said
                break
        tries.append((clip, holds))
        if holds:
            return Certificate(
                question_id=question.question_id, video_id=question.video_id, duration=duration,
                clip=clip, most_wrong=most_wrong, calls=calls, unanswered=unanswered,
                tries=tuple(tries),
            )  # fmt: skip
        if holds is False:
            most_wrong = max(most_wrong, clip.frames)
    return Certificate(
        question_id=question.question_id, video_id=question.video_id, duration=duration, clip=None,
        most_wrong=most_wrong, calls=calls, unanswered=unanswered, tries=tuple(tries),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Means with 95 % intervals by video over the questions that have a certificate; `without`
    counts those that have none. Means are of frames, seconds, and the effort score.
    """

    questions: int
    without: int
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
            "effort": stats.mean([c.most_wrong / clip.frames for c, clip in held], videos),
        }
    return Summary(
        questions=len(found),
        without=len(found) - len(held),
        unanswered=sum(c.unanswered for c in found),
        means=means,
    )
