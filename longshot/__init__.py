"""Longshot: long videos to question-answering datasets that need the video, and models judged on
them.

This package is pure: records in, records out. It imports neither Ray nor Hydra and opens no socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longshot.layouts.detect import read as read

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # `longshot.read(path)`: questions from any released layout; loaded when first asked for.
    if name == "read":
        from longshot.layouts.detect import read

        return read
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
