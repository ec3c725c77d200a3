"""Mustsee: questions that must be seen to be answered.

Long videos become question-answering datasets that need the video, and models are judged on them.
This package is pure: records in, records out. It imports neither Ray nor Hydra and opens no socket;
`make` and `run_job`, which start jobs, are loaded from `ray_jobs.cli.launch` when they are first
asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mustsee.judge.client import JudgeClient as JudgeClient
    from mustsee.layouts.detect import Dataset as Dataset
    from mustsee.layouts.detect import read as read
    from mustsee.records import Question as Question
    from mustsee.records import Video as Video

__version__ = "0.1.0"

# Loaded when first asked for: `import mustsee` alone costs nothing.
_PUBLIC = {
    "Dataset": "mustsee.layouts.detect",
    "JudgeClient": "mustsee.judge.client",
    "Question": "mustsee.records",
    "Video": "mustsee.records",
    "make": "ray_jobs.cli.launch",
    "read": "mustsee.layouts.detect",
    "run_job": "ray_jobs.cli.launch",
}
__all__ = ["Dataset", "JudgeClient", "Question", "Video", "make", "read", "run_job"]


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
