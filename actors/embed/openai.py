"""embed=openai: what was said and seen to one vector, by an OpenAI-compatible endpoint."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from actors.calls.connection import connect
from actors.calls.endpoint import CHARACTERS_PER_TOKEN, CallEstimate, Endpoint
from actors.calls.reply_bodies import UNREADABLE, parse_model, parse_object, parse_tokens
from actors.part import Opened, RunContext
from mustsee.calls.llm import Llm, Message, Reply, Request
from mustsee.calls.quota import Quota
from mustsee.errors import Transient
from mustsee.records import Video
from mustsee.store import hardware

PROMPT = "embed"  # the name of these calls in the usage totals


@dataclass(frozen=True, kw_only=True)
class Embeddings:
    """An embedding model as a configured `Llm`: a message for each text, and the reply's text is
    what `vectors` reads. So limits, retries, store, budget and usage totals are those of every
    call.
    """

    endpoint: Endpoint
    dimensions: int | None = None

    @property
    def identity(self) -> str:
        return f"embeddings {self.endpoint.identity} dimensions={self.dimensions}"

    def estimate(self, request: Request) -> CallEstimate:
        tokens = sum(len(m.text) / CHARACTERS_PER_TOKEN + 2 for m in request.messages)
        usd = self.endpoint.price.usd(tokens, 0)
        return CallEstimate(tokens_in=tokens, usd=usd, usd_in=usd)

    def open(self) -> Llm:
        return EmbeddingsClient(self)


class EmbeddingsClient:
    """The connected model. Raises UserError without a key."""

    def __init__(self, config: Embeddings) -> None:
        self._config, self._connection = config, connect(config.endpoint)

    @property
    def identity(self) -> str:
        return self._config.identity

    @property
    def quotas(self) -> Mapping[str, Quota]:
        """As the endpoint told them with its last reply."""
        return self._connection.quotas

    async def complete(self, request: Request) -> Reply:
        """One call, tried once; a reply without one vector for each text is Transient."""
        texts = [m.text for m in request.messages]
        endpoint, wanted = self._config.endpoint, self._config.dimensions
        body = {"model": endpoint.model, "input": texts, "encoding_format": "base64"}
        more = {} if wanted is None else {"dimensions": wanted}
        return self.read(request, await self._connection.post("/embeddings", body | more))

    def read(self, request: Request, found: Mapping[str, Any]) -> Reply:
        """What came back, as `complete` gives and raises it."""
        texts, endpoint = request.messages, self._config.endpoint
        try:
            data = sorted(found["data"], key=lambda item: item["index"])
            rows = np.stack([_read(item["embedding"]) for item in data])
            if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
                raise ValueError(f"vectors of {rows.shape}")
        except UNREADABLE:
            raise Transient(f"{self._connection.place}: the reply holds no vectors") from None
        if len(rows) != len(texts):
            raise Transient(f"{self._connection.place}: {len(rows)} vectors for {len(texts)} texts")
        tokens = parse_tokens(parse_object(found.get("usage")).get("prompt_tokens"))
        if tokens is None:
            tokens = round(self._config.estimate(request).tokens_in)
        return Reply(
            text=encode_vectors(rows),
            model=parse_model(found, endpoint.model),
            tokens_in=tokens,
            usd=endpoint.price.usd(tokens, 0),
        )


def _read(vector: Any) -> NDArray[np.float32]:
    """A vector as the endpoint sends it: packed, or a list where it does not know packing."""
    if isinstance(vector, str):
        return np.frombuffer(base64.b64decode(vector), "<f4")
    with np.errstate(over="ignore"):  # what is too large is infinite, and refused
        return np.asarray(vector, np.float32)


def encode_vectors(rows: NDArray[np.float32]) -> str:
    packed = base64.b64encode(np.ascontiguousarray(rows, "<f4").tobytes()).decode()
    return json.dumps({"shape": rows.shape, "float32": packed})


def vectors(reply: str) -> NDArray[np.float32]:
    """float32 [texts, dimensions] of an embedding reply."""
    held = json.loads(reply)
    return np.frombuffer(base64.b64decode(held["float32"]), "<f4").reshape(held["shape"])


@dataclass(frozen=True, kw_only=True)
class OpenAIEmbedder:
    """The mean vector of a video's pieces of text (title, lines, captions), of length 1; empty
    where there is no text. `characters`: the longest piece. `split_text`: texts in one request.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("lines", "captions", "title")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("embedding",)
    model: Embeddings
    characters: int = 4000
    pieces: int = hardware(64)

    def open(self, run: RunContext) -> Opened:
        llm = run.llm(self.model)

        async def embed(video: Video) -> Video:
            texts = split_text(video, self.characters)
            if not texts:
                return dataclasses.replace(video, embedding=())
            found: list[NDArray[np.float32]] = []
            for i in range(0, len(texts), self.pieces):
                said = tuple(Message("user", text) for text in texts[i : i + self.pieces])
                reply = await llm.complete(Request(prompt=PROMPT, digest="", messages=said))
                found.append(vectors(reply.text))
            weights = np.array([len(text) for text in texts], np.float32)
            mean = np.average(np.concatenate(found), axis=0, weights=weights)
            length = float(np.linalg.norm(mean)) or 1.0
            return dataclasses.replace(video, embedding=tuple(map(float, mean / length)))

        return embed


def split_text(video: Video, characters: int) -> list[str]:
    """The video's text in pieces of at most `characters`, broken between lines or sentences where
    they are short enough.
    """
    said = [line.text for line in video.lines or ()]
    seen = [caption.text for caption in video.captions or ()]
    found: list[str] = []
    for part in ([video.title or ""], said, seen):
        now = ""
        for text in (" ".join(text.split()) for text in part):
            if now and len(now) + 1 + len(text) > characters:
                found.append(now)
                now = ""
            now = f"{now} {text}".strip()
            while len(now) > characters:
                found.append(now[:characters])
                now = now[characters:]
        if now:
            found.append(now)
    return found
