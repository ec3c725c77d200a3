"""Shows and writes an audit: `audit.json`, `audit.parquet`, tables in the terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mustsee.audit.audit import FAILS, Audit, AuditedQuestion, worst
from mustsee.audit.battery import ConditionResult
from mustsee.calls.llm import UNTESTED, untested_note
from mustsee.evaluate.score_show import percent
from mustsee.layouts import FileFault
from mustsee.stats import Difference, Estimate

if TYPE_CHECKING:
    from rich.table import Table

MAX_WORST = 12  # questions on the page
MAX_FINDINGS = 20  # rows of the file in the terminal
# audited questions; of fewer no figure tells much: 95 % of 30 coins fall to 31-69 % heads
MIN_AUDITED = 30


def write(folder: Path, found: Audit, about: Mapping[str, Any], seed: int = 0) -> None:
    """`audit.json` and `audit.parquet` (one row per question) into `folder`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    named = [item_row(i) for i in worst(found, MAX_WORST, seed)]
    said = {"counted": count_sentence(found), "rules": rules(found)}
    record = {**about, **found.plain(), "said": said, "worst": named}
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


def item_row(item: AuditedQuestion) -> dict[str, Any]:
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


def battery(tried: Sequence[ConditionResult], title: str = "the battery, % right") -> Table:
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


def findings(found: Sequence[FileFault]) -> Table:
    """What is wrong in the file, row by row; those that cannot be used are not in `clean/`."""
    from rich.table import Table
    from rich.text import Text

    made = Table(title=f"what is wrong in the file: {len(found)}", title_justify="left", box=None)
    for name in ("where", "what", "value", "question"):
        made.add_column(name, overflow="fold")
    files = len({f.file for f in found}) > 1
    for each in found[:MAX_FINDINGS]:
        where = f"{each.file}, {each.place}" if files else each.place
        what = f"{each.what} (broken)" if each.broken else each.what
        made.add_row(*map(Text, (where, what, each.value, each.question_id)))
    if len(found) > MAX_FINDINGS:
        made.add_row("...", f"{len(found) - MAX_FINDINGS} more: see audit.json")
    return made


def count_sentence(found: Audit) -> str:
    """How many questions were audited, why not all, and whether they are enough."""
    others = ", ".join(f"{n} {why}" for why, n in found.left_out.items())
    said = f"{found.questions} of {found.all} questions audited, on {found.videos} videos"
    said += f" (not: {others})" if others else ""
    return said + (f". {too_few_message(found.questions)}" if found.questions < MIN_AUDITED else "")


def too_few_message(questions: int) -> str:
    return f"{questions} questions: too few to tell a shortcut from luck."


def rules(found: Audit) -> str:
    """What is to be said of the answerers; empty where all are language models."""
    asked: dict[str, list[str]] = {}
    for each in found.asked:
        asked.setdefault(each.condition, []).append(each.answerer)
    return untested_note(asked) if asked else f"{UNTESTED} Only the guessers guessed."


def drop_reasons_table(found: Audit) -> Table:
    """Why questions are not in `clean/`."""
    from rich.table import Table

    made = Table(title=f"clean/: {found.kept_count} of {found.all} questions", title_justify="left",
                 box=None)  # fmt: skip
    for name in ("left out", "questions", "because"):
        made.add_column(name, justify="right" if name == "questions" else "left")
    for name, n in found.fails.items():
        if n:
            made.add_row(name, str(n), FAILS[name])
    if found.lucky:
        made.add_row("(lucky guesses)", str(found.lucky), "stay: the guess is at chance there")
    return made


def headline(found: Audit) -> Table:
    """The figures, one column for each answerer."""
    from rich.table import Table

    made = Table(title="figures", title_justify="left", box=None)
    made.add_column("")
    for one in found.figures:
        made.add_column(one.answerer, justify="right", overflow="fold", max_width=34)
    if not found.figures:
        made.add_column("", justify="right")

    def row(name: str, values: Sequence[str]) -> None:
        if any(v != "-" for v in values):
            made.add_row(name, *values)

    figures = found.figures
    row("shortcut ratio", [ratio(f.shortcuts.ratio) for f in figures])
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
        (
            "in other benchmarks: questions, videos",
            f"{len(found.overlap)}, {len(found.shared_videos)}",
        ),
        ("keys in doubt", str(len(found.suspects)) if found.keys_tested else "-"),
        ("guessers that beat chance", str(sum(t.kind == "guesser" for t in found.alarms))),
    ):
        row(name, [value, *[""] * (one - 1)])
    return made


def ratio(found: Estimate | None) -> str:
    """ "4.7 % (2.0 to 7.4)"; "none measured (-33.4 to 14.4)" where the estimate is 0 or below."""
    if found is None:
        return "-"
    value = f"{100 * found.value:.1f} %" if found.value > 0 else "none measured"
    if found.low is None or found.high is None:
        return value
    return f"{value} ({100 * found.low:.1f} to {100 * found.high:.1f})"
