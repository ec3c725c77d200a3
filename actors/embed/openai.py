"""embed=openai: one vector for a video's texts, by an OpenAI-compatible endpoint."""

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
from actors.calls.parameters import EndpointParameters
from actors.calls.reply_bodies import UNREADABLE, parse_model, parse_object, parse_tokens
from actors.part import Opened, RunContext
from mustsee.calls.llm import Llm, Message, Reply, Request
from mustsee.calls.quota import Quota
from mustsee.errors import Transient
from mustsee.files.store import Store, hardware
from mustsee.records import Video

PROMPT = "embed"  # the name of these calls in the usage totals


@dataclass(frozen=True, kw_only=True)
class Embeddings:
    """An embedding model as a configured `Llm`, so that limits, retries, store, budget and usage
    totals apply. A request has a message for each text; `vectors` parses the reply's text.
    """

    endpoint: Endpoint
    dimensions: int | None = None
    """Length of the vectors; null: the model's own."""

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
        self._parameters = EndpointParameters(config.endpoint)

    @property
    def identity(self) -> str:
        return self._config.identity

    @property
    def quotas(self) -> Mapping[str, Quota]:
        """The limits that the endpoint reported with its last reply."""
        return self._connection.quotas

    def remember(self, store: Store) -> None:
        """Keep what the endpoint refuses in a store."""
        self._parameters.remember(store)

    async def complete(self, request: Request) -> Reply:
        """Make one call, without retries. A reply without one vector for each text is Transient."""
        texts = [m.text for m in request.messages]
        endpoint, dimensions = self._config.endpoint, self._config.dimensions
        body = {"model": endpoint.model, "input": texts, "encoding_format": "base64"}
        more = {} if dimensions is None else {"dimensions": dimensions}
        reply = await self._parameters.send(
            lambda adapted: self._connection.post("/embeddings", adapted),
            lambda: self._parameters.adapt(body | more),
        )
        return self.read(request, reply)

    def read(self, request: Request, body: Mapping[str, Any]) -> Reply:
        """Parse the body of a reply; returns and raises as `complete`."""
        texts, endpoint = request.messages, self._config.endpoint
        try:
            data = sorted(body["data"], key=lambda item: item["index"])
            rows = np.stack([_read(item["embedding"]) for item in data])
            if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
                raise ValueError(f"vectors of {rows.shape}")
        except UNREADABLE:
            raise Transient(f"{self._connection.place}: the reply has no vectors") from None
        if len(rows) != len(texts):
            raise Transient(f"{self._connection.place}: {len(rows)} vectors for {len(texts)} texts")
        tokens = parse_tokens(parse_object(body.get("usage")).get("prompt_tokens"))
        if tokens is None:
            tokens = round(self._config.estimate(request).tokens_in)
        return Reply(
            text=encode_vectors(rows),
            model=parse_model(body, endpoint.model),
            tokens_in=tokens,
            usd=endpoint.price.usd(tokens, 0),
        )


def _read(vector: Any) -> NDArray[np.float32]:
    """A vector as base64, or as a list from endpoints that do not support base64."""
    if isinstance(vector, str):
        return np.frombuffer(base64.b64decode(vector), "<f4")
    with np.errstate(over="ignore"):  # too large values become infinite, and are refused
        return np.asarray(vector, np.float32)


def encode_vectors(rows: NDArray[np.float32]) -> str:
    """The text of an embedding reply, for `vectors`."""
    packed = base64.b64encode(np.ascontiguousarray(rows, "<f4").tobytes()).decode()
    return json.dumps({"shape": rows.shape, "float32": packed})


def vectors(reply: str) -> NDArray[np.float32]:
    """Vectors of an embedding reply, float32 [texts, dimensions]."""
    packed = json.loads(reply)
    return np.frombuffer(base64.b64decode(packed["float32"]), "<f4").reshape(packed["shape"])


@dataclass(frozen=True, kw_only=True)
class OpenAIEmbedder:
    """The mean vector of a video's texts (title, lines, captions), scaled to length 1; empty for a
    video without text.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("lines", "captions", "title")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("embedding",)
    model: Embeddings
    characters: int = 4000
    """Characters of the longest text with a vector of its own; longer ones are split."""
    pieces: int = hardware(64)
    """Texts in one request."""

    def open(self, run: RunContext) -> Opened:
        llm = run.llm(self.model)

        async def embed(video: Video) -> Video:
            texts = split_text(video, self.characters)
            if not texts:
                return dataclasses.replace(video, embedding=())
            parts: list[NDArray[np.float32]] = []
            for i in range(0, len(texts), self.pieces):
                messages = tuple(Message("user", text) for text in texts[i : i + self.pieces])
                reply = await llm.complete(Request(prompt=PROMPT, digest="", messages=messages))
                parts.append(vectors(reply.text))
            weights = np.array([len(text) for text in texts], np.float32)
            mean = np.average(np.concatenate(parts), axis=0, weights=weights)
            length = float(np.linalg.norm(mean)) or 1.0
            return dataclasses.replace(video, embedding=tuple(map(float, mean / length)))

        return embed


def split_text(video: Video, characters: int) -> list[str]:
    """The video's text, split into texts of at most `characters`, between lines or captions where
    these are short enough.
    """
    lines = [line.text for line in video.lines or ()]
    captions = [caption.text for caption in video.captions or ()]
    texts: list[str] = []
    for source in ([video.title or ""], lines, captions):
        current = ""
        for text in (" ".join(text.split()) for text in source):
            if current and len(current) + 1 + len(text) > characters:
                texts.append(current)
                current = ""
            current = f"{current} {text}".strip()
            while len(current) > characters:
                texts.append(current[:characters])
                current = current[characters:]
        if current:
            texts.append(current)
    return texts
