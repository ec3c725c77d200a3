"""A hub on loopback: the routes of huggingface.co that create a dataset, commit to it and read it.
Uploads are kept in memory.

    with hub("key") as server:
        subprocess.run(..., env={"HF_ENDPOINT": server.address, "HF_TOKEN": "key"})
        server.files["org/name"]["README.md"]
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

REPO = r"/api/datasets/(?P<repo>[^/]+/[^/]+)"
SHA = "1" * 40


class Hub(ThreadingHTTPServer):
    """`files`: dataset -> path -> content. `private`: dataset -> whether it is private."""

    def __init__(self, key: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.key = key
        self.files: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def hub(key: str) -> Iterator[Hub]:
    with Hub(key) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != f"Bearer {self.server.key}":
            return self._json({"error": "Invalid username or password."}, 401)
        path = urlsplit(self.path).path
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if path == "/api/validate-yaml":
            return self._json({"errors": [], "warnings": []})
        if match := re.fullmatch(f"{REPO}/preupload/main", path):
            files = [
                {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False}
                for f in json.loads(body)["files"]
            ]
            return self._json({"files": files})
        if match := re.fullmatch(f"{REPO}/commit/main", path):
            return self._commit(match["repo"], body)
        if match := re.fullmatch(f"{REPO}/paths-info/[^/]+", path):
            files = self.server.files[match["repo"]]
            paths = json.loads(body)["paths"]
            return self._json([_entry(p, files[p]) for p in paths if p in files])
        return self._json({"error": f"no such route: {path}"}, 404)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if match := re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path):
            content = self.server.files.get(match[1], {}).get(match[2])
            return self._missing("EntryNotFound") if content is None else self._bytes(content)
        if match := re.fullmatch(rf"{REPO}(/revision/[^/]+)?", path):
            files = self.server.files.get(match["repo"])
            if files is None:
                return self._missing("RepoNotFound")
            info = {"id": match["repo"], "sha": SHA, "private": False, "tags": [], "downloads": 0}
            return self._json({**info, "siblings": [{"rfilename": name} for name in files]})
        if match := re.fullmatch(rf"{REPO}/tree/[^/]+(?:/(?P<below>.*))?", path):
            below = f"{match['below']}/" if match["below"] else ""
            files = self.server.files[match["repo"]].items()
            listed = [_entry(n, data) for n, data in files if n.startswith(below)]
            return self._json(listed) if listed else self._missing("EntryNotFound")
        return self._json({"error": f"no such route: {path}"}, 404)

    def _create(self, settings: dict[str, Any]) -> None:
        name = (
            f"{settings['organization']}/{settings['name']}"
            if settings.get("organization")
            else settings["name"]
        )
        url = f"{self.server.address}/datasets/{name}"
        if name in self.server.files:
            return self._json({"error": "You already created this dataset repo", "url": url}, 409)
        self.server.files[name] = {}
        self.server.private[name] = settings.get("private", settings.get("visibility") == "private")
        return self._json({"url": url})

    def _commit(self, repo: str, body: bytes) -> None:
        for line in body.splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                content = base64.b64decode(entry["value"]["content"])
                self.server.files[repo][entry["value"]["path"]] = content
        url = f"{self.server.address}/datasets/{repo}/commit/{SHA}"
        return self._json({"success": True, "commitOid": SHA, "commitUrl": url})

    def _missing(self, code: str) -> None:
        body = json.dumps({"error": code}).encode()
        self.send_response(404)
        self.send_header("X-Error-Code", code)
        self._send(body)

    def _json(self, value: Any, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self._send(body)

    def _bytes(self, body: bytes) -> None:
        byte_range = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        self.send_response(206 if byte_range else 200)
        self.send_header("ETag", f'"{_digest(body)}"')
        self.send_header("X-Repo-Commit", SHA)
        self.send_header("Accept-Ranges", "bytes")
        if byte_range:
            first, last = int(byte_range[1]), int(byte_range[2] or len(body) - 1)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(body)}")
            body = body[first : last + 1]
        self._send(body)

    def _send(self, body: bytes) -> None:
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _digest(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


def _entry(path: str, content: bytes) -> dict[str, Any]:
    return {"type": "file", "path": path, "size": len(content), "oid": _digest(content)}
