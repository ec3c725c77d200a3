"""Shows and writes certificates: `certificates.parquet`, `certificate.json`, a table, a chart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mustsee.evaluate.certificate import Certificate, summarise
from mustsee.evaluate.drawing import new_figure, save_chart
from mustsee.files.parquet import write_parquet
from mustsee.files.schemas import load
from mustsee.records import Question
from mustsee.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Group


def certificates(questions: Iterable[Question], name: str = "certificate") -> list[Certificate]:
    """Return the certificates in the questions' verdicts of the filter `name`."""
    return [
        load(Certificate, json.loads(verdict.detail))
        for question in questions
        for verdict in question.verdicts
        if verdict.filter == name
    ]


def write(folder: Path, certificates: Sequence[Certificate]) -> None:
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
    summary = json.dumps(asdict(summarise(certificates)), indent=2)
    (folder / "certificate.json").write_text(summary + "\n", encoding="utf-8")


def draw(folder: Path, certificates: Sequence[Certificate]) -> str | None:
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


def table(certificates: Sequence[Certificate]) -> Group:
    """Return the means with their intervals, and under them the numbers of questions and calls."""
    from rich.console import Group
    from rich.table import Table

    summary = summarise(certificates)
    rows = Table(title="the shortest clip that suffices", title_justify="left", box=None)
    for name in ("", "mean", "95 % interval"):
        rows.add_column(name, justify="right" if name else "left")
    for name, value in summary.means.items():
        mean = cast(Estimate, value)
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
