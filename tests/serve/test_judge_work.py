"""The judge refuses at once what it cannot finish in the time of a request."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from mustsee.judge.judge import JudgeItem, Score
from serve.judge_guard import Keys, RequestLimits
from serve.judge_http import create_app
from tests.support.judge_app import BEARER, CAR, KEY


class Clocked:
    """A judge that takes `pace` seconds for a request with little text, by a clock of its own."""

    def __init__(self, pace: float) -> None:
        self.now, self.pace, self.scored = 0.0, pace, 0

    async def describe(self) -> dict[str, Any]:
        return {"model": "m", "prompt_version": "1", "threshold": 0.5, "record": "", "limit": 1}

    async def score(self, items: list[JudgeItem], threshold: float | None) -> list[Score]:
        self.scored += len(items)
        return [Score(score=1.0, equivalent=True) for _ in items]

    async def ready(self) -> str | None:
        self.now += self.pace
        return None


def ask(backend: Clocked, monkeypatch: Any, *requests: int) -> list[Any]:
    """The replies to requests with so many items of 6,000 characters, the first one first."""
    monkeypatch.setattr("serve.judge_http.time.perf_counter", lambda: backend.now)
    app = create_app(backend, Keys.read(KEY), RequestLimits())
    long = {**CAR, "candidate": "ab " * 2000}
    with TestClient(app, headers=BEARER) as client:
        return [
            client.post("/v1/equivalence", json={"items": [long] * count}) for count in requests
        ]


def test_the_first_request_is_refused_if_it_takes_too_long(monkeypatch: Any) -> None:
    slow = Clocked(pace=0.08)
    refused, smaller, single = ask(slow, monkeypatch, 512, 128, 1)
    assert refused.status_code == 413
    error = refused.json()["error"]["message"]
    assert "512 items" in error
    assert "a request has 30 s: send at most 124 such items" in error
    assert [r.status_code for r in (smaller, single)] == [200, 200]
    assert slow.scored == 129


def test_a_fast_judge_takes_the_largest_request(monkeypatch: Any) -> None:
    (reply,) = ask(Clocked(pace=0.005), monkeypatch, 512)
    assert reply.status_code == 200


def test_a_single_item_is_tried_however_slow_the_judge_was(monkeypatch: Any) -> None:
    two, one = ask(Clocked(pace=100.0), monkeypatch, 2, 1)
    assert (two.status_code, one.status_code) == (413, 200)
