"""Detected cuts of real videos against cuts labelled by eye, where the videos are available."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from benchmarks.cuts import CutsBench, CutScore, Labels, count
from mustsee.media.shots import shots_of
from tests.support.material import material
from tests.support.sample_videos import FPS, cuts, write

LABELS = Path(__file__).with_name("cuts.yaml")


def label(edges: Sequence[float], gradual: Sequence[tuple[float, float]] = ()) -> Labels:
    return Labels(what="video", cuts=tuple(edges), gradual=tuple(gradual), half=5.0)


def test_the_labels_are_complete_and_sorted() -> None:
    videos = yaml.safe_load(LABELS.read_text())
    assert len({f["video"] for f in videos}) == len(videos) == 24
    assert sum(len(f["cuts"]) for f in videos) == 107
    for video in videos:
        assert video["cuts"] == sorted(video["cuts"])
        assert all(0 < cut < video["seconds"] for cut in video["cuts"])
        assert all(0 <= a < b <= video["seconds"] for a, b, _ in video.get("gradual", ()))
        assert video["half"] in ("chosen", "shown", 115.5)


def test_cuts_are_counted_as_right_missed_or_wrong() -> None:
    tally, labels = CutScore(), label([1.0, 4.0, 8.0], [(2.0, 3.0)])
    count(tally, [1.05, 2.5, 4.2, 8.0, 8.01], labels, 24.0, lambda t: True)
    assert (tally.right, tally.missed, tally.wrong, tally.gradual) == (2, 1, 2, 1)
    assert tally.recall == pytest.approx(2 / 3)
    assert tally.precision == pytest.approx(1 / 2)
    assert tally.f1 == pytest.approx(4 / 7)
    early = CutScore()
    count(early, [1.05, 2.5, 4.2, 8.0], labels, 24.0, labels.is_tuning_time)
    assert (early.right, early.missed, early.wrong) == (1, 1, 1)


def test_the_benchmark_scores_each_detector(tmp_path: Path) -> None:
    """On a video that is labelled here; a video without labels is skipped."""
    from mustsee.media.files import content_digest

    path = write(tmp_path / "video.mp4", cuts([30, 24, 40]))
    write(tmp_path / "other.mp4", cuts([30]))
    entry = {"video": content_digest(str(path)), "what": "blocks", "cuts": [30 / FPS, 54 / FPS]}
    labels = tmp_path / "labels.yaml"
    labels.write_text(yaml.safe_dump([{**entry, "half": "shown"}]))
    bench = CutsBench(videos=str(tmp_path), labels=str(labels), seconds=0.0)
    rows = bench().as_json()["rows"]
    ours = next(row for row in rows if row["detector"] == "ours")
    assert (ours["right"], ours["missed"], ours["wrong"]) == (2, 0, 0)
    assert {row["detector"] for row in rows} >= {"Content", "Adaptive", "Hash", "Histogram"}
    fades = next(row for row in rows if row["detector"] == "Threshold")
    assert fades["right"] == 0


@pytest.mark.slow
def test_labelled_cuts_are_found_with_recall_and_precision_of_95_percent() -> None:
    """Over all videos and all labels."""
    folder, tally = material("video"), CutScore()
    for path, labels in CutsBench(videos=str(folder), labels=str(LABELS)).labelled_videos():
        cuts_found = [shot.start for shot in shots_of(path)[1:]]
        count(tally, cuts_found, labels, 24.0, lambda t: True)
    assert tally.recall >= 0.95, tally.places
    assert tally.precision >= 0.95, tally.places
