"""Re-cuts: the same question on a video and on a re-cut of it, with different answers.

    python -m ray_jobs.recuts made=runs/made out=O

It reads the facts of a finished run, calls no model, and writes the re-cut videos to out/videos.
See docs/facts.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from actors.part import Part
from actors.stages.facts import AskFacts
from mustsee import schemas
from mustsee.errors import UserError
from mustsee.facts.recuts import recut_rows
from mustsee.layouts.detect import open_streamed
from mustsee.records import Video
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.run import JobSettings


@dataclass(frozen=True, kw_only=True)
class Recuts:
    run: JobSettings
    made: str
    ask: AskFacts
    make: Part

    def __call__(self) -> int:
        settings = self.ask.settings
        rows = [
            row
            for video in open_streamed(self.made).videos
            if video.facts and video.problem is None and video.drop is None
            for row in recut_rows(video, settings)
        ]
        if not rows:
            raise UserError(f"made={self.made!r}: no video has facts; expected a run of ask=facts")
        with self.run.open("recuts") as run:
            run.read(schemas.table(rows, Video))
            run.stage("synth", self.make)
            return run.publish()


if __name__ == "__main__":
    launch("recuts")
