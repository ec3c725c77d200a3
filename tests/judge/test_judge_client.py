"""The judge's client: a request that is too large is halved."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mustsee.errors import UserError
from mustsee.judge.client import JudgeClient
from mustsee.judge.judge import JudgeItem

MOST_ITEMS, MOST_CHARACTERS = 3, 50


class Judge(BaseHTTPRequestHandler):
    """Takes few items, and none that is long; the score is the candidate's number."""

    sizes: list[int]

    def do_POST(self) -> None:
        items = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["items"]
        self.sizes.append(len(items))
        long = any(len(item["question"]) > MOST_CHARACTERS for item in items)
        scores = [{"score": float(item["candidate"]), "equivalent": True} for item in items]
        refused = long or len(items) > MOST_ITEMS
        body = json.dumps({"detail": "too much"} if refused else {"data": scores}).encode()
        self.send_response(413 if refused else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def judge() -> Iterator[tuple[str, list[int]]]:
    sizes: list[int] = []
    handler = type("Handler", (Judge,), {"sizes": sizes})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", sizes
    server.shutdown()
    server.server_close()


def item(number: int, question: str = "q") -> JudgeItem:
    return JudgeItem(question=question, candidate=str(number), references=("r",))


def test_a_request_that_is_too_large_is_halved(judge: tuple[str, list[int]]) -> None:
    url, sizes = judge
    seen: list[tuple[int, int]] = []
    scores = JudgeClient(url, batch=10).score(
        [item(n) for n in range(10)], progress=lambda *p: seen.append(p)
    )
    assert [score.score for score in scores] == list(range(10))
    assert max(size for size in sizes if size <= MOST_ITEMS) == MOST_ITEMS
    assert seen[-1] == (10, 10)


def test_an_item_that_is_too_large_alone_ends_it(judge: tuple[str, list[int]]) -> None:
    url, sizes = judge
    with pytest.raises(UserError, match="413"):
        JudgeClient(url).score([item(1), item(2, "q" * 100)])
    assert sizes[-1] == 1
