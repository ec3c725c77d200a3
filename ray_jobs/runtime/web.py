"""Serving a page from a job until Ctrl-C."""

from __future__ import annotations

import contextlib
import socket
import sys
from typing import TYPE_CHECKING

from mustsee.errors import UserError
from ray_jobs.runtime.heartbeat import quiet

if TYPE_CHECKING:
    from starlette.applications import Starlette


def port(host: str, number: int) -> socket.socket:
    """Return a listening socket. Raises UserError for a taken port or a foreign host."""
    try:
        return socket.create_server((host, number))
    except OSError as error:
        raise UserError(
            f"host={host!r} port={number!r} cannot be served: {error.strerror or error}; give "
            "another port="
        ) from None


def serve_until_signal(app: Starlette, listening: socket.socket, begun: str, ended: str) -> int:
    """Print `begun`, serve until a signal comes, print `ended`. Returns the exit code of Ctrl-C.

    There is no access log because it would hold the links. Ctrl-C ends the server even where it is
    ignored, as in the background of a script.
    """
    with quiet(), contextlib.suppress(KeyboardInterrupt):
        import uvicorn

        config = uvicorn.Config(app, access_log=False, log_level="warning", log_config=None)
        print(begun, flush=True)
        uvicorn.Server(config).run(sockets=[listening])
    print(f"mustsee: {ended}", file=sys.stderr)
    return 130
