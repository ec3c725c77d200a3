"""What a job says at the end: what went in, what fell out where and why, what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text


def summarise(record: Mapping[str, Any], out: str, max_problem_share: float) -> int:
    """Print the summary of a finished run; returns its exit code (3: too many problems)."""
    console = Console()
    console.print()
    console.print(_rows(record))
    if record["questions"]["made"]:
        console.print(_questions(record["questions"]))
    computed, reused = sum(record["computed"].values()), sum(record["reused"].values())
    llm = record["llm"]
    lines = [
        f"computed {computed}, reused {reused} stage results in {record['seconds']['total']:.0f} s",
    ]
    if record["heard_by"]:
        heard = ", ".join(f"{n} by {engine}" for engine, n in sorted(record["heard_by"].items()))
        lines.append(f"heard: {heard}")
    if llm.get("calls"):
        cost = llm.get("usd_per_kept_question")
        price = f", {cost:.4f} USD per kept question" if cost else ""
        lines.append(f"{llm['calls']} model calls, {llm.get('usd', 0.0):.2f} USD{price}")
    lines += [
        f"files: {out}/questions.parquet, videos.parquet, problems.parquet, run.json, export/",
        f"look: {out}/report/index.html",
    ]
    for line in lines:
        console.print(Text(line), soft_wrap=True)
    rows = record["funnel"][0]["in"] if record["funnel"] else 0
    problems = sum(step["problems"] for step in record["funnel"])
    if rows and problems / rows > max_problem_share:
        console.print(
            Text(
                f"{problems} of {rows} rows are problems, more than max_problem_share="
                f"{max_problem_share:g} allows: see {out}/problems.parquet",
                style="bold red",
            )
        )
        return 3
    return 0


def _rows(record: Mapping[str, Any]) -> Table:
    table = Table(title="videos", title_justify="left", title_style="bold", box=None)
    for name in ("stage", "in", "out", "dropped or failed"):
        table.add_column(name, justify="right" if name in ("in", "out") else "left")
    for step in record["funnel"]:
        why = [f"{n} {reason}" for reason, n in sorted(step["dropped"].items())]
        if step["problems"]:
            why.append(f"{step['problems']} problem{'s' if step['problems'] > 1 else ''}")
        table.add_row(step["stage"], str(step["in"]), str(step["out"]), Text(", ".join(why)))
    return table


def _questions(counted: Mapping[str, Any]) -> Table:
    table = Table(title="questions", title_justify="left", title_style="bold", box=None)
    table.add_column("")
    table.add_column("", justify="right")
    table.add_row("made", str(counted["made"]))
    for reason, n in sorted(counted["dropped"].items(), key=lambda item: -item[1]):
        table.add_row(f"  dropped: {reason}", str(-n))
    table.add_row("kept", str(counted["kept"]), style="bold")
    for name, n in sorted(counted["subsets"].items()):
        table.add_row(f"  in subset {name}", str(n))
    for kind, n in sorted(counted["types"].items(), key=lambda item: -item[1]):
        table.add_row(f"  {kind}", str(n))
    return table
