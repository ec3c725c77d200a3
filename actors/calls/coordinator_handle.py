"""`CoordinatorHandle`: the coordinator's Ray actor, as gateways and workers call it."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import ParamSpec, Protocol, TypeVar

from actors.calls.admission import AdmissionRequest, Grant
from mustsee.calls.limits import Limits
from mustsee.calls.usage import CallOutcome
from mustsee.files.store import StoreDamage
from mustsee.run.record import NOTHING, RowOutcome, Snapshot, WorkTimes

P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)


class RemoteMethod(Protocol[P, T_co]):
    """A method of an actor. `remote` sends a message and returns a reference to the answer, to be
    awaited or given to `call_coordinator`.
    """

    def remote(self, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T_co]: ...


class EventMethod(Protocol):
    """`Coordinator.event` of an actor, whose last arguments may be left out."""

    def remote(
        self, stage: str, outcome: RowOutcome, took: WorkTimes = NOTHING, row: str | None = None,
        rows: int = 1,
    ) -> Awaitable[None]: ...  # fmt: skip


class CoordinatorHandle(Protocol):
    """The methods of `Coordinator` that are called through its actor."""

    liveness_address: RemoteMethod[[], tuple[str, int]]
    register_account: RemoteMethod[[str, Limits], None]
    exchange: RemoteMethod[[str, Sequence[CallOutcome], Sequence[AdmissionRequest]], list[Grant]]
    begin: RemoteMethod[[Sequence[str]], list[int]]
    record_overrun: RemoteMethod[[str, Sequence[str]], None]
    event: EventMethod
    count: RemoteMethod[[str, int], None]
    note_damage: RemoteMethod[[StoreDamage], None]
    acquire_helpers: RemoteMethod[[str, str, int, int], int]
    release_helpers: RemoteMethod[[str, str], None]
    abort: RemoteMethod[[str, str], None]
    snapshot: RemoteMethod[[], Snapshot]
