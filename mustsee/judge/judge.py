"""The answer-equivalence judge: is a model's answer as good as the reference answer?

The method is GEM's (Neptune, appendix D): one prompt with the question, the candidate and the
reference; the probability of TRUE against FALSE as the next token; a threshold that maximises F1
on human labels. An engine (`actors/judge/`) returns a `ForwardPass` for a prepared triple. `Judge`
handles truncated candidates, refused prompts, empty answers and several references, and needs a
threshold record to give verdicts.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from mustsee.errors import MustseeError, UserError
from mustsee.files.store import hardware, keyed_by
from mustsee.judge.contrast_rules import find_contrast
from mustsee.judge.prompt import Triple, blank, is_forged, strip_special_tokens, triple

MAX_PROMPT_TOKENS = 1024  # tokens of the whole prompt (Neptune D.3, "decode cache")
# Closer to the threshold than this many logits, the batch shape can change a bfloat16 verdict.
NEAR_THRESHOLD_LOGIT = 0.25


class UnjudgeableItem(MustseeError):
    """An item cannot be judged, for the reason in the message; other items are unaffected."""


@dataclass(frozen=True, kw_only=True)
class JudgeItem:
    """A question, a candidate answer and one or more references, of which any may match."""

    question: str
    candidate: str
    references: tuple[str, ...]
    id: str | None = None


@dataclass(frozen=True)
class PreparedTriple:
    """A triple prepared by an engine: `length` in tokens, `payload` in the engine's own form."""

    triple: Triple
    length: int
    payload: Any = None


@dataclass(frozen=True)
class ForwardPass:
    """The result of one forward pass.

    `logit_diff` is logit(TRUE) - logit(FALSE), so p(TRUE) is its sigmoid. `label_mass` is the
    probability of both labels among all tokens, 1 for a judge with two outcomes; far below 1, the
    prompt, checkpoint and token ids do not fit each other. `error` says why the pass failed.
    """

    logit_diff: float
    label_mass: float = 1.0
    error: str | None = None

    @property
    def p(self) -> float:
        return sigmoid(self.logit_diff)


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The properties that determine an engine's readings.

    `weights` and `prompt` are SHA-256 in hex. `attention` is "causal" or "prefix" for a language
    model, "none" for other engines.
    """

    engine: str
    weights: str
    prompt: str
    attention: str = "none"
    dtype: str = "float32"


class Engine(Protocol):
    """A model that scores triples; `limit` is the longest prompt in tokens."""

    @property
    def identity(self) -> Identity: ...

    @property
    def limit(self) -> int: ...

    def prepare(self, triple: Triple) -> PreparedTriple:
        """Raises UnjudgeableItem for a triple that this engine cannot take."""
        ...

    def score(self, prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
        """Return one reading per triple, in order; readings do not depend on the batch."""
        ...


class EngineConfig(Protocol):
    """A configured engine (`conf/judge/*.yaml`), picklable; `open` loads the model."""

    def open(self) -> Engine: ...


@runtime_checkable
class HoldsRecord(Protocol):
    """A configured engine that comes with its threshold record, such as a served one."""

    def fetch_record(self) -> Record:
        """Raises UserError if the record cannot be had."""
        ...


@dataclass(frozen=True, kw_only=True)
class Score:
    """The judgement of one item.

    `score` is p(TRUE) after the record's temperature, `reference` the index of the best reference.
    `warning` is "empty_candidate", "forged_candidate", "near_threshold", "contrast_KIND" (judged
    TRUE, though an order, a number, a side or the like differs) or null. A refused item has
    an `error` and no score.
    """

    score: float | None = None
    equivalent: bool | None = None
    logit_diff: float | None = None
    label_mass: float | None = None
    candidate_truncated: bool = False
    prompt_tokens: int = 0
    reference: int | None = None
    warning: str | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Record:
    """A threshold with the engine identity and the dev set (`dev`, a hash) that it is valid for.

    `f1` is measured on the set that chose the threshold and so is too high; `f1_nested` comes from
    nested cross-validation over questions. Intervals are 95 %, bootstrap by question. `notes` has
    sources, licences and other figures.
    """

    threshold: float
    identity: Identity
    dev: str
    temperature: float = 1.0
    f1: float = math.nan
    f1_nested: float = math.nan
    f1_interval: tuple[float, float] = (math.nan, math.nan)
    auc: float = math.nan
    brier: float = math.nan
    sensitivity: float = math.nan
    specificity: float = math.nan
    positive: int = 0
    negative: int = 0
    notes: str = ""

    def check(self, identity: Identity, *, dev: str | None = None) -> None:
        """Raises UserError naming every difference from the calibrated engine and dev set."""
        calibrated, current = dataclasses.asdict(self.identity), dataclasses.asdict(identity)
        differences = [
            f"{k} is {current[k]!r}, calibrated was {calibrated[k]!r}"
            for k in calibrated
            if calibrated[k] != current[k]
        ]
        if dev is not None and dev != self.dev:
            differences.append(f"dev set is {dev!r}, calibrated was {self.dev!r}")
        if differences:
            raise UserError(
                f"the threshold record does not fit this judge: {'; '.join(differences)}. A "
                "threshold is valid for one judge only: run `python -m ray_jobs.judge_calibrate` "
                "for this judge, or start the one that was calibrated"
            )

    def dump(self) -> str:
        """Return the record as JSON; unknown figures are null."""
        return json.dumps(_nulls(dataclasses.asdict(self)), indent=2, sort_keys=True) + "\n"

    @staticmethod
    def load(text: str, source: str = "record") -> Record:
        """Parse a record. Raises UserError for any other text."""
        try:
            data = {k: v for k, v in json.loads(text).items() if v is not None}
            data["identity"] = Identity(**data["identity"])
            data["f1_interval"] = tuple(
                math.nan if v is None else v for v in data.get("f1_interval", (None, None))
            )
            record = Record(**data)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UserError(
                f"{source} is not a threshold record ({type(error).__name__}: {error}): "
                "write one with `python -m ray_jobs.judge_calibrate`"
            ) from None
        if not 0 < record.threshold < 1 or not record.temperature > 0:
            raise UserError(
                f"{source}: threshold {record.threshold!r} must lie between 0 and 1, temperature "
                f"{record.temperature!r} above 0"
            )
        return record

    @staticmethod
    def read(path: str | Path) -> Record:
        try:
            return Record.load(Path(path).read_text(encoding="utf-8"), repr(str(path)))
        except FileNotFoundError:
            raise UserError(
                f"no threshold record at {str(path)!r}: run `python -m ray_jobs.judge_calibrate`, "
                "or correct the path"
            ) from None


def _nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _nulls(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_nulls(v) for v in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def logit(p: float) -> float:
    """Return the inverse of `sigmoid`; infinite at 0 and 1."""
    if p <= 0 or p >= 1:
        return math.copysign(math.inf, p - 0.5)
    return math.log(p / (1 - p))


def hash_files(paths: Sequence[str | Path]) -> str:
    """Return the SHA-256 of the files' names and contents."""
    total = hashlib.sha256()
    for path in sorted(map(Path, paths)):
        with path.open("rb") as file:
            total.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


