"""Shows and writes results: a terminal table, `results.json`, `replies.parquet`, charts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.text import Text

from mustsee.evaluate.answers import Answer, answers
from mustsee.evaluate.drawing import new_axes, save_chart
from mustsee.evaluate.point_scores import PointScores
from mustsee.evaluate.rubric import SCALES
from mustsee.evaluate.score import EvaluationResults, ScoreGroup
from mustsee.evaluate.span_scores import EVIDENCE_IOU, EvidenceScores, SpanScores
from mustsee.parquet import write_parquet
from mustsee.records import Question
from mustsee.stats import Difference, Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

MAX_NAME_CHARS = 44  # room for the models' names, together, beside the other columns of a terminal


def percent(estimate: Estimate | Difference | None) -> str:
    """Return a value in percent with its interval: "61.2 (58.0-64.3)"; "-" for None."""
    if estimate is None:
        return "-"
    low, high = estimate.low, estimate.high
    interval = "" if low is None else f" ({100 * low:.1f}-{100 * (high or 0):.1f})"
    return f"{100 * estimate.value:.1f}{interval}"


def labels(results: Sequence[EvaluationResults]) -> dict[str, str]:
    """Return the column head of each model, by its name: the name if all names fit, else a number,
    which `legend` explains.
    """
    names = dict.fromkeys(r.model for r in results)
    if sum(len(name) + 2 for name in names) <= MAX_NAME_CHARS:
        return {name: name for name in names}
    return {name: f"model {number}" for number, name in enumerate(names, 1)}


def legend(heads: Mapping[str, str]) -> list[Text]:
    """Return a line for each model that is numbered in the tables."""
    return [Text(f"{label}: {name}") for name, label in heads.items() if label != name]


def share(value: float | None) -> str:
    """Return a share in percent: "20.0"; an empty text for None."""
    return "" if value is None else f"{100 * value:.1f}"


def table(results: Sequence[EvaluationResults], heads: Mapping[str, str] | None = None) -> Table:
    """Return the table of accuracies in percent with 95 % intervals, and of guessing.

    Rows are types, splits and averages; columns are models. `heads`: column heads (`labels`).
    """
    from rich.table import Table

    rows = Table(title="accuracy, % (95 % interval)", title_justify="left", box=None)
    rows.add_column("")
    rows.add_column("n", justify="right")
    rows.add_column("chance", justify="right")
    heads = heads or labels(results)
    for one in results:
        rows.add_column(Text(heads[one.model]), justify="right", overflow="fold")
    types = list(dict.fromkeys(t for r in results for t in r.types))
    splits = list(dict.fromkeys(s for r in results for s in r.splits))
    for key, names in (("types", types), ("splits", splits)):
        for name in names:
            groups: list[ScoreGroup | None] = [getattr(r, key).get(name) for r in results]
            count = max((g.asked for g in groups if g is not None), default=0)
            cells = [percent(g.accuracy) if g is not None else "-" for g in groups]
            chance = share(_first(g.chance for g in groups if g is not None))
            rows.add_row(escape(name), str(count), chance, *cells)
        rows.add_section()
    count = str(max((r.asked for r in results), default=0))
    chance = share(_first(r.chance for r in results))
    rows.add_row("all questions", count, chance, *(percent(r.weighted) for r in results))
    chance = share(_first(r.macro_chance for r in results))
    rows.add_row("mean of the types", "", chance, *(percent(r.macro) for r in results))
    for row in rows.rows[-2:]:
        row.style = "bold"
    for name in dict.fromkeys(n for r in results for n in r.named):
        chance = share(_first(r.named_chance.get(name) for r in results))
        rows.add_row(name, "", chance, *(share(r.named.get(name)) or "-" for r in results))
    for name in dict.fromkeys(n for r in results for n in r.released):
        cells = [share(r.released.get(name)) or "-" for r in results]
        rows.add_row(f"by {name}'s released scorer", "", "", *cells)
    rows.add_row("unparsed", "", "", *(f"{100 * r.unparsed:.1f}" for r in results))
    rows.add_row("failed calls", "", "", *(str(r.failed - r.not_in_file) for r in results))
    if any(r.not_in_file for r in results):
        rows.add_row("not in the file", "", "", *(str(r.not_in_file) for r in results))
    if any(r.no_key for r in results):
        rows.add_row("no public answer", "", "", *(str(r.no_key) for r in results))
    if any(r.choice for r in results):
        rows.add_row("by log-probability", "", "", *(percent(r.choice) for r in results))
    _add_siblings(rows, results)
    _add_open_ended(rows, results)
    return rows


def _first(values: Iterable[float | None]) -> float | None:
    return next((value for value in values if value is not None), None)


def _add_siblings(rows: Table, results: Sequence[EvaluationResults]) -> None:
    """Add the rows of sets, pairs, twins and groups of siblings."""
    for label, name, key, guess in (
        ("sets: all right", "sets", "whole", "whole_chance"),
        ("  by a random matching", "sets", "", "whole_matching"),
        ("  share right, squared", "sets", "squared", "squared_chance"),
        ("  by a random matching", "sets", "", "squared_matching"),
        ("  their questions one by one", "sets", "single", "single_chance"),
        ("pairs: both right", "pairs", "whole", "whole_chance"),
        ("  their questions one by one", "pairs", "single", "single_chance"),
        ("twins: by choice", "twins", "choice", "chance"),
        ("  in words, judged right", "twins", "written", ""),
        ("  gap", "twins", "gap", ""),
        ("groups: all right", "groups", "whole", "whole_chance"),
        ("  their questions one by one", "groups", "single", "single_chance"),
    ):
        scores = [getattr(r, name) for r in results]
        chance = share(_first(getattr(s, guess, None) for s in scores if s is not None))
        if not key:
            if chance:
                rows.add_row(label, "", chance, *("" for _ in scores))
            continue
        estimates = [None if score is None else getattr(score, key) for score in scores]
        if any(estimates):
            count = "" if key == "gap" else str(max(e.n for e in estimates if e is not None))
            rows.add_row(label, count, chance, *map(percent, estimates))


def _add_open_ended(rows: Table, results: Sequence[EvaluationResults]) -> None:
    """Add the rows of metrics of replies to multiple choice, and of open-ended answers: the
    judge's, the metrics', and MLVU's rubrics.
    """
    for name in dict.fromkeys(n for r in results for n in r.choice_metrics):
        cells = [percent(r.choice_metrics.get(name)) for r in results]
        rows.add_row(f"replies: {escape(name)}", "", "", *cells)
    scores = [r.written for r in results]
    if any(scores):
        for label, key in (
            ("written: judged right", "judged"),
            ("  corrected for the judge", "corrected"),
        ):
            rows.add_row(label, "", "", *(percent(getattr(s, key)) if s else "-" for s in scores))
        for name in dict.fromkeys(n for s in scores if s for n in s.metrics):
            cells = [percent(s.metrics.get(name)) if s else "-" for s in scores]
            rows.add_row(f"  {escape(name)}", "", "", *cells)
    _add_points(rows, [r.by_points for r in results])
    _add_spans(rows, "when: ", [r.when for r in results])
    _add_evidence(rows, [r.with_evidence for r in results])
    for name, scales in SCALES.items():
        tasks = [r.rubric.tasks.get(name) if r.rubric else None for r in results]
        if not any(tasks):
            continue
        count = max(t.n for t in tasks if t is not None)
        cells = ["-" if t is None else f"{t.value:.2f}" for t in tasks]
        rows.add_row(f"{name} (2-10)", str(count), "", *cells)
        for scale in scales:
            means = [r.rubric.scales.get(scale) if r.rubric else None for r in results]
            rows.add_row(
                f"  {scale} (1-5)", "", "", *("-" if m is None else f"{m:.2f}" for m in means)
            )
    averages = [r.rubric.g_avg if r.rubric else None for r in results]
    if any(a is not None for a in averages):
        rows.add_row("G-Avg", "", "", *("-" if a is None else f"{a:.2f}" for a in averages))
    if any(r.rubric for r in results):
        rows.add_row("graded by", "", "", *(r.rubric.grader if r.rubric else "-" for r in results))


def _add_points(rows: Table, scores: Sequence[PointScores | None]) -> None:
    given = [score for score in scores if score is not None]
    if not given:
        return
    count = max((s.score.n for s in given if s.score is not None), default=0)
    rows.add_row("open: score by points", str(count), "", *(percent(s and s.score) for s in scores))
    for skill in dict.fromkeys(name for s in given for name in s.skills):
        cells = [percent(s.skills.get(skill)) if s else "-" for s in scores]
        rows.add_row(f"  {escape(skill)}", "", "", *cells)
    for label, key in (
        ("  all points stated", "all_points"),
        ("  by a reader without the video", "blind"),
        ("  by a viewer", "seen"),
    ):
        values = [getattr(s, key) if s else None for s in scores]
        if any(value is not None for value in values):
            rows.add_row(label, "", "", *(share(value) or "-" for value in values))
    if any(s.of_range for s in given):
        cells = [percent(s.of_range) if s else "-" for s in scores]
        rows.add_row("  (model - blind) / (viewer - blind)", "", "", *cells)
    rows.add_row("  points graded by", "", "", *(escape(s.grader) if s else "-" for s in scores))


def _add_spans(rows: Table, label: str, scores: Sequence[SpanScores | None]) -> None:
    """Add the rows of spans that models name."""
    given = [score for score in scores if score is not None]
    if not given:
        return
    count = str(max(s.asked - s.failed for s in given))
    cells = [percent(s and s.mean_iou) for s in scores]
    rows.add_row(f"{label}mean IoU of spans", count, "", *cells)
    for name in dict.fromkeys(name for s in given for name in s.recall):
        recalls = [percent(s.recall.get(name) if s else None) for s in scores]
        rows.add_row(f"  R@{name}", "", "", *recalls)
    unread = [f"{s.unread} of {s.replies}" if s else "-" for s in scores]
    rows.add_row("  unreadable replies", "", "", *unread)
    if any(s.failed for s in given):
        rows.add_row("  without a reply", "", "", *(str(s.failed) if s else "-" for s in scores))


def _add_evidence(rows: Table, scores: Sequence[EvidenceScores | None]) -> None:
    """Add the rows of answers that name their evidence."""
    given = [score for score in scores if score is not None]
    if not given:
        return
    count = str(max(s.right.n for s in given))
    rows.add_row("with evidence: right", count, "", *(percent(s and s.right) for s in scores))
    cells = [percent(s and s.with_evidence) for s in scores]
    rows.add_row(f"  right, and IoU of {EVIDENCE_IOU:g} or more", "", "", *cells)
    _add_spans(rows, "  evidence: ", [s and s.spans for s in scores])


def describe_folder(folder: Path) -> str:
    """Return a line that lists the files that `write` and `draw` left in a folder."""
    import pyarrow.parquet as pq

    replies = pq.read_metadata(folder / "replies.parquet").num_rows
    charts = len(list(folder.glob("pictures/*.png")))
    files = ["results.json (the scores)", f"replies.parquet ({replies} replies)"]
    files += [f"pictures/ ({charts})"] if charts else []
    return f"made: {', '.join(files)}"


def headline(results: Sequence[EvaluationResults]) -> list[str]:
    """Return one line with the scores of each model."""
    lines: list[str] = []
    for one in results:
        scores: list[str] = []
        if one.weighted is not None:
            said = [f"chance {share(one.chance)} %"] if one.chance is not None else []
            said += ["one video: no interval"] if one.weighted.low is None else []
            guess = f" ({'; '.join(said)})" if said else ""
            scores.append(f"{percent(one.weighted)} % of {one.weighted.n} questions right{guess}")
        if one.unparsed:
            scores.append(f"{100 * one.unparsed:.1f} % of the replies name no option")
        scores += [f"{name} {100 * value:.1f}" for name, value in one.named.items()]
        if one.written is not None and one.written.judged is not None:
            judged = one.written.judged
            scores.append(f"{percent(judged)} % of {judged.n} written answers judged right")
        if one.by_points is not None:
            scores += _describe_points(one.by_points)
        if one.when is not None:
            scores.append(_describe_when(one.when))
        if one.with_evidence is not None:
            both = one.with_evidence.with_evidence
            scores.append(f"{percent(both)} % of {both.n} right with their evidence")
        for together, text in ((one.sets, "all right in {} % of {} sets"),
                               (one.pairs, "both right in {} % of {} pairs")):  # fmt: skip
            if together is not None:
                guess = f" (chance {share(together.whole_chance)} %)"
                whole = together.whole
                scores.append(text.format(percent(whole), whole.n) + guess)
        if one.twins is not None:
            both = one.twins
            scores.append(
                f"{both.gap.n} of them with a twin: {percent(both.choice)} % by choice, "
                f"{percent(both.written)} % in words, gap {percent(both.gap)} points"
            )
        if one.groups is not None:
            scores.append(
                f"all right in {percent(one.groups.whole)} % of {one.groups.whole.n} groups"
            )
        if one.rubric is not None:
            tasks = one.rubric.tasks.items()
            scores += [f"{name} {task.value:.2f} of 10" for name, task in tasks]
        if one.rubric is not None and one.rubric.g_avg is not None:
            scores.append(f"G-Avg {one.rubric.g_avg:.2f}")
        if one.rubric is not None and one.rubric.grader:
            scores.append(f"graded by {one.rubric.grader}")
        lines.append(f"score: {one.model}: {'; '.join(scores) or 'nothing could be scored'}")
    return lines


def _describe_when(when: SpanScores) -> str:
    if when.mean_iou is None:
        return f"{when.asked} questions that ask when have no reply"
    recalls = ", ".join(f"R@{name} {share(e.value)}" for name, e in when.recall.items())
    unread = f"; {when.unread} of {when.replies} replies unreadable" if when.unread else ""
    n = when.mean_iou.n
    return f"when: mIoU {percent(when.mean_iou)} % of {n} questions, {recalls}{unread}"


def _describe_points(by: PointScores) -> list[str]:
    if by.score is None:
        return [f"{by.failed} answers could not be graded by points"]
    said = f"{percent(by.score)} % by points of {by.score.n} open questions"
    if by.of_range is not None:
        said += f", {percent(by.of_range)} % of the way from a blind reader to a viewer"
    failed = f"; {by.failed} not graded" if by.failed else ""
    missed = f"{by.missed} of {by.points} points missed, {by.contradicted} contradicted"
    return [said, f"{missed}{failed}", f"graded by {by.grader}"]


def for_page(results: Sequence[EvaluationResults]) -> dict[str, Any]:
    """Return the scores for the report: a line for each model, and the table as texts."""
    scores = table(results, {one.model: one.model for one in results})
    cells = [
        [str(Text.from_markup(str(cell))) for cell in column.cells] for column in scores.columns
    ]
    return {
        "lines": headline(results),
        "head": [str(column.header) for column in scores.columns],
        "rows": [list(row) for row in zip(*cells, strict=True)],
    }


def write(
    folder: Path,
    results: Sequence[EvaluationResults],
    questions: Sequence[Question],
    *,
    about: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write `results.json` and `replies.parquet` into `folder`; return the content of the former.
    `about`: further keys of `results.json` (frames, findings).
    """
    record = {
        **(about or {}),
        "results": [r.plain() for r in results],
    }
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    write_replies(questions, folder / "replies.parquet")
    return json.loads(text)


