"""A page that a job serves until Ctrl-C."""

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
    """The socket to serve from. Raises UserError where the port is taken, or the host not ours."""
    try:
        return socket.create_server((host, number))
    except OSError as error:
        raise UserError(
            f"host={host!r} port={number!r} cannot be served: {error.strerror or error}; give "
            "another port="
        ) from None


def serve_until_signal(app: Starlette, listening: socket.socket, begun: str, ended: str) -> int:
    """Say `begun`, serve until a signal comes, say `ended`. Returns the exit code of Ctrl-C.

    Without an access log: links are in it. Where Ctrl-C is ignored, as in the background of a
    script, the server ends by it all the same.
    """
    with quiet(), contextlib.suppress(KeyboardInterrupt):
        import uvicorn

        config = uvicorn.Config(app, access_log=False, log_level="warning", log_config=None)
        print(begun, flush=True)
        uvicorn.Server(config).run(sockets=[listening])
    print(f"mustsee: {ended}", file=sys.stderr)
    return 130
