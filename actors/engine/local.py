"""The engine in one process, without Ray: a session with a plain coordinator, and a stage that only
looks rows up.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.engine.hardware import Hardware
from actors.engine.session import Session
from actors.engine.stage import RowTask, StageWorker
from actors.part import LlmConfig, RunContext
from mustsee.calls.llm import Llm
from mustsee.errors import MustseeError
from mustsee.run.record import NOTHING, RowOutcome, Snapshot, WorkTimes


@dataclass(frozen=True, kw_only=True)
class LocalSession(Session):
    """The session of one process, with a plain `Coordinator`."""

    coordinator: Coordinator  # pyright: ignore[reportIncompatibleVariableOverride]

    def begin(self, rows: Sequence[str]) -> list[int]:
        return [0] * len(rows)

    def row_deadline(
        self, seconds: float | None, row: str, beside: Sequence[str]
    ) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()  # No deadline: a killed process would not be restarted.

    def event(
        self, stage: str, outcome: RowOutcome, took: WorkTimes = NOTHING, row: str | None = None,
        rows: int = 1,
    ) -> None:  # fmt: skip
        self.coordinator.event(stage, outcome, took, row, rows)

    def abort(self, error: MustseeError) -> None:
        self.coordinator.abort(type(error).__name__, str(error))

    def snapshot(self, timeout: float | None = None) -> Snapshot:
        return self.coordinator.snapshot()

    def context(self, stage: str = "", hardware: Hardware | None = None) -> RunContext:
        return RunContext(
            store=self.store,
            llm=lambda config: self.connect_model(config, stage),
            count=self.coordinator.count,
            retry_problems=self.retry_problems,
        )

    def connect_model(self, config: LlmConfig, stage: str) -> Llm:
        """Return the model of a part, with its limits, budget and stored replies."""
        return Gateway.connect(config, self.store, self.coordinator, stage=stage)


class Lookup(StageWorker):
    """A stage that only reads the store and computes nothing."""

    def look_up(self, table: pa.Table) -> tuple[pa.Table, list[str]]:
        """The rows that the store has or that the stage skips, and the ids of the other rows."""
        self._lacking: list[str] = []
        if not table.num_rows:
            return table, []
        done = self(table)
        kept = [n not in self._lacking for n in done["video_id"].to_pylist()]
        rows = [done.slice(i, 1) for i, keep in enumerate(kept) if keep]
        return pa.concat_tables(rows) if rows else done.slice(0, 0), self._lacking

    def _compute(self, tasks: Sequence[RowTask], results: list[pa.Table | None]) -> None:
        self._lacking = [task.row.video_id for task in tasks]
