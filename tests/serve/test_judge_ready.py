"""The line of `make judge` that says when the judge answers."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from serve.judge_ready import announce

STATUSES = [404, 503, 200]


@pytest.fixture
def starting() -> Iterator[tuple[str, list[str]]]:
    """Yield the address of a judge that answers at the third try, and the paths it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(STATUSES[min(len(asked), len(STATUSES)) - 1])
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("key", ["0123abcd", ""])
def test_the_line_comes_when_the_judge_answers(
    key: str, starting: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    address, asked = starting
    announce(address, os.getppid(), key, pause=0.01)
    said = capsys.readouterr().out
    assert asked == ["/health"] * len(STATUSES)
    assert f"the judge answers at {address}" in said
    assert ("export KEY=0123abcd" in said) == bool(key)


def test_it_ends_without_a_word_where_the_judge_has_ended(
    capsys: pytest.CaptureFixture[str],
) -> None:
    announce("http://127.0.0.1:9", parent=-1, key="0123abcd", pause=0.01)
    assert capsys.readouterr().out == ""
