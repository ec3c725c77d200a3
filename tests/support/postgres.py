"""A temporary PostgreSQL server on loopback."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

ADDRESS_VARIABLE = "MUSTSEE_TEST_POSTGRESQL"
SETTINGS = "-c listen_addresses=127.0.0.1 -c fsync=off -c unix_socket_directories="


@contextmanager
def postgresql() -> Generator[str]:
    """Yield the address of a database; skip where PostgreSQL is not installed."""
    pytest.importorskip("psycopg", reason="the extra `postgresql` is not installed")
    if ADDRESS_VARIABLE in os.environ:
        yield os.environ[ADDRESS_VARIABLE]
        return
    tools = _tools()
    if tools is None:
        pytest.skip(
            f"PostgreSQL is missing: neither {ADDRESS_VARIABLE}=postgresql://... nor pg_ctl"
        )
    user = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root.
    folder = Path(tempfile.mkdtemp(prefix="mustsee-postgres-"))
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    data = str(folder / "data")

    def run(tool: str, *args: str) -> None:
        command = [str(tools / tool), *args]
        subprocess.run(command, check=True, capture_output=True, user=user, cwd=folder)

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    try:
        run("initdb", "-D", data, "-A", "trust", "-U", "mustsee", "--no-sync")
        log = str(folder / "log")
        run("pg_ctl", "-D", data, "-w", "-l", log, "-o", f"-p {port} {SETTINGS}{folder}", "start")
        try:
            yield f"postgresql://mustsee@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


@contextmanager
def schema(address: str, name: str) -> Generator[str]:
    """Create a schema and yield its address."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as base:
        base.execute(f"create schema {name}")
        try:
            yield f"{address}?options=-csearch_path%3D{name}"
        finally:
            base.execute(f"drop schema {name} cascade")


def _tools() -> Path | None:
    """Return the folder of the server's programs; Debian's are not on the path."""
    program = shutil.which("pg_ctl")
    if program is not None:
        return Path(program).parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)
