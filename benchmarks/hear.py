"""Speech recognition: word error rate and cost, on utterances with known words.

    python -m benchmarks.bench what=hear what.manifest=FILE
    python -m benchmarks.bench what=hear what.manifest=FILE +hear@what.engines.small=whisper \\
        what.engines.small.model=FOLDER

The manifest has a JSON object a line, or a JSON list of objects, with `audio_filepath` (relative to
the manifest) and `text`. Each utterance is decoded, searched for speech and transcribed as a video
is. The word error rate is jiwer's, over all words (lower case, contractions spelt out, no
punctuation); its interval is a bootstrap over utterances. A recogniser that is not installed has an
empty row and a note with the reason.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from actors.part import Part, RunContext
from benchmarks.figures import BenchTable, Cell
from mustsee.errors import UserError, need
from mustsee.files.store import Store
from mustsee.media.sound import audio_chunks
from mustsee.media.speech import SAMPLE_RATE
from mustsee.records import Line, Video

LOCAL_ONLY = "what.engines: only recognisers that run on this machine can be measured"


@dataclass(frozen=True)
class Utterance:
    path: str
    text: str


@dataclass(frozen=True, kw_only=True)
class RecogniserResult:
    """One recogniser's transcripts, and the seconds to load it and to transcribe."""

    texts: tuple[str, ...]
    load: float
    cpu: float
    wall: float


@dataclass(frozen=True, kw_only=True)
class HearBench:
    manifest: str
    engines: Mapping[str, Part]
    limit: int | None = None
    resamples: int = 2000
    seed: int = 0

    def __call__(self) -> BenchTable:
        utterances = read_manifest(self.manifest)[: self.limit]
        seconds = sum(
            len(s.samples) / SAMPLE_RATE
            for u in utterances
            for s in audio_chunks(u.path, SAMPLE_RATE)
        )
        rows: list[tuple[Cell, ...]] = []
        missing: list[str] = []
        for name, engine in self.engines.items():
            try:
                result = transcribe_all(engine, utterances)
            except UserError as error:
                rows.append((name, *[None] * 9))
                missing.append(f"{name}: {error}")
            else:
                rows.append(self._row(name, result, utterances, seconds))
        return BenchTable(
            title="speech recognition: word error rate, and seconds per second of sound",
            columns=("engine", "WER", "95 %", "sub", "del", "ins", "silent", "CPU/s", "wall/s",
                     "load s"),
            rows=tuple(rows),
            notes=(
                f"{len(utterances)} utterances, {seconds:.0f} s of sound, "
                f"{sum(len(u.text.split()) for u in utterances)} words",
                "95 %: interval of the WER; sub, del, ins: words changed, missed, added, per word",
                "silent: share of utterances without a transcribed word",
                "CPU/s, wall/s: seconds per second of sound",
                *missing,
            ),
        )  # fmt: skip

    def _row(
        self, name: str, result: RecogniserResult, utterances: Sequence[Utterance], seconds: float
    ) -> tuple[Cell, ...]:
        errors = word_errors([u.text for u in utterances], result.texts)
        words = errors[:, 0].sum()
        low, high = self._interval(errors)
        return (
            name, float(errors[:, 1:].sum() / words), f"{low:.2f}-{high:.2f}",
            *(float(n / words) for n in errors[:, 1:].sum(axis=0)),
            sum(not text for text in result.texts) / len(result.texts),
            result.cpu / seconds, result.wall / seconds, result.load,
        )  # fmt: skip

    def _interval(self, errors: np.ndarray[Any, np.dtype[np.int64]]) -> tuple[float, float]:
        rng = np.random.default_rng(self.seed)
        drawn = errors[rng.integers(0, len(errors), (self.resamples, len(errors)))].sum(axis=1)
        low, high = np.quantile(drawn[:, 1:].sum(axis=1) / drawn[:, 0], (0.025, 0.975))
        return float(low), float(high)


def read_manifest(path: str) -> list[Utterance]:
    """Read the utterances of a manifest. Raises UserError."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8").strip()
        rows = json.loads(text) if text.startswith("[") else map(json.loads, text.splitlines())
        return [Utterance(str(file.parent / r["audio_filepath"]), r["text"]) for r in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"what.manifest={path!r}: {error!r}; expected a JSON object a line, with "
            "audio_filepath and text"
        ) from error


def transcribe_all(engine: Part, utterances: Sequence[Utterance]) -> RecogniserResult:
    """Transcribe every utterance; the first one once before, unmeasured, to warm up."""
    started = time.monotonic()
    transcribe = open_engine(engine)

    def text_of(utterance: Utterance) -> str:
        return " ".join(line.text for line in transcribe(utterance.path))

    text_of(utterances[0])
    load = time.monotonic() - started
    cpu, wall = time.process_time(), time.monotonic()
    texts = tuple(map(text_of, utterances))
    return RecogniserResult(
        texts=texts,
        load=load,
        cpu=time.process_time() - cpu,
        wall=time.monotonic() - wall,
    )


def open_engine(engine: Part) -> Callable[[str], tuple[Line, ...]]:
    """Load a recogniser; return a function from a file to its transcript."""
    run = RunContext(store=Store(""), llm=_refuse_llm, count=lambda name, n: None)
    part = engine.open(run)

    def transcribe(path: str) -> tuple[Line, ...]:
        result = part(Video(video_id="u", uri=path, digest=path))
        if inspect.isawaitable(result):
            raise UserError(LOCAL_ONLY)
        return result.lines or ()

    return transcribe


def _refuse_llm(config: object) -> Any:
    raise UserError(LOCAL_ONLY)


def word_errors(
    references: Sequence[str], hypotheses: Sequence[str]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return [n, 4]: words, substitutions, deletions and insertions of each utterance."""
    need("what=hear", "jiwer", "jiwer")
    import jiwer

    plain = jiwer.Compose(
        [
            jiwer.ToLowerCase(),
            jiwer.SubstituteRegexes({"[’`]": "'", "-": " "}),
            jiwer.ExpandCommonEnglishContractions(),
            jiwer.RemovePunctuation(),
            jiwer.RemoveMultipleSpaces(),
            jiwer.Strip(),
        ]
    )
    rows: list[tuple[int, int, int, int]] = []
    for reference, hypothesis in zip(references, hypotheses, strict=True):
        counts = jiwer.process_words(str(plain(reference)), str(plain(hypothesis)))
        total = counts.hits + counts.substitutions + counts.deletions
        rows.append((total, counts.substitutions, counts.deletions, counts.insertions))
    return np.array(rows, np.int64)
