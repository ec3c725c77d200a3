"""The writer sees contact sheets of the part that it asks about, and no retelling."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from mustsee.errors import UserError
from mustsee.media.contact_sheet import SheetRules
from mustsee.media.frames import encode
from mustsee.recipes.neptune.ask import NeptuneSettings
from mustsee.records import Keyframe, Video
from tests.recipes.neptune.test_parts import named, run
from tests.support.neptune_video import Replies, near_questions, sample_video

SETTINGS = NeptuneSettings(sheets=SheetRules(most=2, cells=4, longest=320))


def looked_at(repeat: int = 1) -> Video:
    """The sample video with a keyframe of a shade of its own in each shot."""
    video = sample_video(repeat=repeat)
    shades = (
        np.full((36, 64, 3), 60 + 190 * n // (8 * repeat), np.uint8) for n in range(8 * repeat)
    )
    jpegs = (encode(shade, 90) for shade in shades)
    frames = tuple(Keyframe(time=10.0 * n + 5, shot=n, jpeg=x) for n, x in enumerate(jpegs))
    return replace(video, keyframes=frames)


def test_all_prompts_of_a_part_begin_with_the_same_sheets() -> None:
    """So that an endpoint caches them; later turns of a chat do not send them again."""
    llm = Replies({"neptune/questions": lambda request: near_questions(4)})
    run(looked_at(), llm, SETTINGS)
    sent = [r for name in ("questions", "further", "decoys") for r in named(llm, name)]
    assert {r.prompt for r in sent} == {f"neptune/{x}" for x in ("questions", "further", "decoys")}
    assert len({r.messages[1].images for r in sent}) == 1
    for request in sent:
        first, *rest = request.messages[1:]
        assert len(first.images) == 2
        assert first.parts[:2] == first.images
        assert not any(message.images for message in rest)
        assert "The 2 pictures before this text are contact sheets" in first.text
    others = [r for r in llm.asked if r not in sent]
    assert not any(message.images for r in others for message in r.messages)


def test_the_frames_are_those_of_the_script() -> None:
    llm = Replies()
    run(looked_at(), llm, SETTINGS)
    (request,) = named(llm, "questions")
    part = request.variables["part"]
    times = [time for sheet in part.sheets for time in sheet.times]
    assert times == [10.0 * n + 5 for n in range(8)]
    assert all(any(u.start <= time <= u.end for u in part.units) for time in times)


def test_each_part_has_the_frames_of_its_own_span() -> None:
    llm = Replies()
    run(looked_at(repeat=4), llm, replace(SETTINGS, max_words=500))
    parts = {r.variables["part"] for r in named(llm, "questions")}
    assert len(parts) > 2
    for part in parts:
        times = [time for sheet in part.sheets for time in sheet.times]
        assert times
        assert all(part.span.start <= time <= part.span.end for time in times)
        assert max(times) - min(times) >= 0.5 * part.span.seconds - 20


@pytest.mark.parametrize(
    ("video", "settings"),
    [(sample_video(), SETTINGS), (looked_at(), replace(SETTINGS, sheets=SheetRules(most=0)))],
    ids=["no keyframes", "off"],
)
def test_without_sheets_none_are_named(video: Video, settings: NeptuneSettings) -> None:
    llm = Replies()
    run(video, llm, settings)
    texts = [m.text for r in llm.asked for m in r.messages]
    assert not any("contact sheet" in text for text in texts)
    assert not any(m.images for r in llm.asked for m in r.messages)


def test_without_dense_captions_the_script_stands_once_and_for_them() -> None:
    llm = Replies()
    segments = run(sample_video(), llm).segments or ()
    assert not named(llm, "dense")
    (request,) = named(llm, "questions")
    text = request.messages[-1].text
    scenes = request.variables["part"].scenes
    assert "story" not in text.lower().partition("script of a video")[2]
    assert [s.dense_caption for s in segments] == [scene.sentences for scene in scenes]
    for scene in scenes:
        assert all(text.count(unit.caption) == 1 for unit in scene.units)
    told = Replies()
    run(sample_video(), told, NeptuneSettings(dense_words=50))
    (request,) = named(told, "questions")
    assert len(re.findall(r"\n  Story: \S", request.messages[-1].text)) == len(scenes)


def test_an_overview_has_the_beginnings_of_the_sentences() -> None:
    llm = Replies()
    run(sample_video(repeat=6), llm, NeptuneSettings(max_words=1000, questions=2))
    (overview,) = [r for r in named(llm, "questions") if r.variables["part"].overview]
    scenes = overview.variables["part"].scenes
    text = overview.messages[-1].text
    assert all(scene.story and scene.story in text for scene in scenes)


def test_a_visual_support_needs_dense_captions() -> None:
    with pytest.raises(UserError, match="dense_words"):
        NeptuneSettings(support_words=200)
