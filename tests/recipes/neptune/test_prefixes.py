"""Neptune's prompts begin with their common text, which an endpoint's prefix cache can use."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from mustsee.recipes.neptune.ask import NeptuneSettings, neptune
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.filters import VettingContext
from mustsee.verify.guess.filters import BlindGuess
from mustsee.verify.vetting import vet
from tests.support.neptune_video import Replies, asker, near_questions, sample_video
from tests.support.prefixes import Reuse, reuse


def test_a_cached_prefix_ends_at_the_first_difference() -> None:
    same, other = "a" * 640, "a" * 320 + "b" * 320
    shares = reuse(
        (name, [{"role": "user", "content": text}])
        for name, text in (("p", same), ("p", same), ("q", other), ("r", "b" * 640))
    )
    assert shares["p"] == Reuse(calls=2, blocks=20, hits=10)
    assert shares["q"].hits in (4, 5)
    assert shares["r"].hits == 0


def test_later_prompts_of_a_part_repeat_most_of_the_first() -> None:
    """The first prompt of a part is new to any cache; later ones repeat at least their share."""
    llm = Replies({"neptune/questions": lambda request: near_questions(12)})
    result = asyncio.run(neptune(sample_video(repeat=12), asker(llm), NeptuneSettings()))
    vetting = VettingContext(
        askers={"guesser": asker(llm)}, video_frames=VideoFrames(result), seed=0
    )
    result = replace(result, questions=tuple(q for q in result.questions or () if not q.drop))
    asyncio.run(
        vet(
            result, (BlindGuess(name="asr", prompt="filters/asr", transcript=True),), vetting, "mma"
        )
    )
    shares = reuse(
        (r.prompt, [{"role": m.role, "content": m.text} for m in r.messages]) for r in llm.asked
    )
    assert shares["filters/asr"].share >= 0.8
    assert shares["neptune/further"].share >= 0.85
    assert shares["neptune/decoys"].share >= 0.75


def test_a_cache_of_other_videos_has_most_of_a_new_prompt() -> None:
    """Instructions stand before the video, and the script before what differs; so questions, wrong
    answers and contents begin alike.
    """
    llm = Replies({"neptune/questions": lambda request: near_questions(10)})
    settings = NeptuneSettings(dense_words=300)
    for number in range(4):
        other = sample_video(repeat=3)
        lines = tuple(replace(x, text=f"Number {number}: {x.text}") for x in other.lines or ())
        captions = tuple(replace(c, text=f"{number}: {c.text}") for c in other.captions or ())
        asyncio.run(neptune(replace(other, lines=lines, captions=captions), asker(llm), settings))
    shares = reuse(
        (r.prompt, [{"role": m.role, "content": m.text} for m in r.messages]) for r in llm.asked
    )
    both = shares["neptune/questions"] + shares["neptune/decoys"]
    assert both.calls == 8
    assert both.share >= 0.55
    assert shares["neptune/dense"].share >= 0.45
