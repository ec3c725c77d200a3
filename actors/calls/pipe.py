"""Messages between two processes of one machine, over a socket.

Those of one turn of the event loop are one write, so that hundreds of calls a second cost little.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
from collections.abc import Callable
from typing import Any

READ_BYTES = 1 << 20  # bytes at once
HEADER_BYTES = 8  # bytes that say how long what follows is


class Pipe:
    """One end, on one event loop at a time (`attach`). `got` is called with each message that
    comes, `ended` once, when the other process is gone.
    """

    def __init__(
        self, end: socket.socket, got: Callable[[Any], None], ended: Callable[[], None]
    ) -> None:
        end.setblocking(False)
        self._socket, self._got, self._ended = end, got, ended
        self._waiting: list[Any] = []
        self._in, self._out, self._full = bytearray(), bytearray(), False
        # one for all reads: as much memory costs more than the read
        self._room = bytearray(READ_BYTES)

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Work on this loop from now on; what is half sent or half read goes on there."""
        self._loop = loop
        loop.add_reader(self._socket, self._read)
        loop.call_soon(self._flush)

    def send(self, message: Any) -> None:
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(message)

    def _flush(self) -> None:
        if self._waiting:
            packed = pickle.dumps(self._waiting, protocol=pickle.HIGHEST_PROTOCOL)
            self._waiting = []
            self._out += len(packed).to_bytes(HEADER_BYTES, "big") + packed
        self._write()

    def _write(self) -> None:
        if self._full:
            self._loop.remove_writer(self._socket)
            self._full = False
        while self._out:
            try:
                sent = self._socket.send(self._out)
            except BlockingIOError:
                self._loop.add_writer(self._socket, self._write)
                self._full = True
                return
            except OSError:  # the other end is gone, which `_read` is told as well
                self._out.clear()
                return
            del self._out[:sent]

    def _read(self) -> None:
        try:
            size = self._socket.recv_into(self._room)
        except BlockingIOError:
            return
        except OSError:
            size = 0
        if not size:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
            self._ended()
            return
        self._in += memoryview(self._room)[:size]
        while len(self._in) >= HEADER_BYTES:
            end = HEADER_BYTES + int.from_bytes(self._in[:HEADER_BYTES], "big")
            if len(self._in) < end:
                return
            messages = pickle.loads(memoryview(self._in)[HEADER_BYTES:end])
            del self._in[:end]
            for message in messages:
                self._got(message)
