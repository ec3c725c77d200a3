"""Every prompt of MLVU as its job asks it (see `tests/support/every_prompt.py`)."""

from __future__ import annotations

from mustsee.recipes.mlvu.ask import NeedleSettings, ask_needle
from mustsee.recipes.mlvu.checks import AbsenceLook, search_background
from mustsee.records import Segment, Video
from mustsee.synth.plan import InsertionPlan
from tests.support import verifier
from tests.support.every_prompt import RecordingAsker


async def ask_all(asker: RecordingAsker) -> None:
    """Ask every prompt of the recipe once."""
    needle = Segment(start=0, end=8, topic="needle", dense_caption="two dogs run in a park")
    video = Video(video_id="v", uri="v.mp4", segments=(needle,))
    await ask_needle(video, asker, NeedleSettings())
    plan = InsertionPlan(background="video.mp4", end=60.0)
    await search_background(video, plan, verifier.Stills(verifier.row()), asker, AbsenceLook())
