"""Temporal certificates (Neptune, appendix E): how much of a video each question needs.

    python -m ray_jobs.certificate questions=Q videos=V out=O llm=openai

Clips grow from the middle of each video until the model answers correctly three times; it must be
wrong without the video. It writes certificates.parquet, certificate.json and a chart beside the
files of every job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from actors.part import Part
from actors.stages.certify import FILTER, Certify
from mustsee.evaluate.certificate import (
    certificate_table,
    draw_certificates,
    read_certificates,
    write_certificates,
)
from mustsee.layouts import read
from mustsee.layouts.columns import columns_from
from mustsee.run.tables import Tables
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.question_rows import HearMissing, rows_of
from ray_jobs.runtime.run import JobSettings


@dataclass(frozen=True, kw_only=True)
class Certificates:
    run: JobSettings
    questions: str
    videos: str
    format: str | None
    table: Mapping[str, Any] | None
    limit: int | None
    seed: int
    probe: Part
    hear: Part
    certify: Certify

    def __call__(self) -> int:
        reading = read(self.questions, self.format, columns_from(self.table))
        rows = rows_of(reading, self.videos, limit=self.limit, seed=self.seed)
        with self.run.open("certificate") as run:
            run.read(rows)
            run.stage("probe", self.probe)
            if self.certify.listens:
                run.stage("hear", HearMissing(hear=self.hear))
            run.stage("certify", self.certify)
            return run.publish(files=report, measures=True)


def report(folder: Path, tables: Tables) -> list[RenderableType]:
    """Write the figures and the chart; return the last lines of the summary."""
    certificates = read_certificates(tables.questions(), FILTER)
    write_certificates(folder, certificates)
    failed = draw_certificates(folder, certificates)
    return [*([failed] if failed else []), certificate_table(certificates)]


if __name__ == "__main__":
    launch("certificate")
