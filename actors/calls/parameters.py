"""The parameters that a model at an address takes, learned from its refusals.

What is learned holds from the next call on, and is kept in the store for other workers and later
runs. A request with a parameter that was never taken yet goes ahead alone for a moment, so that
many calls in flight do not all lose their first attempt: a refusal comes at once, before a token is
written. Decision 0106.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from actors.calls.connection import ParameterRefused
from actors.calls.endpoint import Endpoint
from mustsee.calls.refusals import LIMITS, SCHEMA, Change, adapt_request, values_sent
from mustsee.errors import MustseeError, UserError
from mustsee.files.store import Store, digest

KIND = "parameters"  # the store's folder of what was learned
MAX_AGE_S = 30 * 86400.0  # seconds after which a refusal is tried again: servers are updated
WAIT_S = 5.0  # seconds for which calls wait for the one that goes ahead
MAX_IN_VAIN = 3  # calls that go ahead and end without saying what is taken; then all go
MAX_CHANGES = 32  # refusals of one call that are adapted to

Post = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True)
class Refusal:
    """A refused parameter: the name under which its value is sent instead ("": it is left out), the
    endpoint's words, and the UNIX time.
    """

    instead: str
    said: str
    at: float


@dataclass
class Learned:
    """What is known of a model at an address. `taken`: parameters that it took, as in
    `values_sent`.
    """

    refused: dict[str, Refusal] = field(default_factory=dict[str, Refusal])
    taken: set[str] = field(default_factory=set[str])

    @property
    def changes(self) -> dict[str, str]:
        """Refused parameter -> its name instead, or ""."""
        return {name: refusal.instead for name, refusal in self.refused.items()}

    def join(self, other: Learned) -> None:
        self.refused = {**other.refused, **self.refused}
        self.taken = self.taken | other.taken  # a new set: another thread may read the old one

    def add(self, changes: Sequence[Change], said: str) -> bool:
        """Add refusals. Returns False if there is nothing to send instead."""
        known = self.changes
        for change in changes:
            limit_is_lost = change.parameter in LIMITS and not change.instead
            if change.instead in known or change.parameter in known or limit_is_lost:
                return False
        at = time.time()
        self.refused |= {c.parameter: Refusal(c.instead, said, at) for c in changes}
        return True


def read(store: Store, endpoint: Endpoint) -> Learned:
    """What the store knows of an endpoint's model; nothing of what cannot be read."""
    try:
        content = json.loads(store.get(KIND, _key(endpoint)) or b"{}")
        oldest = time.time() - MAX_AGE_S
        refused = {name: Refusal(**given) for name, given in content.get("refused", {}).items()}
        recent = {name: refusal for name, refusal in refused.items() if refusal.at > oldest}
        return Learned(recent, set(content.get("taken", ())))
    except (MustseeError, ValueError, TypeError, AttributeError):
        return Learned()


def write(store: Store, endpoint: Endpoint, learned: Learned) -> None:
    """Keep what was learned, beside what others have kept meanwhile."""
    learned.join(read(store, endpoint))
    refused = {name: vars(refusal) for name, refusal in sorted(learned.refused.items())}
    content = {"place": endpoint.place, "refused": refused, "taken": sorted(learned.taken)}
    store.put(KIND, _key(endpoint), json.dumps(content).encode())


def _key(endpoint: Endpoint) -> str:
    return digest([endpoint.model, endpoint.base_url])


