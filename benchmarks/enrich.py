"""`enrich` on the proving set: are sound traces of questions kept, and planted faults dropped?

    python -m benchmarks.bench what=enrich [json=figures.json]

The videos and the verifier are those of `what=sight`. The writer (`enrich_model`) plants a known
fault in half of what it writes. Between them work the run's own part `enrich` and its gateway, in
one process.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from actors.calls.coordinator import Coordinator
from actors.llm.openai import OpenAI
from actors.stages.enrich import Enrich
from benchmarks import enrich_model as model
from benchmarks import sight_videos
from benchmarks.figures import BenchTable, Cell
from benchmarks.harness import open_part
from loopback.endpoint import Loopback
from mustsee.enrich.traces import Traces
from mustsee.records import Question, Video
from mustsee.store import Store

COLUMNS = ("fault", "number", "kept", "as known")
QUESTION_SETS = 4  # sets of questions on each video
WORDS = {
    *sight_videos.COLOURS,
    *sight_videos.COMMON,
    *sight_videos.RARE,
}  # answers that the writer knows others for


@dataclass(frozen=True, kw_only=True)
class EnrichedResult:
    """A question with its trace, if it has one, and the fault that was planted in it."""

    fault: str
    question: Question

    @property
    def is_kept(self) -> bool:
        return self.question.trace is not None

    @property
    def is_as_known(self) -> bool:
        """Kept exactly where it is sound."""
        return self.is_kept == (self.fault == model.SOUND)


@dataclass(frozen=True, kw_only=True)
class EnrichBench:
    """`journeys`: number of videos, all in colour. `noise`: share of the verifier's replies that
    are spoilt. `seed`: of videos, questions and runs.
    """

    journeys: int = 4
    noise: float = 0.1
    seed: int = 0

    def __call__(self) -> BenchTable:
        with tempfile.TemporaryDirectory(prefix="mustsee-bench-") as name:
            results, calls = self.try_settings(Path(name))
        rows = [
            _row(fault, [m for m in results if m.fault == fault])
            for fault in (model.SOUND, *model.TRACES)
        ]
        wrong = [m for m in results if not m.is_as_known]
        return BenchTable(
            title=f"traces of {len(results)} sound questions",
            columns=COLUMNS,
            rows=tuple(rows),
            notes=(
                f"half of the traces have a fault; {self.noise:.0%} of the verifier's replies "
                f"are noise; {calls:.1f} calls each, of the writer, the verifier and the grader",
                *(f"not as known: {_describe(m)}" for m in wrong),
            ),
        )

    def try_settings(self, folder: Path) -> tuple[list[EnrichedResult], float]:
        """Return all questions with their traces, and the mean number of calls for one."""
        videos = [v for v in sight_videos.journeys(self.seed) if not v.grey][: self.journeys]
        for drawn in videos:
            sight_videos.write(drawn, folder)
        with Loopback(reply=model.EnrichReplies(self.noise)) as server:
            part = self.part(server.url)
            enriched = [asyncio.run(self.enrich_row(part, v, folder)) for v in videos]
        results = [
            EnrichedResult(fault=model.planted_fault(q.question), question=q)
            for video, _ in enriched
            for q in video.questions or ()
        ]
        return results, sum(calls for _, calls in enriched) / max(1, len(results))

    async def enrich_row(
        self, part: Enrich, drawn: sight_videos.DrawnVideo, folder: Path
    ) -> tuple[Video, int]:
        """Return the video's sound questions with their traces, and the number of calls."""
        sound = [
            k.question
            for seed in range(self.seed, self.seed + QUESTION_SETS)
            for k in sight_videos.questions(drawn, seed)
            if k.kind == "right" and k.question.answer in WORDS and " at " in k.question.question
        ]
        sound = list({q.question: q for q in sound}.values())
        coordinator, store = Coordinator(), Store(str(folder / "store"))
        writer = part.writer
        assert isinstance(writer, OpenAI)
        enrich = open_part(part, writer, writer.open(), store, coordinator)
        video = await enrich(drawn.row(folder, sound))
        return video, coordinator.snapshot().llm.summary()["calls"]

    def part(self, url: str) -> Enrich:
        llm = OpenAI(model="scripted", base_url=url, key_env=None)
        return Enrich(writer=llm, grader=llm, verifier=llm, traces=Traces(most=4), seed=self.seed)


def _row(fault: str, some: Sequence[EnrichedResult]) -> tuple[Cell, ...]:
    return fault, len(some), sum(m.is_kept for m in some), sum(m.is_as_known for m in some)


def _describe(traced: EnrichedResult) -> str:
    outcome = "kept" if traced.is_kept else "dropped"
    return f"{traced.fault}, in {traced.question.video_id}: {traced.question.question} ({outcome})"
