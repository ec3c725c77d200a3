"""The sample films are what `examples/README.md` says they are."""

import csv
from pathlib import Path

import pytest

from mustsee.errors import BadRow
from mustsee.media import subtitles
from mustsee.media.video import facts

EXAMPLES = Path(__file__).parents[2] / "examples"
FILMS = sorted(p for p in (EXAMPLES / "videos").iterdir() if p.suffix != ".srt")


def test_every_film_is_small_described_and_in_the_table() -> None:
    assert sum(p.stat().st_size for p in EXAMPLES.rglob("*") if p.is_file()) < 6_000_000
    readme = (EXAMPLES / "README.md").read_text()
    assert all(f"`{p.name}`" in readme for p in FILMS)
    with (EXAMPLES / "videos.csv").open() as file:
        listed = {EXAMPLES / row["uri"] for row in csv.DictReader(file)}
    assert listed == set(FILMS)


@pytest.mark.parametrize("film", FILMS, ids=lambda p: p.name)
def test_films_can_be_read_but_for_the_broken_one(film: Path) -> None:
    if film.name == "broken.mp4":
        with pytest.raises(BadRow):
            facts(str(film))
        return
    found = facts(str(film))
    assert (found.width, found.height) == (432, 240)
    assert found.has_audio == (film.name not in ("seasons.webm", "teaser.mp4"))
    rows = (EXAMPLES / "README.md").read_text().splitlines()
    (row,) = (r for r in rows if r.startswith(f"| `{film.name}`"))
    assert int(row.split("|")[2]) == round(found.duration or 0)


def test_subtitles_lie_beside_the_second_film_only() -> None:
    have = {p.name for p in FILMS if subtitles.find_subtitles(str(p))}
    assert have == {"birdhouse.mp4"}
    lines = subtitles.read(str(EXAMPLES / "videos/birdhouse.srt")).lines
    assert len(lines) == 15
    assert lines[-1].end <= (facts(str(EXAMPLES / "videos/birdhouse.mp4")).duration or 0)
