"""Shows and writes an audit: `audit.json`, `audit.parquet`, tables in the terminal, and `clean/`, a
dataset without the questions that failed, in the dataset's own layout.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mustsee.audit.audit import FAILS, Audit, list_worst
from mustsee.audit.battery import ConditionResult, doubtful_sentences
from mustsee.audit.guessers import ABOUT, SHORT
from mustsee.errors import MustseeError
from mustsee.evaluate.answers import Answer, answers
from mustsee.evaluate.score_show import new_table, percent
from mustsee.files.folders import write_json
from mustsee.files.parquet import read_parquet, write_parquet
from mustsee.layouts import FileFault, QuestionFile, ours, table, tempcompass
from mustsee.layouts.card import Card, CardCounts, card_text
from mustsee.layouts.columns import TableColumns
from mustsee.papers import papers
from mustsee.records import UNTESTED, Question, Video, group_pairs, untested_note
from mustsee.run.report import bars, environment
from mustsee.run.tables import Tables
from mustsee.stats import Difference, Estimate
from mustsee.verify.conditions.seen import spread, video_span

if TYPE_CHECKING:
    from rich.table import Table

NOTE = "Questions that failed an audit were left out (`python -m ray_jobs.audit`)."
MAX_WORST = 12  # questions on the page
MAX_FINDINGS = 20  # findings shown in the terminal
# Audited questions below which shortcuts and luck look alike: 30 coins show 31 to 69 % heads.
MIN_AUDITED = 30


def write(folder: Path, audited: Audit, about: Mapping[str, Any], seed: int = 0) -> None:
    """Write `audit.json` and `audit.parquet` (one row per question) into `folder`."""
    import pyarrow as pa

    worst_rows = list(map(asdict, list_worst(audited, MAX_WORST, seed)))
    sentences = {
        "counted": count_sentence(audited),
        "rules": describe_rules(audited),
        "unmeasured": unmeasured_sentences(audited),
    }
    record = {**about, **audited.plain(), "said": sentences, "worst": worst_rows}
    write_json(folder / "audit.json", record)
    names = pa.list_(pa.string())
    schema = pa.schema(
        {
            "question_id": pa.string(), "score": pa.float64(), "shortcuts": names,
            "guessers": names, "fails": names,
        }.items()
    )  # fmt: skip
    table = pa.Table.from_pylist(list(map(asdict, audited.items)), schema=schema)
    write_parquet(table, folder / "audit.parquet")


def points_text(difference: Difference | None) -> str:
    """Return a difference in percentage points: "+12.1 (8.0 to 16.2)"; "-" for None."""
    if difference is None:
        return "-"
    low, high = difference.low, difference.high
    interval = "" if low is None else f" ({100 * low:.1f} to {100 * (high or 0):.1f})"
    return f"{100 * difference.value:+.1f}{interval}"


def battery_table(results: Sequence[ConditionResult], title: str = "guesses, % right") -> Table:
    """Return the table of guessers and conditions. Those above chance that should not be are marked
    "shortcut".
    """
    heads = ("", "n", "right (95 %)", "chance", "known, %", "p (Holm)", "")
    table = new_table(title, heads)
    kinds = dict.fromkeys((t.kind, t.answerer) for t in results)
    for kind, answerer in kinds:
        if answerer:
            table.add_row(answerer, style="bold")
        for t in (t for t in results if (t.kind, t.answerer) == (kind, answerer)):
            table.add_row(
                SHORT.get(t.name, t.name.replace("_", " ")), str(t.right.n), percent(t.right),
                f"{100 * t.chance:.1f}" if t.chance else "-", f"{100 * t.known.value:+.1f}",
                t.over.p_text if t.chance else "-", "shortcut" if t.alarm else "",
            )  # fmt: skip
        table.add_section()
    return table


def findings_table(faults: Sequence[FileFault]) -> Table:
    """Return the table of findings in the file. Questions with a broken one are not in `clean/`."""
    from rich.text import Text

    heads = ("where", "what", "value", "question")
    table = new_table(f"findings in the file: {len(faults)}", heads, heads, overflow="fold")
    several_files = len({f.file for f in faults}) > 1
    for each in faults[:MAX_FINDINGS]:
        where = f"{each.file}, {each.place}" if several_files else each.place
        what = f"{each.what} (broken)" if each.broken else each.what
        table.add_row(*map(Text, (where, what, each.value, each.question_id)))
    if len(faults) > MAX_FINDINGS:
        table.add_row("...", f"{len(faults) - MAX_FINDINGS} more: see audit.json")
    return table


def count_sentence(audited: Audit) -> str:
    """Return how many questions were audited, why not all, and whether they are too few."""
    others = ", ".join(f"{n} {why}" for why, n in audited.left_out.items())
    videos = "1 video" if audited.videos == 1 else f"{audited.videos} videos"
    text = f"{audited.questions} of {audited.all} questions audited, on {videos}"
    text += f" (not: {others})" if others else ""
    if audited.questions < MIN_AUDITED:
        text += f". {audited.questions} questions: too few to distinguish a shortcut from luck."
    return text


def describe_rules(audited: Audit) -> str:
    """Return a note on answerers that are rules; empty if all are language models."""
    answerers = group_pairs((run.condition, run.answerer) for run in audited.asked)
    if not answerers and audited.unmeasured:
        return f"{UNTESTED} None of its replies could be used."
    return untested_note(answerers) if answerers else f"{UNTESTED} Only the guessers guessed."


def unmeasured_sentences(audited: Audit) -> list[str]:
    """Return a sentence for each condition that was not measured, or hardly."""
    return [each.sentence for each in audited.unmeasured] + doubtful_sentences(audited.battery)


def drop_reasons_table(audited: Audit) -> Table:
    """Return the table of reasons why questions are not in `clean/`."""
    title = f"clean/: {audited.kept_count} of {audited.all} questions"
    table = new_table(title, ("left out", "questions", "because"), ("left out", "because"))
    for name, n in audited.fails.items():
        if n:
            table.add_row(name, str(n), FAILS[name])
    if audited.lucky:
        table.add_row("(lucky guesses)", str(audited.lucky), "kept: the guess is at chance there")
    return table


def figures_table(audited: Audit) -> Table:
    """Return the table of figures, one column for each answerer."""
    table = new_table("figures", ("",))
    for one in audited.figures:
        table.add_column(one.answerer, justify="right", overflow="fold", max_width=34)
    if not audited.figures:
        table.add_column("", justify="right")

    def row(name: str, values: Sequence[str]) -> None:
        if any(v != "-" for v in values):
            table.add_row(name, *values)

    figures = audited.figures
    row("shortcut ratio", [ratio_text(f.shortcuts.ratio) for f in figures])
    row("  before the correction, %", [f"{100 * f.shortcuts.raw:.1f}" for f in figures])
    for label, key in (
        ("blind gap, points", "blind_gap"), ("visual gain, points", "visual_gain"),
        ("temporal gain, points", "temporal_gain"), ("evidence needed, points", "needed"),
    ):  # fmt: skip
        row(label, [points_text(getattr(f, key)) for f in figures])
    row("clue recovery rate, %", [percent(f.recovery) for f in figures])
    row("fewest frames, median", [
        "-" if f.fewest is None or f.fewest.median is None else f"{f.fewest.median:g}"
        for f in figures
    ])  # fmt: skip
    columns = max(1, len(figures))
    within = sum(p.video for p in audited.duplicates)
    for name, value in (
        ("duplicates within, across videos", f"{within}, {len(audited.duplicates) - within}"),
        (
            "in other benchmarks: questions, videos",
            f"{len(audited.overlap)}, {len(audited.shared_videos)}",
        ),
        ("keys in doubt", str(len(audited.suspects)) if audited.keys_tested else "-"),
        ("guessers that beat chance", str(sum(t.kind == "guesser" for t in audited.alarms))),
    ):
        row(name, [value, *[""] * (columns - 1)])
    return table


def ratio_text(estimate: Estimate | None) -> str:
    """Return a ratio: "4.7 % (2.0 to 7.4)"; "none measured (-33.4 to 14.4)" for 0 or less."""
    if estimate is None:
        return "-"
    value = f"{100 * estimate.value:.1f} %" if estimate.value > 0 else "none measured"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} ({100 * estimate.low:.1f} to {100 * estimate.high:.1f})"


def write_clean(
    folder: Path,
    reading: QuestionFile,
    audited: Audit,
    source: Path,
    columns: TableColumns | None = None,
) -> None:
    """Write the questions that passed into `folder`, and those that could not be audited
    (open-ended, or without a known answer) unless they are broken. Questions from a plain table
    keep all its columns.
    """
    failed = {i.question_id: i.fails for i in audited.items if i.fails}
    failed |= dict.fromkeys(audited.unusable, ("broken",))
    questions = [
        replace(q, drop=f"audit: {', '.join(failed[q.question_id])}")
        if q.question_id in failed
        else q
        for q in reading.questions
    ]
    if reading.layout == "ours" and source.is_dir() and not ours.table_of(source).exists():
        _write_dataset(questions, folder, source)
    elif reading.layout == "table":
        table.write(questions, folder, source=source, given=columns)
    elif reading.layout == "tempcompass":
        tempcompass.write(questions, folder, source=source)
    elif reading.layout == "ours":
        ours.write(questions, folder, reading.videos)
    else:
        paper = papers()[reading.layout]
        if write := paper.load_clean():
            write(questions, folder, reading.videos, source)
        else:
            paper.load_layout().write(questions, folder, reading.videos)


def _write_dataset(questions: Sequence[Question], folder: Path, source: Path) -> None:
    """Write a Hugging Face folder with the same splits and a new card.

    The task file of an lmms-eval folder names its data by a full path, so it is not copied:
    `ray_jobs.export layout=lmms_eval` makes one.
    """
    import pyarrow as pa

    kept = {q.question_id: q for q in questions if q.drop is None}
    tally = CardCounts()
    for question in questions:
        tally.count_made(question)
    for file in sorted(source.rglob("*.parquet")):
        rows = read_parquet(file)
        chosen = rows.filter(pa.array(n in kept for n in rows["question_id"].to_pylist()))
        (folder / "data").mkdir(parents=True, exist_ok=True)
        write_parquet(chosen, folder / "data" / file.name)
        tally.by_split[file.stem] = 0
        for name in chosen["question_id"].to_pylist():
            tally.keep(kept[name], file.stem)
    text = card_text(Card(notes=NOTE), tally, [], files="data/{}.parquet")
    (folder / "README.md").write_text(text, encoding="utf-8")


FRAMES_PER_QUESTION = 4
FRAME_PIXELS = 240  # pixels of the longer side
GAINS = ("blind_gap", "visual_gain", "temporal_gain", "needed", "recovery")
MAX_LISTED = 40  # pairs, doubtful keys and findings that are listed, at most


@dataclass(frozen=True, kw_only=True)
class WorstQuestion:
    """One of the worst questions, with its row of `audit.json` and frames as data URLs."""

    item: Mapping[str, Any]
    question: Question
    frames: Sequence[tuple[float, str]]
    replies: Sequence[Answer]


def write_page(folder: Path, record: Mapping[str, Any], _: object = None) -> Path:
    """Write the page of the audit in `folder`; return its path. `record`: the run's `run.json`."""
    audit = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    page = environment().get_template("audit.html.j2").render(
        record=record,
        audit=audit,
        name="/".join(Path(audit["dataset"]).parts[-2:]),
        few=MIN_AUDITED,
        reasons=[(name, n, FAILS[name]) for name, n in audit["fails"].items() if n],
        findings=audit["findings"][:MAX_LISTED],
        gains=any(f[key] for f in audit["figures"] for key in GAINS),
        about=ABOUT,
        short=SHORT,
        guessers=sum(t["alarm"] and t["kind"] == "guesser" for t in audit["battery"]),
        chart=list(_chart(audit["battery"])),
        fewest=list(_fewest(audit["figures"])),
        places=[t for t in audit["battery"] if t["place"]],
        worst=list(_worst(folder, audit["worst"])),
        suspects=audit["suspects"][:MAX_LISTED],
        most=MAX_LISTED,
        config=json.dumps(record["config"], indent=2, ensure_ascii=False),
    )  # fmt: skip
    path = folder / "report" / "index.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def _chart(battery: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Yield the bars of the guessers, then of each answerer, each with a heading."""
    for kind, answerer in dict.fromkeys((t["kind"], t["answerer"]) for t in battery):
        results = [t for t in battery if (t["kind"], t["answerer"]) == (kind, answerer)]
        yield answerer or "guessers without a model", results


