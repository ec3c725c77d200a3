"""Add: people's own questions on the videos of a run, and its questions that people have edited,
checked by the filters of that run.

    python -m ray_jobs.add questions=mine.csv made=runs/made out=O [llm=openai llm.model=M]
    python -m ray_jobs.add made=runs/made out=O                    the edited questions alone

The other questions of the run stay as they are, and none is reworded. See docs/add.md.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from actors.part import Part
from actors.stages.vet import Vet
from mustsee import schemas
from mustsee.audit.learned import LearnedGuess, record_learned
from mustsee.errors import UserError
from mustsee.layouts import read
from mustsee.layouts.added import AddedQuestions, add_questions, describe_verdicts
from mustsee.layouts.columns import columns_from
from mustsee.layouts.detect import open_streamed
from mustsee.parquet import check_digests
from mustsee.records import Video
from mustsee.run.inputs import with_videos
from mustsee.run.own_filters import RunFilters, read_filters
from mustsee.run.tables import Tables
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.run import JobSettings


@dataclass(frozen=True, kw_only=True)
class AddQuestions:
    """`vet`: the models that are asked; its filters are those of the run in `made`."""

    run: JobSettings
    questions: str | None
    format: str | None
    table: Mapping[str, Any] | None
    made: str
    videos: str | None
    vet: Part

    def __call__(self) -> int:
        if not isinstance(self.vet, Vet):
            raise UserError("vet= must be one of conf/vet: it names the models of the filters")
        made = Path(self.made)
        for file in ("questions.parquet", "videos.parquet"):
            if not (made / file).exists():
                raise UserError(f"made={self.made!r} has no {file}: give the folder of a run")
        check_digests(made, "questions.parquet", "videos.parquet")
        filters = read_filters(made)
        added = self.add(filters.subset)
        for line in (*added.lines(), *self.changed_models(filters)):
            print(f"mustsee: {line}", file=sys.stderr, flush=True)
        tested = dict.fromkeys(added.added, "questions by people")
        tested |= dict.fromkeys(added.edited, "edited questions")
        vet = replace(
            self.vet, filters=filters.filters, order=filters.order, subset=filters.subset,
            watch=filters.watch, repair=None, spare=1, only=tuple(tested),
        )  # fmt: skip
        settings = replace(self.run, config=filters.run_config(self.run.config))
        with settings.open("add") as run:
            run.read(schemas.table(added.rows, Video))
            run.stage("vet", vet)
            if filters.learned:
                run.together(LearnedGuess(subset=filters.subset))
            return run.publish(
                files=lambda _, tables: describe_verdicts(tables.questions(), tested),
                extra=lambda tables: {"added": added.plain(), **record_learned(tables)},
            )

    def add(self, subset: str | None) -> AddedQuestions:
        """Read the questions and put them beside those of the run. Raises UserError."""
        columns = columns_from(self.table)
        reading = read(self.questions, self.format, columns) if self.questions else None
        tables = Tables(Path(self.made))
        videos = with_videos({v.video_id: v for v in tables.videos()}, self.videos)
        return add_questions(
            reading, list(videos.values()), list(open_streamed(self.made).questions),
            stored=list(tables.questions()), subset=subset,
        )  # fmt: skip

    def changed_models(self, filters: RunFilters) -> list[str]:
        """Return a line for each model that is another one than in the run."""
        config: Any = self.run.config.get("vet") or {}
        mine = {role: node.get("model") for role, node in config.items() if isinstance(node, dict)}
        lines: list[str] = []
        for role, name in filters.models.items():
            asked = getattr(self.vet, role, None)
            here = "nobody" if asked is None else str(mine.get(role) or asked.identity)
            if here.split()[0] != name:
                lines.append(f"the run's {role} was {name}, and is {here} here")
        return lines


if __name__ == "__main__":
    launch("add")
