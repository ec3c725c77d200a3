"""CinePile (arXiv 2405.08813, 2.0): clips and their movies' audio descriptions to scene questions.

    python -m ray_jobs.cinepile videos=V descriptions=D templates=T out=O [llm=openai ...]

A clip is heard, found in its movie's description, asked about by templates; weak questions are
refined, all are measured, and split by movie. See docs/cinepile.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from actors.part import Part
from longshot.inputs import read_videos
from longshot.layouts import cinepile as layout
from longshot.outputs import Scratch
from longshot.records import Question, Video
from ray_jobs.launch import launch
from ray_jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class CinePile:
    run: Run
    videos: str
    probe: Part
    hear: Part
    align: Part
    ask: Part
    vet: Part
    line_breaks: bool = True

    def __call__(self) -> int:
        with self.run.open("cinepile") as run:
            run.read(read_videos(self.videos))
            run.stage("probe", self.probe)
            run.stage("hear", self.hear)
            run.stage("align", self.align)
            run.stage("ask", self.ask)
            run.stage("vet", self.vet)
            return run.publish(layouts={"cinepile": self.write}, extra=refined)

    def write(self, kept: Sequence[Question], folder: Path, videos: Iterable[Video]) -> None:
        """The released columns, one parquet a split."""
        layout.write(kept, folder, videos, line_breaks=self.line_breaks)


def refined(rows: Scratch) -> Mapping[str, object]:
    """The fix rate of the refinement by split, and what the measures came to."""
    counts: Counter[str] = Counter()
    for question in rows.questions():
        split = "test" if "test" in question.subsets else "train"
        counts[f"{split}/questions"] += 1
        for name in ("weak", "fixed", "degenerate", "vision_reliance", "hardness"):
            counts[f"{split}/{name}"] += int(question.metrics.get(name, 0))
    rates = {
        split: counts[f"{split}/fixed"] / counts[f"{split}/weak"]
        for split in ("train", "test")
        if counts[f"{split}/weak"]
    }
    return {"refinement": {"fix_rate": rates, "counts": dict(sorted(counts.items()))}}


if __name__ == "__main__":
    launch("cinepile")
