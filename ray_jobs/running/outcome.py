"""What is said at the end of a run of its questions: made, dropped, kept and in a subset, by which
filter, and why a video has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from mustsee.run.record import QuestionCounts, RunRecord

REASONS = {
    "blind": "blind (right without the video)",
    "asr": "asr (right from what is said alone)",
    "check": "check (malformed: leaks, repeats, times)",
    "video": "video (it was dropped or failed after it was asked about)",
}


def told(counted: QuestionCounts, subset: str | None, *, makes: bool) -> Iterable[RenderableType]:
    """Lines and a table. `subset`: of the questions that pass every filter; `makes`: the job makes
    questions.
    """
    if not makes:
        return
    if counted.without:
        yield Text("videos without questions", style="bold")
    for video, why in counted.without.items():
        yield Text(f"  {video}  {why}")
    if counted.made:
        yield _table(counted, subset)
    if counted.untested:
        yield Text(counted.untested, style="bold")


def _table(counted: QuestionCounts, subset: str | None) -> Table:
    table = Table(title="questions", title_justify="left", title_style="bold", box=None)
    table.add_column("")
    table.add_column("", justify="right")
    table.add_row("made", str(counted.made))
    for reason, n in sorted(counted.dropped.items(), key=lambda item: -item[1]):
        table.add_row(f"  dropped: {REASONS.get(reason, reason)}", str(-n))
    table.add_row("kept", str(counted.kept), style="bold")
    for name, n in sorted(counted.subsets.items()):
        every = ", those that passed every filter" if name == subset else ""
        table.add_row(f"  in subset {name}{every}", str(n))
    for name, n in sorted(counted.failed.items(), key=lambda item: -item[1]):
        table.add_row(f"  kept without passing {REASONS.get(name, name)}", str(n))
    for kind, n in sorted(counted.types.items(), key=lambda item: -item[1]):
        table.add_row(f"  {kind or '(no type)'}", str(n))
    return table


def subset_of(record: RunRecord) -> str | None:
    """The subset of questions that pass every filter, as the configuration names it."""
    vet: Mapping[str, Any] = record.config.get("vet") or {}
    return vet.get("subset")
