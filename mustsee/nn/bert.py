"""A BERT sentence encoder in JAX (Devlin et al. 2019, pooled as sentence-transformers does).

Reads Hugging Face folders (`config.json`, `tokenizer.json`, safetensors, and the pooling
configuration of sentence-transformers where present). Runs on TPU, GPU and CPU, in float32.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mustsee.errors import UserError
from mustsee.nn import weights

LENGTHS = (16, 32, 64, 128, 256, 512)  # tokens of a padded row; with `BATCHES` at most 12 programs
BATCHES = (4, 32)  # rows of a padded batch
Params = dict[str, Any]
# places of the texts, tokens and mask [batch, length], numbers of tokens
TokenBatch = tuple[list[int], NDArray[np.int32], NDArray[np.float32], list[int]]


@dataclass(frozen=True, kw_only=True)
class BertShape:
    """The values of a checkpoint's configuration that the computation needs."""

    heads: int
    epsilon: float
    pooling: Literal["mean", "cls"]


class Encoder:
    """Encodes sentences as vectors. Made by `load`; used from one thread at a time."""

    def __init__(
        self, tokenizer: Any, params: Params, shape: BertShape, longest: int, pad: int
    ) -> None:
        self._tokenizer, self._params, self._shape = tokenizer, params, shape
        self._pad = pad
        self._lengths = (*(n for n in LENGTHS if n < longest), longest)
        self.dimensions = int(params["words"].shape[1])

    @classmethod
    def load(cls, path_or_id: str, *, revision: str | None = None) -> Encoder:
        """Return a model by folder, `package:NAME/FOLDER` or Hugging Face id in the cache. Raises
        UserError, also for a package with other weights than the known ones.
        """
        weights.keep_programs()
        folder = weights.find(path_or_id, revision)
        params, shape = read(folder)
        weights.check_known(path_or_id, folder / "model.safetensors")
        config = weights.read_config(folder)
        limit = _json(folder / "sentence_bert_config.json").get("max_seq_length")
        longest = min(limit or 512, config["max_position_embeddings"])
        tokenizer = _tokenizer(folder, longest)
        return cls(tokenizer, params, shape, longest, config.get("pad_token_id") or 0)

    def encode(self, texts: Sequence[str], *, normalise: bool = True) -> NDArray[np.float32]:
        """Return one vector per text, float32 `[n, dimensions]`, of length 1 unless `normalise` is
        false.

        A text longer than the model's limit is cut.
        """
        result = np.zeros((len(texts), self.dimensions), np.float32)
        for chosen, tokens, mask, _ in self._batches(texts):
            vectors = _forward(self._params, tokens, mask, shape=self._shape)
            result[chosen] = np.asarray(vectors)[: len(chosen)]
        if normalise:
            result /= np.maximum(np.linalg.norm(result, axis=1, keepdims=True), 1e-12)
        return result

    def encode_tokens(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the vectors of each text's tokens after the last layer, float32 `[tokens,
        dimensions]`, of length 1, without the tokens that mark its beginning and end.
        """
        result = [np.zeros((0, self.dimensions), np.float32)] * len(texts)
        for chosen, tokens, mask, lengths in self._batches(texts):
            states = np.asarray(_states(self._params, tokens, mask, shape=self._shape))
            for row, place in enumerate(chosen):
                inner = states[row, 1 : max(1, lengths[row] - 1)]
                norms = np.maximum(np.linalg.norm(inner, axis=1, keepdims=True), 1e-12)
                result[place] = inner / norms
        return result

    def _batches(self, texts: Sequence[str]) -> Iterator[TokenBatch]:
        """Yield padded batches, the shortest texts first."""
        ids = [e.ids for e in self._tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        while order:
            size = BATCHES[0] if len(order) <= BATCHES[0] else BATCHES[-1]
            chosen, order = order[:size], order[size:]
            longest = max(len(ids[i]) for i in chosen)
            length = next(n for n in self._lengths if n >= longest)
            tokens = np.full((size, length), self._pad, np.int32)
            mask = np.zeros((size, length), np.float32)
            mask[:, 0] = 1.0  # An empty row must not divide by zero.
            for row, i in enumerate(chosen):
                tokens[row, : len(ids[i])] = ids[i]
                mask[row, : len(ids[i])] = 1.0
            yield chosen, tokens, mask, [len(ids[i]) for i in chosen]


def read(folder: Path) -> tuple[Params, BertShape]:
    """Return the encoder in a folder. Raises UserError."""
    config = weights.read_config(folder)
    if config.get("model_type") != "bert" or config.get("hidden_act", "gelu") != "gelu":
        raise UserError(
            f"{str(folder)!r} is a {config.get('model_type')!r} model with "
            f"{config.get('hidden_act')!r}: only BERT encoders with gelu can be run here "
            "(MiniLM, BGE, UAE, E5 v1/v2 ...)"
        )
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise UserError(f"{str(folder)!r} has relative positions, which are not supported")
    params = _params(folder, config["num_hidden_layers"])
    shape = BertShape(
        heads=config["num_attention_heads"],
        epsilon=config.get("layer_norm_eps", 1e-12),
        pooling=_pooling(folder),
    )
    return params, shape


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.is_file() else {}


def _pooling(folder: Path) -> Literal["mean", "cls"]:
    """The pooling in the checkpoint's configuration; without one, the mean of the tokens."""
    config = _json(folder / "1_Pooling/config.json")
    mode = str(config.get("pooling_mode", ""))
    if config.get("pooling_mode_cls_token") or mode == "cls":
        return "cls"
    if not config or config.get("pooling_mode_mean_tokens") or mode == "mean":
        return "mean"
    raise UserError(
        f"{str(folder / '1_Pooling/config.json')!r} has a pooling other than mean or cls"
    )


def _tokenizer(folder: Path, longest: int) -> Any:
    from tokenizers import BertWordPieceTokenizer, Tokenizer

    file = weights.find_file(folder, "tokenizer.json", "vocab.txt")
    if file.name == "vocab.txt":
        lower = _json(folder / "tokenizer_config.json").get("do_lower_case", True)
        tokenizer: Any = BertWordPieceTokenizer(str(file), lowercase=lower)
    else:
        tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.enable_truncation(longest)
    return tokenizer


LAYER = {  # name of a layer's weights here: name in the checkpoint
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "out": "attention.output.dense",
    "attended": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "done": "output.LayerNorm",
}


def _params(folder: Path, layers: int) -> Params:
    """The weights under short names, the layers stacked; matrices `[in, out]`."""
    tensors: dict[str, NDArray[np.float32]] = {}
    for name, value in weights.tensors(folder):
        tensors[name.removeprefix("bert.")] = np.asarray(value).astype(np.float32)

    def linear(name: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        weight = tensors[f"{name}.weight"]
        return (weight.T if weight.ndim == 2 else weight), tensors[f"{name}.bias"]

    try:
        stacked = {
            short: tuple(
                np.stack(arrays)
                for arrays in zip(
                    *(linear(f"encoder.layer.{i}.{long}") for i in range(layers)), strict=True
                )
            )
            for short, long in LAYER.items()
        }
        embeddings = {
            short: tensors[f"embeddings.{long}_embeddings.weight"]
            for short, long in (
                ("words", "word"),
                ("positions", "position"),
                ("types", "token_type"),
            )
        }
        params = {**embeddings, "norm": linear("embeddings.LayerNorm"), "layers": stacked}
    except KeyError as error:
        raise UserError(
            f"the weights in {str(folder)!r} lack {error}: not a BERT encoder"
        ) from error
    return jax.device_put(params)


@partial(jax.jit, static_argnames="shape")
def _forward(params: Params, tokens: jax.Array, mask: jax.Array, *, shape: BertShape) -> jax.Array:
    """Pooled vectors `[batch, d]` of tokens `[batch, length]`."""
    x = _states(params, tokens, mask, shape=shape)
    if shape.pooling == "cls":
        return x[:, 0]
    weight = mask[:, :, None]
    return (x * weight).sum(1) / weight.sum(1)


@partial(jax.jit, static_argnames="shape")
def _states(params: Params, tokens: jax.Array, mask: jax.Array, *, shape: BertShape) -> jax.Array:
    """States `[batch, length, d]` after the last layer of tokens `[batch, length]`."""
    with jax.default_matmul_precision("highest"):
        x = embed(params, tokens, jnp.zeros_like(tokens), shape)
        x, _ = jax.lax.scan(lambda x, p: (layer(x, p, mask, shape), None), x, params["layers"])
        return x


def embed(params: Params, tokens: jax.Array, segments: jax.Array, shape: BertShape) -> jax.Array:
    """Return the states `[batch, length, d]` before the first layer, of ids and segments `[batch,
    length]`.
    """
    positions = params["positions"][: tokens.shape[1]]
    x = params["words"][tokens] + positions + params["types"][segments]
    return _norm(x, params["norm"], shape.epsilon)


def layer(x: jax.Array, p: Params, mask: jax.Array, shape: BertShape) -> jax.Array:
    """Return the states `[batch, length, d]` after one layer; `mask` `[batch, length]` is above 0
    for tokens.

    A linear map of `p` is (weights `[in, out]`, bias), or with a low-rank adapter (Hu et al. 2021)
    (weights, bias, down `[in, rank]`, up `[rank, out]`).
    """
    hidden = jnp.where(mask[:, None, None, :] > 0, 0.0, jnp.finfo(jnp.float32).min)
    x = _norm(x + _attend(x, p, hidden, shape.heads), p["attended"], shape.epsilon)
    wide = jax.nn.gelu(_linear(x, p["up"]), approximate=False)
    return _norm(x + _linear(wide, p["down"]), p["done"], shape.epsilon)


def _linear(x: jax.Array, p: tuple[jax.Array, ...]) -> jax.Array:
    weights, bias, *adapter = p
    out = x @ weights + bias
    return out + (x @ adapter[0]) @ adapter[1] if adapter else out


def _norm(x: jax.Array, p: tuple[jax.Array, jax.Array], epsilon: float) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + epsilon) * p[0] + p[1]


def _attend(x: jax.Array, p: Params, hidden: jax.Array, heads: int) -> jax.Array:
    batch, length, d = x.shape

    def split(name: str) -> jax.Array:
        return _linear(x, p[name]).reshape(batch, length, heads, d // heads)

    scores = jnp.einsum("bqhd,bkhd->bhqk", split("query"), split("key"))
    scores = scores / jnp.sqrt(jnp.float32(d // heads)) + hidden
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), split("value"))
    return _linear(mixed.reshape(batch, length, d), p["out"])
