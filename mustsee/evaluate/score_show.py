"""Shows and writes results: a terminal table, `results.json`, `replies.parquet`, charts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.text import Text

from mustsee.evaluate.answers import Answer, answers
from mustsee.evaluate.drawing import new_axes, save_chart
from mustsee.evaluate.open_scores import SCALES, PointScores
from mustsee.evaluate.score import EvaluationResults
from mustsee.evaluate.span_scores import EVIDENCE_IOU, SpanScores
from mustsee.files.folders import write_json
from mustsee.files.parquet import write_parquet
from mustsee.records import Question
from mustsee.stats import Difference, Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

ALL, MACRO = "all questions", "mean of the types"
HEAD = ("", "n", "chance")  # heads of the columns before those of the models
MAX_NAME_CHARS = 44  # room for the models' names, together, beside the other columns of a terminal


def new_table(
    title: str | Text, heads: Sequence[str], left: Collection[str] = ("",), **options: Any
) -> Table:
    """Return an empty table for a terminal. The columns with the heads `left` hold texts, the
    others numbers, at the right. `options`: of each column.
    """
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None)
    for head in heads:
        table.add_column(head, justify="left" if head in left else "right", **options)
    return table


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


@dataclass(frozen=True)
class ScoreTableRow:
    """A row of the table of scores.

    `values`: of each model an estimate, a share, a count or a text; null where it has none. `n`:
    questions, at most. `chance`: the same of guessing.
    """

    label: str
    values: Sequence[Estimate | Difference | float | str | None]
    n: int | None = None
    chance: float | None = None

    @property
    def cells(self) -> list[str]:
        """The row as texts: label, n, chance, and the value of each model, in percent."""
        count = "" if self.n is None else str(self.n)
        return [self.label, count, share(self.chance), *map(_text, self.values)]


def _text(value: Estimate | Difference | float | str | None) -> str:
    if value is None or isinstance(value, (Estimate, Difference)):
        return percent(value)
    return share(value) if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class _Scores:
    """The results of several models, by paths of attributes and keys."""

    results: Sequence[EvaluationResults]

    def all_values(self, *path: str) -> list[Any]:
        """Return the value of each model; None where a part of the path is missing."""

        def part(one: Any, name: str) -> Any:
            return one.get(name) if isinstance(one, Mapping) else getattr(one, name)

        values: list[Any] = list(self.results)
        for name in path:
            values = [None if value is None else part(value, name) for value in values]
        return values

    def values(self, *path: str) -> list[Any]:
        """Return the values of the models that have one."""
        return [value for value in self.all_values(*path) if value is not None]

    def row(
        self,
        label: str,
        *path: str,
        chance: Sequence[str] = (),
        n: int | None = None,
        counts: bool = False,
        form: str = "",
    ) -> ScoreTableRow:
        """Return the row of a path. `chance`: the path of the same of guessing. `counts`: whether
        `n` is that of the estimates. `form`: of a text, with a place for the value.
        """
        values = self.all_values(*path)
        if counts:
            n = max((value.n for value in values if value is not None), default=0)
        if form:
            values = [None if value is None else form.format(value) for value in values]
        chances = self.values(*chance) if chance else []
        return ScoreTableRow(label, values, n, next(iter(chances), None))

    def rows(self, label: str, *path: str) -> list[ScoreTableRow]:
        """Return a row for each key that any model has. `label`: with a place for the key."""
        names = dict.fromkeys(name for of in self.values(*path) for name in of)
        return [self.row(label.format(name), *path, name) for name in names]


def score_rows(results: Sequence[EvaluationResults]) -> list[ScoreTableRow]:
    """Return the table of an evaluation: types, splits and averages, with what guessing gives, what
    could not be scored, and the further scores that any model has.
    """
    scores, rows = _Scores(results), list[ScoreTableRow]()
    for key in ("types", "splits"):
        for name in dict.fromkeys(name for groups in scores.all_values(key) for name in groups):
            asked, chance = max(scores.values(key, name, "asked")), (key, name, "chance")
            rows.append(scores.row(name, key, name, "accuracy", n=asked, chance=chance))
    asked = max(scores.all_values("asked"), default=0)
    rows.append(scores.row(ALL, "weighted", n=asked, chance=("chance",)))
    rows.append(scores.row(MACRO, "macro", chance=("macro_chance",)))
    for name in dict.fromkeys(name for named in scores.all_values("named") for name in named):
        rows.append(scores.row(name, "named", name, chance=("named_chance", name)))
    rows += scores.rows("by {}'s released scorer", "released")
    rows.append(scores.row("unparsed", "unparsed"))
    rows.append(ScoreTableRow("failed calls", [r.failed - r.not_in_file for r in results]))
    for label, key in (("not in the file", "not_in_file"), ("no public answer", "no_key"),
                       ("by log-probability", "choice")):  # fmt: skip
        rows += [scores.row(label, key)] if any(scores.all_values(key)) else []
    return [*rows, *_sibling_rows(scores), *_open_ended_rows(scores)]


def _sibling_rows(scores: _Scores) -> Iterator[ScoreTableRow]:
    """Yield the rows of sets, pairs, twins and groups of siblings."""
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
        if not key and (chances := scores.values(name, guess)):
            yield ScoreTableRow(label, ["" for _ in scores.results], chance=chances[0])
        elif key and scores.values(name):
            chance = (name, guess) if guess else ()
            yield scores.row(label, name, key, chance=chance, counts=key != "gap")


def _open_ended_rows(scores: _Scores) -> Iterator[ScoreTableRow]:
    """Yield the rows of metrics of replies to multiple choice, and of open-ended answers: the
    judge's, the metrics', those by points, of spans, and of MLVU's rubrics.
    """
    yield from scores.rows("replies: {}", "choice_metrics")
    if scores.values("written"):
        yield scores.row("written: judged right", "written", "judged")
        yield scores.row("  corrected for the judge", "written", "corrected")
        yield from scores.rows("  {}", "written", "metrics")
    if scores.values("by_points"):
        yield scores.row("open: score by points", "by_points", "score", counts=True)
        yield from scores.rows("  {}", "by_points", "skills")
        for label, key in (
            ("  all points stated", "all_points"),
            ("  by a reader without the video", "blind"),
            ("  by a viewer", "seen"),
            ("  (model - blind) / (viewer - blind)", "of_range"),
        ):
            if scores.values("by_points", key):
                yield scores.row(label, "by_points", key)
        yield scores.row("  points graded by", "by_points", "grader")
    yield from _span_rows(scores, "when: ", "when")
    if scores.values("with_evidence"):
        yield scores.row("with evidence: right", "with_evidence", "right", counts=True)
        label = f"  right, and IoU of {EVIDENCE_IOU:g} or more"
        yield scores.row(label, "with_evidence", "with_evidence")
        yield from _span_rows(scores, "  evidence: ", "with_evidence", "spans")
    for name, scales in SCALES.items():
        if tasks := scores.values("rubric", "tasks", name):
            count = max(task.n for task in tasks)
            label, path = f"{name} (2-10)", ("rubric", "tasks", name, "value")
            yield scores.row(label, *path, form="{:.2f}", n=count)
            for scale in scales:
                yield scores.row(f"  {scale} (1-5)", "rubric", "scales", scale, form="{:.2f}")
    if scores.values("rubric", "g_avg"):
        yield scores.row("G-Avg", "rubric", "g_avg", form="{:.2f}")
    if scores.values("rubric"):
        yield scores.row("graded by", "rubric", "grader")


def _span_rows(scores: _Scores, label: str, *path: str) -> Iterator[ScoreTableRow]:
    """Yield the rows of spans that models name."""
    if given := scores.values(*path):
        count = max(spans.asked - spans.failed for spans in given)
        yield scores.row(f"{label}mean IoU of spans", *path, "mean_iou", n=count)
        yield from scores.rows("  R@{}", *path, "recall")
        yield scores.row("  unreadable replies", *path, form="{0.unread} of {0.replies}")
        if any(scores.values(*path, "failed")):
            yield scores.row("  without a reply", *path, "failed")


def table(results: Sequence[EvaluationResults], heads: Mapping[str, str] | None = None) -> Table:
    """Return the table of accuracies in percent with 95 % intervals, and of guessing.

    Rows are types, splits and averages; columns are models. `heads`: column heads (`labels`).
    """
    shown = new_table("accuracy, % (95 % interval)", HEAD)
    heads = heads or labels(results)
    for one in results:
        shown.add_column(Text(heads[one.model]), justify="right", overflow="fold")
    for row in score_rows(results):
        shown.add_row(*map(escape, row.cells), style="bold" if row.label in (ALL, MACRO) else None)
    return shown


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
    scored = [(one.model, "; ".join(_describe_scores(one))) for one in results]
    return [f"score: {model}: {text or 'nothing could be scored'}" for model, text in scored]


def _describe_scores(one: EvaluationResults) -> Iterator[str]:
    if one.weighted is not None:
        said = [f"chance {share(one.chance)} %"] if one.chance is not None else []
        said += ["one video: no interval"] if one.weighted.low is None else []
        guess = f" ({'; '.join(said)})" if said else ""
        yield f"{_of(one.weighted, 'questions right')}{guess}"
    if one.unparsed:
        yield f"{share(one.unparsed)} % of the replies name no option"
    yield from (f"{name} {share(value)}" for name, value in one.named.items())
    if one.written is not None and one.written.judged is not None:
        yield _of(one.written.judged, "written answers judged right")
    if one.by_points is not None:
        yield from _describe_points(one.by_points)
    if one.when is not None:
        yield _describe_when(one.when)
    if one.with_evidence is not None:
        yield _of(one.with_evidence.with_evidence, "right with their evidence")
    for all_right, together, name in (
        ("all right", one.sets, "sets"),
        ("both right", one.pairs, "pairs"),
    ):
        if together is not None:
            chance = share(together.whole_chance)
            yield f"{all_right} in {_of(together.whole, name)} (chance {chance} %)"
    if one.twins is not None:
        yield (
            f"{one.twins.gap.n} of them with a twin: {percent(one.twins.choice)} % by choice, "
            f"{percent(one.twins.written)} % in words, gap {percent(one.twins.gap)} points"
        )
    if one.groups is not None:
        yield f"all right in {_of(one.groups.whole, 'groups')}"
    if one.rubric is not None:
        yield from (f"{name} {task.value:.2f} of 10" for name, task in one.rubric.tasks.items())
        yield from [f"G-Avg {one.rubric.g_avg:.2f}"] if one.rubric.g_avg is not None else []
        yield from [f"graded by {one.rubric.grader}"] if one.rubric.grader else []


def _of(estimate: Estimate, what: str) -> str:
    return f"{percent(estimate)} % of {estimate.n} {what}"


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
    return {
        "lines": headline(results),
        "head": [*HEAD, *(one.model for one in results)],
        "rows": [row.cells for row in score_rows(results)],
    }


def write(
    folder: Path,
    results: Sequence[EvaluationResults],
    questions: Sequence[Question],
    *,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write `results.json` and `replies.parquet` into `folder`. `about`: further keys of the former
    (frames, findings).
    """
    write_json(folder / "results.json", {**(about or {}), "results": [r.plain() for r in results]})
    write_replies(questions, folder / "replies.parquet")


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

    text, number, flag = pa.string(), pa.int64(), pa.bool_()
    columns = {
        "question_id": text, "video_id": text, "model": text, "rotation": number, "reply": text,
        "letter": text, "rule": text, "correct": flag, "choice": text, "failed": text, "cut": flag,
        "prompt": text, "text_hash": text, "tokens_in": number, "tokens_out": number,
        "frame_times": pa.list_(pa.float64()), "frame_hashes": pa.list_(text), "decoder": text,
    }  # fmt: skip
    rows = [
        dict(zip(columns, (
            q.question_id, q.video_id, a.model, a.rotation, a.reply, a.letter, a.rule, a.correct,
            a.choice, a.failed, a.cut, a.prompt, *_sent(a),
        ), strict=True))
        for q in questions
        for a in answers(q)
    ]  # fmt: skip
    write_parquet(pa.Table.from_pylist(rows, schema=pa.schema(columns.items())), path)


def _sent(answer: Answer) -> tuple[Any, ...]:
    """Return what was sent for a reply (hash of the text, tokens in and out, times and hashes of
    frames, decoder); null where it is not known, as of replies from a file.
    """
    sent: Mapping[str, Any] = answer.sent
    frames = sent.get("frames", {})
    seen = (frames.get(name) for name in ("times", "hashes", "decoder"))
    return (sent.get("text"), *sent.get("tokens", (None, None)), *seen)


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
