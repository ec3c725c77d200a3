"""What was sent for one reply, in few bytes: enough to see later whether two replies answer the
same prompt and the same frames.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from functools import lru_cache
from typing import Any

from actors.answer.look import AnswererFrames
from mustsee.calls.llm import Reply, Request

HASH_DIGITS = 8  # digits of each frame's hash
TEXT_DIGITS = 16  # digits of the prompt's hash


def describe_sent(request: Request, seen: AnswererFrames, reply: Reply) -> dict[str, Any]:
    """Return what `sent` in a verdict's detail holds.

    `text`: hash of the messages' roles and texts. `tokens`: of the request and of the reply.
    `frames`: times in seconds of the file, hashes of the JPEGs, decoder. `videos`: start, end and
    digest of each clip.
    """
    texts = json.dumps([[m.role, m.text] for m in request.messages], ensure_ascii=False)
    sent: dict[str, Any] = {
        "text": hashlib.sha256(texts.encode(errors="surrogatepass")).hexdigest()[:TEXT_DIGITS],
        "tokens": [reply.tokens_in, reply.tokens_out],
    }
    if seen.images:
        sent["frames"] = {
            "times": [round(time, 3) for time in seen.times],
            "hashes": [hashlib.sha256(jpeg).hexdigest()[:HASH_DIGITS] for jpeg in seen.images],
            "decoder": decoder(),
        }
    if seen.videos:
        sent["videos"] = [[c.span.start, c.span.end, c.digest] for c in seen.videos]
    return sent


@lru_cache
def decoder() -> str:
    """Return name and version of the decoder."""
    return f"PyAV {importlib.metadata.version('av')}"
