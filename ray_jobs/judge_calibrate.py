"""Chooses a judge's threshold on human labels and measures its quality and bias.

    python -m ray_jobs.judge_calibrate judge=mini evouna=[NQ.json] nq301=FOLDER out=O

It writes O/record.json (the threshold record that the judge needs to start), O/report.json,
O/reliability.png and O/precision_recall.png. The threshold is chosen on the dev part of the
training split; NQ301 is the test set, if given. The judge is compared with word overlap, CIDEr and
BEM: BEM by its checkpoint if given, otherwise by its verdicts in the test set.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from actors.judge.baselines import Bem
from mustsee.errors import MustseeError
from mustsee.evaluate.drawing import new_figure, save_chart
from mustsee.evaluate.open_metrics import score_by_cider
from mustsee.files.folders import write_json
from mustsee.judge import bias as judge_bias
from mustsee.judge import calibrate, lexical
from mustsee.judge import data as equivalence_data
from mustsee.judge.data import JudgeDataSources, LabelledPair
from mustsee.judge.judge import Engine, Judge, JudgeConfig, JudgeItem, Record, sigmoid
from ray_jobs.cli.launch import launch
from ray_jobs.runtime import trials

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class JudgeCalibrate:
    judge: JudgeConfig
    sources: JudgeDataSources
    out: str
    bem_model: str | None = None
    pairs: int | None = None
    notes: str = ""

    def __call__(self) -> int:
        trials.check_here(self.judge)
        sources = dataclasses.replace(
            self.sources, bem=tuple(self.sources.bem), evouna=tuple(self.sources.evouna)
        )
        dev, test = sources.split()[1][: self.pairs], sources.test()[: self.pairs]
        engine = self.judge.engine.open()
        dev, logits = read(engine, dev)
        record = calibrate.record(
            engine.identity,
            [p.label for p in dev],
            logits,
            [p.group for p in dev],
            dev=equivalence_data.digest(dev),
            notes=self.notes or ", ".join(sources.hashes()),
        )
        folder = Path(self.out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "record.json").write_text(record.dump(), encoding="utf-8")
        judge = Judge(engine, record)
        pairs, pair_logits = read(engine, test) if test else (dev, logits)
        scores = [sigmoid(z / record.temperature) for z in pair_logits]
        verdicts = [s > record.threshold for s in scores]
        cases = judge_bias.probe(pairs)
        report: dict[str, Any] = {
            "on": "NQ301" if test else "dev",
            "pairs": len(pairs),
            "judges": table(
                engine.identity.engine, pairs, scores, verdicts, sources, bem=self.bem_model
            ),
            "dev": calibrate.figures(
                [p.label for p in dev], [sigmoid(z / record.temperature) for z in logits],
                [p.group for p in dev],
            ),
            "false_positives": judge_bias.false_positives(pairs, verdicts),
            "bias": [dataclasses.asdict(r) for r in judge_bias.report(cases, judge.score)],
        }  # fmt: skip
        write_json(folder / "report.json", report)
        show(report, record)
        for failure in draw(folder, [p.label for p in pairs], scores, record):
            Console().print(failure, soft_wrap=True, markup=False)
        return 0


def read(engine: Engine, pairs: Sequence[LabelledPair]) -> tuple[list[LabelledPair], list[float]]:
    """Return the pairs that could be judged, and the best logit difference of each.

    Raises MustseeError if fewer than half could be judged.
    """
    judge = Judge(engine, Record(threshold=0.5, identity=engine.identity, dev="none"))
    items = [
        JudgeItem(question=p.question, candidate=p.candidate, references=p.references)
        for p in pairs
    ]
    judged: list[tuple[LabelledPair, float]] = []
    for at in range(0, len(items), 256):
        batch_scores = judge.score(items[at : at + 256])
        for pair, score in zip(pairs[at : at + 256], batch_scores, strict=True):
            if score.logit_diff is not None:
                judged.append((pair, score.logit_diff))
    if len(judged) < len(pairs) / 2:
        raise MustseeError(f"only {len(judged)} of {len(pairs)} pairs could be judged")
    return [p for p, _ in judged], [z for _, z in judged]


def table(
    name: str,
    pairs: Sequence[LabelledPair],
    scores: Sequence[float],
    verdicts: Sequence[bool],
    sources: JudgeDataSources,
    *,
    bem: str | None = None,
) -> dict[str, Any]:
    """Figures with intervals by judge, all on the same pairs.

    The judges are this one, word overlap, CIDEr, BEM from a checkpoint, and those whose verdicts
    the test set has.
    """
    labels, groups = [p.label for p in pairs], [p.group for p in pairs]
    rows = {name: calibrate.figures(labels, scores, groups)}
    rows[name]["f1_at_threshold"] = calibrate.f1(labels, verdicts)
    for measure, overlap in lexical.MEASURES.items():
        values = [max(overlap(p.candidate, r) for r in p.references) for p in pairs]
        rows[measure] = calibrate.figures(labels, values, groups)
    if len(pairs) > 1:  # CIDEr-D is divided by 10, to lie in 0 to 1 as the others do.
        each = score_by_cider([p.candidate for p in pairs], [p.references for p in pairs])
        rows["cider_d"] = calibrate.figures(labels, [value / 10 for value in each], groups)
    if bem is not None:
        # Pairs over its length limit count as FALSE, since no pair of another judge is left out.
        judged, logits = read(Bem(model=bem).open(), pairs)
        values = {id(p): sigmoid(z) for p, z in zip(judged, logits, strict=True)}
        bem_scores = [values.get(id(p), 0.0) for p in pairs]
        rows["BEM"] = calibrate.figures(labels, bem_scores, groups)
    for rival, rival_verdicts in sources.rivals().items():
        if rival in rows:
            continue
        matches = [equivalence_data.match(p, rival_verdicts) for p in pairs]
        values = [0.0 if m is None or m.score is None else m.score for m in matches]
        rows[rival] = calibrate.figures(labels, values, groups)
    return rows


def draw(
    folder: Path, labels: Sequence[bool], scores: Sequence[float], record: Record
) -> list[str]:
    """Draw both charts into `folder`; return a line for each that failed."""
    failures = [
        save_chart(folder / "reliability.png", lambda: reliability(labels, scores, record)),
        save_chart(
            folder / "precision_recall.png", lambda: precision_recall(labels, scores, record)
        ),
    ]
    return [line for line in failures if line is not None]


def reliability(labels: Sequence[bool], scores: Sequence[float], record: Record) -> Figure:
    """The reliability diagram, above a histogram of the scores."""
    figure = new_figure(5, 5.4)
    upper, lower = figure.subplots(2, 1, height_ratios=(4, 1), sharex=True)
    bins = calibrate.reliability(labels, scores)
    upper.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    upper.plot([b.score for b in bins], [b.share for b in bins], marker="o", color="C0")
    upper.axvline(record.threshold, color="C3", linestyle="--", linewidth=1, label="threshold")
    upper.set(ylabel="share called equivalent by people", ylim=(0, 1), xlim=(0, 1))
    error = calibrate.calibration_error(labels, scores)
    upper.set_title(f"{record.identity.engine}: calibration error {error:.3f}, n={len(labels)}")
    upper.legend(loc="upper left")
    lower.bar([b.low + 0.05 for b in bins], [b.n for b in bins], width=0.09, color="0.6")
    lower.set(xlabel="score", ylabel="pairs")
    return figure


def precision_recall(labels: Sequence[bool], scores: Sequence[float], record: Record) -> Figure:
    """The precision-recall curve with the threshold marked."""
    values, precision, recall = calibrate.precision_recall(labels, scores)
    figure = new_figure(5, 4.4)
    axes = figure.subplots()
    axes.plot(recall, precision, color="C0", label=f"AUC {calibrate.auc(labels, scores):.3f}")
    at = int(np.searchsorted(values, record.threshold).clip(0, len(values) - 1))
    axes.plot(recall[at], precision[at], marker="o", color="C3", linestyle="", label="threshold")
    axes.axhline(float(np.mean(labels)), color="0.7", linewidth=1, label="always TRUE")
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1.01), ylim=(0, 1.01))
    axes.legend(loc="lower left")
    return figure


def show(report: dict[str, Any], record: Record) -> None:
    """Print the report's tables and the threshold."""
    console = Console()
    rows = Table("judge", "best F1", "F1 nested", "AUC", "Brier",
                 title=f"{report['pairs']} pairs of {report['on']}, human labels")  # fmt: skip
    for name, figures in report["judges"].items():
        cells = [f"{v:.3f} [{a:.3f}, {b:.3f}]" for v, a, b in (
            figures["f1"], figures["auc"], figures["brier"])]  # fmt: skip
        rows.add_row(name, cells[0], f"{figures['f1_nested']:.3f}", *cells[1:])
    console.print(rows)
    bias = Table("kind", "n", "wrong", "mean score", title="bias")
    for row in report["bias"]:
        wrong = "" if row["wrong"] is None else f"{row['wrong']:.2f}"
        bias.add_row(row["kind"], str(row["n"]), wrong, f"{row['score']:.2f}")
    console.print(bias)
    console.print(
        f"threshold {record.threshold:.4f}, temperature {record.temperature:.3f}; on the dev set "
        f"F1 {record.f1:.3f} (nested {record.f1_nested:.3f}), AUC {record.auc:.3f}"
    )


if __name__ == "__main__":
    launch("judge_calibrate")
