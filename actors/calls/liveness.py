"""Lifelines: how the call coordinator knows at once that a worker is gone.

Each process that has calls in flight holds a connection to the coordinator. The system closes it
however the process ends, and at no other time: one that is starved of CPU still has it. Where a
whole machine is gone, or the network, the connection's own probes (`KEEPALIVE_OPTIONS`) find that
out.
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

# seconds, seconds, times
KEEPALIVE_OPTIONS = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3}
CONNECT_TIMEOUT_S = 10.0  # in which a lifeline is to be tied


@dataclass(frozen=True, kw_only=True)
class LivenessSignal:
    """Of a sender: it is `here`; or its worker is gone, and only the calls `still` are out."""

    sender: str
    here: bool = False
    still: Collection[str] = ()


class LivenessServer:
    """The coordinator's end of all of them, on threads of its own."""

    def __init__(self, host: str) -> None:
        signs = self._signs = deque[LivenessSignal]()

        class LivenessHandler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                _probed(self.request)
                with contextlib.suppress(OSError):
                    sender = self.rfile.readline().decode().strip()
                    signs.append(LivenessSignal(sender=sender, here=True))
                    with contextlib.suppress(OSError, ValueError):
                        for line in self.rfile:
                            signs.append(LivenessSignal(sender=sender, still=json.loads(line)))
                    signs.append(LivenessSignal(sender=sender))

        server = socketserver.ThreadingTCPServer((host, 0), LivenessHandler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, name="lifelines", daemon=True).start()
        self.address = host, int(server.server_address[1])

    def signs(self) -> Iterator[LivenessSignal]:
        """What has come since the last look."""
        while self._signs:
            yield self._signs.popleft()


class LivenessConnection:
    """A sender's end. Raises OSError where the coordinator cannot be reached."""

    def __init__(self, address: tuple[str, int], sender: str) -> None:
        self.socket = socket.create_connection(address, timeout=CONNECT_TIMEOUT_S)
        _probed(self.socket)
        self.socket.sendall(f"{sender}\n".encode())
        self.socket.setblocking(False)

    def report_worker_gone(self, still: Collection[str]) -> None:
        """Tell that the worker is gone, and which of its calls are out. Where the coordinator is
        gone as well, nobody has to know.
        """
        self.socket.setblocking(True)
        with contextlib.suppress(OSError):
            self.socket.sendall(f"{json.dumps(sorted(still))}\n".encode())


def _probed(end: socket.socket) -> None:
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE_OPTIONS.items():
        if hasattr(socket, name):
            end.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