class EndpointParameters:
    """What a client knows of its endpoint. `fixed`: parameters that are never left out. `omit`:
    those that are left out from the start.
    """

    def __init__(
        self, endpoint: Endpoint, fixed: Container[str] = (), omit: Iterable[str] = ()
    ) -> None:
        self._endpoint, self._fixed, self._omit = endpoint, fixed, tuple(omit)
        self._learned = Learned()
        self._store: Store | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def remember(self, store: Store) -> None:
        """Keep what is learned in a store, and use what it knows."""
        self._store = store
        self._learned.join(read(store, self._endpoint))

    @property
    def changes(self) -> Mapping[str, str]:
        """Refused parameter -> its name instead, or ""."""
        learned = {n: i for n, i in self._learned.changes.items() if n not in self._fixed}
        return {**learned, **dict.fromkeys(self._omit, "")}

    @property
    def left_out(self) -> tuple[str, ...]:
        """The parameters that are not sent any more, and whose loss may change a reply."""
        return tuple(n for n, i in sorted(self.changes.items()) if not i and n != SCHEMA)

    def adapt(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A request without the refused parameters."""
        return adapt_request(body, self.changes)

    async def send(self, post: Post, build: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Send what `build` returns, again after each refusal of a parameter. Raises UserError, in
        the endpoint's words, for a refusal to which a request cannot be adapted.
        """
        self._bind()
        body = build()
        for _ in range(MAX_CHANGES):
            values = values_sent(body)
            if unknown := values - self._learned.taken:
                before = self._learned.changes
                await self._wait_for_first(values)
                if self._learned.changes != before:
                    body = build()
                    continue
                unknown = values - self._learned.taken
            ahead = self._go_ahead(unknown)
            try:
                reply = await post(body)
            except ParameterRefused as error:
                self._in_vain = 0
                await self.learn(error)
                body = build()
                continue
            except BaseException:
                self._in_vain += ahead is not None
                raise
            finally:
                self._end(ahead)
            if unknown - self._learned.taken:
                self._learned.taken = self._learned.taken | unknown
                self._in_vain = 0
                await self._keep()
            return reply
        raise UserError(f"{self._endpoint.place} refuses one parameter after another")

    async def learn(self, error: ParameterRefused) -> None:
        """Learn from a refusal. Raises as `send`."""
        await self._refresh()
        new = [c for c in error.changes if c.parameter not in self._learned.refused]
        if not new:
            return  # another call has learned it meanwhile
        if any(change.parameter in self._fixed for change in new):
            raise error
        if not self._learned.add(new, str(error)):
            names = ", ".join(change.parameter for change in new)
            raise UserError(f"{error}; {names} cannot be left out or replaced")
        await self._keep()

    def _bind(self) -> None:
        """Begin again on another event loop, to which futures belong."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._in_vain = loop, 0
            self._ahead: dict[str, asyncio.Future[None]] = {}  # parameter -> the call that tries it

    async def _wait_for_first(self, values: frozenset[str]) -> None:
        """Wait while another call tries one of these parameters for the first time."""
        loop = asyncio.get_running_loop()
        deadline, unknown = loop.time() + WAIT_S, values - self._learned.taken
        if unknown and not any(name in self._ahead for name in unknown):
            await self._refresh()
        before = self._learned.changes
        while self._in_vain < MAX_IN_VAIN and self._learned.changes == before:
            unknown = values - self._learned.taken
            tried = {self._ahead[name] for name in unknown if name in self._ahead}
            left = deadline - loop.time()
            if not tried or left <= 0:
                return
            await asyncio.wait(tried, timeout=left)

    def _go_ahead(self, unknown: frozenset[str] | set[str]) -> asyncio.Future[None] | None:
        """Mark the unknown parameters as tried by this call; None if others try them."""
        if not unknown or any(name in self._ahead for name in unknown):
            return None
        ahead: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ahead |= dict.fromkeys(unknown, ahead)
        return ahead

    def _end(self, ahead: asyncio.Future[None] | None) -> None:
        if ahead is not None:
            self._ahead = {n: future for n, future in self._ahead.items() if future is not ahead}
            if not ahead.done():
                ahead.set_result(None)

    async def _refresh(self) -> None:
        if self._store is not None:
            self._learned.join(await asyncio.to_thread(read, self._store, self._endpoint))

    async def _keep(self) -> None:
        if self._store is not None:
            with contextlib.suppress(MustseeError):  # it only saves later calls
                await asyncio.to_thread(write, self._store, self._endpoint, self._learned)
