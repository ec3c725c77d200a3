"""Needles: their questions, and backgrounds without similar content."""

import asyncio
import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from actors.stages.synthesise import Absent, Synthesise, check_absence
from mustsee.errors import BadRow
from mustsee.files import schemas
from mustsee.recipes.mlvu import ask as mlvu
from mustsee.recipes.mlvu import layout
from mustsee.recipes.mlvu.tasks import probe_videos
from mustsee.records import Caption, Span, Video
from mustsee.synth import absence
from mustsee.synth.absence import Absence
from mustsee.synth.insertions import (
    Background,
    InsertedClip,
    plan_of,
    with_captions,
    with_placement,
)
from mustsee.synth.make import CodingSettings
from tests.support.material import material
from tests.support.mlvu import BACKGROUNDS, CLIPS, VIDEO, Counted, ask, making
from tests.support.sample_videos import FPS, cuts, write

YOGA = "video/OpenGVLab+Ask-Anything/example/yoga.mp4"


@pytest.mark.parametrize("options", [4, 6])
def test_each_captioned_needle_gets_questions(options) -> None:
    rows = mlvu.Needle(making=making(items=10)).rows(BACKGROUNDS, CLIPS)
    for row in rows:
        (segment,) = row.segments
        questions = ask(row, options=options).questions
        assert 1 <= len(questions) <= 3
        for question in questions:
            assert question.question_type == "findNeedle"
            assert question.evidence == (Span(segment.start, segment.end),)
            assert len(question.options) == options
            assert question.drop is None
            assert question.answer in segment.dense_caption.lower()
    asked_row = ask(rows[0])
    assert ask(asked_row) is asked_row
    with pytest.raises(BadRow, match="no captioned needle"):
        ask(replace(rows[0], segments=()))


def test_backgrounds_of_an_earlier_run_keep_their_results(tmp_path) -> None:
    video = write(tmp_path / "video.mp4", cuts([100, 100]))
    row = Video(video_id="a", uri=str(video), duration=1.0, shots=(Span(0, 4), Span(4, 8)),
                captions=(Caption(2.0, "a man rows a boat"),))  # fmt: skip
    pq.write_table(schemas.table([row], Video), tmp_path / "videos.parquet")
    (read,) = probe_videos(str(tmp_path / "videos.parquet"))
    assert (read.shots, read.captions) == (row.shots, row.captions)
    assert read.duration == pytest.approx(200 / FPS)


def test_captions_move_with_their_frames_and_describe_the_new_video() -> None:
    """A needle whose caption says what is said of its background falls; the captions of both end up
    on the clock of the whole.
    """
    said = ("a man rows a boat", "snow falls on a street", "two dogs run in a park")
    captions = tuple(Caption(200.0 * i + 50, text) for i, text in enumerate(said))
    place = Background(uri="video.mp4", duration=600.0, captions=captions)
    task = mlvu.Needle(making=making(items=1, background_seconds=None))
    (row,) = task.rows(
        [place], [InsertedClip(uri="c.mp4", end=8, caption="Snow falls on a street.")]
    )
    row = with_captions(row, [place])
    assert row.captions == captions
    plan = plan_of(row)
    at = plan.insertions[0].at
    moved = with_placement(row, plan, plan.placements())
    assert [c.time for c in moved.captions] == sorted(
        [at, *(c.time + (8 if c.time >= at else 0) for c in captions)]
    )
    rule = Absence(apart=None)

    def embed(texts):
        tokens = [t.lower().strip(".").split() for t in texts]
        words = sorted({w for t in tokens for w in t})
        return np.array([[t.count(w) for w in words] for t in tokens], np.float32)

    checked = check_absence(row, plan, rule, embed)
    assert (
        "nearest caption at 250.0 s, similarity 1.00: snow falls"
        in checked.segments[0].visual_support
    )
    assert checked.drop.startswith("needle: ")
    (other,) = task.rows(
        [place], [InsertedClip(uri="c.mp4", end=8, caption="A woman paints a door.")]
    )
    other = with_captions(other, [place])
    assert check_absence(other, plan_of(other), rule, embed).drop is None
    assert check_absence(row, plan, replace(rule, alike=None), embed).drop is None


def test_a_real_needle_from_plan_to_export(tmp_path) -> None:
    clips = [
        InsertedClip(
            uri=str(material(YOGA)), end=6, label="yoga", caption="A woman does yoga outdoors"
        )
    ]
    places = [Background(uri=str(material(VIDEO)), duration=231.4)]
    task = mlvu.Needle(making=making(items=1, background_seconds=60.0))
    (row,) = task.rows(places, clips)
    part = Synthesise(folder=str(tmp_path / "videos"), settings=CodingSettings(preset="ultrafast"))
    counted = Counted()
    context = counted.context(tmp_path / "store")
    check = Absent(rule=Absence(every=4.0)).open(context)
    asked_row = ask(part.open(context)(asyncio.run(check(row))))
    assert asked_row.drop is None
    assert "nearest frame at" in asked_row.segments[0].visual_support
    assert asked_row.duration == pytest.approx(66, abs=0.05)
    assert counted.counts == {"synth.copy": 1, "absent.not_looked_at": 1}
    assert json.loads((tmp_path / "videos" / f"{row.video_id}.mp4.json").read_text())["made"][
        "placed"
    ]

    probe = absence.frame_descriptors(clips[0].uri, 1.0, 0, 6)
    around = asked_row.segments[0].start - 8, asked_row.segments[0].end + 8
    time, distance = absence.nearest(probe, absence.frame_descriptors(asked_row.uri, 0.5, *around))
    assert distance < 0.06
    assert asked_row.segments[0].start <= time <= asked_row.segments[0].end

    itself = with_itself(row, places[0])
    dropped = asyncio.run(check(itself))
    assert dropped.drop.startswith("needle: ")
    assert dropped.uri == itself.uri

    layout.write(asked_row.questions, tmp_path / "export", [asked_row])
    read = layout.read(tmp_path / "export")
    assert not read.findings
    assert [(q.question, q.options, q.answer_index) for q in read] == [
        (q.question, q.options, q.answer_index) for q in asked_row.questions
    ]


def with_itself(row, place):
    """The same row with a span of the background as its needle."""
    plan = plan_of(row)
    probe = replace(
        plan.insertions[0].probe, uri=place.uri, start=plan.start + 20, end=plan.start + 26
    )
    plan = replace(plan, insertions=(replace(plan.insertions[0], probe=probe),))
    from mustsee.files import schemas

    return replace(row, plan=json.dumps(schemas.dump(plan)))
