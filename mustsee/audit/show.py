"""Shows and writes an audit: `audit.json`, `audit.parquet`, tables in the terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mustsee.audit.audit import Audit, Item, worst
from mustsee.audit.battery import Tried
from mustsee.evaluate.score_show import percent
from mustsee.stats import Difference, Estimate

if TYPE_CHECKING:
    from rich.table import Table

WORST = 12  # questions on the page


def write(folder: Path, found: Audit, about: Mapping[str, Any], seed: int = 0) -> None:
    """`audit.json` and `audit.parquet` (one row per question) into `folder`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    named = [item_row(i) for i in worst(found, WORST, seed)]
    record = {**about, **found.plain(), "worst": named}
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (folder / "audit.json").write_text(text + "\n", encoding="utf-8")
    names = pa.list_(pa.string())
    schema = pa.schema(
        {
            "question_id": pa.string(), "score": pa.float64(), "shortcuts": names,
            "guessers": names, "fails": names,
        }.items()
    )  # fmt: skip
    rows = [item_row(item) for item in found.items]
    table = pa.Table.from_pylist(rows, schema=schema)
    pq.write_table(table, folder / "audit.parquet", compression="zstd")


def item_row(item: Item) -> dict[str, Any]:
    return {
        "question_id": item.question_id, "score": item.score, "shortcuts": list(item.shortcuts),
        "guessers": list(item.guessers), "fails": list(item.fails),
    }  # fmt: skip


def p_value(difference: Difference) -> str:
    p = difference.p if difference.p_holm is None else difference.p_holm
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def points(found: Difference | None) -> str:
    """ "+12.1 (8.0 to 16.2)", in percentage points."""
    if found is None:
        return "-"
    span = "" if found.low is None else f" ({100 * found.low:.1f} to {100 * (found.high or 0):.1f})"
    return f"{100 * found.value:+.1f}{span}"


def battery(tried: Sequence[Tried], title: str = "the battery, % right") -> Table:
    """Every guesser and condition; those that beat chance and should not are marked."""
    from rich.table import Table

    made = Table(title=title, title_justify="left", box=None)
    for name in ("", "n", "right (95 %)", "chance", "known", "p (Holm)", ""):
        made.add_column(name, justify="left" if not name else "right")
    kinds = dict.fromkeys((t.kind, t.answerer) for t in tried)
    for kind, answerer in kinds:
        if answerer:
            made.add_row(answerer, style="bold")
        for t in (t for t in tried if (t.kind, t.answerer) == (kind, answerer)):
            made.add_row(
                t.name.replace("_", " "), str(t.right.n), percent(t.right),
                f"{100 * t.chance:.1f}", f"{100 * t.known.value:+.1f}", p_value(t.over),
                "shortcut" if t.alarm else "",
            )  # fmt: skip
        made.add_section()
    return made


def headline(found: Audit) -> Table:
    """The figures, one column for each answerer."""
    from rich.table import Table

    made = Table(title=f"{found.questions} questions on {found.videos} videos",
                 title_justify="left", box=None)  # fmt: skip
    made.add_column("")
    for one in found.figures:
        made.add_column(one.answerer, justify="right", overflow="fold", max_width=34)
    if not found.figures:
        made.add_column("", justify="right")

    def row(name: str, values: Sequence[str]) -> None:
        if any(v != "-" for v in values):
            made.add_row(name, *values)

    figures = found.figures
    row("shortcut ratio, %", [ratio(f.shortcuts.ratio) for f in figures])
    row("  before the correction, %", [f"{100 * f.shortcuts.raw:.1f}" for f in figures])
    for label, key in (
        ("blind gap, points", "blind_gap"), ("visual gain, points", "visual_gain"),
        ("temporal gain, points", "temporal_gain"), ("evidence needed, points", "needed"),
    ):  # fmt: skip
        row(label, [points(getattr(f, key)) for f in figures])
    row("clue recovery rate, %", [percent(f.recovery) for f in figures])
    row("fewest pictures, median", [
        "-" if f.fewest is None or f.fewest.median is None else f"{f.fewest.median:g}"
        for f in figures
    ])  # fmt: skip
    one = max(1, len(figures))
    hers = sum(p.video for p in found.duplicates)
    for name, value in (
        ("duplicates within, across videos", f"{hers}, {len(found.duplicates) - hers}"),
        ("in other benchmarks: questions, films", f"{len(found.overlap)}, {len(found.films)}"),
        ("keys in doubt", str(len(found.suspects)) if figures else "-"),
        ("guessers that beat chance", str(sum(t.kind == "guesser" for t in found.alarms))),
        ("left in the clean dataset", f"{found.clean} of {found.questions}"),
    ):
        row(name, [value, *[""] * (one - 1)])
    return made


def ratio(found: Estimate | None) -> str:
    return percent(found)
