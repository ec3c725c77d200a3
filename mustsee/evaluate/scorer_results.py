"""Sums over rescored replies: each scorer's result, and what makes the difference of each pair; and
how both are shown and written: terminal tables, `rescore.json`, `rescored.parquet`.

A difference between two scores is the sum of what single replies add to it: a reply that one of
both scorers leaves out counts with that scorer's mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from mustsee.evaluate.rescore import AVERAGE, CAUSES, RescoredReply, find_cause
from mustsee.evaluate.score_show import new_table, share
from mustsee.evaluate.scorers.official import ScoringRule
from mustsee.files.folders import write_json
from mustsee.files.parquet import parquet_writer
from mustsee.text import LETTERS, printable

if TYPE_CHECKING:
    from rich.table import Table

ROWS_AT_ONCE = 1024  # rows of a row group
ROWS = "rescored.parquet"
MAX_LINES = 4  # groups of a difference in the terminal; the page has all


@dataclass(frozen=True, kw_only=True)
class ScorerResult:
    """One model's score by one scorer; shares are of 1.

    `score`: as the scorer counts, the expected value where it draws at random; None if it counts no
    reply. `spread`: standard deviation of `score` over its draws. `own_average`: what it reports in
    place of the mean over the replies, if anything. `unreadable`: replies in which it reads no
    option, of `replies` whose call did not fail; they count as wrong in `with_unreadable_wrong` and
    not at all in `without_unreadable`, and neither does a failed call. `guessed`: replies for which
    it draws. `left_out`: replies and failed calls that it does not count. `no_rule`: replies to
    benchmarks for which it has no rule.
    """

    model: str
    scorer: str
    versions: tuple[str, ...]
    replies: int
    failed: int
    no_rule: int
    score: float | None
    spread: float
    own_average: float | None
    unreadable: int
    with_unreadable_wrong: float | None
    without_unreadable: float | None
    guessed: int
    left_out: int


@dataclass(frozen=True, kw_only=True)
class DifferenceGroup:
    """Replies that two scorers count differently by the same steps. `cause`: a key of `CAUSES`.
    `points`: what the replies add to the difference, of 1. `examples`: the first of them.
    """

    cause: str
    step_a: str
    step_b: str
    replies: int
    points: float
    examples: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class ScorerDifference:
    """Scorer `a` against `b` on the `replies` for which both have rules and that at least one of
    them counts. `difference`: of what they report, a - b, of 1; None if one of them counts none.
    `groups`: they add up to it. `other_letter`: further replies in which they read different
    options without effect on a score.
    """

    model: str
    a: str
    b: str
    replies: int
    difference: float | None
    groups: tuple[DifferenceGroup, ...]
    other_letter: int


@dataclass
class _Sums:
    """Sums over the replies of one model, scored by one scorer."""

    counted: int = 0
    points: float = 0.0
    variance: float = 0.0
    answered: int = 0
    readable: int = 0
    right: float = 0.0
    guessed: int = 0
    left_out: int = 0
    failed: int = 0
    no_rule: int = 0
    versions: dict[str, ScoringRule] = field(default_factory=dict[str, ScoringRule])
    types: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def add(self, reply: RescoredReply, scorer: str) -> None:
        reading = reply.readings.get(scorer)
        if reading is None:
            self.no_rule += 1
            return
        rule, failed = reply.rules[scorer], reply.answer.failed is not None
        self.versions[rule.version] = rule
        self.failed += failed
        self.answered += not failed
        if not failed and reading.letter is not None:
            self.readable += 1
            self.right += reading.points or 0.0
        if reading.points is None:
            self.left_out += 1
            return
        self.counted += 1
        self.points += reading.points
        of_type = self.types.setdefault(reply.answer.question.question_type, [0.0, 0.0])
        of_type[0] += reading.points
        of_type[1] += 1
        if reading.guesses:
            self.guessed += 1
            self.variance += reading.points * (1 - reading.points)

    @property
    def score(self) -> float | None:
        return self.points / self.counted if self.counted else None

    @property
    def own_average(self) -> float | None:
        """The scorer's own average over types, if one rule scored all replies and has one."""
        if len(self.versions) != 1 or not self.counted:
            return None
        (rule,) = self.versions.values()
        names = next((names for names in rule.averages if self.types.keys() <= {*names}), None)
        if names is None:
            return None
        return sum(points / count for points, count in self.types.values()) / len(names)

    def result(self, model: str, scorer: str) -> ScorerResult:
        return ScorerResult(
            model=model,
            scorer=scorer,
            versions=tuple(self.versions),
            replies=self.answered,
            failed=self.failed,
            no_rule=self.no_rule,
            score=self.score,
            spread=math.sqrt(self.variance) / self.counted if self.counted else 0.0,
            own_average=self.own_average,
            unreadable=self.answered - self.readable,
            with_unreadable_wrong=self.right / self.answered if self.answered else None,
            without_unreadable=self.right / self.readable if self.readable else None,
            guessed=self.guessed,
            left_out=self.left_out,
        )


