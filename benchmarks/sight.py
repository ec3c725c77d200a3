"""`sight` on the proving set: are questions of known kind kept, dropped and repaired as known?

    python -m benchmarks.bench what=sight [json=figures.json]

Eight videos with known facts and 160 questions on them (`sight_videos`); a model by script behind
the loopback endpoint, which decides from the JPEGs and lines that it is sent, a tenth of its
replies noise (`sight_model`); between them the run's own part `vet` and its gateway, in one
process. The same questions are vetted with sight, with sight and repair, and the old way: by
guessing alone.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.llm.openai import OpenAI
from actors.part import LlmConfig, RunContext
from actors.stages.vet import Vet
from benchmarks import sight_videos
from benchmarks.figures import BenchTable, Cell
from benchmarks.sight_model import Scripted
from loopback.endpoint import Faults, Loopback
from mustsee.calls.llm import Llm
from mustsee.calls.usage import CallCounts
from mustsee.records import Question, Video
from mustsee.store import Store
from mustsee.verify.blind import BlindGuess
from mustsee.verify.repair import RepairRule
from mustsee.verify.sight import Sight

MAX_EVIDENCE_ERROR_S = 1.0  # seconds by which mended evidence may miss the truth
FATES = {
    "ambiguous": "sight: more than one option fits",
    "disputed": "sight: answer disputed",
    "untold": "sight: cannot be told",
    "unshown": "sight: the evidence does not show",
    "unneeded": "sight: the evidence is not needed",
    "guessed": ("blind:", "asr:"),
    "other": "",
}
COLUMNS = (
    "way",
    "kind",
    "asked",
    "as known",
    "kept",
    "mended",
    "rewritten",
    "mma",
    *FATES,
    "calls",
)


@dataclass(frozen=True, kw_only=True)
class VettedQuestion:
    """A question with what became of it."""

    known: sight_videos.KnownQuestion
    found: Question

    @property
    def is_rewritten(self) -> bool:
        return any(r.kind == "wording" for r in self.found.repairs)

    @property
    def drop_reason(self) -> str:
        """Why it was dropped; empty where it was kept."""
        drop = self.found.drop
        return (
            "" if drop is None else next(n for n, start in FATES.items() if drop.startswith(start))
        )

    @property
    def is_sound(self) -> bool:
        """Kept, with one true answer among its options."""
        fits = set(self.found.options) & set(self.known.answers)
        return self.found.drop is None and fits == {self.found.answer}

    def evidence_error_s(self) -> float:
        """The most seconds between an end of its evidence and of the truth."""
        truth, found = self.known.truth, self.found.evidence
        if len(truth) != len(found):
            return float("inf")
        pairs = zip(truth, found, strict=True)
        return max(max(abs(a.start - b.start), abs(a.end - b.end)) for a, b in pairs)

    def is_as_known(self, *, repair: bool) -> bool:
        match self.known.kind:
            case "right" | "two places":
                return self.is_sound
            case "evidence elsewhere":
                return self.is_sound and self.evidence_error_s() <= MAX_EVIDENCE_ERROR_S
            case "wrong answer":
                return self.is_sound if repair else self.drop_reason == "disputed"
            case "two fit":
                return self.is_sound if repair else self.drop_reason == "ambiguous"
            case "guessable":
                return self.is_sound and ("mma" in self.found.subsets) == repair
            case "one frame":
                return self.drop_reason == "unneeded"
            case _:
                return self.drop_reason == "untold"


@dataclass(frozen=True, kw_only=True)
class VettingRun:
    """One way of vetting, tried: what became of the questions, and what it cost by kind."""

    name: str
    vetted: tuple[VettedQuestion, ...]
    costs: Mapping[str, CallCounts]

    @property
    def repair(self) -> bool:
        return self.name == "repair"

    def cost(self, field: str) -> float:
        return sum(getattr(tally, field) for tally in self.costs.values())

    @property
    def kept_questions(self) -> list[VettedQuestion]:
        return [v for v in self.vetted if v.found.drop is None]

    @property
    def handled_share(self) -> float:
        return sum(v.is_as_known(repair=self.repair) for v in self.vetted) / len(self.vetted)

    @property
    def repeat_calls(self) -> float:
        """Calls that were made because a reply was of another form, of 1,000."""
        return 1000 * self.cost("asked_again") / max(1, self.cost("calls"))

    def rows(self) -> list[tuple[Cell, ...]]:
        return [
            self._row(kind, [v for v in self.vetted if kind in ("all", v.known.kind)])
            for kind in (*sight_videos.KINDS, "all")
        ]

    def _row(self, kind: str, some: Sequence[VettedQuestion]) -> tuple[Cell, ...]:
        kept = [v for v in some if v.found.drop is None]
        fates = Counter(v.drop_reason for v in some)
        calls = self.cost("calls") if kind == "all" else self.costs[kind].calls
        mended = sum(any(r.kind == "evidence" for r in v.found.repairs) for v in kept)
        return (
            self.name, kind, len(some), sum(v.is_as_known(repair=self.repair) for v in some),
            len(kept), mended, sum(v.is_rewritten for v in kept),
            sum("mma" in v.found.subsets for v in kept),
            *(fates[fate] for fate in FATES), round(calls / max(1, len(some)), 1),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SightBench:
    """`journeys`: how many of the videos; `noise`: share of the model's replies that are spoilt;
    `faults`: share of requests that the endpoint fails in the last run; `prices`: USD per million
    tokens in and out; `seed`: of videos, questions and runs; `watches`: the verifier is shown
    videos.
    """

    journeys: int = 8
    noise: float = 0.1
    faults: float = 0.2
    prices: Sequence[float] = (0.4, 1.6)
    seed: int = 0
    watches: bool = False

    def __call__(self) -> BenchTable:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="mustsee-bench-") as name:
            folder = Path(name)
            known = self.material(folder)
            made = time.monotonic() - began
            with Loopback(reply=Scripted(self.noise)) as server:
                tried = {
                    name: asyncio.run(self.try_way(name, known, folder, server.url))
                    for name in ("repair", "sight", "guessing")
                }
                again = asyncio.run(self.try_way("repair", known, folder, server.url))
                server.faults = Faults(
                    share=self.faults, kinds=("429", "500", "empty", "truncated"), seed=self.seed
                )
                faulty = asyncio.run(
                    self.try_way("repair", known, folder, server.url, store="faults")
                )
            with Loopback(reply=Scripted(self.noise), schemas="honoured") as keeping:
                held = asyncio.run(
                    self.try_way("repair", known, folder, keeping.url, store="schemas")
                )
        ways = [tried["sight"], tried["repair"], tried["guessing"]]
        best = tried["repair"]
        wild = [v for way in ways for v in way.vetted if v.known.kind == "evidence elsewhere"]
        errors = [v.evidence_error_s() for v in wild if v.found.repairs and v.found.drop is None]
        same = [v.found for v in best.vetted] == [v.found for v in faulty.vetted]
        return BenchTable(
            title=f"sight on {len(known)} questions of known kind, {self.noise:.0%} noise",
            columns=COLUMNS,
            rows=tuple(row for way in ways for row in way.rows()),
            notes=(
                "sight: sight drops, then blind and asr mark; repair: also mends what falls; "
                "guessing: blind and asr drop, all runs made (the old way)",
                "of the kept: evidence mended, rewritten, in mma; of the dropped: why; calls for "
                "each question",
                *(_summary(way) for way in ways),
                f"mended evidence misses the truth by {max(errors, default=0.0):.2f} s at most",
                f"a second run makes {again.cost('calls'):.0f} calls",
                f"asked again for the form of a reply, per 1,000 calls: {best.repeat_calls:.1f} in "
                f"text, {held.repeat_calls:.1f} by an endpoint that keeps to schemas "
                f"({held.handled_share:.1%} as "
                "known: there noise is another answer, and no reply without one)",
                f"with {self.faults:.0%} of requests failing ({faulty.cost('retries'):.0f} tried "
                f"again) the result is {'the same' if same else 'ANOTHER'}",
                *(f"not as known: {line}" for way in ways[:2] for line in _missed(way)),
                f"videos drawn in {made:.1f} s, all in {time.monotonic() - began:.0f} s",
            ),
        )

    def material(
        self, folder: Path
    ) -> tuple[tuple[sight_videos.DrawnVideo, sight_videos.KnownQuestion], ...]:
        """The videos, written; each of their questions."""
        shown = sight_videos.journeys(self.seed)[: self.journeys]
        for video in shown:
            sight_videos.write(video, folder)
        return tuple((f, known) for f in shown for known in sight_videos.questions(f, self.seed))

    async def try_way(
        self,
        name: str,
        known: Sequence[tuple[sight_videos.DrawnVideo, sight_videos.KnownQuestion]],
        folder: Path,
        url: str,
        store: str = "store",
    ) -> VettingRun:
        """One way of vetting on all questions; a row for each video and kind, so that each kind's
        calls are counted. Every way but the first two keeps a store of its own.
        """
        kept = Store(str(folder / (f"{store} {name}")))
        part = self.part(name, url)
        costs = {kind: CallCounts() for kind in sight_videos.KINDS}
        rows: dict[tuple[str, str], list[Question]] = {}
        journeys = {video.name: video for video, _ in known}
        for video, each in known:
            rows.setdefault((video.name, each.kind), []).append(each.question)
        room = asyncio.Semaphore(8)
        model = part.guesser
        assert isinstance(model, OpenAI)
        chat = model.open()

        async def vet_row(where: tuple[str, str]) -> Video:
            coordinator = Coordinator()

            def gateway(config: LlmConfig) -> Llm:
                return Gateway(chat, kept, coordinator, model, sleep=_briefly)

            work = part.open(RunContext(store=kept, llm=gateway, count=coordinator.count))
            async with room:
                made = work(journeys[where[0]].row(folder, rows[where]))
                video = await made if not isinstance(made, Video) else made
            _add(costs[where[1]], coordinator.snapshot().llm.summary())
            return video

        done = await asyncio.gather(*map(vet_row, rows))
        found = {(v.video_id, first_id(q)): q for v in done for q in v.questions or ()}
        pairs = [(each, found[video.name, each.question.question_id]) for video, each in known]
        return VettingRun(
            name=name, vetted=tuple(VettedQuestion(known=k, found=q) for k, q in pairs), costs=costs
        )

    def part(self, name: str, url: str) -> Vet:
        model = OpenAI(
            model="scripted", base_url=url, key_env=None, prices={"scripted": self.prices},
            watches=self.watches,
        )  # fmt: skip
        old = name == "guessing"
        blind = BlindGuess(name="blind", prompt="filters/blind", drops=old, all_runs=old)
        asr = replace(blind, name="asr", prompt="filters/asr", transcript=True)
        filters = (blind, asr) if old else (Sight(drop_unneeded=True), blind, asr)
        return Vet(
            filters={f.name: f for f in filters},
            repair=RepairRule() if name == "repair" else None,
            guesser=model,
            verifier=model,
            repairer=model,
            subset="mma",
            seed=self.seed,
        )


def first_id(question: Question) -> str:
    """The id that a question had before it was rewritten."""
    told = [json.loads(r.before) for r in question.repairs if r.kind == "wording"]
    return told[0]["question_id"] if told else question.question_id


def _summary(way: VettingRun) -> str:
    kept = way.kept_questions
    sound, mma = sum(v.is_sound for v in kept), sum("mma" in v.found.subsets for v in kept)
    each = 1 / max(1, sound)
    return (
        f"{way.name}: {len(way.vetted)} asked, {len(kept)} kept, {sound} of them sound, {mma} in "
        f"mma; {way.handled_share:.1%} as known; evidence needed by {_needed(kept)}; "
        f"{way.cost('calls'):.0f} calls; for each sound question "
        f"{way.cost('calls') * each:.1f} calls, {way.cost('tokens_in') * each:,.0f} tokens in, "
        f"{way.cost('tokens_out') * each:,.0f} out, ${way.cost('usd') * each:.4f}"
    )


def _needed(kept: Sequence[VettedQuestion]) -> str:
    """Of the questions whose evidence was left out and put back, those that need it."""
    told = [n for v in kept if (n := v.found.metrics.get("sight_needed")) is not None]
    return f"{sum(told):.0f} of {len(told)}"


def _missed(way: VettingRun) -> list[str]:
    return [
        f"{way.name}: {v.known.kind} in {v.found.video_id}: {v.found.question} {v.found.answer!r} "
        f"({v.found.drop or 'kept'})"
        for v in way.vetted
        if not v.is_as_known(repair=way.repair)
    ]


def _add(tally: CallCounts, told: Mapping[str, Any]) -> None:
    for name, value in vars(tally).items():
        setattr(tally, name, value + type(value)(told[name]))


async def _briefly(seconds: float) -> None:
    await asyncio.sleep(min(seconds, 0.02))
