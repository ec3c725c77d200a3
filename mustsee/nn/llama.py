"""A Llama decoder in JAX that scores how likely texts are after others (arXiv 2302.13971).

Reads a GGUF file with its tokenizer. All continuations of a text are scored in one pass: the text
stands once, and each continuation attends to it and to itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mustsee.errors import UserError
from mustsee.nn.gemma import rotate, rotation
from mustsee.nn.gguf import GgufFile, read_gguf

LENGTHS = (64, 128, 192, 256, 384, 512, 768, 1024)  # tokens of a padded pass
MAX_PREFIX = 700  # last tokens of the text that continuations follow
MAX_CONTINUATION = 160  # first tokens of a continuation
_SPECIAL = 3  # type of a token that no text contains
_MATRICES = {"query": "attn_q", "key": "attn_k", "value": "attn_v", "out": "attn_output",
             "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}  # fmt: skip
_NORMS = {"attend_in": "attn_norm", "mlp_in": "ffn_norm"}
Params = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class LlamaShape:
    """The values of the metadata that the computation needs."""

    layers: int
    heads: int
    kv_heads: int
    head_width: int
    epsilon: float
    theta: float


class Llama:
    """Scores texts. Made by `load`; used from one thread at a time."""

    def __init__(self, tokenizer: Any, params: Params, shape: LlamaShape) -> None:
        self._tokenizer, self._params, self._shape = tokenizer, params, shape

    @classmethod
    def load(cls, path: Path) -> Llama:
        """Return the model in a GGUF file. Raises UserError for other models and tokenizers."""
        file = read_gguf(path)
        try:
            shape = _shape(file.metadata)
            return cls(make_tokenizer(file.metadata), read_params(file, shape), shape)
        except KeyError as error:
            raise UserError(f"{str(path)!r} lacks {error}: not a Llama decoder") from error

    def score(self, prefix: str, continuations: Sequence[str]) -> list[float]:
        """Return for each continuation the mean log-likelihood of its tokens after `prefix`."""
        before = self._tokenizer.encode(prefix).ids[-MAX_PREFIX:]
        tokens = [
            self._tokenizer.encode(text).ids[:MAX_CONTINUATION] or [0] for text in continuations
        ]
        scores: list[float] = []
        for part in _fitting(tokens, LENGTHS[-1] - len(before)):
            scores += self._score(before, part)
        return scores

    def _score(self, before: Sequence[int], continuations: Sequence[Sequence[int]]) -> list[float]:
        ids, owners, positions = list(before), [0] * len(before), list(range(len(before)))
        sources: list[int] = []
        for number, tokens in enumerate(continuations, 1):
            first = len(ids)
            sources += [len(before) - 1, *range(first, first + len(tokens) - 1)]
            ids += tokens
            owners += [number] * len(tokens)
            positions += range(len(before), len(before) + len(tokens))
        targets = ids[len(before) :]
        length, count = _padded(len(ids)), _padded(len(targets))
        chances = _log_chances(
            self._params,
            _filled(ids, length),
            _filled(owners, length, -1),
            _filled(positions, length),
            _filled(sources, count),
            _filled(targets, count),
            self._shape,
        )
        parts = np.split(np.asarray(chances), np.cumsum([len(tokens) for tokens in continuations]))
        return [float(part.mean()) for part in parts[:-1]]


def _fitting(tokens: Sequence[Sequence[int]], room: int) -> list[list[Sequence[int]]]:
    """Split continuations into parts that fit into one pass each."""
    parts: list[list[Sequence[int]]] = [[]]
    for one in tokens:
        if parts[-1] and sum(map(len, parts[-1])) + len(one) > room:
            parts.append([])
        parts[-1].append(one)
    return parts


def _padded(count: int) -> int:
    return next(length for length in LENGTHS if length >= count)


def _filled(values: Sequence[int], length: int, rest: int = 0) -> NDArray[np.int32]:
    return np.array([*values, *[rest] * (length - len(values))], np.int32)


@partial(jax.jit, static_argnums=6)
def _log_chances(
    params: Params,
    ids: jax.Array,
    owners: jax.Array,
    positions: jax.Array,
    sources: jax.Array,
    targets: jax.Array,
    shape: LlamaShape,
) -> jax.Array:
    """Return the log-likelihood of each target token at its source's place.

    `owners`: 0 for the text before, which all attend to, else the number of the continuation, and
    -1 for padding.
    """
    length = ids.shape[0]
    earlier = jnp.tril(jnp.ones((length, length), bool))
    mask = earlier & ((owners[None] == 0) | (owners[None] == owners[:, None]))
    cosine, sine = rotation(positions[None], shape.head_width, shape.theta)
    turn = cosine[0], sine[0]
    groups = shape.heads // shape.kv_heads

    def layer(x: jax.Array, p: Mapping[str, jax.Array]) -> tuple[jax.Array, None]:
        h = _norm(x, p["attend_in"], shape.epsilon)
        query = rotate((h @ p["query"]).reshape(length, shape.heads, -1), turn)
        key = rotate((h @ p["key"]).reshape(length, shape.kv_heads, -1), turn)
        value = (h @ p["value"]).reshape(length, shape.kv_heads, -1)
        query = query.reshape(length, shape.kv_heads, groups, -1)
        scores = jnp.einsum("lkgd,skd->kgls", query, key) * shape.head_width**-0.5
        shares = jax.nn.softmax(jnp.where(mask[None, None], scores, -1e30), axis=-1)
        x = x + jnp.einsum("kgls,skd->lkgd", shares, value).reshape(length, -1) @ p["out"]
        h = _norm(x, p["mlp_in"], shape.epsilon)
        return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"], None

    x, _ = jax.lax.scan(layer, params["embedding"][ids], params["layers"])
    hidden = _norm(x[sources], params["final"], shape.epsilon)
    logits = hidden @ params.get("head", params["embedding"]).T
    chosen = jnp.take_along_axis(logits, targets[:, None], axis=1)[:, 0]
    return chosen - jax.nn.logsumexp(logits, axis=1)


def _norm(x: jax.Array, weight: jax.Array, epsilon: float) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight


def _shape(metadata: Mapping[str, Any]) -> LlamaShape:
    kind = metadata.get("general.architecture")
    if kind != "llama":
        raise UserError(f"model architecture {kind!r}: only llama is supported")
    if any(key.startswith("llama.rope.scaling") for key in metadata):
        raise UserError("rotary positions that are scaled are not supported")
    heads = int(metadata["llama.attention.head_count"])
    return LlamaShape(
        layers=int(metadata["llama.block_count"]),
        heads=heads,
        kv_heads=int(metadata.get("llama.attention.head_count_kv", heads)),
        head_width=int(metadata["llama.embedding_length"]) // heads,
        epsilon=float(metadata["llama.attention.layer_norm_rms_epsilon"]),
        theta=float(metadata.get("llama.rope.freq_base", 1e4)),
    )


def read_params(file: GgufFile, shape: LlamaShape) -> Params:
    """Return the weights; those of a layer's matrices are stacked, `[layers, in, out]`."""
    tensors = file.tensors

    def stack_layers(name: str) -> jax.Array:
        return jnp.asarray(
            np.stack([tensors[f"blk.{i}.{name}.weight"] for i in range(shape.layers)])
        )

    layers = {short: stack_layers(name).swapaxes(1, 2) for short, name in _MATRICES.items()}
    layers |= {short: stack_layers(name) for short, name in _NORMS.items()}
    layers["query"] = _halves(layers["query"], shape.heads)
    layers["key"] = _halves(layers["key"], shape.kv_heads)
    params = {
        "embedding": jnp.asarray(tensors["token_embd.weight"]),
        "final": jnp.asarray(tensors["output_norm.weight"]),
        "layers": layers,
    }
    head = tensors.get("output.weight")
    return params if head is None else {**params, "head": jnp.asarray(head)}


def _halves(matrix: jax.Array, heads: int) -> jax.Array:
    """Return queries or keys whose rotary pairs are the halves of a head; GGUF has them side by
    side.
    """
    layers, width, out = matrix.shape
    pairs = matrix.reshape(layers, width, heads, out // heads // 2, 2)
    return pairs.swapaxes(3, 4).reshape(layers, width, out)


def make_tokenizer(metadata: Mapping[str, Any]) -> Any:
    """Return the tokenizer of a file. Raises UserError for another one than SmolLM's."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    kind = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre")
    if kind != ("gpt2", "smollm"):
        raise UserError(f"tokenizer {kind!r}: only gpt2 with the pieces of smollm is supported")
    tokens: list[str] = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    vocabulary = {token: n for n, token in enumerate(tokens)}
    tokenizer: Any = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))  # type: ignore[arg-type]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, of in zip(tokens, metadata["tokenizer.ggml.token_type"], strict=True)
            if of == _SPECIAL
        ]
    )
    return tokenizer
