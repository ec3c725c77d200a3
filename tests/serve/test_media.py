"""Byte ranges are served as requested, or refused."""

from __future__ import annotations

import email
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from serve.rater_video import media

CONTENT = bytes(range(256)) * 4


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    path = tmp_path / "video.mp4"
    path.write_bytes(CONTENT)
    app = Starlette(routes=[Route("/video", lambda request: media(request, path))])
    with TestClient(app) as client:
        yield client


@pytest.mark.parametrize(("header", "begin", "end"), [
    ("bytes=0-10", 0, 11), ("bytes=5-", 5, 1024), ("bytes=-7", 1017, 1024), ("bytes=0-", 0, 1024),
    ("bytes=1000-5000", 1000, 1024), ("Bytes = 3-4", 3, 5), ("bytes=-5000", 0, 1024),
])  # fmt: skip
def test_one_range_is_answered(client: TestClient, header: str, begin: int, end: int) -> None:
    reply = client.get("/video", headers={"Range": header})
    assert (reply.status_code, reply.content) == (206, CONTENT[begin:end])
    assert reply.headers["content-range"] == f"bytes {begin}-{end - 1}/1024"


def test_several_ranges_come_as_multipart(client: TestClient) -> None:
    reply = client.get("/video", headers={"Range": "bytes=0-10, 20-30,-4"})
    assert reply.status_code == 206
    head = f"Content-Type: {reply.headers['content-type']}\r\n\r\n".encode()
    parts = email.message_from_bytes(head + reply.content).get_payload()
    assert isinstance(parts, list)
    ranges = [(p["Content-Range"], p.get_payload(decode=True)) for p in parts]
    assert ranges == [
        ("bytes 0-10/1024", CONTENT[:11]), ("bytes 20-30/1024", CONTENT[20:31]),
        ("bytes 1020-1023/1024", CONTENT[1020:]),
    ]  # fmt: skip


@pytest.mark.parametrize("header", [
    "bytes=0-10,5-20", "bytes=0-10,5-20,-1,..", "bytes=0-,0-", "bytes=0-10,..", "bytes=", "bytes=-",
    "bytes=5-2", "bytes=1024-", "bytes=0-1," * 100, "bytes=-0", "bytes=0-1023,-1", "bytes=a-b",
    ",".join(["bytes=0-0", *(f"{2 * i}-{2 * i}" for i in range(1, 200))]), "bytes=0-10,,20-30",
    "bytes=" + "9" * 5000 + "-", "bytes=\u00b2-3", "bytes=--5",
])  # fmt: skip
def test_overlapping_and_malformed_ranges_are_refused(client: TestClient, header: str) -> None:
    reply = client.get("/video", headers={"Range": header.encode("latin-1")})
    assert (reply.status_code, reply.content) == (416, b"")
    assert reply.headers["content-range"] == "bytes */1024"


def test_without_a_range_the_whole_file_is_sent(client: TestClient) -> None:
    reply = client.get("/video")
    assert (reply.status_code, reply.content) == (200, CONTENT)
    assert reply.headers["accept-ranges"] == "bytes"
