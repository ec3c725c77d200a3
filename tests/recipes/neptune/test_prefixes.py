"""Neptune's prompts begin with their common text, which an endpoint's prefix cache can use."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from mustsee.recipes.neptune.ask import NeptuneSettings, neptune
from mustsee.verify.blind import BlindGuess
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.vetting import VettingContext, vet
from tests.support.neptune_video import Rules, asker, sample_video
from tests.support.prefixes import Reuse, reuse


def test_a_cached_prefix_ends_at_the_first_difference() -> None:
    same, other = "a" * 640, "a" * 320 + "b" * 320
    found = reuse(
        (name, [{"role": "user", "content": text}])
        for name, text in (("p", same), ("p", same), ("q", other), ("r", "b" * 640))
    )
    assert found["p"] == Reuse(calls=2, blocks=20, hits=10)
    assert found["q"].hits in (4, 5)
    assert found["r"].hits == 0


def test_later_prompts_of_a_part_repeat_most_of_the_first() -> None:
    """The first prompt of a part is new to any cache; later ones repeat at least their share."""
    llm = Rules()
    done = asyncio.run(neptune(sample_video(repeat=12), asker(llm), NeptuneSettings()))
    vetting = VettingContext(askers={"guesser": asker(llm)}, video_frames=VideoFrames(done), seed=0)
    done = replace(done, questions=tuple(q for q in done.questions or () if not q.drop))
    asyncio.run(
        vet(done, (BlindGuess(name="asr", prompt="filters/asr", transcript=True),), vetting, "mma")
    )
    found = reuse(
        (r.prompt, [{"role": m.role, "content": m.text} for m in r.messages]) for r in llm.asked
    )
    assert found["filters/asr"].share >= 0.8
    assert found["neptune/further"].share >= 0.85
    assert found["neptune/decoys"].share >= 0.75


def test_a_cache_of_other_videos_has_most_of_a_new_prompt() -> None:
    """Instructions stand before the video, and the script before what differs; so questions, wrong
    answers and contents begin alike.
    """
    llm = Rules()
    for number in range(4):
        other = sample_video(repeat=3)
        lines = tuple(replace(x, text=f"Number {number}: {x.text}") for x in other.lines or ())
        seen = tuple(replace(c, text=f"{number}: {c.text}") for c in other.captions or ())
        asyncio.run(
            neptune(replace(other, lines=lines, captions=seen), asker(llm), NeptuneSettings())
        )
    found = reuse(
        (r.prompt, [{"role": m.role, "content": m.text} for m in r.messages]) for r in llm.asked
    )
    both = found["neptune/questions"] + found["neptune/decoys"]
    assert both.calls == 8
    assert both.share >= 0.6
    assert found["neptune/dense"].share >= 0.5
