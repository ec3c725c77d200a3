"""Clips, backgrounds and settings for MLVU's tests."""

import asyncio
from collections import Counter

from actors.llm.offline import Offline
from actors.part import RunContext
from mustsee.calls.llm import Asker
from mustsee.files.store import Store
from mustsee.prompts import Prompts
from mustsee.recipes.mlvu import ask as mlvu
from mustsee.records import Video
from mustsee.synth.insertions import Background, InsertedClip, SynthesisSettings

ACTIONS = ("baking cookies", "playing harp", "pole vault", "milking cow", "tossing coin", "zumba")
CLIPS = [
    InsertedClip(uri=f"{a}{n}.mp4", end=12.0 + n, label=a, caption=f"Someone is {a} number {n}")
    for a in ACTIONS
    for n in range(6)
]
BACKGROUNDS = [Background(uri=f"video{n}.mp4", duration=600.0 + 900 * n) for n in range(3)]
VIDEO = "video/vidstack+files/agent327_hls360p_remux.mp4"


def making(**options) -> SynthesisSettings:
    """Return the settings of a plan, of 48 items unless `options` change it."""
    return SynthesisSettings(**{"items": 48, "seed": 7, **options})


def ask(video, **options) -> Video:
    """Return the video with the offline rules' questions on its needle."""
    asker = Asker(llm=Offline().open(), prompts=Prompts())
    return asyncio.run(mlvu.ask_needle(video, asker, mlvu.NeedleSettings(**options)))


class Counted:
    """The context of a run, which keeps a part's counters."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def context(self, root) -> RunContext:
        return RunContext(store=Store(str(root)), llm=lambda _: None, count=self._count)  # type: ignore[arg-type]

    def _count(self, name, n) -> None:
        self.counts[name] += n
