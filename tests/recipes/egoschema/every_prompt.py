"""Every prompt of EgoSchema as its job asks it (see `tests/support/every_prompt.py`)."""

from __future__ import annotations

from mustsee.recipes.egoschema import ask as egoschema
from mustsee.recipes.egoschema.no_question import NoQuestionSettings, no_question
from mustsee.records import Line, Video
from tests.support.every_prompt import RecordingAsker

DOING = (
    "C picks up a knife from the drawer", "C cuts the onion on the board",
    "C puts the onion into the pan", "C stirs the pan with a spoon", "C washes the knife",
    "C opens the fridge", "C takes out the milk", "C pours the milk into the pan",
)  # fmt: skip


async def ask_all(asker: RecordingAsker) -> None:
    """Ask every prompt of the recipe once."""
    lines = tuple(Line(start=3.0 * n, end=3.0 * n + 3, text=t) for n, t in enumerate(DOING * 3))
    video = Video(video_id="ego", uri="ego.mp4", lines=lines, duration=90.0)
    for seed in range(12):  # the wording that asks for the answers is drawn
        asked_video = await egoschema.ask(
            video, asker, egoschema.EgoSchemaSettings(chains=("set_a",), seed=seed)
        )
    for chain in ("set_b", "one_shot", "three_call"):
        await egoschema.ask(video, asker, egoschema.EgoSchemaSettings(chains=(chain,)))
    await no_question(asked_video, asker, NoQuestionSettings())
