"""CinePile (arXiv 2405.08813, 2.0): clips and their movies' audio descriptions to scene questions.

    python -m ray_jobs.cinepile videos=V descriptions=D templates=T out=O [llm=openai ...]

Each clip is transcribed, aligned with its movie's description, and gets questions from templates.
Weak questions are refined, all are measured, and the set is split by movie. See docs/cinepile.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from actors.part import Part, Skippable
from mustsee import schemas
from mustsee.errors import UserError
from mustsee.layouts.card import Card
from mustsee.layouts.reading import Questions
from mustsee.recipes.cinepile import layout
from mustsee.recipes.cinepile.split import SIDES, plain, sides
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
    line_breaks: bool = True

    def __call__(self) -> int:
        clips = by_movie(read_videos(self.videos), self.test_share, self.run.seed)
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

            return run.publish(layouts={"cinepile": write}, extra=notes)


def by_movie(table: pa.Table, test_share: float, seed: int) -> pa.Table:
    """The clips with their split, train or test; a split given in the table is kept.

    Raises UserError for a movie with clips in both splits.
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
    by_name = sides(movies, test_share=test_share, seed=seed, given=given)
    column = schemas.column("split", [by_name[movie] for movie in movies])
    return table.set_column(table.schema.get_field_index("split"), "split", column)


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
        "refinement": {"fix_rate": rates, "counts": dict(sorted(counts.items()))},
        "notes": notes,
    }


if __name__ == "__main__":
    launch("cinepile")
