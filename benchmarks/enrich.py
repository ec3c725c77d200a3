"""`enrich` on the proving set: is what a writer makes of sound questions kept where it is sound,
and found where a fault was planted in it?

    python -m benchmarks.bench what=enrich [json=figures.json]

The videos and the verifier are those of `what=sight`; the writer (`enrich_model`) plants a known
fault in half of what it makes. Between them the run's own part `enrich` and its gateway, in one
process.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.judge.lexical import Lexical
from actors.llm.openai import OpenAI
from actors.part import LlmConfig, RunContext
from actors.stages.enrich import Enrich
from actors.stages.vet import Vet
from benchmarks import enrich_model as model
from benchmarks import sight_videos
from benchmarks.figures import BenchTable, Cell
from loopback.endpoint import Loopback
from mustsee.calls.llm import Llm
from mustsee.enrich.groups import CONSEQUENCE, PARAPHRASE, GroupSettings
from mustsee.enrich.traces import Traces
from mustsee.judge.judge import JudgeConfig
from mustsee.records import OPEN, Question, Video
from mustsee.store import Store
from mustsee.verify.blind import BlindGuess
from mustsee.verify.sight import Sight

COLUMNS = ("made", "fault", "of them", "kept", "guessed", "as known")
SETS = 4  # of questions on each video
WORDS = {
    *sight_videos.COLOURS,
    *sight_videos.COMMON,
    *sight_videos.RARE,
}  # answers that the plain judge tells apart


@dataclass(frozen=True, kw_only=True)
class EnrichedResult:
    """What was made of one question: its fault, as planted; null: nothing came of it."""

    what: str
    fault: str
    source: Question
    found: Question | None

    @property
    def is_kept(self) -> bool:
        if self.what == "trace":
            return self.found is not None and self.found.trace is not None
        return self.found is not None and self.found.drop is None

    @property
    def is_guessed(self) -> bool:
        """Dropped because the guesser hit it twice, as one in ten is by chance."""
        return self.found is not None and (self.found.drop or "").startswith("blind:")

    @property
    def is_as_known(self) -> bool:
        """Kept where it is sound, unless guessed; of a wrong variant, only that is left out."""
        if self.fault == "a wrong variant":
            return self.is_guessed or (self.is_kept and not (self.found and self.found.variants))
        return self.is_guessed or self.is_kept == (self.fault == model.SOUND)


@dataclass(frozen=True, kw_only=True)
class EnrichBench:
    """`journeys`: how many of the videos, those in colour; `noise`: share of the verifier's replies
    that are spoilt; `seed`: of videos, questions and runs.
    """

    journeys: int = 4
    noise: float = 0.1
    seed: int = 0

    def __call__(self) -> BenchTable:
        with tempfile.TemporaryDirectory(prefix="mustsee-bench-") as name:
            found, calls = self.try_settings(Path(name))
        rows = [
            _row(what, fault, [m for m in found if (m.what, m.fault) == (what, fault)])
            for what, faults in KINDS.items()
            for fault in (model.SOUND, *faults)
        ]
        wrong = [m for m in found if not m.is_as_known]
        return BenchTable(
            title=f"made of {len({m.source.question_id for m in found})} sound questions",
            columns=COLUMNS,
            rows=tuple(rows),
            notes=(
                f"half of what is made has a fault; {self.noise:.0%} of the verifier's replies are "
                f"noise; {calls:.1f} calls for each, of the writer, the verifier and the guesser",
                *(f"not as known: {_told(m)}" for m in wrong),
            ),
        )

    def try_settings(self, folder: Path) -> tuple[list[EnrichedResult], float]:
        """What became of all that was made, and the calls for each thing."""
        shown = [f for f in sight_videos.journeys(self.seed) if not f.grey][: self.journeys]
        for drawn in shown:
            sight_videos.write(drawn, folder)
        with Loopback(reply=model.EnrichReplies(self.noise)) as server:
            part = self.part(server.url)
            done = [asyncio.run(self.enrich_row(part, f, folder)) for f in shown]
        found = [m for video, _ in done for m in enriched_results(video)]
        return found, sum(calls for _, calls in done) / max(1, len(found))

    async def enrich_row(
        self, part: Enrich, drawn: sight_videos.DrawnVideo, folder: Path
    ) -> tuple[Video, int]:
        """The video's sound questions with what was made of them, and the calls that it took."""
        known = [
            k.question
            for seed in range(self.seed, self.seed + SETS)
            for k in sight_videos.questions(drawn, seed)
            if k.kind == "right" and k.question.answer in WORDS and " at " in k.question.question
        ]
        known = list({q.question: q for q in known}.values())
        coordinator, store = Coordinator(), Store(str(folder / "store"))
        writer = part.writer
        assert isinstance(writer, OpenAI)
        chat = writer.open()

        def gateway(config: LlmConfig) -> Llm:
            return Gateway(chat, store, coordinator, writer)

        work = part.open(RunContext(store=store, llm=gateway, count=coordinator.count))
        made = work(drawn.row(folder, known))
        video = await made if not isinstance(made, Video) else made
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
    """What was made of a video's questions, the twins that were not, and each one's trace."""
    asked = {q.question_id: q for q in video.questions or ()}
    first = [q for q in asked.values() if q.sibling_of is None]
    made = [(NAMES.get(q.relation or "", q.relation), asked[q.sibling_of], q)
            for q in asked.values() if q.sibling_of is not None]  # fmt: skip
    there = {source.question_id for what, source, _ in made if what == "twin"}
    none = [("twin", q, None) for q in first if q.question_id not in there]
    return [
        EnrichedResult(
            what=what or "",
            fault=model.planted_fault(q.question, KINDS[what or ""]),
            source=q,
            found=f,
        )
        for what, q, f in (*made, *none, *(("trace", q, q) for q in first))
    ]


def _row(what: str, fault: str, some: Sequence[EnrichedResult]) -> tuple[Cell, ...]:
    sums = (sum(m.is_kept for m in some), sum(m.is_guessed for m in some))
    return what, fault, len(some), *sums, sum(m.is_as_known for m in some)


def _told(made: EnrichedResult) -> str:
    found = made.found
    became = "nothing was made" if found is None else found.drop or "kept"
    asked = found.question if found else made.source.question
    return f"{made.what}, {made.fault}, in {made.source.video_id}: {asked} ({became})"