def _fewest(figures: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Any]]]:
    for one in figures:
        fewest = one["fewest"]
        if fewest is not None:
            names = {n: "blind" if n == "0" else f"{n} frames" for n in fewest["counts"]}
            names |= {"1": "1 frame"} if "1" in names else {}
            counts = {names[n]: c for n, c in fewest["counts"].items()}
            yield one["answerer"], bars({**counts, "never": fewest["never"]})


def _worst(folder: Path, items: Sequence[Mapping[str, Any]]) -> Iterator[WorstQuestion]:
    tables = Tables(folder)
    wanted = {item["question_id"] for item in items}
    questions = {q.question_id: q for q in tables.questions() if q.question_id in wanted}
    video_ids = {q.video_id for q in questions.values()}
    columns = ("start", "end", "duration", "problem")
    videos = {v.video_id: v for v in tables.videos(*columns) if v.video_id in video_ids}
    for item in items:
        question = questions[item["question_id"]]
        yield WorstQuestion(
            item=item,
            question=question,
            frames=_frames(videos[question.video_id], question),
            replies=answers(question),
        )


def _frames(video: Video, question: Question) -> list[tuple[float, str]]:
    """Return times and data URLs of frames of a question's evidence, or else of the whole video;
    an empty list without a video.
    """
    if not video.uri or video.duration is None or video.problem is not None:
        return []
    from mustsee.media.video import frames_at

    times = spread(question.evidence or (video_span(video),), FRAMES_PER_QUESTION)
    try:
        jpegs = [frame.jpeg(FRAME_PIXELS, 75) for frame in frames_at(video.uri, times)]
    except MustseeError:  # the video was moved or deleted since the audit
        return []
    return [
        (time, "data:image/jpeg;base64," + base64.b64encode(jpeg).decode())
        for time, jpeg in zip(sorted(times), jpegs, strict=True)
    ]
