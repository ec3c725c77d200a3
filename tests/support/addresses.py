"""Addresses of this machine for servers of tests."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port that no server has."""
    with socket.socket() as probe_socket:
        probe_socket.bind(("127.0.0.1", 0))
        return probe_socket.getsockname()[1]
