"""The sample videos match `examples/README.md`."""

import csv
from pathlib import Path

import pytest

from mustsee.errors import BadRow
from mustsee.media import subtitles
from mustsee.media.video import facts

EXAMPLES = Path(__file__).parents[2] / "examples"
VIDEOS = sorted(p for p in (EXAMPLES / "videos").iterdir() if p.suffix != ".srt")


def test_every_sample_video_is_small_and_described() -> None:
    assert sum(p.stat().st_size for p in EXAMPLES.rglob("*") if p.is_file()) < 6_000_000
    readme = (EXAMPLES / "README.md").read_text()
    assert all(f"`{p.name}`" in readme for p in VIDEOS)
    with (EXAMPLES / "videos.csv").open() as file:
        listed = {EXAMPLES / row["uri"] for row in csv.DictReader(file)}
    assert listed == set(VIDEOS)


@pytest.mark.parametrize("video", VIDEOS, ids=lambda p: p.name)
def test_all_sample_videos_except_the_broken_one_can_be_read(video: Path) -> None:
    if video.name == "broken.mp4":
        with pytest.raises(BadRow):
            facts(str(video))
        return
    about = facts(str(video))
    assert (about.width, about.height) == (432, 240)
    assert about.has_audio == (video.name not in ("seasons.webm", "teaser.mp4"))
    rows = (EXAMPLES / "README.md").read_text().splitlines()
    (row,) = (r for r in rows if r.startswith(f"| `{video.name}`"))
    assert int(row.split("|")[2]) == round(about.duration or 0)


def test_only_the_second_video_has_subtitles() -> None:
    have = {p.name for p in VIDEOS if subtitles.find_subtitles(str(p))}
    assert have == {"birdhouse.mp4"}
    lines = subtitles.read(str(EXAMPLES / "videos/birdhouse.srt")).lines
    assert len(lines) == 15
    assert lines[-1].end <= (facts(str(EXAMPLES / "videos/birdhouse.mp4")).duration or 0)
