"""`synth`: makes the video file of a row that has a plan (`mustsee.synth.plan`)."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from dataclasses import dataclass, field
from typing import ClassVar

from actors.part import Opened, RunContext
from mustsee.records import Video
from mustsee.synth.make import CodingSettings


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
        from pyarrow import fs

        from mustsee.files.folders import file_name
        from mustsee.files.store import in_folder, resolve
        from mustsee.synth.insertions import plan_of, with_placement
        from mustsee.synth.make import synthesise

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
