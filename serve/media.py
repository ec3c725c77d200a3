"""Serves files to a player, whole or by byte ranges."""

from __future__ import annotations

import os
import re
from itertools import pairwise

from starlette.requests import Request
from starlette.responses import FileResponse, Response

MAX_RANGES = 8  # byte ranges in one request; players ask for one
_LIST = re.compile(r"\s*bytes\s*=(.*)", re.IGNORECASE | re.DOTALL)
_RANGE = re.compile(r"\s*(\d{0,18})-(\d{0,18})\s*", re.ASCII)


def media(request: Request, path: str | os.PathLike[str]) -> Response:
    """The file, or the byte ranges that the request lists; several come as multipart/byteranges.

    Malformed ranges are refused with 416. So are overlapping ranges and more than `MAX_RANGES`,
    which would make the server send the same bytes many times.
    """
    wanted = _LIST.fullmatch(request.headers.get("range", ""))
    size = os.stat(path).st_size
    if wanted is not None and not _servable(wanted[1], size):
        return Response(status_code=416, headers={"Content-Range": f"bytes */{size}"})
    return FileResponse(path)


def _servable(listed: str, size: int) -> bool:
    ranges: list[tuple[int, int]] = []
    for text in listed.split(","):
        match = _RANGE.fullmatch(text)
        if match is None or not (match[1] or match[2]):
            return False
        first, last = match.groups()
        begin = int(first) if first else max(size - int(last), 0)
        end = min(int(last) + 1, size) if first and last else size
        ranges.append((begin, end))
    ranges.sort()
    are_disjoint = all(before[1] <= after[0] for before, after in pairwise(ranges))
    return len(ranges) <= MAX_RANGES and are_disjoint and all(0 <= a < b <= size for a, b in ranges)
