"""A small job to be killed: three stages of `Upper`, each row a little slow.

python -m tests.support.toy_job OUT CALLS ROWS
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from actors.engine.hardware import Hardware
from actors.part import Opened, RunContext
from mustsee.files import schemas
from mustsee.records import Question, Video
from ray_jobs.runtime.cluster import Cluster
from ray_jobs.runtime.run import JobSettings
from tests.support.parts import Upper

STAGES = ("probe", "look", "ask")


@dataclass(frozen=True, kw_only=True)
class Slow(Upper):
    """`Upper`, slow enough to be killed on the way."""

    stage: str = ""

    def open(self, run: RunContext) -> Opened:
        work = super().open(run)

        def slow(row: Video) -> Video:
            named = work(Video(video_id=f"{self.stage}-{row.video_id}", uri=row.uri))
            time.sleep(0.2)
            question = Question(
                question_id=named.video_id, video_id=row.video_id, recipe="toy",
                question=f"What about {named.title}?", question_type="Other",
            )  # fmt: skip
            return Video(
                video_id=row.video_id, uri=row.uri, title=named.title, tags=("a",),
                questions=(*(row.questions or ()), question),
            )  # fmt: skip

        return slow


@dataclass(frozen=True, kw_only=True)
class Asks(Slow):
    reads = ("video_id", "questions")
    writes = ("title", "tags", "questions")


def main(out: str, calls: str, rows: int) -> int:
    hardware = Hardware(cpus=0.2)
    run = JobSettings(
        out=out, store=f"{out}/store", cluster=Cluster(stages=dict.fromkeys(STAGES, hardware))
    )
    with run.open("toy") as running:
        videos = [Video(video_id=f"v{i:02d}", uri="bad" if i == 3 else "x") for i in range(rows)]
        running.read(schemas.table(videos, Video))
        for stage in STAGES:
            running.stage(stage, Asks(stage=stage, folder=calls))
        return running.publish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
