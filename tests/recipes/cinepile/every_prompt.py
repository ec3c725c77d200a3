"""Every prompt of CinePile as its job asks it (see `tests/support/every_prompt.py`)."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from mustsee.recipes.cinepile import ask as cinepile
from mustsee.recipes.cinepile.filters import Fits, ask_choice
from mustsee.recipes.cinepile.induction import replace_names
from mustsee.recipes.cinepile.question_lists import ListedQuestion
from mustsee.recipes.cinepile.templates import CATEGORIES, Template, templates_form
from mustsee.records import SceneText, Video
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.filters import VettingContext
from tests.support import verifier
from tests.support.every_prompt import CHOICE, OPTIONS, Call, RecordingAsker, Rules
from tests.support.neptune_video import SAID, sample_video

SCENE = "\n".join(f"<subtitle> {10.0 * n} {10.0 * n + 5} {text}" for n, text in enumerate(SAID))


async def ask_all(asker: RecordingAsker) -> None:
    """Ask every prompt of the recipe once."""
    lines = sample_video().lines or ()
    scene = SceneText(
        lines=lines, visual=(0.0, 1.0) * 4, start=0, end=80, rate=1, score=1, head=1, tail=1
    )
    kinds = [Template(name=f"Kind {n}", prototype=f"Kind {n} of [event]?", category=CATEGORIES[1])
             for n in range(30)]  # fmt: skip
    video = Video(video_id="clip", uri="clip.mp4", scene=scene, duration=80.0)
    listed = "\n".join(f"- {letter}) {o}" for letter, o in zip("ABCDE", OPTIONS, strict=True))
    written = (
        f"Template: Kind 1\nQuestion: {CHOICE}\n{listed}\nCorrect Answer: A\nRationale: it is said."
    )
    scripted = replace(asker, llm=Rules({"cinepile/questions": written}))
    askers = dict.fromkeys(("shortlister", "reasoning", "perceptual"), scripted)
    await cinepile.ask(video, askers, cinepile.CinePileSettings(templates=tuple(kinds)))
    asked = verifier.question(question=CHOICE, options=OPTIONS)
    shown = {"context": SCENE, "about": "What is said:"}
    await ask_choice("hardness", asker, asked, detail="whole scene", seed=0, **shown)
    vetting = VettingContext(askers={"reader": asker}, video_frames=VideoFrames(video))
    await Fits()(asked, video, vetting)
    questions = ["Why does he open the door?", "Where does she go after the call?"]
    listed_questions = [
        ListedQuestion(text=q, neutral=q, source="list", title="") for q in questions
    ]
    await replace_names(listed_questions, asker, lambda step: contextlib.nullcontext())
    asker.calls["cinepile/templates"] = Call(
        "cinepile/templates", templates_form(4),
        {"questions": questions, "count": 4, "categories": CATEGORIES},
    )  # fmt: skip
