"""A hub on loopback: as much of huggingface.co as making a dataset, committing to it and reading it
back take. What was sent is kept in memory.

    with hub("key") as found:
        subprocess.run(..., env={"HF_ENDPOINT": found.address, "HF_TOKEN": "key"})
        found.files["org/name"]["README.md"]
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
    """`files`: dataset -> path -> content. `private`: dataset -> whether it was made so."""

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
    with Hub(key) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        try:
            yield served
        finally:
            served.shutdown()


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
        if found := re.fullmatch(f"{REPO}/preupload/main", path):
            files = [
                {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False}
                for f in json.loads(body)["files"]
            ]
            return self._json({"files": files})
        if found := re.fullmatch(f"{REPO}/commit/main", path):
            return self._commit(found["repo"], body)
        if found := re.fullmatch(f"{REPO}/paths-info/[^/]+", path):
            held = self.server.files[found["repo"]]
            wanted = json.loads(body)["paths"]
            return self._json([_entry(p, held[p]) for p in wanted if p in held])
        return self._json({"error": f"no such route: {path}"}, 404)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if found := re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path):
            held = self.server.files.get(found[1], {}).get(found[2])
            return self._missing("EntryNotFound") if held is None else self._bytes(held)
        if found := re.fullmatch(rf"{REPO}(/revision/[^/]+)?", path):
            held = self.server.files.get(found["repo"])
            if held is None:
                return self._missing("RepoNotFound")
            told = {"id": found["repo"], "sha": SHA, "private": False, "tags": [], "downloads": 0}
            return self._json({**told, "siblings": [{"rfilename": name} for name in held]})
        if found := re.fullmatch(rf"{REPO}/tree/[^/]+(?:/(?P<below>.*))?", path):
            below = f"{found['below']}/" if found["below"] else ""
            held = self.server.files[found["repo"]].items()
            listed = [_entry(n, data) for n, data in held if n.startswith(below)]
            return self._json(listed) if listed else self._missing("EntryNotFound")
        return self._json({"error": f"no such route: {path}"}, 404)

    def _create(self, told: dict[str, Any]) -> None:
        name = (
            f"{told['organization']}/{told['name']}" if told.get("organization") else told["name"]
        )
        url = f"{self.server.address}/datasets/{name}"
        if name in self.server.files:
            return self._json({"error": "You already created this dataset repo", "url": url}, 409)
        self.server.files[name] = {}
        self.server.private[name] = told.get("private", told.get("visibility") == "private")
        return self._json({"url": url})

    def _commit(self, repo: str, body: bytes) -> None:
        for line in body.splitlines():
            told = json.loads(line)
            if told["key"] == "file":
                held = base64.b64decode(told["value"]["content"])
                self.server.files[repo][told["value"]["path"]] = held
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
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        self.send_response(206 if asked else 200)
        self.send_header("ETag", f'"{_digest(body)}"')
        self.send_header("X-Repo-Commit", SHA)
        self.send_header("Accept-Ranges", "bytes")
        if asked:
            first, last = int(asked[1]), int(asked[2] or len(body) - 1)
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
