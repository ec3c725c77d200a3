"""The LLM phase against an endpoint of known speed: the share of its ceiling that is reached.

    python -m benchmarks.bench what=llm

The endpoint is the loopback server in a process of its own. Every reply takes `latency` seconds and
at most `in_flight` requests are served at once, so a client gets at most `in_flight / latency`
replies a second. Our side is a job's own stage: Ray Data, a worker with its event loop, gateway,
coordinator, store and client; start-up has a column. Ray's HttpRequestProcessor calls the same
server for comparison.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from actors.calls.coordinator_actor import start_coordinator
from actors.engine.hardware import Hardware
from actors.engine.session import Session
from actors.engine.stage import Stage
from actors.llm.openai import OpenAI
from actors.part import LlmConfig, Opened, RunContext
from benchmarks.figures import BenchTable
from mustsee.calls.llm import Message, Request, Sampling
from mustsee.files import schemas
from mustsee.files.fetch import fetch
from mustsee.files.store import Store
from mustsee.records import Video
from mustsee.run.record import Snapshot
from ray_jobs.runtime.cluster import connect_ray

PROMPT = "Line {} of the transcript: " + "the boat turns and the harbour comes into view. " * 40


@dataclass(frozen=True, kw_only=True)
class CallsOnly:
    """A part that only makes `calls` calls at once for every row. The CPU of the one worker is
    counted after all `rows`, because counting costs CPU, too.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("title",)
    llm: LlmConfig
    calls: int
    rows: int

    def open(self, run: RunContext) -> Opened:
        llm, before, left = run.llm(self.llm), time.process_time(), self.rows

        async def ask(row: Video) -> Video:
            nonlocal left
            requests = [
                Request(
                    prompt="bench",
                    digest="",
                    messages=(Message("user", PROMPT.format(f"{row.video_id}.{i}")),),
                    sampling=Sampling(max_tokens=300),
                )
                for i in range(self.calls)
            ]
            replies = await asyncio.gather(*map(llm.complete, requests))
            left -= 1
            if not left:
                run.count("worker CPU us", round(1e6 * (_cpu() - before)))
            return dataclasses.replace(row, title=replies[-1].text)

        return ask


def _sender() -> Any:
    """This worker's sender; None where every reply was in the store."""
    import psutil

    named = psutil.process_iter(["cmdline"])
    own = (p for p in named if (p.info["cmdline"] or [""])[-1] == f"for={os.getpid()}")
    return next(own, None)


def _cpu() -> float:
    """Return the CPU seconds of this worker and its sender since they started."""
    sender = _sender()
    return time.process_time() + (sum(sender.cpu_times()[:2]) if sender else 0.0)


@dataclass(frozen=True, kw_only=True)
class LlmPhase:
    """`calls`: made by our stage, `ray_calls` by Ray's processor (which is slow; 0: not at all).
    `latency` in seconds.
    """

    latency: float = 2.0
    in_flight: int = 256
    calls: int = 12_800
    calls_per_row: int = 16
    ray_calls: int = 64

    def __call__(self) -> BenchTable:
        ceiling = self.in_flight / self.latency
        rows: list[tuple[Any, ...]] = []
        with connect_ray():
            for name, calls, measure in (
                ("mustsee: stage, gateway, coordinator, store", self.calls, self._ours),
                ("Ray HttpRequestProcessor, 1 actor, batches of 1", self.ray_calls, self._rays),
            ):
                if not calls:
                    continue
                with self._server() as url:
                    before, began = stats(url)["cpu"], time.time()
                    cpu = measure(url, calls)
                    seconds = time.time() - began
                    served = stats(url)
                start, peak = served["first"] - began, int(served["peak"])
                server_ms = 1000 * (served["cpu"] - before) / calls
                rate = calls / (seconds - start)
                rows.append(
                    (name, calls, seconds, start, rate, rate / ceiling, peak, cpu, server_ms)
                )
        return BenchTable(
            title=f"LLM phase: {self.latency:g} s latency, {self.in_flight} in flight, "
            f"ceiling {ceiling:g} calls/s",
            columns=("client", "calls", "seconds", "of which start-up", "calls/s",
                     "share of ceiling", "peak in flight", "worker CPU ms/call",
                     "server CPU ms/call"),
            rows=tuple(rows),
            notes=(
                "Calls per second and their share count from the first call; start-up is that of "
                f"actors and clients. {self.calls} calls take {self.calls / ceiling:g} s at best.",
                "The server runs on the same machine and shares its cores.",
            ),
        )  # fmt: skip

    def _ours(self, url: str, calls: int) -> float:
        """Make the calls by a stage of ours; return the worker's CPU milliseconds per call."""
        import pyarrow as pa
        import ray

        coordinator = start_coordinator()
        model = OpenAI(
            model="loopback",
            base_url=url,
            key_env=None,
            max_connections=self.in_flight,
            timeout=60 + 10 * self.latency,
        )
        count = calls // self.calls_per_row
        stage = Stage(
            name="ask",
            part=CallsOnly(llm=model, calls=self.calls_per_row, rows=count),
            hardware=Hardware(workers=1, cpus=0.5, concurrency=4),
        )
        per_block = max(1, self.in_flight // self.calls_per_row)
        table = schemas.table([Video(video_id=f"{i:06}", uri="") for i in range(count)], Video)
        blocks = [table.slice(i, per_block) for i in range(0, count, per_block)]
        with tempfile.TemporaryDirectory(prefix="mustsee-bench-") as folder:
            session = Session(store=Store(folder), coordinator=coordinator)
            rows = stage.apply(ray.data.from_blocks(blocks), session, rows_per_block=per_block)
            results = pa.concat_tables(rows.iter_batches(batch_size=None, batch_format="pyarrow"))
        assert results["title"].null_count == 0, results["problem"].drop_null()[:1]
        snapshot: Snapshot = ray.get(cast(Any, coordinator).snapshot.remote())
        total = snapshot.llm.total
        assert total.calls + total.cached == count * self.calls_per_row, total
        return snapshot.counts["worker CPU us"] / 1000 / calls

    def _rays(self, url: str, calls: int) -> None:
        import ray
        from ray.data.llm import HttpRequestProcessorConfig, build_processor

        config = HttpRequestProcessorConfig(
            url=f"{url}/chat/completions", concurrency=1, batch_size=1
        )
        processor = build_processor(
            config,
            preprocess=lambda row: {
                "payload": {
                    "model": "loopback",
                    "max_tokens": 300,
                    "messages": [{"role": "user", "content": PROMPT.format(row["id"])}],
                }
            },
            postprocess=lambda row: {
                "text": row["http_response"]["choices"][0]["message"]["content"]
            },
        )
        results = processor(ray.data.range(calls, override_num_blocks=1)).take_all()
        assert len(results) == calls

    @contextmanager
    def _server(self) -> Generator[str]:
        command = [
            sys.executable, "-m", "loopback.endpoint",
            "--latency", str(self.latency), "--in-flight", str(self.in_flight),
        ]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield process.stdout.readline().strip()
            finally:
                process.terminate()


def stats(url: str) -> dict[str, float]:
    """Return the server's counters."""
    return json.loads(fetch(url.removesuffix("/v1") + "/stats", timeout=30).body)
