"""An hour of natural video through `mustsee make`, beside ten minutes of the same.

    python -m benchmarks.bench what=hour what.video=FILE

The file is repeated to each length without encoding it again. A scripted model writes and verifies:
each request carries its reply, which the loopback endpoint sends back after `latency` seconds.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import ClassVar

import psutil

from actors.llm.openai import OpenAI, OpenAIChat
from actors.llm.scripted import fill_reply
from actors.part import Capabilities
from benchmarks.figures import BenchTable
from benchmarks.harness import run_child
from benchmarks.memory import repeat
from loopback.endpoint import Loopback
from loopback.replies import Payload
from mustsee.calls.llm import Llm, Reply, Request

SAMPLE_S = 0.5  # seconds between two samples of memory
USED = ("calls", "failed", "tokens_in", "tokens_out", "usd")
PROCESSES = ("driver", "ray::MapWorker", "ray::Helper")  # processes that are watched


@dataclass(frozen=True, kw_only=True)
class ScriptedAtEndpoint:
    """The scripted model behind an endpoint at `url`; its calls cost what those of `model` do."""

    capabilities: ClassVar[Capabilities] = Capabilities(images=True)
    model: str
    url: str
    language: str = "English"
    identity: str = "scripted at an endpoint"

    def open(self) -> Llm:
        return self

    @cached_property
    def _chat(self) -> OpenAIChat:
        return OpenAI(model=self.model, base_url=self.url, key_env=None).open()

    async def complete(self, request: Request) -> Reply:
        body, began = self._chat.body(request), time.thread_time()
        body |= {"scripted": fill_reply(request), "scripted_s": time.thread_time() - began}
        post = self._chat.connection.post
        return self._chat.read(request, await post("/chat/completions", body, request.wait))


@dataclass(frozen=True, kw_only=True)
class HourBench:
    """`minutes`: lengths, of which the last is compared with the first. `overrides`: of make."""

    video: str
    minutes: Sequence[float] = (10, 60)
    overrides: Sequence[str] = ()
    model: str = "gpt-6-luna"
    latency: float = 0.5

    def __call__(self) -> BenchTable:
        runs = [self._measure(minutes) for minutes in self.minutes]
        ratios = {name: runs[-1].get(name, 0) / first for name, first in runs[0].items() if first}
        rows = [(name, *(run.get(name) for run in runs), ratios.get(name)) for name in runs[0]]
        return BenchTable(
            title=f"mustsee make on {Path(self.video).name}, repeated",
            columns=("", *(f"{m:g} min" for m in self.minutes), "last to first"),
            rows=tuple(rows),
            notes=(f"MB: unshared, of the largest process; USD: as {self.model} costs",),
        )

    def _measure(self, minutes: float) -> Mapping[str, float]:
        scripted, peaks, over = list[float](), Counter[str](), Event()

        def reply(payload: Payload) -> str:
            scripted.append(payload["scripted_s"])
            return payload["scripted"]

        with TemporaryDirectory() as folder, Loopback(reply=reply, latency=self.latency) as server:
            repeat(self.video, video := f"{folder}/video.mp4", 60 * minutes)
            job = ["-m", "ray_jobs.make", f"videos={video}", f"out={folder}/out", *self.overrides]
            model = ["llm._target_=benchmarks.hour.ScriptedAtEndpoint", f"+llm.model={self.model}"]
            Thread(target=_sample_memory, args=(peaks, over), daemon=True).start()
            run_child([*job, *model, f"+llm.url={server.url}"], "the job")
            over.set()
            run = json.loads(Path(folder, "out", "run.json").read_text())
        llm, total = run["llm"], run["fact_funnel"]["total"]
        return {
            **{f"CPU s of {stage}": seconds for stage, seconds in run["cpu_seconds"].items()},
            "CPU s of the scripted model, within these": sum(scripted),
            **{f"peak MB of {name}": peaks[name] for name in PROCESSES},
            "share of the video listed": total["listed_seconds"] / total["seconds"],
            "questions kept": run["questions"]["kept"],
            "calls in flight, at most": server.stats["peak"],
            **{name: llm[name] for name in USED},
        }


def _sample_memory(peaks: Counter[str], over: Event) -> None:
    """Note the peak MB of the job's driver and of its largest worker and helper, until `over`."""
    while not over.wait(SAMPLE_S):
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):  # it has ended
                title, memory = "".join(process.cmdline()[:1]), process.memory_info()
                name = "driver" if process.ppid() == os.getpid() else title.partition("(")[0]
                peaks[name] = max(peaks[name], (memory.rss - memory.shared) // 1_000_000)