@dataclass
class _GroupSums:
    """Sums over replies that differ alike. `left_out`: how many each of both scorers leaves out."""

    replies: int = 0
    points: float = 0.0
    left_out: list[int] = field(default_factory=lambda: [0, 0])
    examples: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])


@dataclass
class _PairSums:
    """Sums over the replies that two scorers have rules for and at least one of them counts."""

    sums: tuple[_Sums, _Sums] = field(default_factory=lambda: (_Sums(), _Sums()))
    replies: int = 0
    other_letter: int = 0
    groups: dict[tuple[str, str, str], _GroupSums] = field(
        default_factory=dict[tuple[str, str, str], _GroupSums]
    )

    def add(self, reply: RescoredReply, a: str, b: str, most_examples: int) -> None:
        readings = reply.readings[a], reply.readings[b]
        if readings[0].points is None and readings[1].points is None:
            return
        self.replies += 1
        for sums, scorer in zip(self.sums, (a, b), strict=True):
            sums.add(reply, scorer)
        if readings[0].points == readings[1].points:
            self.other_letter += readings[0].letter != readings[1].letter
            return
        key = (find_cause(reply, a, b), readings[0].step, readings[1].step)
        group = self.groups.setdefault(key, _GroupSums())
        group.replies += 1
        for number, (sign, reading) in enumerate(zip((1, -1), readings, strict=True)):
            group.points += sign * (reading.points or 0.0)
            group.left_out[number] += reading.points is None
        if len(group.examples) < most_examples:
            group.examples.append({
                "question_id": reply.answer.question.question_id,
                "rotation": reply.answer.rotation, "reply": reply.answer.reply,
                "failed": reply.answer.failed,
                "right": LETTERS[reply.place], "a": readings[0].letter, "b": readings[1].letter,
            })  # fmt: skip

    def result(self, model: str, a: str, b: str) -> ScorerDifference:
        scores = [sums.score for sums in self.sums]
        groups, difference = list[DifferenceGroup](), None
        if scores[0] is not None and scores[1] is not None:
            means = (scores[0], scores[1])
            averages = [
                mean if sums.own_average is None else sums.own_average
                for mean, sums in zip(means, self.sums, strict=True)
            ]
            difference = averages[0] - averages[1]
            groups = [self._group(*key, sums, means) for key, sums in self.groups.items()]
            averaging = difference - (means[0] - means[1])
            if abs(averaging) > 1e-9:
                steps = [AVERAGE if s.own_average is not None else "mean" for s in self.sums]
                groups.append(
                    DifferenceGroup(
                        cause=AVERAGE, step_a=steps[0], step_b=steps[1], replies=0,
                        points=averaging, examples=(),
                    )
                )  # fmt: skip
        return ScorerDifference(
            model=model,
            a=a,
            b=b,
            replies=self.replies,
            difference=difference,
            groups=tuple(sorted(groups, key=lambda g: (-abs(g.points), g.cause, g.step_a))),
            other_letter=self.other_letter,
        )

    def _group(
        self, cause: str, a: str, b: str, sums: _GroupSums, means: tuple[float, float]
    ) -> DifferenceGroup:
        filled = sums.left_out[0] * means[0] - sums.left_out[1] * means[1]
        return DifferenceGroup(
            cause=cause,
            step_a=a,
            step_b=b,
            replies=sums.replies,
            points=(sums.points + filled) / self.replies,
            examples=tuple(sums.examples),
        )


