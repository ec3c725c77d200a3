"""The judge's app on the lexical engine, its keys, and an item of a request."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from actors.judge.baselines import Lexical
from mustsee.judge.judge import JudgeConfig
from serve.judge_batch import LocalBackend
from serve.judge_guard import Keys, RequestLimits
from serve.judge_http import create_app

KEY, OLD = "a-key-of-the-tests-0001", "a-key-of-the-tests-0000"
WATCHER = "a-key-for-metrics-0001"
BEARER = {"Authorization": f"Bearer {KEY}"}
CAR = {"id": "a", "question": "what colour is it", "candidate": "it is red", "reference": "red"}


def make_app(**limits: Any) -> FastAPI:
    judge = JudgeConfig(engine=Lexical(), uncalibrated=True).open()
    return create_app(
        LocalBackend(judge, "lexical"), Keys.read(f"{OLD}, {KEY}", WATCHER), RequestLimits(**limits)
    )
