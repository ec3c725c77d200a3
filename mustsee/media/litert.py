"""LiteRT (10 MB, Google, Apache-2.0), which runs TFLite models in less than half of the time that
OpenCV takes.
"""

from __future__ import annotations

from typing import Any

from mustsee.errors import NotInstalled, need


def need_litert() -> None:
    """Raise NotInstalled without LiteRT."""
    need("look.objects", "ai-edge-litert==2.1.1", "ai_edge_litert.interpreter")


def is_installed() -> bool:
    """Whether LiteRT is installed."""
    try:
        need_litert()
    except NotInstalled:
        return False
    return True


def load_interpreter(model: bytes) -> Any:
    """Return the interpreter of a model, of the content of its file, for one thread. Raises
    NotInstalled.
    """
    need_litert()
    from ai_edge_litert.interpreter import Interpreter  # pyright: ignore[reportMissingImports]

    interpreter: Any = Interpreter(model_content=model, num_threads=1)
    interpreter.allocate_tensors()
    return interpreter
