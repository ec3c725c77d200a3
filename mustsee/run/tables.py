"""Reads the tables of a run, `videos.parquet` and `questions.parquet`, and counts their rows.

Callers name the columns that they need. Only these are read, one batch of rows at a time.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from mustsee import stats
from mustsee.files import schemas
from mustsee.files.parquet import open_parquet, parquet_writer, parts
from mustsee.questions.fact_funnel import (
    FactFunnel,
    FormFunnel,
    RunFunnel,
    funnel_of_video,
    sum_missing,
    sum_requests,
)
from mustsee.records import MissingQuestions, Question, RequestCount, Video
from mustsee.run.record import FilterCounts, FunnelStep, QuestionCounts
from mustsee.verify.guess.counts import GuessRule, count_guesses
from mustsee.verify.reasons import FILTERS, name_with_meaning
from mustsee.verify.sight import SAMPLED
from mustsee.verify.worth import NAME as WORTH
from mustsee.verify.worth import count_worth

T = TypeVar("T")

BATCH_ROWS = 64  # rows that are in memory at once
PROBLEMS_PER_GROUP = 1024  # rows of a row group of problems.parquet
# The error of unparseable replies (`mustsee.calls.llm`) in a verdict's detail, in text or JSON.
_UNPARSED = re.compile(
    r"prompt '(?P<prompt>[^']+)': none of \d+ replies .*?; the last one: (?P<reason>.*?)"
    r"(?=\", \"replies\": |$)"
)
_NAME = re.compile(r"'[^']*'")
VIDEO = ("video_id", "uri")
QUESTION = ("question_id", "video_id", "recipe", "question", "question_type", "skill")


@dataclass(frozen=True)
class Tables:
    """The tables of a run in `folder`; rows are in the order of their ids."""

    folder: Path

    def videos(self, *columns: str) -> Iterator[Video]:
        """Yield one record per row, without questions; with `columns`, only these and the ids are
        filled in.
        """
        return self._records(Video, "videos.parquet", columns and (*VIDEO, *columns))

    def questions(self, *columns: str) -> Iterator[Question]:
        """Yield all questions, dropped ones included; with `columns`, only these and the columns in
        `QUESTION` are filled in.
        """
        return self._records(Question, "questions.parquet", columns and (*QUESTION, *columns))

    def videos_among(self, most: int, *columns: str) -> list[Video]:
        """Return at most `most` rows, evenly spread; other row groups are not read."""
        videos = list[Video]()
        with open_parquet(self.folder / "videos.parquet") as file:
            available = _columns_of(file, (*VIDEO, *columns))
            step, begin = -(-file.metadata.num_rows // most) or 1, 0
            for group in range(file.num_row_groups):
                end = begin + file.metadata.row_group(group).num_rows
                if chosen := [row - begin for row in range(-(-begin // step) * step, end, step)]:
                    rows = file.read_row_group(group, columns=available).take(chosen).to_pylist()
                    videos += (schemas.load(Video, row) for row in rows)
                begin = end
        return videos

    def count(self) -> int:
        """Return the number of rows of `videos.parquet`."""
        return pq.read_metadata(self.folder / "videos.parquet").num_rows

    def _records(self, cls: type[T], name: str, columns: Sequence[str]) -> Iterator[T]:
        wanted = columns or schemas.schema(cls).names
        for part in parts(self.folder / name):
            with open_parquet(part) as file:
                available = _columns_of(file, wanted)
                for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=available):
                    for row in batch.to_pylist():
                        yield schemas.load(cls, row)


def _columns_of(file: pq.ParquetFile, wanted: Sequence[str]) -> list[str]:
    """Return the wanted columns that a file has."""
    return [name for name in file.schema_arrow.names if name in wanted]


@dataclass(frozen=True, kw_only=True)
class ProblemRow:
    """One row of `problems.parquet`: an error, its stage, and the input row."""

    video_id: str
    uri: str
    stage: str
    error: str
    message: str
    attempts: int


ACCOUNT_ERRORS = ("BudgetSpent", "NoCredit", "NoAnswer")  # not caused by the row


def count_stopped_rows(tables: Tables) -> Counter[tuple[str, str]]:
    """Count the rows that are unfinished because calls had to stop, by error and message."""
    problems = (video.problem for video in tables.videos("problem"))
    stopped = (p for p in problems if p is not None and p.error in ACCOUNT_ERRORS)
    return Counter((problem.error, problem.message) for problem in stopped)


def write_problems(tables: Tables, path: Path) -> None:
    """Write `problems.parquet`, one row per failed row."""
    failures = (
        ProblemRow(video_id=v.video_id, uri=v.uri, **schemas.dump(v.problem))
        for v in tables.videos("problem")
        if v.problem is not None
    )
    with parquet_writer(path, schemas.schema(ProblemRow)) as file:
        while group := list(islice(failures, PROBLEMS_PER_GROUP)):
            file.write_table(schemas.table(group, ProblemRow))


def funnel(tables: Tables, stages: Sequence[str]) -> tuple[FunnelStep, ...]:
    """Count the rows into and out of each stage, the drops by reason, and the failures.

    A row is dropped at the last stage of its lineage.
    """
    names = ("read", *stages)
    entered, left, problems = ([0] * len(names) for _ in range(3))
    dropped: list[Counter[str]] = [Counter() for _ in names]
    for row in tables.videos("lineage", "drop", "problem"):
        has_ended = row.drop is not None or row.problem is not None
        last = len(stages)
        if row.problem is not None and row.problem.stage in stages:
            last = stages.index(row.problem.stage) + 1
        elif has_ended:
            last = max(i for i, name in enumerate(names) if i == 0 or name in row.lineage)
        for position in range(last + 1):
            entered[position] += 1
            left[position] += position < last or not has_ended
        if row.problem is not None:
            problems[last] += 1
        elif row.drop is not None:
            dropped[last][row.drop.split(":")[0]] += 1
    return tuple(
        FunnelStep(
            stage=name, entered=entered[i], left=left[i], dropped=dropped[i], problems=problems[i]
        )
        for i, name in enumerate(names)
    )


def question_counts(tables: Tables, rule: GuessRule | None = None) -> QuestionCounts:
    """Count the questions that were made, dropped, kept, and in each subset and filter. `rule`: of
    the run's filters by guesses.
    """
    made = kept = passed_all = 0
    subset = rule.subset if rule else None
    dropped, subsets, types, first_types, failed = (Counter[str]() for _ in range(5))
    asked, marked, unverified = (Counter[str]() for _ in range(3))
    reasons = Counter[tuple[str, str]]()
    sampled = list[tuple[bool, str]]()  # whether sight found a question right, and its video
    for question in tables.questions("drop", "subsets", "metrics", "repairs"):
        made += 1
        unverified.update(question.unverified_by)
        results = question.filter_results
        if SAMPLED in question.metrics and "sight" in results:
            sampled.append((results["sight"], question.video_id))
        by = question.dropped_by
        for name, passed in results.items():
            asked[name] += 1
            marked[name] += not passed and name != by
        if question.drop is not None:
            dropped[by] += 1
            reasons[by, question.drop_reason.partition(": ")[0]] += 1
            continue
        kept += 1
        passed_all += subset is None or subset in question.subsets
        types[question.skill_or_type] += 1
        first_types[_first_type(question)] += 1
        failed.update(question.failed_filters)
        subsets.update(question.subsets)
    unread = _count_unparsed(tables) if unverified else {}
    models = asked_models(tables)
    filters = {
        name: FilterCounts(
            asked=asked[name],
            dropped=dropped[name],
            marked=marked[name],
            reason=max(((k, r) for (f, r), k in reasons.items() if f == name), default=(0, ""))[1],
            unverified=unverified[name],
            unread=unread.get(name, {}),
            models=models.get(name, ()),
        )
        for name in dict.fromkeys((*asked, *unverified))
    }
    columns = (
        "options",
        "verdicts",
        "metrics",
        "repairs",
        "sibling_of",
        "relation",
        "group",
        "form",
    )
    return QuestionCounts(
        made=made,
        kept=kept,
        passed=passed_all,
        dropped=dropped,
        subsets=subsets,
        types=types,
        first_types=first_types,
        filters=filters,
        failed=failed,
        without=without_questions(tables, subset),
        guesses=count_guesses(tables.questions(*columns), rule) if rule and rule.filters else None,
        sampled=_mean_by_video(sampled) if sampled else None,
        worth=count_worth(tables.questions("drop", "metrics", "verdicts", "provenance"))
        if WORTH in models
        else None,
    )


def _mean_by_video(hits: Sequence[tuple[bool, str]]) -> stats.Estimate:
    """Return the share of hits, each given with its video, with the interval by video."""
    return stats.mean([right for right, _ in hits], [video for _, video in hits])


def _first_type(question: Question) -> str:
    """Return the type of the first wording."""
    wordings = (json.loads(r.before) for r in question.repairs if r.kind == "wording")
    return next(wordings, {}).get("question_type", question.question_type)


def _count_unparsed(tables: Tables) -> dict[str, dict[str, int]]:
    """Count, by filter and parsing error, the questions without a result, most frequent first.

    Errors that differ only in quoted names count as one, with the names of the first.
    """
    first: dict[tuple[str, str], str] = {}
    counts: dict[str, Counter[str]] = {}
    for question in tables.questions("verdicts", "metrics"):
        for name in question.unverified_by:
            details = (v.detail for v in question.verdicts if v.filter == name)
            if why := next(filter(None, map(_reason, details)), ""):
                reason = first.setdefault((name, _NAME.sub("", why)), why)
                counts.setdefault(name, Counter())[reason] += 1
    return {name: dict(of_filter.most_common()) for name, of_filter in counts.items()}


def _reason(detail: str) -> str:
    """Return why a verdict has no result, from its detail, or "".

    It is the prompt and error of unparseable replies, or the filter's own reason.
    """
    if match := _UNPARSED.search(detail):
        return f"{match['prompt']}: {match['reason']}"
    try:
        match json.loads(detail):
            case {"unread": str(why)}:
                return why
            case _:
                return ""
    except ValueError:
        return ""


def asked_models(tables: Tables) -> dict[str, tuple[str, ...]]:
    """Return the identities of models in the verdicts, by filter."""
    models_of = dict[str, dict[str, None]]()
    for part in parts(tables.folder / "questions.parquet"):
        with open_parquet(part) as file:
            leaves = [f"verdicts.list.element.{name}" for name in ("filter", "model")]
            for batch in file.iter_batches(columns=leaves):
                verdicts: Any = batch["verdicts"].flatten()
                names, models = (verdicts.field(n).to_pylist() for n in ("filter", "model"))
                for name, model in dict.fromkeys(zip(names, models, strict=True)):
                    models_of.setdefault(name, {})[model] = None
    return {name: tuple(models) for name, models in models_of.items()}


MAX_NAMED_VIDEOS = 100  # videos that `run.json` lists


def without_questions(tables: Tables, subset: str | None = None) -> dict[str, str]:
    """Return the first videos that were used and have no question that passed, with the reason.
    `subset`: of the questions that pass every filter; None: all that are kept.
    """
    fates = _fates(tables, subset)
    nearest, reason_by_id = next(fates, None), dict[str, str]()
    for video in tables.videos("drop", "problem", "unasked"):
        while (
            nearest is not None and nearest[0] < video.video_id
        ):  # Both are in order of their ids.
            nearest = next(fates, None)
        fate = Counter[str]()
        if nearest is not None and nearest[0] == video.video_id:
            fate = nearest[1]
        if video.drop is not None or video.problem is not None or fate[""]:
            continue
        reasons = ", ".join(
            f"{n} by {name_with_meaning(name, FILTERS)}" for name, n in fate.most_common() if name
        )
        left_out = f"{fate.total()} made, none passed every filter: {reasons}"
        reason_by_id[video.video_id] = left_out if fate else video.unasked or "none was made"
        if len(reason_by_id) == MAX_NAMED_VIDEOS:
            break
    return reason_by_id


def _fates(tables: Tables, subset: str | None) -> Iterator[tuple[str, Counter[str]]]:
    """Yield each video with questions, and their number by the first filter that they did not pass
    ("" for those that passed).
    """

    def fate(question: Question) -> str:
        if question.drop is not None:
            return question.dropped_by
        if subset is None or subset in question.subsets:
            return ""
        unverified = (f"{name}, without a verdict" for name in question.unverified_by)
        return next(chain(question.failed_filters, unverified), "a later decision")

    columns = ("drop", "subsets", "metrics")
    for name, of_video in groupby(tables.questions(*columns), key=lambda q: q.video_id):
        yield name, Counter(map(fate, of_video))


def transcribed_by(tables: Tables) -> dict[str, int]:
    """Count the rows by their transcriber, or by the reason why they have no transcript line."""
    columns = ("transcribed_by", "unheard", "language", "has_audio", "lineage")
    return dict(Counter(filter(None, (v.transcript_source for v in tables.videos(*columns)))))


def video_seconds(tables: Tables) -> float:
    """Return the summed length of all rows whose length is known; a clip counts its span."""
    return sum(
        (v.end or v.duration or 0.0) - (v.start or 0.0)
        for v in tables.videos("duration", "start", "end")
    )


def standing_questions(rows: pa.Table) -> Iterator[Question]:
    """Yield the questions of `rows` (columns questions, drop, problem), without those of a dropped
    or failed row.
    """
    columns = rows.select(["questions", "drop", "problem"])
    for batch in columns.to_batches(max_chunksize=BATCH_ROWS):
        for row in batch.to_pylist():
            if row["drop"] is None and row["problem"] is None:
                for question in row["questions"] or ():
                    yield schemas.load(Question, question)


def count_funnels(tables: Tables, subset: str | None, *, by_rules: bool) -> RunFunnel:
    """Count facts and questions. `subset`: of the questions that pass every filter; None: all that
    no filter drops. `by_rules`: whether rules listed the facts.
    """
    passed, passed_by_form, written = Counter[str](), Counter[str](), Counter[str]()
    for question in tables.questions("drop", "subsets", "form", "sibling_of"):
        written[question.video_id] += question.skill is not None
        if question.drop is not None or question.sibling_of is not None:
            continue
        if subset is None or subset in question.subsets:
            passed[question.video_id] += 1
            passed_by_form[question.form or ""] += 1
    total, videos = None, dict[str, FactFunnel]()
    forms = dict[str, Counter[str]]()
    requests, incomplete = list[RequestCount](), 0
    missing = list[MissingQuestions]()
    for video in tables.videos(
        "facts", "listed", "claims", "forms", "missing", "requests", "duration", "start", "end"
    ):
        requests = sum_requests((*requests, *video.requests))
        missing = sum_missing((*missing, *(video.missing or ())))
        incomplete += any(count.unread for count in video.requests)
        if video.forms is None:
            continue
        funnel = funnel_of_video(video, passed[video.video_id], written[video.video_id])
        total = funnel + (total or FactFunnel())
        if len(videos) < MAX_NAMED_VIDEOS:
            videos[video.video_id] = funnel
        for form in video.forms:
            numbers = {name: n for name, n in vars(form).items() if name != "form"}
            forms.setdefault(form.form, Counter()).update(numbers)
    return RunFunnel(
        total=total,
        videos=videos,
        forms={
            name: FormFunnel(**numbers, passed=passed_by_form[name])
            for name, numbers in sorted(forms.items())
        },
        requests=requests,
        incomplete=incomplete,
        by_rules=by_rules,
        missing=missing,
    )
