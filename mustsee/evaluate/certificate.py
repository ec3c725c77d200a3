"""The temporal certificate by a model (Neptune, appendix E): how much of a video a question needs.

Clips grow from the middle of the video, in length and in frames per second, until the model answers
rightly: once as a driver, then with two other seeds as verifiers. The smallest such clip is the
certificate. Its frames and seconds measure how much of the video the question needs. The effort is
the largest number of frames with a wrong answer over the smallest with a right one.

First the model must fail without the video. Then `mustsee.verify.fewest` searches the lengths at
each rate by bisection, or tries all clips in turn.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mustsee import stats
from mustsee.errors import UserError
from mustsee.evaluate.drawing import new_figure, save_chart
from mustsee.evaluate.score_show import new_table
from mustsee.files.folders import write_json
from mustsee.files.parquet import write_parquet
from mustsee.files.schemas import load
from mustsee.records import Question, Span
from mustsee.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Group


@dataclass(frozen=True, kw_only=True)
class CertificateSteps:
    """The clips that are tried.

    Lengths grow by the factor `growth` from `shortest` seconds up to the whole video, each at
    every rate of `rates` (frames per second).
    """

    shortest: float = 1.0
    """Length of the first clip, seconds."""
    growth: float = 1.5
    """Factor from each clip length to the next."""
    rates: tuple[float, ...] = (0.5, 1.0, 2.0)
    """Frame rates tried at each length, frames per second."""
    most_frames: int = 256
    """Frames of one clip, at most."""
    verifiers: int = 2
    """Further calls that must agree, each with another seed and order of the options."""
    in_turn: bool = False
    """Try the clips one after the other from the smallest, as the paper does; false: bisection
    at each rate."""

    def __post_init__(self) -> None:
        if self.shortest <= 0 or self.growth <= 1 or not self.rates or min(self.rates) <= 0:
            raise UserError(
                f"steps: shortest={self.shortest!r} and rates={list(self.rates)!r} must be above "
                f"0, growth={self.growth!r} above 1"
            )

    def lengths(self, duration: float) -> tuple[float, ...]:
        """Return the lengths in seconds, ascending; the whole video is the last."""
        lengths, length = list[float](), min(self.shortest, duration)
        while length < duration:
            lengths.append(length)
            length *= self.growth
        return (*lengths, duration)

    def ladders(self, video: Span) -> tuple[tuple[CertificateClip, ...], ...]:
        """Return the clips of each rate; each clip contains the one before. Raises ValueError for a
        video whose length is not above 0.
        """
        if not video.seconds > 0 or not math.isfinite(video.seconds):
            raise ValueError(f"a video of {video.seconds!r} s: expected seconds above 0")
        return tuple(self._at(rate, video) for rate in self.rates)

    def _at(self, rate: float, video: Span) -> tuple[CertificateClip, ...]:
        clips: list[CertificateClip] = []
        for length in self.lengths(video.seconds):
            frames = max(1, round(length * rate))
            if frames <= self.most_frames:
                start = video.start + (video.seconds - length) / 2
                span = Span(start, start + length)
                clips.append(CertificateClip(span=span, fps=frames / length, frames=frames))
        return tuple(clips)


@dataclass(frozen=True, kw_only=True)
class CertificateClip:
    span: Span
    fps: float
    frames: int


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The temporal certificate of one question.

    `clip`: null if no clip gave a right answer; without frames if the question is answered without
    the video. `most_wrong`: frames of the largest failed clip within the certificate; 0 if the
    smallest clip sufficed. `unanswered`: number of the `calls` whose reply was unparseable.
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
        """The largest number of frames that failed over the smallest that sufficed."""
        return self.most_wrong / self.clip.frames if self.clip and self.clip.frames else None


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Means over the questions with a certificate, with 95 % intervals by video.

    `means`: of frames, seconds, and the effort score (of questions that need the video). `without`:
    number of questions without a certificate. `blind`: number of questions that need no video.
    """

    questions: int
    without: int
    blind: int
    unanswered: int
    means: Mapping[str, Estimate]


