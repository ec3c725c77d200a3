"""The sample videos match `examples/README.md`."""

import csv
import importlib
import json
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from mustsee.errors import BadRow
from mustsee.media import subtitles
from mustsee.media.video import facts

EXAMPLES = Path(__file__).parents[2] / "examples"
VIDEOS = sorted(p for p in (EXAMPLES / "videos").iterdir() if p.suffix != ".srt")


def test_every_sample_video_is_small_and_described() -> None:
    made = EXAMPLES / "footage"  # by `make demo`, and not committed
    files = [p for p in EXAMPLES.rglob("*") if p.is_file() and made not in p.parents]
    assert sum(p.stat().st_size for p in files) < 6_000_000
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
    size = (576, 320) if video.name == "story.mp4" else (432, 240)
    assert (about.width, about.height) == size
    assert about.has_audio == (video.name not in ("seasons.webm", "teaser.mp4"))
    rows = (EXAMPLES / "README.md").read_text().splitlines()
    (row,) = (r for r in rows if r.startswith(f"| `{video.name}`"))
    assert int(row.split("|")[2]) == round(about.duration or 0)


def test_two_videos_have_subtitles() -> None:
    have = {p.name for p in VIDEOS if subtitles.find_subtitles(str(p))}
    assert have == {"birdhouse.mp4", "story.mp4"}
    for name, count in (("birdhouse", 15), ("story", 40)):
        lines = subtitles.read(str(EXAMPLES / f"videos/{name}.srt")).lines
        assert len(lines) == count
        assert lines[-1].end <= (facts(str(EXAMPLES / f"videos/{name}.mp4")).duration or 0)
    assert {line.speaker for line in lines} == {"VERA", "OTTO", "NILO", "ROSA"}


def test_the_claims_of_the_story_have_times_in_it_and_a_wrong_version_each() -> None:
    told = json.loads((EXAMPLES / "story.json").read_text())
    length = facts(str(EXAMPLES / "videos" / told["video"])).duration or 0
    claims = told["claims"]
    assert len({c["claim"] for c in claims} | {c["wrong"]["claim"] for c in claims}) == 2 * 46
    assert {c["wrong"]["changed"] for c in claims} == {
        "role", "order", "cause", "purpose", "object", "outcome",
    }  # fmt: skip
    spans = [span for c in claims for span in c["spans"]]
    assert all(0 <= start < end <= length for start, end in spans)
    assert all(c["spans"] for c in claims)


def test_the_story_is_the_drawn_one_and_its_subtitles_the_spoken_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each shot draws pictures that change, and the committed lines are those of the script."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    shots = importlib.import_module("story_evening").STORY
    said = [line.partition(": ") for *_, lines in shots for line in lines]
    read = subtitles.read(str(EXAMPLES / "videos/story.srt")).lines
    assert [(who.upper(), text) for who, _, text in said] == [(x.speaker, x.text) for x in read]
    for draw, *_ in shots:
        seen = set[bytes]()
        for t in (0.0, 0.5, 0.999):
            image = Image.new("RGB", (864, 480))
            draw(ImageDraw.Draw(image), t, "Vera")
            seen.add(image.tobytes())
        assert len(seen) > 1 or draw.__name__ == "broken_lantern", draw.__name__
