"""The judge on Ray Serve (serve/judge.py), which stages call through its endpoint.

    python -m ray_jobs.evaluate questions=Q judge=serve judge.engine.url=http://127.0.0.1:8000
    python -m ray_jobs.evaluate questions=Q judge=serve +judge@judge.engine.start=mini

Weights, threshold and prompt are the served judge's: its record comes with its description.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from mustsee.errors import Transient, UserError
from mustsee.files.store import hardware
from mustsee.judge.client import JudgeClient
from mustsee.judge.judge import (
    Engine,
    ForwardPass,
    Identity,
    JudgeConfig,
    JudgeItem,
    PreparedTriple,
    Record,
)
from mustsee.judge.prompt import Triple

ATTEMPTS = 12  # tries of a request, some minutes in all: a lost replica loads its weights again
CHARACTERS_PER_TOKEN = 4  # about; the endpoint counts by itself


class NoJudge(UserError):
    """No judge answers at an address."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """The judge at an address."""

    url: str = hardware("http://127.0.0.1:8000")
    """Address of the judge's server, as the workers see it."""
    key_env: str | None = hardware("MUSTSEE_JUDGE_KEY")
    """Variable with the key; a server that was started with no_auth=loopback needs none."""
    connections: int = hardware(64)
    """Batches in flight from one worker."""
    timeout: float = hardware(60.0)
    """Seconds of one try."""
    start: JudgeConfig | None = hardware(None)
    """Judge that the job serves by itself, at this address, where none answers there."""
    replicas: int = hardware(1)
    """Replicas of a judge that the job starts."""
    gpus: float = hardware(0.0)
    """GPUs of each of them."""
    tpus: int = hardware(0)
    """TPU chips of each of them, which share the weights of `gem_jax`."""

    def __post_init__(self) -> None:
        if self.connections < 1 or self.replicas < 1:
            raise UserError(
                f"judge.engine.connections={self.connections!r}, replicas={self.replicas!r}: at "
                "least 1"
            )

    @property
    def callers(self) -> int:
        """Number of batches that are scored at once."""
        return self.connections

    @property
    def client(self) -> JudgeClient:
        key = os.environ.get(self.key_env, "").strip() if self.key_env else ""
        return JudgeClient(self.url, key or None, timeout=self.timeout, attempts=ATTEMPTS)

    def fetch_record(self) -> Record:
        """Return the threshold record of the judge. Raises UserError if none answers, or if the one
        to start has none.
        """
        if self.start is None:
            return self._described.record
        record = self.start.load_record()
        if record is None:
            raise UserError("judge.engine.start: an uncalibrated judge cannot be served")
        return record

    def open(self) -> Engine:
        """Raises UserError if no judge answers."""
        return ServedEngine(self)

    @cached_property
    def _described(self) -> ServedDescription:
        return describe(self)


@dataclass(frozen=True, kw_only=True)
class ServedDescription:
    """What a served judge says of itself. `limit`: tokens of the longest prompt."""

    record: Record
    limit: int


def describe(served: Served) -> ServedDescription:
    """Ask a judge for its description. Raises NoJudge if none answers, UserError if it refuses."""
    try:
        said = replace(served.client, attempts=1).models()
        record = Record.load(json.dumps(said["record"]), f"the judge at {served.url}")
        return ServedDescription(record=record, limit=int(said["limit"]))
    except (Transient, LookupError, TypeError, ValueError) as error:
        raise NoJudge(
            f"judge=serve: no judge answers at {served.url} ({error}); start one with `serve run "
            "serve.judge:app`, set judge.engine.url=, or let the job start one with "
            "+judge@judge.engine.start=mini"
        ) from None


class ServedEngine:
    """An engine whose passes are made by the server; any number of threads may call it."""

    def __init__(self, served: Served) -> None:
        self._client = served.client
        described = describe(served)
        self.identity: Identity = described.record.identity
        self.limit = described.limit

    def prepare(self, triple: Triple) -> PreparedTriple:
        """Return the triple with its approximate length; the server cuts and refuses by itself."""
        text = f"{triple.question} {triple.candidate} {triple.reference}"
        length = min(math.ceil(len(text) / CHARACTERS_PER_TOKEN), self.limit)
        return PreparedTriple(triple, length)

    def score(self, prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
        """Return the server's readings. Raises Transient if it cannot be reached."""
        items = [
            JudgeItem(
                question=one.triple.question,
                candidate=one.triple.candidate,
                references=(one.triple.reference,),
            )
            for one in prepared
        ]
        return [
            ForwardPass(score.logit_diff, score.label_mass)
            if score.logit_diff is not None and score.label_mass is not None
            else ForwardPass(math.nan, error=score.error or score.warning or "no score")
            for score in self._client.score(items)
        ]
