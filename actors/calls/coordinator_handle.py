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

    @property
    def liveness_address(self) -> RemoteMethod[[], tuple[str, int]]: ...
    @property
    def register_account(self) -> RemoteMethod[[str, Limits], None]: ...
    @property
    def exchange(
        self,
    ) -> RemoteMethod[[str, Sequence[CallOutcome], Sequence[AdmissionRequest]], list[Grant]]: ...
    @property
    def begin(self) -> RemoteMethod[[Sequence[str]], list[int]]: ...
    @property
    def record_overrun(self) -> RemoteMethod[[str, Sequence[str]], None]: ...
    @property
    def event(self) -> EventMethod: ...
    @property
    def count(self) -> RemoteMethod[[str, int], None]: ...
    @property
    def note_damage(self) -> RemoteMethod[[StoreDamage], None]: ...
    @property
    def acquire_helpers(self) -> RemoteMethod[[str, str, int, int], int]: ...
    @property
    def release_helpers(self) -> RemoteMethod[[str, str], None]: ...
    @property
    def abort(self) -> RemoteMethod[[str, str], None]: ...
    @property
    def snapshot(self) -> RemoteMethod[[], Snapshot]: ...
