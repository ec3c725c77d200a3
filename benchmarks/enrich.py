"""`enrich` on the proving set: are sound traces of questions kept, and planted faults dropped?

    python -m benchmarks.bench what=enrich [json=figures.json]

The videos and the verifier are those of `what=sight`. The writer (`EnrichReplies`) plants a known
fault in half of what it writes. Between them work the run's own part `enrich` and its gateway, in
one process.

Which fault is planted is drawn from the question's own words, so the benchmark knows it and the
verifier does not.
"""

from __future__ import annotations

import asyncio
import random
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actors.calls.coordinator import Coordinator
from actors.llm.openai import OpenAI
from actors.stages.enrich import Enrich
from benchmarks import sight_videos
from benchmarks.figures import BenchTable, Cell
from benchmarks.harness import open_part, user_content
from benchmarks.sight_model import Scripted, Shot, frames_shown, vocabulary
from loopback.endpoint import Loopback
from mustsee.files.store import Store
from mustsee.records import Question, Span, Video
from mustsee.verify.look_replies import RIGHT, WRONG, OptionVerdict, say
from mustsee.verify.traces import AXES, Traces

TRACES = ("a wrong step", "another moment", "a leap")
SOUND = "sound"
_OPTION = re.compile(r"^([A-Z])\. (.*)$", re.MULTILINE)
STATED = "The shape there is "


def planted_fault(question: str) -> str:
    """Return the fault planted in the trace of a question, or `SOUND` for half of them."""
    rng = random.Random(f"{question}/planted/{TRACES}")
    return rng.choice(TRACES) if rng.random() < 0.5 else SOUND


@dataclass(frozen=True)
class EnrichReplies(Scripted):
    """Replies that write and grade traces, besides those that verify."""

    def __call__(self, payload: Mapping[str, Any]) -> str:
        parts, text = user_content(payload)
        if "Write the steps by which" in text:
            return steps(text)
        if "The way to the answer." in text:
            return grade_trace(text)
        if STATED in text:
            rng = random.Random(f"{payload.get('seed')}/{text}")
            return judge_step(text, frames_shown(parts, text), noisy=rng.random() < self.noise)
        return super().__call__(payload)


def steps(text: str) -> str:
    """Write the step that shows the answer and the conclusion, or the same with a fault."""
    question, answer = (
        re.findall(rf"^{label}: (.*)$", text, re.MULTILINE)[0]
        for label in ("QUESTION", "CORRECT ANSWER")
    )
    start, end = map(float, re.findall(r"^EVIDENCE: ([\d.]+)-([\d.]+)", text, re.MULTILINE)[0])
    other = next(v for v in vocabulary(question, (answer,)) if v != answer)
    fault = planted_fault(question)
    stated = other if fault == "a wrong step" else answer
    if fault == "another moment":
        start, end = (start - 9, start - 1) if start > 20 else (end + 1, end + 9)
    so = other if fault == "a leap" else answer
    return (
        f"STEP 1: {start:.1f}-{end:.1f}: {STATED}{stated}.\n"
        f"CONCLUSION: It is there that we are asked about, so the answer is: {so}."
    )


def judge_step(text: str, shots: Sequence[Shot], *, noisy: bool) -> str:
    """Judge whether the frames show a shape as the step states it."""
    value = re.findall(rf"{re.escape(STATED)}(.*)\.$", text, re.MULTILINE)[0]
    options = [option for _, option in _OPTION.findall(text)]
    there = [shape for _, shape in shots if shape.form != "none"]
    shows = bool(there) and all(value in (shape.form, shape.colour) for shape in there)
    shows = shows != noisy
    spans = (Span(shots[0][0], shots[-1][0]),) if shots else ()
    fits, right = "Yes" if shows else "No", OptionVerdict(RIGHT, spans)
    return say([right if o == fits else OptionVerdict(WRONG) for o in options], "A shape.")


def grade_trace(text: str) -> str:
    """Give full marks, except for a conclusion that differs from the answer."""
    answer = re.findall(r"^CORRECT ANSWER: (.*)$", text, re.MULTILINE)[0]
    conclusion = re.findall(r"^Conclusion: (.*)$", text, re.MULTILINE)[0]
    levels = dict.fromkeys(AXES, 2) | {"logic": 2 * (answer in conclusion)}
    return "\n".join(f"{a.upper()} REASON: so\n{a.upper()}: {n}" for a, n in levels.items())


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
        return self.is_kept == (self.fault == SOUND)


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
        rows = [_row(fault, [m for m in results if m.fault == fault]) for fault in (SOUND, *TRACES)]
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
        with Loopback(reply=EnrichReplies(self.noise)) as server:
            part = self.part(server.url)
            enriched = [asyncio.run(self.enrich_row(part, v, folder)) for v in videos]
        results = [
            EnrichedResult(fault=planted_fault(q.question), question=q)
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
