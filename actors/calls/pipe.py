"""Messages between two processes of one machine, over a socket.

All messages of one turn of the event loop are one write, so hundreds of calls a second cost little.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
from collections.abc import Callable
from typing import Any

READ_BYTES = 1 << 20  # bytes of one read
HEADER_BYTES = 8  # bytes of the length before each group of messages


class Pipe:
    """One end, on one event loop at a time (`attach`). `on_message` is called with each message,
    `on_end` once, when the other process has ended.
    """

    def __init__(
        self, end: socket.socket, on_message: Callable[[Any], None], on_end: Callable[[], None]
    ) -> None:
        end.setblocking(False)
        self._socket, self._on_message, self._on_end = end, on_message, on_end
        self._waiting: list[Any] = []
        self._in, self._out, self._full = bytearray(), bytearray(), False
        # One buffer for all reads: allocating it costs more than a read.
        self._buffer = bytearray(READ_BYTES)

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Work on this loop from now on, and continue messages that are partly sent or read."""
        self._loop = loop
        loop.add_reader(self._socket, self._read)
        loop.call_soon(self._flush)

    def send(self, message: Any) -> None:
        """Send a message with the others of this turn of the event loop."""
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
            except OSError:  # the other process has ended, which `_read` notices, too
                self._out.clear()
                return
            del self._out[:sent]

    def _read(self) -> None:
        try:
            size = self._socket.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError:
            size = 0
        if not size:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
            self._on_end()
            return
        self._in += memoryview(self._buffer)[:size]
        while len(self._in) >= HEADER_BYTES:
            end = HEADER_BYTES + int.from_bytes(self._in[:HEADER_BYTES], "big")
            if len(self._in) < end:
                return
            messages = pickle.loads(memoryview(self._in)[HEADER_BYTES:end])
            del self._in[:end]
            for message in messages:
                self._on_message(message)
