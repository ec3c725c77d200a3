"""`sight` on the proving set: are questions of known kind kept, dropped and repaired as known?

    python -m benchmarks.bench what=sight [json=figures.json]

Eight videos with known facts and 160 questions (`sight_videos`). A scripted model behind the
loopback endpoint decides from the JPEGs and transcript lines that it receives, and a tenth of its
replies are noise (`sight_model`). Between them work the run's own part `vet` and its gateway, in
one process. The same questions are vetted without and with repair.
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

from actors.calls.coordinator import Coordinator
from actors.llm.openai import OpenAI
from actors.stages.vet import Vet
from benchmarks import sight_videos
from benchmarks.figures import BenchTable, Cell
from benchmarks.harness import open_part
from benchmarks.sight_model import Scripted
from loopback.endpoint import Faults, Loopback
from mustsee.calls.usage import CallCounts
from mustsee.files.store import Store
from mustsee.records import Provenance, Question, Video
from mustsee.verify.guess.filters import BlindGuess
from mustsee.verify.repair import RepairRule
from mustsee.verify.sight import Sight

MAX_EVIDENCE_ERROR_S = 1.0  # largest distance of repaired evidence from the truth
ROWS_IN_FLIGHT = 8
BY_PRICE = ("sight first", "words first")  # orders whose prices are compared; a row is a video
MANY_OPTIONS = 5  # options below which no value is left to replace one that fits
DROP_REASONS = {  # column -> the beginning of a drop's text
    "ambiguous": "sight: more than one option fits",
    "disputed": "sight: answer disputed",
    "undecidable": "sight: cannot be told",
    "not shown": "sight: the evidence does not show",
    "not needed": "sight: the evidence is not needed",
    "guessed": ("blind:", "asr:"),
    "other": "",
}
COLUMNS = ("run", "kind", "questions", "as known", "kept", "repaired", "rewritten", "mma",
           *DROP_REASONS, "calls")  # fmt: skip
KnownPair = tuple[sight_videos.DrawnVideo, sight_videos.KnownQuestion]


@dataclass(frozen=True, kw_only=True)
class VettedQuestion:
    """A known question and the question that vetting returned."""

    known: sight_videos.KnownQuestion
    result: Question

    @property
    def is_rewritten(self) -> bool:
        return any(r.kind == "wording" for r in self.result.repairs)

    @property
    def drop_reason(self) -> str:
        """Why it was dropped; empty where it was kept."""
        drop = self.result.drop
        if drop is None:
            return ""
        return next(name for name, start in DROP_REASONS.items() if drop.startswith(start))

    @property
    def is_sound(self) -> bool:
        """Kept, with exactly one true answer among its options."""
        fits = set(self.result.options) & set(self.known.answers)
        return self.result.drop is None and fits == {self.result.answer}

    def evidence_error_s(self) -> float:
        """Return the largest distance between an end of its evidence and of the truth."""
        truth, evidence = self.known.truth, self.result.evidence
        if len(truth) != len(evidence):
            return float("inf")
        pairs = zip(truth, evidence, strict=True)
        return max(max(abs(a.start - b.start), abs(a.end - b.end)) for a, b in pairs)

    @property
    def is_guessable(self) -> bool:
        """Whether its words still compare the colour with a thing that has it."""
        return "the same as" in self.result.question

    def is_as_known(self, *, repair: bool) -> bool:
        """Whether a question of its kind ends so, in a run with or without repair."""
        match self.known.kind:
            case "right" | "two places":
                return self.is_sound
            case "evidence elsewhere":
                return self.is_sound and self.evidence_error_s() <= MAX_EVIDENCE_ERROR_S
            case "wrong answer":
                return self.is_sound if repair else self.drop_reason == "disputed"
            case "two fit":
                if repair and len(self.known.question.options) == MANY_OPTIONS:
                    return self.is_sound
                return self.drop_reason == "ambiguous"
            case "guessable":
                return (
                    self.is_sound
                    and self.is_guessable != repair
                    and (not self.is_guessable or "mma" not in self.result.subsets)
                )
            case "one frame":
                return self.drop_reason == "not needed"
            case _:
                return self.drop_reason == "undecidable"


@dataclass(frozen=True, kw_only=True)
class VettingRun:
    """The questions as one run vetted them, and the cost of each kind. `name`: "sight" or
    "repair".
    """

    name: str
    vetted: tuple[VettedQuestion, ...]
    costs: Mapping[str, CallCounts]

    @property
    def repair(self) -> bool:
        return self.name == "repair"

    def cost(self, field: str) -> float:
        return sum(getattr(counts, field) for counts in self.costs.values())

    @property
    def unexpected_results(self) -> list[VettedQuestion]:
        """The questions that did not end as known."""
        return [v for v in self.vetted if not v.is_as_known(repair=self.repair)]

    @property
    def handled_share(self) -> float:
        return 1 - len(self.unexpected_results) / len(self.vetted)

    @property
    def repeat_calls(self) -> float:
        """Calls repeated because a reply could not be parsed, per 1,000 calls."""
        return 1000 * self.cost("asked_again") / max(1, self.cost("calls"))

    def rows(self) -> list[tuple[Cell, ...]]:
        return [
            self._row(kind, [v for v in self.vetted if kind in ("all", v.known.kind)])
            for kind in (*sight_videos.KINDS, "all")
        ]

    def _row(self, kind: str, some: Sequence[VettedQuestion]) -> tuple[Cell, ...]:
        kept = [v for v in some if v.result.drop is None]
        drops = Counter(v.drop_reason for v in some)
        calls = self.cost("calls") if kind == "all" else self.costs[kind].calls
        repaired = sum(any(r.kind == "evidence" for r in v.result.repairs) for v in kept)
        return (
            self.name, kind, len(some), sum(v.is_as_known(repair=self.repair) for v in some),
            len(kept), repaired, sum(v.is_rewritten for v in kept),
            sum("mma" in v.result.subsets for v in kept),
            *(drops[reason] for reason in DROP_REASONS), round(calls / max(1, len(some)), 1),
        )  # fmt: skip

    def price(self) -> str:
        """Return what a question in `mma` took, and the kinds of these questions."""
        mma = [v for v in self.vetted if "mma" in v.result.subsets]
        each = 1 / max(1, len(mma))
        frames = sum(
            len(json.loads(x.detail).get("frames", ()))
            for v in self.vetted for x in v.result.verdicts if x.filter == "sight"
        )  # fmt: skip
        kinds = Counter(v.known.kind for v in mma)
        return (
            f"{self.name}: {len(mma)} in mma, {sum(v.is_sound for v in mma)} of them sound; for "
            f"each {self.cost('calls') * each:.1f} calls, {frames * each:.0f} frames, "
            f"{self.cost('tokens_in') * each:,.0f} tokens in, ${self.cost('usd') * each:.4f}; "
            + ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
        )

    def notes(self) -> list[str]:
        """Return a summary of the run, then a line for each question that did not end as known."""
        kept = [v for v in self.vetted if v.result.drop is None]
        sound, mma = sum(v.is_sound for v in kept), sum("mma" in v.result.subsets for v in kept)
        each = 1 / max(1, sound)
        checks = [n for v in kept if (n := v.result.metrics.get("sight_needed")) is not None]
        summary = (
            f"{self.name}: {len(self.vetted)} questions, {len(kept)} kept, {sound} of them sound, "
            f"{mma} in mma; {self.handled_share:.1%} as known; evidence needed by "
            f"{sum(checks):.0f} of {len(checks)} kept; "
            f"{self.cost('calls'):.0f} calls; per sound question "
            f"{self.cost('calls') * each:.1f} calls, {self.cost('tokens_in') * each:,.0f} tokens "
            f"in, {self.cost('tokens_out') * each:,.0f} out, ${self.cost('usd') * each:.4f}"
        )
        lines = [
            f"not as known: {self.name}: {v.known.kind} in {v.result.video_id}: "
            f"{v.result.question} {v.result.answer!r} ({v.result.drop or 'kept'})"
            for v in self.unexpected_results
        ]
        return [summary, *lines]


@dataclass(frozen=True, kw_only=True)
class SightBench:
    """`journeys`: number of videos. `noise`: share of the model's replies that are spoilt.
    `faults`: share of requests that the endpoint fails in the last run. `prices`: USD per million
    tokens, in and out. `seed`: of videos, questions and runs. `watches`: show the verifier videos
    in place of frames.
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
            pairs = self.material(folder)
            drawn_s = time.monotonic() - began

            def vet(name: str, url: str, store: str = "store") -> VettingRun:
                return asyncio.run(self.vet_all(name, pairs, folder, url, store=store))

            with Loopback(reply=Scripted(self.noise)) as server:
                sight, best = vet("sight", server.url), vet("repair", server.url)
                again = vet("repair", server.url)
                by_price = [vet(name, server.url) for name in BY_PRICE]
                server.faults = Faults(
                    share=self.faults, kinds=("429", "500", "empty", "truncated"), seed=self.seed
                )
                faulty = vet("repair", server.url, "faults")
            with Loopback(reply=Scripted(self.noise), schemas="honoured") as server:
                honoured = vet("repair", server.url, "schemas")
        runs = (sight, best)
        moved = [v for run in runs for v in run.vetted if v.known.kind == "evidence elsewhere"]
        errors = [v.evidence_error_s() for v in moved if v.result.repairs and not v.result.drop]
        same = [v.result for v in best.vetted] == [v.result for v in faulty.vetted]
        return BenchTable(
            title=f"sight on {len(pairs)} questions of known kind, {self.noise:.0%} noise",
            columns=COLUMNS,
            rows=tuple(row for run in runs for row in run.rows()),
            notes=(
                "sight: sight drops, then blind and asr mark; repair: dropped questions are "
                "repaired, too",
                "of the kept: evidence repaired, rewritten, in mma; of the dropped: why; calls per "
                "question",
                *(note for run in runs for note in run.notes()),
                *(run.price() for run in by_price),
                f"repaired evidence misses the truth by {max(errors, default=0.0):.2f} s at most",
                f"a second run makes {again.cost('calls'):.0f} calls",
                "calls repeated for an unparseable reply, per 1,000: "
                f"{best.repeat_calls:.1f} in text, {honoured.repeat_calls:.1f} from an endpoint "
                f"that honours schemas ({honoured.handled_share:.1%} as known: there, noise is "
                "another answer, and each reply has one)",
                f"with {self.faults:.0%} of requests failing ({faulty.cost('retries'):.0f} "
                f"retries) the result is {'the same' if same else 'ANOTHER'}",
                f"videos drawn in {drawn_s:.1f} s, all in {time.monotonic() - began:.0f} s",
            ),
        )

    def material(self, folder: Path) -> tuple[KnownPair, ...]:
        """Write the videos; return each with each of its questions."""
        videos = sight_videos.journeys(self.seed)[: self.journeys]
        for video in videos:
            sight_videos.write(video, folder)
        return tuple((v, known) for v in videos for known in sight_videos.questions(v, self.seed))

    async def vet_all(
        self, name: str, pairs: Sequence[KnownPair], folder: Path, url: str, store: str = "store"
    ) -> VettingRun:
        """Vet all questions. Each video and kind is a row of its own, so that each kind's calls are
        counted, but in a run of `BY_PRICE` a row is a video; replies are kept in the store of this
        name.
        """
        kept, part = (
            Store(str(folder / f"{store} {name}")),
            self.part(name, url, schemas=store == "schemas"),
        )
        costs = {kind: CallCounts() for kind in sight_videos.KINDS}
        rows: dict[tuple[str, str], list[Question]] = {}
        videos = {video.name: video for video, _ in pairs}
        for video, each in pairs:
            kind = "right" if name in BY_PRICE else each.kind
            written = replace(each.question, provenance=Provenance(llm="scripted", prompts=""))
            rows.setdefault((video.name, kind), []).append(written)
        room = asyncio.Semaphore(ROWS_IN_FLIGHT)
        model = part.guesser
        assert isinstance(model, OpenAI)
        chat = model.open()

        async def vet_row(key: tuple[str, str]) -> Video:
            coordinator = Coordinator()
            vet = open_part(part, model, chat, kept, coordinator)
            async with room:
                result = await vet(videos[key[0]].row(folder, rows[key]))
            summary, counts = coordinator.snapshot().llm.summary(), costs[key[1]]
            for field, value in vars(counts).items():
                setattr(counts, field, value + type(value)(summary[field]))
            return result

        vetted = await asyncio.gather(*map(vet_row, rows))
        results = {(v.video_id, first_id(q)): q for v in vetted for q in v.questions or ()}
        return VettingRun(
            name=name,
            vetted=tuple(
                VettedQuestion(known=k, result=results[video.name, k.question.question_id])
                for video, k in pairs
            ),
            costs=costs,
        )

    def part(self, name: str, url: str, *, schemas: bool = False) -> Vet:
        model = OpenAI(
            model="scripted", base_url=url, key_env=None, prices={"scripted": self.prices},
            watches=self.watches, structured="json_schema" if schemas else "none",
        )  # fmt: skip
        once = BlindGuess(
            name="blind",
            prompt="filters/blind",
            runs=1,
            min_failures=1,
            drops=False,
            together=10,
        )
        alone = replace(once, name="options", prompt="filters/options_alone", question=False)
        asr = replace(once, name="asr", prompt="filters/asr", transcript=True)
        filters = (once, alone, asr, Sight(drop_unneeded=True))
        return Vet(
            filters={f.name: f for f in filters},
            repair=None if name == "sight" else RepairRule(),
            order=("sight",) if name == "sight first" else (),
            spare=2.5 if name == "words first" else 1.0,
            guesser=model,
            verifier=model,
            repairer=model,
            subset="mma",
            seed=self.seed,
        )


def first_id(question: Question) -> str:
    """Return the id that a question had before it was rewritten."""
    versions = [json.loads(r.before) for r in question.repairs if r.kind == "wording"]
    return versions[0]["question_id"] if versions else question.question_id
