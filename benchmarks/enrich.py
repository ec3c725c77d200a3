"""`enrich` on the proving set: are sound additions to questions kept, and planted faults dropped?

    python -m benchmarks.bench what=enrich [json=figures.json]

The videos and the verifier are those of `what=sight`. The writer (`enrich_model`) plants a known
fault in half of what it writes. Between them work the run's own part `enrich` and its gateway, in
one process.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from actors.calls.coordinator import Coordinator
from actors.judge.lexical import Lexical
from actors.llm.openai import OpenAI
from actors.stages.enrich import Enrich
from actors.stages.vet import Vet
from benchmarks import enrich_model as model
from benchmarks import sight_videos
from benchmarks.figures import BenchTable, Cell
from benchmarks.harness import open_part
from loopback.endpoint import Loopback
from mustsee.enrich.groups import CONSEQUENCE, PARAPHRASE, GroupSettings
from mustsee.enrich.traces import Traces
from mustsee.judge.judge import JudgeConfig
from mustsee.records import OPEN, Question, Video
from mustsee.store import Store
from mustsee.verify.blind import BlindGuess
from mustsee.verify.sight import Sight

COLUMNS = ("addition", "fault", "number", "kept", "guessed", "as known")
QUESTION_SETS = 4  # sets of questions on each video
WORDS = {
    *sight_videos.COLOURS,
    *sight_videos.COMMON,
    *sight_videos.RARE,
}  # answers that the lexical judge can distinguish


@dataclass(frozen=True, kw_only=True)
class EnrichedResult:
    """One addition to a question, with its planted fault. `result`: null where none was made."""

    what: str
    fault: str
    source: Question
    result: Question | None

    @property
    def is_kept(self) -> bool:
        if self.what == "trace":
            return self.result is not None and self.result.trace is not None
        return self.result is not None and self.result.drop is None

    @property
    def is_guessed(self) -> bool:
        """Dropped because the guesser hit it twice, which happens to one in ten by chance."""
        return self.result is not None and (self.result.drop or "").startswith("blind:")

    @property
    def is_as_known(self) -> bool:
        """Guessed, or kept exactly where it is sound; a wrong variant alone is left out."""
        if self.fault == "a wrong variant":
            return self.is_guessed or (self.is_kept and not (self.result and self.result.variants))
        return self.is_guessed or self.is_kept == (self.fault == model.SOUND)


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
            _row(what, fault, [m for m in results if (m.what, m.fault) == (what, fault)])
            for what, faults in KINDS.items()
            for fault in (model.SOUND, *faults)
        ]
        wrong = [m for m in results if not m.is_as_known]
        return BenchTable(
            title=f"additions to {len({m.source.question_id for m in results})} sound questions",
            columns=COLUMNS,
            rows=tuple(rows),
            notes=(
                f"half of the additions have a fault; {self.noise:.0%} of the verifier's replies "
                f"are noise; {calls:.1f} calls each, of the writer, the verifier and the guesser",
                *(f"not as known: {_describe(m)}" for m in wrong),
            ),
        )

    def try_settings(self, folder: Path) -> tuple[list[EnrichedResult], float]:
        """Return all additions, and the mean number of calls for one."""
        videos = [v for v in sight_videos.journeys(self.seed) if not v.grey][: self.journeys]
        for drawn in videos:
            sight_videos.write(drawn, folder)
        with Loopback(reply=model.EnrichReplies(self.noise)) as server:
            part = self.part(server.url)
            enriched = [asyncio.run(self.enrich_row(part, v, folder)) for v in videos]
        results = [m for video, _ in enriched for m in enriched_results(video)]
        return results, sum(calls for _, calls in enriched) / max(1, len(results))

    async def enrich_row(
        self, part: Enrich, drawn: sight_videos.DrawnVideo, folder: Path
    ) -> tuple[Video, int]:
        """Return the video's sound questions with their additions, and the number of calls."""
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
        judge = JudgeConfig(engine=Lexical(measure="token_recall"),
                            record="assets/judge_token_recall.json")  # fmt: skip
        blind = BlindGuess(name="blind", prompt="filters/blind")
        vet = Vet(
            filters={"sight": Sight(), "blind": blind},
            guesser=llm,
            verifier=llm,
            judge=judge,
            seed=self.seed,
        )
        return Enrich(
            vet=vet, writer=llm, grader=llm, twins=True, groups=GroupSettings(most=3),
            traces=Traces(most=4), seed=self.seed,
        )  # fmt: skip


KINDS: Mapping[str, Sequence[str]] = {
    "twin": model.TWINS,
    PARAPHRASE: model.PARAPHRASES,
    CONSEQUENCE: model.CONSEQUENCES,
    "trace": model.TRACES,
}
NAMES = {OPEN: "twin"}


def enriched_results(video: Video) -> list[EnrichedResult]:
    """Return the siblings and twins of a video's questions, the missing twins, and each trace."""
    every = {q.question_id: q for q in video.questions or ()}
    first = [q for q in every.values() if q.sibling_of is None]
    siblings = [(NAMES.get(q.relation or "", q.relation), every[q.sibling_of], q)
                for q in every.values() if q.sibling_of is not None]  # fmt: skip
    with_twin = {source.question_id for what, source, _ in siblings if what == "twin"}
    missing = [("twin", q, None) for q in first if q.question_id not in with_twin]
    return [
        EnrichedResult(
            what=what or "",
            fault=model.planted_fault(q.question, KINDS[what or ""]),
            source=q,
            result=result,
        )
        for what, q, result in (*siblings, *missing, *(("trace", q, q) for q in first))
    ]


def _row(what: str, fault: str, some: Sequence[EnrichedResult]) -> tuple[Cell, ...]:
    sums = (sum(m.is_kept for m in some), sum(m.is_guessed for m in some))
    return what, fault, len(some), *sums, sum(m.is_as_known for m in some)


def _describe(addition: EnrichedResult) -> str:
    result = addition.result
    outcome = "nothing was made" if result is None else result.drop or "kept"
    question = result.question if result else addition.source.question
    place = addition.source.video_id
    return f"{addition.what}, {addition.fault}, in {place}: {question} ({outcome})"
