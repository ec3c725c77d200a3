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
from mustsee.text import printable

REASONS = {
    "blind": "blind (right without the video)",
    "asr": "asr (right from what is said alone)",
    "check": "check (malformed: leaks, repeats, times)",
    "video": "video (it was dropped or failed after it was asked about)",
}


def outcome_lines(
    counted: QuestionCounts, subset: str | None, *, makes: bool
) -> Iterable[RenderableType]:
    """Lines and a table. `subset`: of the questions that pass every filter; `makes`: the job makes
    questions.
    """
    if not makes:
        return
    if counted.without:
        yield Text("videos without questions", style="bold")
    for video, why in counted.without.items():
        yield plain_line(f"  {video}  {why}")
    if counted.made:
        yield _table(counted, subset)
    if counted.untested_note:
        yield Text(counted.untested_note, style="bold")


def _table(counted: QuestionCounts, subset: str | None) -> Table:
    table = Table(title="questions", title_justify="left", title_style="bold", box=None)
    table.add_column("")
    table.add_column("", justify="right")
    table.add_row("made", str(counted.made))
    for reason, n in sorted(counted.dropped.items(), key=lambda item: -item[1]):
        table.add_row(plain_line(f"  dropped: {REASONS.get(reason, reason)}"), str(-n))
    table.add_row("kept", str(counted.kept), style="bold")
    for name, n in sorted(counted.subsets.items()):
        every = ", those that passed every filter" if name == subset else ""
        table.add_row(plain_line(f"  in subset {name}{every}"), str(n))
    for name, n in sorted(counted.failed.items(), key=lambda item: -item[1]):
        table.add_row(f"  kept without passing {REASONS.get(name, name)}", str(n))
    for kind, n in sorted(counted.types.items(), key=lambda item: -item[1]):
        table.add_row(plain_line(f"  {kind or '(no type)'}"), str(n))
    return table


def subset_of(record: RunRecord) -> str | None:
    """The subset of questions that pass every filter, as the configuration names it."""
    vet: Mapping[str, Any] = record.config.get("vet") or {}
    return vet.get("subset")


def stopped_lines(
    stopped: Mapping[tuple[str, str], int], record: RunRecord, rows: int
) -> Iterable[str]:
    """Why calls had to stop, and what goes on from here; the most frequent reason last."""
    for (error, message), n in sorted(stopped.items(), key=lambda item: item[1]):
        left = f"{n} of {rows} videos are unfinished"
        if error == "BudgetSpent":
            spent = record.spent
            usd = f"{spent.total.usd:.4f} USD spent"
            if spent.unknown:
                usd += f", {spent.unknown_usd:.4f} USD for calls of killed runs"
            yield (
                f"stopped: budget_usd={record.config.get('budget_usd')} reached ({usd}), {left}; "
                "the same command with a higher budget_usd goes on from here"
            )
        elif error == "NoAnswer":
            yield f"stopped: {message}; {left}; the same command goes on from here"
        else:
            yield f"stopped: {message}; {left}"


def plain_line(text: str, style: str = "") -> Text:
    """A text as one line that cannot steer the terminal."""
    return Text(printable(text), style=style)
