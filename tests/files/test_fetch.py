"""Requests follow no redirect, and read a reply in pieces up to a limit."""

from __future__ import annotations

import gzip
import zlib

import pytest

from mustsee.errors import UserError
from mustsee.files.fetch import TooLarge, Unpacker, fetch, redirect_target
from mustsee.judge.client import JudgeClient
from mustsee.judge.judge import JudgeItem
from mustsee.layouts.task_scoring import compare_reply
from tests.support.bare_server import BareServer, serving

KEY = "sk-of-a-test-0123456789"
MB = 1 << 20


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_returned_and_not_followed(status: int) -> None:
    with serving(BareServer()) as other, serving(BareServer(status=status)) as here:
        here.headers = {"Location": f"{other.url}/models?key=secret"}
        reply = fetch(f"{here.url}/models", headers={"Authorization": f"Bearer {KEY}"})
        assert reply.status == status
        target = redirect_target(here.url, reply.headers.get("Location"))
        assert target == f"{other.url}/models"
        assert other.requests == []


@pytest.mark.parametrize("status", [302, 307])
def test_the_judge_s_key_stays_where_it_was_sent(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"question_id": "q", "video_id": "v", "question_type": "", "question": "What?",
           "answer": "a boat", "options": []}  # fmt: skip
    with serving(BareServer()) as other, serving(BareServer(status=status)) as here:
        here.headers = {"Location": f"{other.url}/elsewhere"}
        monkeypatch.setenv("MUSTSEE_JUDGE", here.url)
        monkeypatch.setenv("MUSTSEE_JUDGE_KEY", KEY)
        with pytest.raises(RuntimeError, match="redirects to"):
            compare_reply(row, "a ship")
        item = JudgeItem(question="What?", references=("a boat",), candidate="a ship")
        with pytest.raises(UserError, match="redirects to"):
            JudgeClient(here.url, KEY).score([item])
        assert other.requests == []


@pytest.mark.parametrize("encoding", ["", "gzip", "deflate"])
def test_a_reply_is_read_up_to_the_limit(encoding: str) -> None:
    text = b"x" * (3 * MB)
    pack = {"": bytes, "gzip": gzip.compress, "deflate": zlib.compress}[encoding]
    with serving(BareServer(body=pack(text), headers={"Content-Encoding": encoding})) as server:
        assert fetch(server.url, most=3 * MB).body == text
        with pytest.raises(TooLarge):
            fetch(server.url, most=3 * MB - 1)


def test_a_bomb_is_unpacked_up_to_the_limit_only() -> None:
    bomb = gzip.compress(b" " * (50 * MB))
    unpacker = Unpacker("gzip", most=MB)
    with pytest.raises(TooLarge, match="more than 1 MB"):
        unpacker.add(bomb)
    assert len(unpacker.body()) == MB + 1


@pytest.mark.parametrize(("encoding", "body"), [("br", b"x"), ("gzip", b"not gzip")])
def test_an_encoding_that_cannot_be_read_is_an_error(encoding: str, body: bytes) -> None:
    headers = {"Content-Encoding": encoding}
    with serving(BareServer(body=body, headers=headers)) as server, pytest.raises(ValueError):  # noqa: PT011
        fetch(server.url)
