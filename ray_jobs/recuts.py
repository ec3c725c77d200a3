"""Re-cuts: the same question on a video and on a re-cut of it, with different answers.

    python -m ray_jobs.recuts made=runs/made out=O

It reads the facts of a finished run, calls no model, and writes the re-cut videos to out/videos.
See docs/facts.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType

from actors.part import Part
from actors.stages.facts import AskFacts
from mustsee import schemas
from mustsee.errors import UserError
from mustsee.facts.recuts import recut_rows
from mustsee.layouts.detect import open_streamed
from mustsee.records import PAIR, Video
from mustsee.run.tables import Tables
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.heartbeat import show_step
from ray_jobs.runtime.run import JobSettings


@dataclass(frozen=True, kw_only=True)
class Recuts:
    run: JobSettings
    made: str
    ask: AskFacts
    make: Part

    def __call__(self) -> int:
        settings = self.ask.settings
        with show_step("composing questions on re-cuts of each video"):
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
            return run.publish(files=count_pairs)


def count_pairs(folder: Path, tables: Tables) -> list[RenderableType]:
    """Return the last line of the summary: how many pairs of questions were made."""
    kept = [
        q
        for q in tables.questions("relation", "group", "drop")
        if q.relation == PAIR and q.drop is None
    ]
    members = Counter(question.group for question in kept)
    pairs = sum(n == 2 for n in members.values())
    videos = len({question.video_id for question in kept})
    return [f"pairs of a question on a video and on its re-cut: {pairs}, on {videos} videos in all"]


if __name__ == "__main__":
    launch("recuts")