def draw(folder: Path, results: Sequence[EvaluationResults]) -> list[str]:
    """Draw the results into `folder`/pictures; return a line for each chart that failed."""
    charts = folder / "pictures"
    failed: list[str | None] = []
    for number, one in enumerate(results):
        if one.types:
            name = re.sub(r"\W+", "-", one.model).strip("-")[:60]
            failed.append(save_chart(charts / f"types-{number}-{name}.png", partial(bars, one)))
    return [line for line in failed if line is not None]


def write_replies(questions: Sequence[Question], path: Path) -> None:
    """Write one row per reply: its raw text, the rule that parsed it, the option, and what was sent
    for it.
    """
    import pyarrow as pa

    rows = [
        {
            "question_id": q.question_id, "video_id": q.video_id, "model": a.model,
            "rotation": a.rotation, "reply": a.reply, "letter": a.letter, "rule": a.rule,
            "correct": a.correct, "choice": a.choice, "failed": a.failed, "cut": a.cut,
            **_sent_columns(a),
        }
        for q in questions
        for a in answers(q)
    ]  # fmt: skip
    text = pa.string()
    schema = pa.schema(
        {
            "question_id": text, "video_id": text, "model": text, "rotation": pa.int64(),
            "reply": text, "letter": text, "rule": text, "correct": pa.bool_(), "choice": text,
            "failed": text, "cut": pa.bool_(), "prompt": text, "text_hash": text,
            "tokens_in": pa.int64(), "tokens_out": pa.int64(),
            "frame_times": pa.list_(pa.float64()), "frame_hashes": pa.list_(text), "decoder": text,
        }.items()
    )  # fmt: skip
    write_parquet(pa.Table.from_pylist(rows, schema=schema), path)


