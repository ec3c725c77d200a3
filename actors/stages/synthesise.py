"""`synth` and `absent`: make the video file of a row that has a plan (`mustsee.synth.plan`), and
drop one whose background already shows what it is to be asked about.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import tempfile
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import ClassVar

from pyarrow import fs

from actors.part import AskOptions, LlmConfig, Opened, RunContext, capabilities_of
from mustsee.files.folders import file_name
from mustsee.files.store import in_folder, keyed_by, resolve
from mustsee.media.video import open_video
from mustsee.nn.weights import MINILM
from mustsee.recipes.mlvu.checks import PROMPT, AbsenceLook, search_background
from mustsee.records import Frame, Video
from mustsee.synth.absence import (
    Absence,
    Embed,
    find_nearest,
    fitted_descriptors,
    frame_descriptors,
)
from mustsee.synth.insertions import plan_of, with_placement
from mustsee.synth.make import CodingSettings, synthesise
from mustsee.synth.plan import InsertionPlan
from mustsee.verify.conditions.video_frames import VideoFrames

NOT_LOOKED_AT = "absent.not_looked_at"


@dataclass(frozen=True, kw_only=True)
class Synthesise:
    """Writes `folder/<video_id>.mp4` (local, s3:// or gs://), and the plan with its result as .json
    beside it. `uri` becomes the file's address; segments and evidence move to the actual times of
    the probes. Rows without a plan are passed on unchanged.

    `kept_only`: so are rows whose questions have all been dropped.
    """

    version: ClassVar[str] = "3"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "plan", "segments", "questions", "captions")
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = (
        *("uri", "duration", "fps", "width", "height", "has_audio", "has_video"),
        *("segments", "questions", "captions"),
    )

    folder: str
    settings: CodingSettings = field(default_factory=CodingSettings)
    kept_only: bool = False

    def open(self, run: RunContext) -> Opened:
        target, root = resolve(self.folder)
        local = isinstance(target, fs.LocalFileSystem)

        def make(video: Video) -> Video:
            has_question = any(q.drop is None for q in video.questions or ())
            if video.plan is None or (self.kept_only and not has_question):
                return video
            name = f"{file_name(video.video_id)}.mp4"
            with tempfile.TemporaryDirectory() as spare:
                folder = root if local else spare
                os.makedirs(folder, exist_ok=True)
                synthesis = synthesise(plan_of(video), f"{folder}/{name}", self.settings)
                for file in () if local else (name, f"{name}.json"):
                    fs.copy_files(
                        f"{folder}/{file}", f"{root}/{file}", fs.LocalFileSystem(), target
                    )
            run.count(f"synth.{synthesis.mode}", 1)
            return dataclasses.replace(
                with_placement(video, plan_of(video), synthesis.spans()),
                uri=f"{root}/{name}" if local else in_folder(self.folder, name),
                duration=synthesis.duration,
                fps=synthesis.fps,
                width=synthesis.width,
                height=synthesis.height,
                has_audio=synthesis.has_sound,
                has_video=True,
            )

        return make


@dataclass(frozen=True, kw_only=True)
class Absent(AskOptions):
    """Drops a row if one of its probes resembles the background: by its frames, by its caption or
    label (where the background has captions), or in the eyes of the `verifier`. Each segment's
    visual support names the nearest times, for a person to check. Rows without a plan are passed
    on unchanged.
    """

    version: ClassVar[str] = "4"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "plan", "segments", "captions")
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = ("segments", "drop")

    rule: Absence = field(default_factory=Absence)
    encoder: str = MINILM
    """The text encoder of captions and labels."""
    verifier: LlmConfig | None = keyed_by(lambda part: part.roles.get("verifier"), default=None)
    """Vision model that searches the background for the probe; null: no model searches."""
    look: AbsenceLook = keyed_by(
        lambda part: part.look if part.roles else None, default_factory=AbsenceLook
    )
    seed: int = keyed_by(lambda part: part.seed if part.roles else None, default=0)

    @property
    def roles(self) -> dict[str, LlmConfig]:
        """The verifier, if it takes images."""
        llm = self.verifier
        return {"verifier": llm} if llm is not None and capabilities_of(llm).images else {}

    @property
    def prompt_names(self) -> tuple[str, ...]:
        return (PROMPT,) if self.roles else ()

    def open(self, run: RunContext) -> Opened:
        llm = self.roles.get("verifier")
        asker = self.open_asker(llm, run) if llm else None

        @cache
        def embed() -> Embed:
            from mustsee.nn.bert import Encoder

            encoder = Encoder.load(self.encoder)
            return lambda texts: encoder.encode(list(texts))

        def measure_absence(video: Video) -> Video:
            by_text = self.rule.alike is not None or self.rule.called is not None
            encoder = embed() if by_text and video.captions else None
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
    """Return the row with each probe's nearest background times, dropped if one is too near."""
    behind: list[Frame] = []
    if rule.apart is not None:
        frames = _looks(plan.background, rule.every)
        behind = [f for f in frames if plan.start <= f.time < plan.end]
    segments = list(video.segments or ())
    reason = None
    for number, insertion in enumerate(plan.insertions):
        probe = insertion.probe
        probe_frames = list[Frame]()
        if behind:
            size = _size(plan.background)
            probe_frames = fitted_descriptors(probe.uri, rule.every, probe.start, probe.end, size)
        nearest = find_nearest(
            rule,
            frames=(probe_frames, behind),
            caption=segments[number].dense_caption,
            label=probe.label,
            captions=video.captions or (),
            embed=embed,
        )
        segments[number] = dataclasses.replace(segments[number], visual_support=str(nearest))
        if not nearest.absent:
            what = probe.label or segments[number].dense_caption or probe.uri
            reason = (
                f"needle: {what!r} is like the background ({nearest}); "
                f"{nearest.failed_setting}=null keeps it"
            )
    return dataclasses.replace(video, segments=tuple(segments), drop=reason)


@lru_cache(maxsize=4)
def _size(uri: str) -> tuple[int, int]:
    with open_video(uri) as video:
        facts = video.facts()
    return facts.width, facts.height


@lru_cache(maxsize=4)
def _looks(uri: str, every: float) -> list[Frame]:
    return frame_descriptors(uri, every)
