"""What benchmarks share: rounds of timed alternatives, child processes, parts behind a gateway."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.llm.openai import OpenAI
from actors.part import LlmConfig, RunContext
from mustsee.calls.llm import Llm, correction
from mustsee.errors import MustseeError
from mustsee.files.store import Store
from mustsee.records import Video

RETRY_WAIT_S = 0.02  # longest wait before a retry of a local endpoint
ERROR_TAIL = 2000  # characters of a failed child's stderr that are shown


def cpu_seconds(run: Callable[[], Any]) -> float:
    """Return the CPU seconds, user and system, that `run` takes in this process."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    run()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def best_cpu_seconds(
    alternatives: Mapping[str, Callable[[], Any]], repeats: int
) -> dict[str, float]:
    """Return each alternative's least CPU seconds over `repeats` rounds, all taking turns."""
    best = dict.fromkeys(alternatives, float("inf"))
    for _ in range(repeats):
        for name, run in alternatives.items():
            best[name] = min(best[name], cpu_seconds(run))
    return best


def run_child(arguments: Sequence[str], what: str) -> str:
    """Run this Python with `arguments` and return its stdout. Raises MustseeError."""
    child = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    if child.returncode != 0:
        raise MustseeError(f"{what} ended with {child.returncode}: {child.stderr[-ERROR_TAIL:]}")
    return child.stdout


def run_json_child(code: str, arguments: Sequence[str], what: str) -> dict[str, Any]:
    """Run Python code in a fresh process and return the JSON object of its last line of stdout."""
    return json.loads(run_child(["-c", code, *arguments], what).splitlines()[-1])


def _no_llm(config: LlmConfig) -> Llm:
    raise AssertionError("this part calls no model")


NO_CALLS = RunContext(store=Store(""), llm=_no_llm, count=lambda name, n: None)


def open_part(
    part: Any, model: OpenAI, chat: Llm, store: Store, coordinator: Coordinator
) -> Callable[[Video], Awaitable[Video]]:
    """Open a part as a run does: its calls go through a gateway to `chat`, the opened `model`."""

    def gateway(config: LlmConfig) -> Llm:
        return Gateway(chat, store, coordinator, model, sleep=_wait_briefly)

    work = part.open(RunContext(store=store, llm=gateway, count=coordinator.count))

    async def run(row: Video) -> Video:
        result = work(row)
        return result if isinstance(result, Video) else await result

    return run


async def _wait_briefly(seconds: float) -> None:
    await asyncio.sleep(min(seconds, RETRY_WAIT_S))


def user_content(payload: Mapping[str, Any]) -> tuple[Sequence[Mapping[str, Any]], str]:
    """Return the user messages of a chat payload but requests to reply again: their parts, and
    their joined text.
    """
    contents: list[Any] = [m["content"] for m in payload["messages"] if m["role"] == "user"]
    parts = [
        part
        for content in contents
        if not str(content).startswith(correction("").partition(":")[0])
        for part in ([{"type": "text", "text": content}] if isinstance(content, str) else content)
    ]
    return parts, "\n".join(part["text"] for part in parts if part["type"] == "text")