def _sent_columns(answer: Answer) -> dict[str, Any]:
    """Return what was sent for a reply; null where it is not known, as of replies from a file."""
    sent: Mapping[str, Any] = answer.sent
    frames, tokens = sent.get("frames", {}), sent.get("tokens", (None, None))
    return {
        "prompt": answer.prompt, "text_hash": sent.get("text"),
        "tokens_in": tokens[0], "tokens_out": tokens[1], "frame_times": frames.get("times"),
        "frame_hashes": frames.get("hashes"), "decoder": frames.get("decoder"),
    }  # fmt: skip


def bars(one: EvaluationResults) -> Figure:
    """Draw accuracy per type with 95 % intervals and n, and lines at the mean and at chance."""
    groups = [(n, g) for n, g in one.types.items() if g.accuracy is not None]
    figure, axes = new_axes(8, 1.2 + 0.42 * len(groups))
    for place, (_, group) in enumerate(groups):
        accuracy = group.accuracy
        assert accuracy is not None
        axes.barh(place, 100 * accuracy.value, color="#4878a8", height=0.62)
        if accuracy.low is not None and accuracy.high is not None:
            interval = [100 * accuracy.low, 100 * accuracy.high]
            axes.plot(interval, [place, place], color="#222", lw=1.4)
    axes.set_yticks(range(len(groups)), [f"{n}  (n={g.asked})" for n, g in groups])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("accuracy, %; the line is the 95 % interval")
    if one.weighted is not None:
        axes.axvline(100 * one.weighted.value, color="#b04a3a", lw=1, ls="--")
    if one.chance is not None:
        axes.axvline(100 * one.chance, color="#888", lw=1, ls=":")
    axes.set_title(
        f"{one.model}\nall questions: {percent(one.weighted)} %, chance {share(one.chance)} %",
        fontsize=10,
        loc="left",
    )
    return figure
