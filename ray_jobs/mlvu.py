"""MLVU (arXiv 2406.04264): long videos that are synthesised, cut or labelled, and their questions.

    python -m ray_jobs.mlvu task=needle|order|events|count backgrounds=B clips=C out=O
    python -m ray_jobs.mlvu task=anomaly|annotated|ego|ladder ... out=O

A task (`mustsee.recipes.mlvu.tasks`) returns the rows: videos, plans and the questions that are
known already. The job writes the video files, asks a model about needles, filters the questions and
drops those that guessers answer from the options. See docs/mlvu.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from actors.part import Part, Skippable
from mustsee.files import schemas
from mustsee.layouts.reading import Questions, Rereadable
from mustsee.recipes.mlvu import layout
from mustsee.recipes.mlvu.checks import GuesserBalance, record_notes
from mustsee.records import Video
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.run import JobSettings


class MlvuTask(Protocol):
    """The class that `conf/task/*.yaml` names: returns the rows of a run."""

    def rows(self) -> list[Video]: ...


@dataclass(frozen=True, kw_only=True)
class Mlvu:
    run: JobSettings
    task: MlvuTask
    absent: Part
    make: Part
    ask: Part
    vet: Part
    enrich: Skippable
    balance: GuesserBalance
    options: int = 4

    def __call__(self) -> int:
        rows = schemas.table(self.task.rows(), Video)
        with self.run.open("mlvu") as run:
            run.read(rows)
            run.stage("absent", self.absent)
            run.stage("synth", self.make)
            run.stage("ask", self.ask)
            run.stage("vet", self.vet)
            run.together(self.balance)
            if self.enrich.is_on:
                run.stage("enrich", self.enrich)
            return run.publish(layouts={"mlvu": self.write}, extra=record_notes)

    def write(self, kept: Questions, folder: Path, videos: Rereadable[Video]) -> None:
        """Write the dev lists, and with six options the test file too."""
        layout.write(kept, folder, videos)
        if self.options == 6:
            layout.write_test(kept, folder, videos)


if __name__ == "__main__":
    launch("mlvu")
