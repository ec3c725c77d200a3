"""The rule for Neptune's prompt of an answer; its other prompts have none."""

from __future__ import annotations

from collections.abc import Callable

from mustsee.calls.llm import Request
from mustsee.offline.evaluate import choice_letter


def choose_with_reason(request: Request) -> str:
    """Return an option as Neptune's prompt asks for it (C.5)."""
    return f"[{choice_letter(request)}]: its words are the nearest."


RULES: dict[str, Callable[[Request], str]] = {"evaluate/neptune": choose_with_reason}
