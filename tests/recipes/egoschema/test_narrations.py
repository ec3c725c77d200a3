"""Narrations of all forms are read as the same timed lines."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import pyarrow.parquet as pq
import pytest
from hydra.utils import instantiate
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.recipes.egoschema import narrations
from mustsee.recipes.egoschema.narrations import NarrationColumns
from mustsee.records import Caption, Line, Video
from tests.support.material import material


def columns(name: str) -> NarrationColumns:
    return instantiate(OmegaConf.load(f"conf/columns/{name}.yaml"))


@given(st.floats(0, 36_000))
def test_clock_and_seconds_agree(time: float) -> None:
    clock = f"{int(time // 3600):02}:{int(time % 3600 // 60):02}:{time % 60:09.6f}"
    if not clock.endswith("60.000000"):
        assert narrations.seconds(clock) == pytest.approx(time, abs=1e-5)
    assert narrations.seconds(time) == time


@pytest.mark.parametrize("wrong", ["", "soon", "-1", "nan", "inf", "1:2:3:4"])
def test_an_invalid_time_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        narrations.seconds(wrong)


def test_ego4d_passes_tags_and_unsure(tmp_path) -> None:
    def make_pass(*pairs):
        return {"narrations": [{"timestamp_sec": t, "narration_text": x} for t, x in pairs]}

    data = {
        "videos": {
            "v": {
                "status": "complete",
                "narration_pass_1": make_pass((3.5, "#C C opens a door"), (1, "#O a man X waves ")),
                "narration_pass_2": make_pass(
                    (2, "#C C  opens the door"), (4, "#unsure"), (5, "#Unsure C")
                ),
            },
            "silent": {"status": "redacted"},
        }
    }
    path = tmp_path / "narration.json"
    path.write_text(json.dumps(data))
    longest = narrations.read(str(path), columns("ego4d"))
    assert [x.text for x in longest.lines["v"]] == ["C opens the door"]
    assert longest.skipped == 2
    assert set(longest.lines) == {"v"}
    first = narrations.read(str(path), NarrationColumns(form="ego4d", narrator="narration_pass_1"))
    assert [(x.start, x.text) for x in first.lines["v"]] == [
        (1, "a man X waves"),
        (3.5, "C opens a door"),
    ]
    assert first == narrations.from_ego4d(
        data["videos"], NarrationColumns(form="ego4d", narrator="narration_pass_1")
    )


def test_a_faulty_table_is_refused_with_the_reason(tmp_path) -> None:
    path = tmp_path / "n.csv"
    path.write_text("video_id,time,text\nv,0:30,opens\nv,later,closes\n")
    with pytest.raises(UserError, match=r"row 2.*'later'"):
        narrations.read(str(path), columns("table"))
    with pytest.raises(UserError, match="no column 'start_timestamp'"):
        narrations.read(str(path), columns("epic"))
    with pytest.raises(UserError, match="cannot read"):
        narrations.read(str(tmp_path / "none.csv"), columns("table"))
    with pytest.raises(UserError, match="not JSON"):
        narrations.read(str(path), columns("ego4d"))
    with pytest.raises(UserError, match="'opens'"):
        narrations.durations(str(path), duration="text")
    path.write_text("video_id,duration\nv,0:30\nfailed,\n")
    assert narrations.durations(str(path)) == {"v": 30.0}


def test_jsonl_and_csv_read_the_same(tmp_path) -> None:
    rows = [
        {"video_id": "b", "time": 4.25, "text": "puts, down"},
        {"video_id": "a", "time": 0, "text": "x"},
    ]
    (tmp_path / "n.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "n.csv").write_text('video_id,time,text\nb,4.25,"puts, down"\na,0,x\n')
    read = [narrations.read(str(tmp_path / f"n.{x}"), columns("table")) for x in ("jsonl", "csv")]
    assert read[0] == read[1]
    assert list(read[0].lines) == ["a", "b"]


@pytest.mark.parametrize(
    ("path", "count"),
    [
        (
            "narrations/epic-kitchens+epic-kitchens-55-annotations/EPIC_train_action_narrations.csv",
            28_587,
        ),
        (
            "narrations/epic-kitchens+epic-kitchens-100-annotations/UDA_annotations/EPIC_100_uda_source_train.csv",
            16_115,
        ),
    ],
)
def test_real_epic_narrations(path: str, count: int) -> None:
    read = narrations.read(str(material(path)), columns("epic"))
    assert len(read) + read.skipped == count
    for lines in read.lines.values():
        assert all(a.start <= b.start for a, b in pairwise(lines))
        assert all(
            math.isfinite(x.end) and x.end >= x.start and x.text.startswith("C ") for x in lines
        )


def test_captions_of_a_run_are_read_as_narrations(tmp_path) -> None:
    rows = [
        Video(video_id="b", uri="b.mp4", captions=(Caption(4.0, "a dog"), Caption(1.0, "a cat"))),
        Video(video_id="a", uri="a.mp4"),
    ]
    pq.write_table(schemas.table(rows, Video), tmp_path / "videos.parquet")
    read = narrations.read(str(tmp_path / "videos.parquet"), columns("captions"))
    assert {k: [x.text for x in v] for k, v in read.lines.items()} == {"b": ["a cat", "a dog"]}
    assert narrations.read(str(tmp_path), columns("captions")) == read


def test_captions_by_rules_are_refused_with_what_to_do(tmp_path) -> None:
    seen = (
        Caption(1.0, "The picture is dim, mostly grey and red; with some motion."),
        Caption(4.0, "Two cups can be seen. The picture is mostly blue."),
        Caption(8.0, "C lifts a cup."),
    )
    file = tmp_path / "videos.parquet"
    pq.write_table(schemas.table([Video(video_id="a", uri="a.mp4", captions=seen)], Video), file)
    with pytest.raises(UserError, match=r"caption=pixels.*caption=openai caption\.wearer=true"):
        narrations.read(str(tmp_path), columns("captions"))
    by_model = replace(Video(video_id="a", uri="a.mp4"), captions=seen[1:] + seen[2:])
    pq.write_table(schemas.table([by_model], Video), file)
    assert len(narrations.read(str(tmp_path), columns("captions")).lines["a"]) == 3


def test_a_captioned_video_ends_where_the_run_says(tmp_path) -> None:
    """The times of a clip's captions are those of its video."""
    seen = (Caption(95.0, "C sits"),)
    rows = [
        Video(video_id="whole", uri="b.mp4", duration=200.0, captions=seen),
        Video(video_id="clip", uri="b.mp4", start=90.0, end=150.0, duration=60.0, captions=seen),
        Video(video_id="unknown", uri="c.mp4", captions=seen),
    ]
    pq.write_table(schemas.table(rows, Video), tmp_path / "videos.parquet")
    read = narrations.read(f"{tmp_path}/", columns("captions"))
    assert read.durations == {"whole": 200.0, "clip": 150.0}


def test_a_folder_without_a_run_is_named(tmp_path) -> None:
    with pytest.raises(UserError, match=r"videos\.parquet"):
        narrations.read(str(tmp_path), columns("captions"))


def test_prompt_lines_have_the_form_of_the_paper() -> None:
    lines = [
        Line(start=0.2, end=1, text="C stares at the lamp"),
        Line(start=3.9, end=4, text="C sits"),
    ]
    assert narrations.prompt_lines(lines) == "0 - C stares at the lamp\n3 - C sits"
    late = [replace(line, start=line.start + 30, end=line.end + 30) for line in lines]
    assert narrations.prompt_lines(late, 30.0) == narrations.prompt_lines(lines)
