"""Liveness connections, by which the call coordinator notices at once that a worker has died.

Each process with calls in flight holds a connection to the coordinator. The operating system closes
it when the process ends in any way, and only then: a process that is starved of CPU keeps it. The
loss of a machine or of the network is noticed by TCP keepalive (`KEEPALIVE_OPTIONS`).
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass

# Seconds before the first probe, seconds between probes, and number of probes.
KEEPALIVE_OPTIONS = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3}
CONNECT_TIMEOUT_S = 10.0  # seconds for connecting


@dataclass(frozen=True, kw_only=True)
class LivenessSignal:
    """A sender is connected (`here`), or its worker died with only the calls `still` in flight."""

    sender: str
    here: bool = False
    still: Collection[str] = ()


class LivenessServer:
    """The coordinator's end of all connections, on threads of its own."""

    def __init__(self, host: str) -> None:
        signals = self._signals = deque[LivenessSignal]()

        class LivenessHandler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                _enable_keepalive(self.request)
                with contextlib.suppress(OSError):
                    sender = self.rfile.readline().decode().strip()
                    signals.append(LivenessSignal(sender=sender, here=True))
                    with contextlib.suppress(OSError, ValueError):
                        for line in self.rfile:
                            signals.append(LivenessSignal(sender=sender, still=json.loads(line)))
                    signals.append(LivenessSignal(sender=sender))

        server = socketserver.ThreadingTCPServer((host, 0), LivenessHandler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, name="liveness", daemon=True).start()
        self.address = host, int(server.server_address[1])

    def signals(self) -> Iterator[LivenessSignal]:
        """Yield the signals since the last call."""
        while self._signals:
            yield self._signals.popleft()


class LivenessConnection:
    """A sender's end. Raises OSError where the coordinator cannot be reached."""

    def __init__(self, address: tuple[str, int], sender: str) -> None:
        self.socket = socket.create_connection(address, timeout=CONNECT_TIMEOUT_S)
        _enable_keepalive(self.socket)
        self.socket.sendall(f"{sender}\n".encode())
        self.socket.setblocking(False)

    def report_worker_gone(self, still: Collection[str]) -> None:
        """Report that the worker died, and which calls are in flight. Errors are ignored: without a
        coordinator the run is over.
        """
        self.socket.setblocking(True)
        with contextlib.suppress(OSError):
            self.socket.sendall(f"{json.dumps(sorted(still))}\n".encode())


def _enable_keepalive(end: socket.socket) -> None:
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE_OPTIONS.items():
        if hasattr(socket, name):
            end.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
