"""One request by HTTP that follows no redirect and reads no endless reply.

A redirect would take a key, a prompt or frames to another host. This file is copied into exported
tasks (`mustsee.layouts.portable`), so it imports nothing of the project.
"""

import http.client
import json
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

MAX_REPLY_BYTES = 64 << 20  # unpacked bytes of a reply that are read
PIECE_BYTES = 1 << 16  # bytes read from the connection at once
UNPACKED_BYTES = 1 << 20  # unpacked at once
ACCEPTED = "gzip, deflate"  # encodings that `Unpacker` reads


class TooLarge(ValueError):
    """A reply of more than the most bytes that are read."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the reply has more than {most >> 20} MB, and the rest was not read")


class Fetched(NamedTuple):
    """A response of any status."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Unpacker:
    """Collects the pieces of a reply, unpacked, up to `most` bytes. Raises TooLarge, and ValueError
    for an encoding that was not asked for or a damaged one.
    """

    def __init__(self, encoding: str = "", most: int = MAX_REPLY_BYTES) -> None:
        self._most, self._body = most, bytearray()
        encoding = encoding.strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise ValueError(f"the reply is packed as {encoding!r}; only {ACCEPTED} was asked for")
        self._zlib: Any = None
        if encoding not in ("", "identity"):
            self._zlib = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip and zlib, by their header

    def add(self, piece: bytes) -> None:
        while piece:
            if self._zlib is None:
                unpacked, piece = piece, b""
            else:
                try:
                    room = self._most + 1 - len(self._body)
                    unpacked = self._zlib.decompress(piece, min(room, UNPACKED_BYTES))
                except zlib.error as error:
                    raise ValueError(f"the reply is damaged: {error}") from None
                piece = self._zlib.unconsumed_tail
            self._body += unpacked
            if len(self._body) > self._most:
                raise TooLarge(self._most)

    def body(self) -> bytes:
        """The whole reply."""
        return bytes(self._body)


def check_length(headers: Mapping[str, str], most: int = MAX_REPLY_BYTES) -> None:
    """Raise TooLarge for a reply that says itself that it is too large, before it is read."""
    length = headers.get("Content-Length") or ""
    if length.isdigit() and int(length[:20]) > most:
        raise TooLarge(most)


def redirect_target(url: str, location: str | None) -> str:
    """The address to which a response points, without its query, which may hold a secret."""
    parts = urlsplit(urljoin(url, location or ""))
    return parts._replace(query="", fragment="").geturl()


def redirect_message(status: int, target: str) -> str:
    """What to do about a redirect."""
    return (
        f"HTTP {status}: it redirects to {target}, which is not followed, because key and prompts "
        "would go there; if that is the right address, name it"
    )


def fetch(
    url: str,
    data: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    most: int = MAX_REPLY_BYTES,
) -> Fetched:
    """Make one request, POST with `data`, else GET, and return the response, whatever its status.

    Raises OSError without an answer within `timeout` seconds, and ValueError for a malformed
    address or a reply that cannot be read.
    """
    request = urllib.request.Request(
        url, data, {"User-Agent": "mustsee", **(headers or {}), "Accept-Encoding": ACCEPTED}
    )  # some hosts refuse Python's own agent
    deadline = time.monotonic() + timeout
    try:
        try:
            reply = urllib.request.build_opener(_NoRedirect).open(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            reply = error
        with reply:
            return _read(reply, most, deadline)
    except http.client.HTTPException as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


def post_json(url: str, body: object, key: str, timeout: float) -> Any:
    """Post `body` as JSON with a bearer key and return the reply's JSON.

    Raises OSError without an answer, and ValueError for a status other than 200, a redirect, or a
    reply that is not JSON.
    """
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    reply = fetch(url, json.dumps(body).encode(), headers, timeout)
    if 300 <= reply.status < 400:
        target = redirect_target(url, reply.headers.get("Location"))
        raise ValueError(redirect_message(reply.status, target))
    if reply.status != 200:
        raise ValueError(f"HTTP {reply.status}: {reply.body[:200].decode(errors='replace')}")
    return json.loads(reply.body)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _read(reply: Any, most: int, deadline: float) -> Fetched:
    check_length(reply.headers, most)
    unpacker = Unpacker(reply.headers.get("Content-Encoding") or "", most)
    while piece := reply.read1(PIECE_BYTES):
        unpacker.add(piece)
        if time.monotonic() > deadline:
            raise TimeoutError("timed out")
    return Fetched(reply.status, reply.headers, unpacker.body())
