"""Every configured judge on the same human labels, in one table.

    python -m benchmarks.bench what=judges what.evouna=[NQ.json] what.nq301=FOLDER
    python -m benchmarks.bench what=judges what.nq301=FOLDER \\
        +judge@what.judges.bem=bem what.judges.bem.engine.model=FOLDER

Four sets of pairs: NQ301 (which no judge was trained on), the held-out questions of the other
files, and of both the short answers beside a long reference (`contrast.long_reference`: labels by
people; the reference is another answer that people called right). Verdicts are at each judge's own
threshold; intervals are 95 %, drawn by whole questions. For NQ301 the published verdicts of BEM and
GPT-4 are added.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.figures import BenchTable, Cell
from mustsee.errors import UserError
from mustsee.judge import calibrate, contrast, data
from mustsee.judge.calibrate import Metric
from mustsee.judge.data import JudgeDataSources, LabelledPair
from mustsee.judge.judge import Judge, JudgeConfig, JudgeItem

COLUMNS = ("set", "judge", "n", "AUC", "F1", "accuracy", "recall", "not judged", "CPU s/1000")


@dataclass(frozen=True, kw_only=True)
class JudgeRun:
    """The judged pairs with scores and verdicts, and the CPU seconds of all of them."""

    pairs: list[LabelledPair]
    scores: list[float]
    verdicts: list[bool]
    cpu: float | None = None


@dataclass(frozen=True, kw_only=True)
class JudgeTable:
    judges: Mapping[str, JudgeConfig]
    evouna: Sequence[str] = ()
    bem: Sequence[str] = ()
    nq301: str | None = None
    held_out: float = 0.2
    seed: int = 0
    pairs: int | None = None
    resamples: int = 1000

    def __call__(self) -> BenchTable:
        sources = JudgeDataSources(evouna=tuple(self.evouna), bem=tuple(self.bem), nq301=self.nq301,
                          held_out=self.held_out, seed=self.seed)  # fmt: skip
        sets = self._sets(sources)
        if not sets:
            raise UserError("no labels: set what.nq301= to a folder, what.evouna= or what.bem= "
                            "to files; docs/judge.md lists their sources")  # fmt: skip
        rows: list[tuple[Cell, ...]] = []
        for name, config in self.judges.items():
            judge = config.open()
            rows += [self._row(s, name, len(p), run_judge(judge, p)) for s, p in sets.items()]
        if "NQ301" in sets:
            for name, verdicts in sources.rivals().items():
                run = published_verdicts(sets["NQ301"], verdicts)
                rows.append(self._row("NQ301", f"{name} (published)", len(sets["NQ301"]), run))
        order = list(sets)
        return BenchTable(
            title="judges on people's labels",
            columns=COLUMNS,
            rows=tuple(sorted(rows, key=lambda row: order.index(str(row[0])))),
            notes=(
                "Intervals: 95 %, bootstrap by question. F1, accuracy and recall (of what people "
                "called right) at each judge's own threshold, one half where it has none.",
                "CPU s: of this process, without what an endpoint or a GPU does.",
            ),
        )

    def _sets(self, sources: JudgeDataSources) -> dict[str, list[LabelledPair]]:
        sets = {"NQ301": sources.test()}
        if self.evouna or self.bem:
            sets["held out"] = sources.split()[1]
        long = {f"{n}: long reference": contrast.long_reference(p) for n, p in sets.items()}
        return {n: p[: self.pairs] for n, p in {**sets, **long}.items() if p}

    def _row(self, kind: str, name: str, total: int, run: JudgeRun) -> tuple[Cell, ...]:
        labels, groups = [p.label for p in run.pairs], [p.group for p in run.pairs]
        verdicts = [float(v) for v in run.verdicts]

        def cell(metric: Metric, values: Sequence[float]) -> str:
            value = metric(np.array(labels, bool), np.array(values, float))
            low, high = calibrate.interval(
                metric, labels, values, groups, seed=self.seed, draws=self.resamples
            )
            return f"{value:.3f} [{low:.3f}, {high:.3f}]"

        return (
            kind, name, len(labels),
            cell(calibrate.auc, run.scores), cell(calibrate.f1, verdicts),
            cell(lambda y, p: float((y == (p > 0.5)).mean()), verdicts),
            cell(lambda y, p: float((p > 0.5)[y].mean()) if y.any() else math.nan, verdicts),
            total - len(labels),
            None if run.cpu is None else round(1000 * run.cpu / total, 2),
        )  # fmt: skip


def run_judge(judge: Judge, pairs: Sequence[LabelledPair]) -> JudgeRun:
    """Judge the pairs after one uncounted batch, in which programs are compiled."""
    items = [
        JudgeItem(question=p.question, candidate=p.candidate, references=p.references)
        for p in pairs
    ]
    judge.score(items[:16])
    began = time.process_time()
    scores = [s for at in range(0, len(items), 256) for s in judge.score(items[at : at + 256])]
    cpu = time.process_time() - began
    kept = [(p, s) for p, s in zip(pairs, scores, strict=True) if s.score is not None]
    if not kept:
        raise UserError(f"none of {len(pairs)} pairs could be judged: {scores[0].error}")
    return JudgeRun(
        pairs=[p for p, _ in kept],
        scores=[s.score or 0.0 for _, s in kept],
        verdicts=[bool(s.equivalent) for _, s in kept],
        cpu=cpu,
    )


def published_verdicts(
    pairs: Sequence[LabelledPair], verdicts: Mapping[tuple[str, str], data.OtherJudgeScore]
) -> JudgeRun:
    """Return another judge's published verdicts; a missing verdict counts as FALSE."""
    published = [data.match(p, verdicts) for p in pairs]
    scores = [0.0 if r is None or r.score is None else r.score for r in published]
    return JudgeRun(pairs=list(pairs), scores=scores, verdicts=[s > 0.5 for s in scores])
