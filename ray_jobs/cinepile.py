"""CinePile (arXiv 2405.08813, 2.0): clips and their movies' audio descriptions to scene questions.

    python -m ray_jobs.cinepile videos=V descriptions=D templates=T out=O [llm=openai ...]

Each clip is transcribed, aligned with its movie's description, and gets questions from templates.
Weak questions are refined, all are measured, and the set is split by movie. See docs/cinepile.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import RenderableType

from actors.part import Part, Skippable
from mustsee.errors import UserError
from mustsee.evaluate.drawing import save_chart
from mustsee.files import schemas
from mustsee.layouts.card import Card
from mustsee.layouts.reading import Questions
from mustsee.recipes.cinepile import layout
from mustsee.recipes.cinepile.dataset import SIDES, draw_rates, plain, rates_by_category, sides
from mustsee.records import Video
from mustsee.run.inputs import read_videos
from mustsee.run.tables import Tables
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.run import JobSettings

NOTES = (
    "The columns are those of tomg-group-umd/cinepile, and `videoID`: `hard_split` and "
    "`visual_reliance` are the strings True and False, or null where the model gave no answer."
)


@dataclass(frozen=True, kw_only=True)
class CinePile:
    run: JobSettings
    videos: str
    probe: Part
    hear: Part
    align: Part
    ask: Part
    vet: Part
    enrich: Skippable
    test_share: float = 0.02
    split_by: Sequence[str] = ()
    line_breaks: bool = True

    def __call__(self) -> int:
        clips = by_movie(
            read_videos(self.videos), self.test_share, self.run.seed, split_by=self.split_by
        )
        with self.run.open("cinepile") as run:
            run.read(clips)
            run.stage("probe", self.probe)
            run.stage("hear", self.hear)
            run.stage("align", self.align)
            run.stage("ask", self.ask)
            run.stage("vet", self.vet)
            if self.enrich.is_on:
                run.stage("enrich", self.enrich)

            def write(kept: Questions, folder: Path, videos: Iterable[Video]) -> None:
                """Write the released columns, one parquet file for each split, and a card."""
                card = Card(title="Questions on movie scenes", run=run.record.plain(), notes=NOTES)
                layout.write(kept, folder, videos, line_breaks=self.line_breaks, card=card)

            return run.publish(layouts={"cinepile": write}, extra=notes, files=draw_categories)


def by_movie(
    table: pa.Table, test_share: float, seed: int, split_by: Sequence[str] = ()
) -> pa.Table:
    """The clips with their split, train or test; a split given in the table is kept. `split_by`:
    columns whose values both splits shall hold alike, such as genre and year.

    Raises UserError for a movie with clips in both splits, and for a column that is not there.
    """
    rows = table.select(["video_id", "movie_name", "split"]).to_pylist()
    movies = [row["movie_name"] or row["video_id"] for row in rows]
    given: dict[str, str] = {}
    for movie, row in zip(movies, rows, strict=True):
        if row["split"] and given.setdefault(plain(movie), row["split"]) != row["split"]:
            raise UserError(
                f"movie {movie!r} has clips in both splits, such as {row['video_id']!r}: put all "
                "clips of a movie into one"
            )
    strata = _strata(table, movies, split_by) if split_by else None
    by_name = sides(movies, test_share=test_share, seed=seed, given=given, strata=strata)
    column = schemas.column("split", [by_name[movie] for movie in movies])
    return table.set_column(table.schema.get_field_index("split"), "split", column)


def _strata(table: pa.Table, movies: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    """The stratum of each movie: its first genre, the decade of its year, other values as given."""
    missing = [column for column in columns if column not in table.column_names]
    if missing:
        raise UserError(f"split_by={list(columns)!r}: videos= has no column {missing[0]!r}")

    def plain_value(column: str, value: Any) -> str:
        first = next(iter(value), "") if isinstance(value, list) else value
        return str(int(first) // 10 * 10) if column == "year" and first else str(first or "")

    rows = table.select(list(columns)).to_pylist()
    strata: dict[str, str] = {}
    for movie, row in zip(movies, rows, strict=True):
        strata.setdefault(movie, "/".join(plain_value(c, row[c]) for c in columns))
    return strata


def draw_categories(folder: Path, tables: Tables) -> list[RenderableType]:
    """Draw vision reliance and hardness by category (Fig. 6) into `folder`/pictures."""
    rates = rates_by_category(tables.questions("metrics", "question_type"))
    if not any(r.vision_reliance or r.hardness for r in rates):
        return []
    failed = save_chart(folder / "pictures" / "categories.png", lambda: draw_rates(rates))
    return [failed] if failed else []


def notes(tables: Tables) -> Mapping[str, object]:
    """The movies of each split, the fix rate of the refinement, and the sums of the metrics."""
    movies: dict[str, set[str]] = {side: set() for side in SIDES}
    for row in tables.videos("movie_name", "split"):
        movies[row.split or "train"].add(row.movie_name or row.video_id)
    counts: Counter[str] = Counter()
    for question in tables.questions("subsets", "metrics"):
        split = "test" if "test" in question.subsets else "train"
        counts[f"{split}/questions"] += 1
        for name in ("weak", "fixed", "degenerate", "vision_reliance", "hardness"):
            counts[f"{split}/{name}"] += int(question.metrics.get(name, 0))
    rates = {
        split: counts[f"{split}/fixed"] / counts[f"{split}/weak"]
        for split in SIDES
        if counts[f"{split}/weak"]
    }
    notes = [f"movies: {len(movies['train'])} in train, {len(movies['test'])} in test"]
    if sum(map(len, movies.values())) == 1:
        notes[0] += "; one movie is not split"
    notes += [
        f"{split}: {counts[f'{split}/weak']} weak questions, {rate:.0%} of them fixed"
        for split, rate in rates.items()
    ]
    return {
        "movies": {side: sorted(names) for side, names in movies.items()},
        "categories": schemas.dump(rates_by_category(tables.questions("metrics", "question_type"))),
        "refinement": {"fix_rate": rates, "counts": dict(sorted(counts.items()))},
        "notes": notes,
    }


if __name__ == "__main__":
    launch("cinepile")