def summarise(certificates: Sequence[Certificate]) -> Summary:
    """Return the means of a set of certificates."""
    certified = [(c, c.clip) for c in certificates if c.clip is not None]
    means: dict[str, Estimate] = {}
    if certified:
        videos = [c.video_id for c, _ in certified]
        means = {
            "frames": stats.mean([float(clip.frames) for _, clip in certified], videos),
            "seconds": stats.mean([clip.span.seconds for _, clip in certified], videos),
        }
        efforts = [(c.effort, c.video_id) for c, _ in certified if c.effort is not None]
        if efforts:
            means["effort"] = stats.mean([e for e, _ in efforts], [v for _, v in efforts])
    return Summary(
        questions=len(certificates),
        without=len(certificates) - len(certified),
        blind=sum(clip.frames == 0 for _, clip in certified),
        unanswered=sum(c.unanswered for c in certificates),
        means=means,
    )


def read_certificates(
    questions: Iterable[Question], name: str = "certificate"
) -> list[Certificate]:
    """Return the certificates in the questions' verdicts of the filter `name`."""
    return [
        load(Certificate, json.loads(verdict.detail))
        for question in questions
        for verdict in question.verdicts
        if verdict.filter == name
    ]


def write_certificates(folder: Path, certificates: Sequence[Certificate]) -> None:
    """Write `certificates.parquet` and `certificate.json` into `folder`."""
    import pyarrow as pa

    number, text = pa.float64(), pa.string()
    schema = pa.schema(
        {
            "question_id": text, "video_id": text, "duration": number, "start": number,
            "end": number, "fps": number, "frames": pa.int64(), "effort": number,
            "most_wrong": pa.int64(), "calls": pa.int64(), "unanswered": pa.int64(),
        }.items()
    )  # fmt: skip
    write_parquet(
        pa.Table.from_pylist([_row(c) for c in certificates], schema=schema),
        folder / "certificates.parquet",
    )
    write_json(folder / "certificate.json", asdict(summarise(certificates)))


def draw_certificates(folder: Path, certificates: Sequence[Certificate]) -> str | None:
    """Draw the certificates into `folder`/pictures, if there are any; return a line if it fails."""
    if not any(c.clip is not None for c in certificates):
        return None
    return save_chart(folder / "pictures" / "certificate.png", lambda: histograms(certificates))


def _row(one: Certificate) -> dict[str, Any]:
    clip = one.clip
    return {
        "question_id": one.question_id, "video_id": one.video_id, "duration": one.duration,
        "start": clip and clip.span.start, "end": clip and clip.span.end, "fps": clip and clip.fps,
        "frames": clip and clip.frames, "effort": one.effort, "most_wrong": one.most_wrong,
        "calls": one.calls, "unanswered": one.unanswered,
    }  # fmt: skip


def certificate_table(certificates: Sequence[Certificate]) -> Group:
    """Return the means with their intervals, and under them the numbers of questions and calls."""
    from rich.console import Group
    from rich.table import Table

    summary = summarise(certificates)
    rows = new_table("the shortest clip that suffices", ("", "mean", "95 % interval"))
    for name, mean in summary.means.items():
        interval = "-" if mean.low is None else f"{mean.low:.2f}-{mean.high:.2f}"
        rows.add_row(name, f"{mean.value:.2f}", interval)
    counts = Table(box=None, show_header=False)
    counts.add_column("")
    counts.add_column("", justify="right")
    counts.add_row("questions", str(summary.questions))
    counts.add_row("answered with none of the clips that were tried", str(summary.without))
    counts.add_row("answered without the video", str(summary.blind))
    counts.add_row("calls without an answer", str(summary.unanswered))
    return Group(rows, counts) if summary.means else Group(counts)


def histograms(certificates: Sequence[Certificate]) -> Figure:
    """Return histograms of frames, seconds and effort over the questions."""
    certified = [(c, c.clip) for c in certificates if c.clip is not None]
    columns: dict[str, list[float]] = {
        "frames": [float(clip.frames) for _, clip in certified],
        "seconds": [clip.span.seconds for _, clip in certified],
        "effort score": [c.effort or 0.0 for c, _ in certified],
    }
    figure = new_figure(10, 3)
    panels = figure.subplots(1, 3)
    for panel, (name, values) in zip(panels, columns.items(), strict=True):
        panel.hist(values, bins=20, color="#4878a8")
        panel.axvline(sum(values) / len(values), color="#b04a3a", lw=1, ls="--")
        panel.set_xlabel(name)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(f"questions (n={len(certified)} of {len(certificates)})")
    return figure
