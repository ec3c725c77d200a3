"""Files for a player, whole or by ranges of bytes."""

from __future__ import annotations

import os
import re
from itertools import pairwise

from starlette.requests import Request
from starlette.responses import FileResponse, Response

MOST_RANGES = 8  # in one request; players ask for one
_LIST = re.compile(r"\s*bytes\s*=(.*)", re.IGNORECASE | re.DOTALL)
_RANGE = re.compile(r"\s*(\d{0,18})-(\d{0,18})\s*", re.ASCII)


def media(request: Request, path: str | os.PathLike[str]) -> Response:
    """The file, or the ranges of it that the request lists: one as it is, several as
    multipart/byteranges. Ranges that overlap, that are more than `MOST_RANGES`, or that are none
    are refused with 416: the first two ask for the same bytes again and again.
    """
    wanted = _LIST.fullmatch(request.headers.get("range", ""))
    size = os.stat(path).st_size
    if wanted is not None and not _servable(wanted[1], size):
        return Response(status_code=416, headers={"Content-Range": f"bytes */{size}"})
    return FileResponse(path)


def _servable(listed: str, size: int) -> bool:
    parts = [_RANGE.fullmatch(part) for part in listed.split(",")]
    ranges: list[tuple[int, int]] = []
    for part in parts:
        if part is None or not (part[1] or part[2]):
            return False
        first, last = part.groups()
        begin = int(first) if first else max(size - int(last), 0)
        end = min(int(last) + 1, size) if first and last else size
        ranges.append((begin, end))
    ranges.sort()
    apart = all(before[1] <= after[0] for before, after in pairwise(ranges))
    return len(ranges) <= MOST_RANGES and apart and all(0 <= a < b <= size for a, b in ranges)


__all__ = ["media"]
