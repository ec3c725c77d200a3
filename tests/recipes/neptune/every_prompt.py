"""Every prompt of Neptune as its job asks it (see `tests/support/every_prompt.py`)."""

from __future__ import annotations

from dataclasses import replace

from mustsee.calls.usage import RequestTally
from mustsee.recipes.neptune.ask import NeptuneSettings, neptune
from mustsee.recipes.neptune.diversity import perceive_people
from mustsee.recipes.neptune.settings import WholeSettings
from mustsee.recipes.neptune.whole import whole
from mustsee.records import Caption, Keyframe
from mustsee.verify.conditions.seen import Condition
from tests.support.every_prompt import RecordingAsker, Rules
from tests.support.neptune_video import near_questions, sample_video


async def ask_all(asker: RecordingAsker) -> None:
    """Ask every prompt of the recipe once."""
    long = sample_video(repeat=2)
    second_frame = (Caption(8.0, "A bowl stands beside the stove."),)
    long = replace(long, captions=tuple(sorted((*(long.captions or ()), *second_frame),
                                               key=lambda c: c.time)))  # fmt: skip
    replies = {"neptune/questions": near_questions(4), "neptune/further": "NONE"}
    scripted = replace(asker, llm=Rules(replies))
    await neptune(long, scripted, NeptuneSettings(questions=4, dense_words=300, support_words=60))
    await whole(long, asker, WholeSettings(see=Condition()))
    await whole(long, asker, WholeSettings(see=Condition(), prompt="neptune/script"))
    keyframes = tuple(Keyframe(time=float(n), shot=n, jpeg=b"1") for n in range(3))
    await perceive_people(replace(long, keyframes=keyframes), asker, RequestTally(), frames=2)