@dataclass(frozen=True)
class PreparedItem:
    """An item with a prepared triple per reference, or with the score that needed no model."""

    item: JudgeItem
    prepared: tuple[PreparedTriple, ...] = ()
    truncated: bool = False
    done: Score | None = None


@dataclass(frozen=True)
class Judge:
    """An engine with its threshold record. Raises UserError if the two do not fit."""

    engine: Engine
    record: Record

    def __post_init__(self) -> None:
        self.record.check(self.engine.identity)

    def plan(self, item: JudgeItem) -> PreparedItem:
        """Prepare an item without running the model; `done` is set if it needs no model."""

        def without_model(**score: Any) -> PreparedItem:
            return PreparedItem(item, done=Score(**score))

        if all(blank(r) for r in item.references):
            return without_model(error="no reference answer: give one that is not empty")
        if blank(item.question):
            return without_model(error="the question is empty")
        if blank(strip_special_tokens(item.candidate)):
            return without_model(score=0.0, equivalent=False, warning="empty_candidate")
        if is_forged(item.candidate):
            return without_model(score=0.0, equivalent=False, warning="forged_candidate")
        prepared: list[PreparedTriple] = []
        truncated = False
        for reference in item.references:
            if blank(reference):
                continue
            cleaned, truncated = triple(item.question, item.candidate, reference)
            try:
                ready = self.engine.prepare(cleaned)
            except UnjudgeableItem as error:
                return without_model(error=str(error))
            if ready.length > self.engine.limit:
                message = (
                    f"the prompt has {ready.length} tokens, the limit is {self.engine.limit}: "
                    "shorten the question or the reference (the candidate is cut at 100 words)"
                )
                return without_model(error=message, prompt_tokens=ready.length)
            prepared.append(ready)
        return PreparedItem(item, tuple(prepared), truncated)

    def verdict(
        self, plan: PreparedItem, readings: Sequence[ForwardPass], threshold: float | None = None
    ) -> Score:
        """Return the score of a plan from its readings, one per reference; the best one counts."""
        if plan.done is not None:
            return plan.done
        error = next((e for r in readings if (e := _reading_error(r)) is not None), None)
        if error is not None:
            return Score(error=error, prompt_tokens=sum(p.length for p in plan.prepared))
        threshold = self.record.threshold if threshold is None else threshold
        best = max(range(len(readings)), key=lambda i: readings[i].logit_diff)
        reading = readings[best]
        scaled = reading.logit_diff / self.record.temperature
        given = [i for i, r in enumerate(plan.item.references) if not blank(r)]
        is_equivalent = sigmoid(scaled) > threshold
        contrast = find_contrast(plan.prepared[best].triple) if is_equivalent else None
        warning = "near_threshold" if _is_near(scaled, threshold) else None
        return Score(
            score=sigmoid(scaled),
            equivalent=is_equivalent,
            logit_diff=reading.logit_diff,
            label_mass=reading.label_mass,
            candidate_truncated=plan.truncated,
            prompt_tokens=sum(p.length for p in plan.prepared),
            reference=given[best],
            warning=f"contrast_{contrast.kind}" if contrast else warning,
        )

    def score(self, items: Sequence[JudgeItem], threshold: float | None = None) -> list[Score]:
        """Return one score per item, in order. Errors are per item."""
        plans = [self.plan(item) for item in items]
        readings = iter(self.engine.score([p for plan in plans for p in plan.prepared]))
        return [
            self.verdict(plan, [next(readings) for _ in plan.prepared], threshold) for plan in plans
        ]


