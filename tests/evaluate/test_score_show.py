"""The tables of an evaluation with every kind of score, as they are shown."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from mustsee.evaluate import score_show
from mustsee.evaluate.open_scores import PointScores, Rubric
from mustsee.evaluate.score import EvaluationResults, OpenEndedScore, ScoreGroup
from mustsee.evaluate.siblings import GroupScores, Twins
from mustsee.evaluate.span_scores import EvidenceScores, SpanScores
from mustsee.stats import Difference, Estimate

GOLDEN = Path(__file__).parents[1] / "golden" / "scores.txt"


def share(value: float, n: int = 12, *, interval: bool = True) -> Estimate:
    low, high = (value - 0.05, value + 0.07) if interval else (None, None)
    return Estimate(value=value, low=low, high=high, n=n, clusters=4, method="clustered wilson")


def group(value: float, asked: int, chance: float | None = 0.25) -> ScoreGroup:
    return ScoreGroup(accuracy=share(value), chance=chance, asked=asked, failed=1, unparsed=0.1)


SPANS = SpanScores(
    recall={"0.3": share(0.6), "0.7": share(0.2)}, mean_iou=share(0.41, 11), asked=12, failed=1,
    replies=13, unread=2,
)  # fmt: skip
EVERYTHING = EvaluationResults(
    model="org/model-of-everything[v2]", weighted=share(0.612, 120), chance=0.213,
    macro=share(0.583, 120), macro_chance=0.224,
    named={"M-Avg (7 tasks)": 0.512, "M-Avg (9 tasks)": 0.487},
    named_chance={"M-Avg (7 tasks)": 0.2},
    types={"count [of things]": group(0.5, 40), "order": group(0.7, 80, None)},
    splits={"hard": group(0.3, 20), "subset mma": group(0.4, 60)},
    asked=121, failed=3, no_key=2, unparsed=0.034, rules={"letter": 100},
    released={"Video-MME": 0.6, "LVBench": 0.55}, choice=share(0.57),
    written=OpenEndedScore(
        judged=share(0.44, 30), corrected=None, judge="gem", note="not known",
        metrics={"rouge_l": share(0.31), "cider_d": None}, references="0a1b", asked=31, failed=1,
        ungraded=0,
    ),
    rubric=Rubric(
        tasks={"subPlot": share(5.25, 8), "summary": share(4.5, 6)},
        scales={"accuracy": 2.5, "relevance": 2.75, "completeness": 2.0, "reliability": 2.5},
        g_avg=4.875, failed={"subPlot": 0, "summary": 1}, grader="judge [b]",
    ),
    by_points=PointScores(
        score=share(0.52, 14), skills={"cause": share(0.5, 7), "aim": share(0.54, 7)},
        all_points=0.49, blind=0.21, seen=0.83, of_range=share(0.45), points=60, missed=22,
        contradicted=3, failed=1, grader="gem-large",
    ),
    when=SPANS,
    with_evidence=EvidenceScores(right=share(0.7, 12), with_evidence=share(0.4, 12), spans=SPANS),
    sets=GroupScores(
        single=share(0.6, 30), single_chance=0.2, whole=share(0.3, 6), whole_chance=0.0003,
        squared=share(0.5, 6), squared_chance=0.07, whole_matching=0.008, squared_matching=0.08,
    ),
    pairs=GroupScores(
        single=share(0.66, 20), single_chance=0.5, whole=share(0.5, 10), whole_chance=0.25,
        squared=share(0.6, 10), squared_chance=0.375,
    ),
    twins=Twins(
        choice=share(0.7, 9), chance=0.25, written=share(0.4, 9),
        gap=Difference(value=0.3, low=0.1, high=0.5, p=0.01, n=9, clusters=4, method="t"),
    ),
    groups=GroupScores(
        single=share(0.64, 25), single_chance=None, whole=share(0.4, 5), whole_chance=None,
        squared=share(0.5, 5), squared_chance=None,
    ),
    choice_metrics={"rouge_l": share(0.22), "bleu [4]": None}, not_in_file=1,
)  # fmt: skip
LITTLE = EvaluationResults(
    model="little", weighted=share(0.4, 100, interval=False), chance=0.213, macro=None,
    macro_chance=None, named={}, named_chance={}, types={"order": group(0.3, 70)}, splits={},
    asked=121, failed=21, no_key=2, unparsed=0.0, rules={}, released={"LVBench": 0.4},
    by_points=PointScores(
        score=None, skills={}, all_points=None, blind=None, seen=None, of_range=None, points=0,
        missed=0, contradicted=0, failed=4, grader="",
    ),
    when=SpanScores(recall={}, mean_iou=None, asked=12, failed=12, replies=0, unread=0),
)  # fmt: skip
NOTHING = EvaluationResults(
    model="nothing", weighted=None, chance=None, macro=None, macro_chance=None, named={},
    named_chance={}, types={}, splits={}, asked=0, failed=0, no_key=0, unparsed=0.0, rules={},
    released={},
)  # fmt: skip


def shown() -> str:
    """Everything that is shown of several lists of results."""
    texts: list[str] = []
    for results in ([EVERYTHING, LITTLE, NOTHING], [LITTLE], [NOTHING]):
        output = io.StringIO()
        console = Console(file=output, width=140, color_system="truecolor", force_terminal=True)
        heads = score_show.labels(results)
        console.print(score_show.table(results, heads), *score_show.legend(heads))
        page = json.dumps(score_show.for_page(results), ensure_ascii=False, indent=1)
        texts += [output.getvalue(), page, *score_show.headline(results)]
    return "\n".join(texts) + "\n"


def test_every_kind_of_score_is_shown_as_before() -> None:
    assert shown() == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("one", [EVERYTHING, LITTLE, NOTHING], ids=lambda one: one.model)
def test_the_page_has_the_rows_of_the_table(one: EvaluationResults) -> None:
    rows = score_show.table([one]).columns[0].cells
    assert len(score_show.for_page([one])["rows"]) == len(list(rows))