class Comparer:
    """Sums over rescored replies, in memory that does not grow with their number.

    `examples`: replies that are kept of each group of a difference.
    """

    def __init__(self, scorers: Sequence[str], examples: int) -> None:
        self._scorers, self._examples = tuple(scorers), examples
        self._sums: dict[tuple[str, str], _Sums] = {}
        self._pairs: dict[tuple[str, str, str], _PairSums] = {}

    def add(self, reply: RescoredReply) -> None:
        model = reply.answer.model
        for scorer in self._scorers:
            self._sums.setdefault((model, scorer), _Sums()).add(reply, scorer)
        for a, b in combinations(self._scorers, 2):
            pair = self._pairs.setdefault((model, a, b), _PairSums())
            if a in reply.readings and b in reply.readings:
                pair.add(reply, a, b, self._examples)

    @property
    def results(self) -> list[ScorerResult]:
        return [sums.result(*key) for key, sums in self._sums.items()]

    @property
    def differences(self) -> list[ScorerDifference]:
        return [pair.result(*key) for key, pair in self._pairs.items()]


def write_rows(path: Path, scorers: Sequence[str], replies: Iterable[RescoredReply]) -> None:
    """Write a row for each reply, with letter, step and points by each scorer."""
    import pyarrow as pa

    text = pa.string()
    columns: dict[str, pa.DataType] = {
        "question_id": text, "video_id": text, "model": text, "rotation": pa.int64(),
        "reply": text, "failed": text, "right_letter": text,
    }  # fmt: skip
    for scorer in scorers:
        columns |= {f"{scorer}_letter": text, f"{scorer}_step": text,
                    f"{scorer}_points": pa.float64()}  # fmt: skip
    schema, rows = pa.schema(columns.items()), (reply.row for reply in replies)
    with parquet_writer(path, schema) as file:
        while batch := list(islice(rows, ROWS_AT_ONCE)):
            file.write_table(pa.Table.from_pylist(batch, schema=schema))


def write_results(
    folder: Path,
    results: Sequence[ScorerResult],
    differences: Sequence[ScorerDifference],
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Write `rescore.json` into `folder`; return its content. `about`: its first keys."""
    record = {
        **about,
        "results": [asdict(one) for one in results],
        "differences": [asdict(one) for one in differences],
        "causes": CAUSES,
    }
    write_json(folder / "rescore.json", record)
    return record


def describe_score(result: ScorerResult) -> str:
    """Return a score in percent, with the range of 95 % of its random draws."""
    value = result.score if result.own_average is None else result.own_average
    spread = f" ± {196 * result.spread:.1f}" if result.guessed else ""
    return f"{share(value) or '-'}{spread}"


def results_table(results: Sequence[ScorerResult]) -> Table:
    """Return the table of scores, a row for each model and scorer."""
    heads = ("scorer", "score", "unread", "as wrong", "left out", "omitted", "failed", "n")
    table = new_table("the same replies by each scorer, %", heads, ("scorer",), no_wrap=True)
    several = len({result.model for result in results}) > 1
    for one in results:
        name = f"{one.scorer}: {printable(one.model)}" if several else one.scorer
        table.add_row(
            Text(name),
            describe_score(one),
            str(one.unreadable),
            share(one.with_unreadable_wrong) or "-",
            share(one.without_unreadable) or "-",
            str(one.left_out),
            str(one.failed),
            str(one.replies + one.failed),
        )
    return table


def difference_lines(differences: Sequence[ScorerDifference]) -> list[Text]:
    """Return lines that say for each pair of scorers which steps make the difference."""
    lines = list[Text]()
    several = len({one.model for one in differences}) > 1
    for one in differences:
        of = f" ({printable(one.model)})" if several else ""
        total = "not known" if one.difference is None else f"{100 * one.difference:+.1f} points"
        count = sum(group.replies for group in one.groups)
        lines.append(
            Text(f"{one.a} - {one.b}{of}: {total}; {count} of {one.replies} replies differ", "bold")
        )
        for group in one.groups[:MAX_LINES]:
            lines.append(
                Text(
                    f"  {100 * group.points:+.1f}  {group.replies} replies  {CAUSES[group.cause]}: "
                    f"{group.step_a} | {group.step_b}"
                )
            )
        if len(one.groups) > MAX_LINES:
            rest = one.groups[MAX_LINES:]
            points = 100 * sum(group.points for group in rest)
            replies = sum(group.replies for group in rest)
            lines.append(Text(f"  {points:+.1f}  {replies} replies  {len(rest)} other ways"))
    return lines


def skipped_lines(results: Sequence[ScorerResult], skipped: Mapping[str, int]) -> list[Text]:
    """Return lines on replies that are not scored: by any, and by scorers without a rule."""
    lines = [Text(f"not scored: {count} replies ({why})") for why, count in skipped.items()]
    lines += [
        Text(f"{one.scorer} has no rule for the benchmark of {one.no_rule} replies", "bold red")
        for one in results
        if one.no_rule
    ]
    return lines
