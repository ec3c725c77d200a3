"""The curve over frames joins the evaluations of one model by their number of frames."""

from pathlib import Path

from mustsee.evaluate.compare import compare_models
from mustsee.evaluate.compare_page import draw_frames, frame_points
from mustsee.evaluate.drawing import save_chart
from tests.evaluate.test_compare import answered, evaluate


def test_the_curve_joins_the_evaluations_of_one_model(tmp_path: Path) -> None:
    given = (("m 32 frames", 32), ("m 8 frames", 8), ("m blind", 0), ("other 8 frames", 8),
             ("m 8 frames + transcript", 8), ("m transcript", 0), ("file", None))  # fmt: skip
    evaluations = [
        evaluate(answered((0.5, 0.5, 0.5), name, n), name, frames=frames)
        for n, (name, frames) in enumerate(given)
    ]
    (table,) = compare_models(evaluations)
    points = frame_points(table)
    assert {n: [f for f, _ in p] for n, p in points.items()} == {
        "m": [0, 8, 32],
        "m transcript": [0, 8],
    }
    scores = {row.name: row.estimates[0] for row in table.rows}
    assert [e for _, e in points["m"]] == [
        scores[f"m {n}"] for n in ("blind", "8 frames", "32 frames")
    ]
    assert save_chart(tmp_path / "frames.png", lambda: draw_frames(table, points)) is None
    assert (tmp_path / "frames.png").stat().st_size > 1000