def _is_near(scaled: float, threshold: float) -> bool:
    return abs(scaled - logit(threshold)) < NEAR_THRESHOLD_LOGIT


def _reading_error(reading: ForwardPass) -> str | None:
    """Return why a reading gives no verdict, or None."""
    if reading.error is None and not math.isfinite(reading.logit_diff + reading.label_mass):
        return (
            f"the model's output is not finite (logit difference {reading.logit_diff!r}): its "
            "dtype is too narrow for these weights (Gemma 2 overflows in float16), or they are "
            "damaged"
        )
    return reading.error


@dataclass(frozen=True, kw_only=True)
class JudgeConfig:
    """A configured judge: an engine and the path of its threshold record.

    Without a `record`, `uncalibrated` must be true: the threshold is then one half, and the
    judge's description says that it is uncalibrated.
    """

    engine: EngineConfig
    points: bool = False
    """Open questions that have points are graded by these, and by another grader, in an
    evaluation."""
    # The record's content counts in the store's key, with its hash of the weights: a judge that is
    # trained or calibrated again under the same name is another judge.
    record: str | None = keyed_by(lambda judge: judge.dump_record(), default=None)
    """File with the threshold."""
    uncalibrated: bool = hardware(default=False)
    """Accept a threshold of one half, as published."""

    def check(self, budget_usd: float | None) -> None:
        """Check before a run that the record exists. Raises UserError if it does not."""
        self.load_record()

    def open(self) -> Judge:
        """Load the judge. Raises UserError if the record is missing or is another judge's."""
        record, engine = self.load_record(), self.engine.open()
        if record is None:
            record = Record(
                threshold=0.5, identity=engine.identity, dev="none", notes="uncalibrated"
            )
        return Judge(engine, record)

    def dump_record(self) -> str | None:
        """Return the record's text; null without a record. Raises UserError if it is missing."""
        record = self.load_record()
        return None if record is None else record.dump()

    def load_record(self) -> Record | None:
        """Return the threshold record; null where the judge is uncalibrated. Raises UserError if it
        is missing.
        """
        if isinstance(self.engine, HoldsRecord):
            return self.engine.fetch_record()
        if self.record is None:
            if self.uncalibrated:
                return None
            raise UserError(
                "this judge has no threshold record: set record= to a file of `python -m "
                "ray_jobs.judge_calibrate`, or uncalibrated=true for a threshold of one half"
            )
        path = Path(self.record)
        here = Path(__file__).parents[1] / "assets" / path.name
        return Record.read(here if path.parent == Path("assets") else path)
