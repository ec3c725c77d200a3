"""An object store on 127.0.0.1 with the part of S3 that Arrow uses. It can be slow, and fail a
share of the requests as a busy store does: 503, 500, a broken connection.
"""

from __future__ import annotations

import contextlib
import io
import random
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Generator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from xml.sax.saxutils import escape

BUCKET = "videos"


class StoredObjects:
    """The stored objects, and the requests by method. `fails`: share of failed requests. `seconds`:
    mean duration of a request.
    """

    def __init__(self, fails: float, seconds: float, seed: int = 0) -> None:
        self.fails, self.seconds = fails, seconds
        self.kept: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.asked, self.failed = Counter[str](), Counter[str]()
        self._random, self._lock = random.Random(seed), threading.Lock()

    def fate(self, method: str) -> str:
        """Return how a request fails; empty: it does not."""
        with self._lock:
            self.asked[method] += 1
            pause = self._random.uniform(0.5, 1.5) * self.seconds
            fails = self._random.random() < self.fails
            failure = self._random.choice(("503", "500", "reset")) if fails else ""
            self.failed[failure] += fails
        time.sleep(pause)
        return failure


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # Otherwise each reply waits 40 ms for an ACK.
    objects: StoredObjects

    def log_message(self, format: str, *args: Any) -> None:
        return

    def _handle(self) -> None:
        body = self._body()
        address = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(address.query, keep_blank_values=True))
        key = urllib.parse.unquote(address.path).removeprefix(f"/{BUCKET}").lstrip("/")
        failure = self.objects.fate(self.command)
        if failure == "reset":
            self.close_connection = True
            self.connection.close()
        elif failure:
            self._reply(int(failure), _xml("Error", Code="SlowDown", Message="try again"))
        else:
            getattr(self, f"_{self.command.lower()}")(key, query, body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            raw = _unchunked(self.rfile)
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunked = "aws-chunked" in self.headers.get("Content-Encoding", "")
        return _unchunked(io.BytesIO(raw)) if chunked else raw

    def _reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", headers.pop("size", str(len(body))))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(self, key: str, query: dict[str, str], body: bytes) -> None:
        self._get(key, query, body)

    def _get(self, key: str, query: dict[str, str], body: bytes) -> None:
        if "list-type" in query:
            self._reply(200, self._list(query))
            return
        value = self.objects.kept.get(key)
        if value is None and key:
            self._reply(404, _xml("Error", Code="NoSuchKey", Message=key))
            return
        value, status, headers = value or b"", 200, dict[str, str]()
        if byte_range := self.headers.get("Range"):
            first, _, last = byte_range.removeprefix("bytes=").partition("-")
            stop = min(int(last or len(value)), len(value) - 1)
            headers["Content_Range"] = f"bytes {first}-{stop}/{len(value)}"
            value, status = value[int(first) : stop + 1], 206
        self._reply(status, value, ETag='"x"', Last_Modified=formatdate(usegmt=True), **headers)

    def _list(self, query: dict[str, str]) -> bytes:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        keys, folders = list[str](), dict[str, None]()
        for key in sorted(self.objects.kept):
            if key.startswith(prefix):
                head, is_folder, _ = key[len(prefix) :].partition(delimiter or "\0")
                if is_folder:
                    folders[prefix + head + delimiter] = None
                else:
                    keys.append(key)
        limit = int(query.get("max-keys", 1000))
        now = "2026-01-01T00:00:00.000Z"
        entries = "".join(
            f"<Contents><Key>{escape(k)}</Key><Size>{len(self.objects.kept[k])}</Size>"
            f"<LastModified>{now}</LastModified></Contents>"
            for k in keys[:limit]
        ) + "".join(
            f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in folders
        )
        count = len(keys[:limit]) + len(folders)
        return (
            f"<ListBucketResult><Name>{BUCKET}</Name><KeyCount>{count}</KeyCount>"
            f"<IsTruncated>false</IsTruncated>{entries}</ListBucketResult>"
        ).encode()

    def _put(self, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploadId" in query:
            self.objects.uploads[query["uploadId"]][int(query["partNumber"])] = body
        elif source := self.headers.get("x-amz-copy-source"):
            name = urllib.parse.unquote(source).lstrip("/").removeprefix(f"{BUCKET}/")
            self.objects.kept[key] = self.objects.kept[name]
            self._reply(200, _xml("CopyObjectResult", ETag='"x"'))
            return
        elif key:
            self.objects.kept[key] = body
        self._reply(200, ETag='"x"')

    def _post(self, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploads" in query:
            name = f"u{len(self.objects.uploads)}"
            self.objects.uploads[name] = {}
            self._reply(200, _xml("InitiateMultipartUploadResult", Key=key, UploadId=name))
        elif "uploadId" in query:
            parts = self.objects.uploads[query["uploadId"]]
            self.objects.kept[key] = b"".join(parts[n] for n in sorted(parts))
            self._reply(200, _xml("CompleteMultipartUploadResult", Key=key, ETag='"x"'))
        else:  # delete several
            for entry in body.decode().split("<Key>")[1:]:
                self.objects.kept.pop(entry.partition("</Key>")[0], None)
            self._reply(200, _xml("DeleteResult"))

    def _delete(self, key: str, query: dict[str, str], body: bytes) -> None:
        self.objects.kept.pop(key, None)
        self._reply(204)


class _Server(ThreadingHTTPServer):
    request_queue_size = 512  # With Python's 5, a client with many connections waits for a second.


def _unchunked(source: io.BufferedIOBase) -> bytes:
    """Read a chunked body: the content of its chunks, without the trailer."""
    content = b""
    while size := int(source.readline().split(b";")[0], 16):
        content += source.read(size)
        source.readline()
    while source.readline().strip():
        pass
    return content


def _xml(name: str, **fields: str) -> bytes:
    inner = "".join(f"<{k}>{escape(v)}</{k}>" for k, v in fields.items())
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{name}>{inner}</{name}>'.encode()


@contextlib.contextmanager
def serve_objects(fails: float = 0.0, seconds: float = 0.0) -> Generator[tuple[StoredObjects, str]]:
    """Yield the store and the `s3://` address of its bucket, with `{}` for a path."""
    objects = StoredObjects(fails, seconds)
    handler = type("Handler", (_Handler,), {"objects": objects})
    server = _Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = f"127.0.0.1%3A{server.server_address[1]}"
    options = f"scheme=http&region=here&endpoint_override={place}"
    try:
        yield objects, f"s3://key:secret@{BUCKET}/{{}}?{options}"
    finally:
        server.shutdown()
        server.server_close()
