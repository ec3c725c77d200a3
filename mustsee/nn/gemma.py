"""The Gemma decoder in JAX: Gemma 1, 2 and 3 (arXiv 2403.08295, 2408.00118, 2503.19786).

Grouped-query attention, rotary positions, soft caps (2) or normed queries and keys (3), layers with
a sliding window between layers with full attention, causal or prefix attention, and a cache of keys
and values. Reads Hugging Face safetensors. The layers' weights are stacked and scanned over, so
that one layer's program is compiled, however many layers there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from mustsee.errors import UserError
from mustsee.nn import weights

Cache = tuple[jax.Array, jax.Array]  # keys and values, [layers, batch, slots, kv heads, head width]

_MATRICES = {
    "query": "self_attn.q_proj",
    "key": "self_attn.k_proj",
    "value": "self_attn.v_proj",
    "out": "self_attn.o_proj",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}
# The axis along which devices share a matrix: its columns, then the rows of the one that follows.
_SHARED_AXIS = {
    "embedding": 0,
    **dict.fromkeys(("query", "key", "value", "gate", "up"), 2),
    **dict.fromkeys(("out", "down"), 1),
}
_NORMS = {"attend_in": "input_layernorm", "mlp_in": "post_attention_layernorm"}
_NORMS_2 = {
    "attend_in": "input_layernorm",
    "attend_out": "post_attention_layernorm",
    "mlp_in": "pre_feedforward_layernorm",
    "mlp_out": "post_feedforward_layernorm",
}
_NORMS_3 = _NORMS_2 | {"query_norm": "self_attn.q_norm", "key_norm": "self_attn.k_norm"}
_KINDS = {"gemma": _NORMS, "gemma2": _NORMS_2, "gemma3_text": _NORMS_3}


@dataclass(frozen=True, kw_only=True)
class GemmaShape:
    """The values of a checkpoint's configuration that the computation needs.

    `sliding`: for each layer, whether it attends only to the last `window` positions.
    `attention_cap`, `logit_cap`: soft caps on attention scores and on logits (null: none). `kind`:
    the checkpoint's `model_type`. `theta`, `near_theta`: base of the rotary positions on layers
    with full attention and on sliding ones; `position_scale`: divisor of the former's positions.
    """

    width: int
    heads: int
    kv_heads: int
    head_width: int
    layers: int
    vocabulary: int
    epsilon: float
    theta: float
    near_theta: float
    position_scale: float
    query_scale: float
    attention_cap: float | None
    logit_cap: float | None
    window: int
    sliding: tuple[bool, ...]
    kind: str

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> GemmaShape:
        """Return the shape in a `config.json` (or its `text_config`). Raises UserError for other
        models.
        """
        kind = str(config.get("model_type"))
        if kind not in _KINDS:
            raise UserError(
                f"model type {kind!r}: only decoders of {', '.join(_KINDS)} are supported"
            )
        layers, head_width = int(config["num_hidden_layers"]), int(config.get("head_dim") or 256)
        # Every `each`-th layer has full attention, the others slide; in Gemma 1 all have it.
        each = {"gemma": 1, "gemma2": 2}.get(kind) or int(config.get("sliding_window_pattern") or 6)
        kinds = config.get("layer_types") or [
            "sliding_attention" if (i + 1) % each else "full_attention" for i in range(layers)
        ]
        far, near = _rotary(config, 1e6 if kind == "gemma3_text" else 1e4)
        is_gemma_2 = kind == "gemma2"
        return cls(
            width=int(config["hidden_size"]),
            heads=int(config["num_attention_heads"]),
            kv_heads=int(config["num_key_value_heads"]),
            head_width=head_width,
            layers=layers,
            vocabulary=int(config["vocab_size"]),
            epsilon=float(config.get("rms_norm_eps", 1e-6)),
            theta=float(far["rope_theta"]),
            near_theta=float(near["rope_theta"]),
            position_scale=float(far.get("factor") or 1.0),
            query_scale=float(
                head_width if kind == "gemma" else config.get("query_pre_attn_scalar", 256)
            )
            ** -0.5,
            attention_cap=config.get("attn_logit_softcapping", 50.0 if is_gemma_2 else None),
            logit_cap=config.get("final_logit_softcapping", 30.0 if is_gemma_2 else None),
            window=int(config.get("sliding_window") or 4096),
            sliding=tuple(k == "sliding_attention" for k in kinds),
            kind=kind,
        )


def _rotary(config: Mapping[str, Any], usual: float) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The rotary settings of layers with full attention and of sliding ones, from new and old
    configurations.

    `usual`: base of the former where the configuration has none. Raises UserError for positions
    that are not scaled evenly.
    """
    parameters = config.get("rope_parameters") or {}
    if "full_attention" in parameters:
        far, near = parameters["full_attention"], parameters.get("sliding_attention") or {}
    else:
        base = config.get("rope_theta") or parameters.get("rope_theta") or usual
        far = {**(config.get("rope_scaling") or parameters), "rope_theta": base}
        is_gemma_3 = config.get("model_type") == "gemma3_text"
        near = {"rope_theta": config.get("rope_local_base_freq") or (1e4 if is_gemma_3 else base)}
    kind = far.get("rope_type", "default")
    if kind not in ("default", "linear"):
        raise UserError(f"rotary positions of type {kind!r}: only default and linear are supported")
    return {"rope_theta": usual, **far}, {"rope_theta": 1e4, **near}


@dataclass(frozen=True)
class AttentionMasks:
    """The slots that each query attends to, bool `[batch, queries, slots]`: on layers with full
    attention, and on sliding ones.
    """

    everywhere: jax.Array
    nearby: jax.Array


def attention_masks(
    valid: jax.Array, positions: jax.Array, window: int, prefix: jax.Array | None = None
) -> AttentionMasks:
    """Return the masks of a prompt: causal, except that the tokens of `prefix` all attend to each
    other.

    `valid`, `prefix`: bool `[batch, length]`; `positions`: int `[batch, length]`.
    """
    length = valid.shape[1]
    causal = jnp.tril(jnp.ones((length, length), bool))[None]
    near = (positions[:, :, None] - positions[:, None, :]) < window
    in_prefix = jnp.zeros((1, length, length), bool)
    if prefix is not None:
        in_prefix = prefix[:, :, None] & prefix[:, None, :]
    is_valid = valid[:, None, :]
    return AttentionMasks((causal | in_prefix) & is_valid, ((causal & near) | in_prefix) & is_valid)


def shared_axis(shape: GemmaShape, name: str, sizes: Sequence[int], devices: int) -> int | None:
    """Return the axis along which `devices` share the weight `name` of these `sizes`; null: each
    has all of it, as with norms, and where its heads, columns, rows or words do not divide evenly.
    """
    axis = _SHARED_AXIS.get(name)
    queries, keys = shape.heads, shape.kv_heads
    heads = {"query": queries, "out": queries, "key": keys, "value": keys}
    divides = axis is not None and heads.get(name, sizes[axis]) % devices == 0
    return axis if divides else None


class Gemma(nnx.Module):
    """A Gemma decoder, made by `load`. The layers' weights are stacked: `[layers, in, out]`.

    `devices` share them (null: the first local one); no device ever holds more than its part.
    """

    def __init__(
        self,
        shape: GemmaShape,
        tensors: Mapping[str, Any],
        dtype: Any,
        devices: Sequence[Any] | None = None,
    ) -> None:
        self.shape = shape
        mesh = Mesh(np.array(devices or jax.local_devices()[:1]), ("model",))

        def place(name: str, array: Any, dtype: Any) -> nnx.Param[jax.Array]:
            axis = shared_axis(shape, name, array.shape, mesh.size)
            spec = PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, "model")
            return nnx.Param(jax.device_put(array.astype(dtype), NamedSharding(mesh, spec)))

        def matrix(name: str, long: str) -> nnx.Param[jax.Array]:
            arrays = [tensors[f"layers.{i}.{long}.weight"].T for i in range(shape.layers)]
            return place(name, np.stack(arrays), dtype)

        def scale(name: str, long: str) -> nnx.Param[jax.Array]:
            arrays = [tensors[f"layers.{i}.{long}.weight"] for i in range(shape.layers)]
            return place(name, np.stack(arrays), jnp.float32)

        try:
            self.embedding = place("embedding", tensors["embed_tokens.weight"], dtype)
            self.final = place("final", tensors["norm.weight"], jnp.float32)
            self.layers = nnx.Dict(
                {name: matrix(name, long) for name, long in _MATRICES.items()}
                | {name: scale(name, long) for name, long in _KINDS[shape.kind].items()}
            )
        except KeyError as error:
            raise UserError(f"the weights lack {error}: not a Gemma decoder") from error

    @classmethod
    def load(
        cls,
        path_or_id: str,
        *,
        revision: str | None = None,
        dtype: Any = None,
        devices: Sequence[Any] | None = None,
    ) -> Gemma:
        """Return a checkpoint by folder or Hugging Face id in the cache. Raises UserError."""
        folder = weights.find(path_or_id, revision)
        config = weights.read_config(folder)
        tensors = {n.removeprefix("model."): t for n, t in weights.tensors(folder)}
        return cls(GemmaShape.of(config), tensors, dtype or jnp.float32, devices)

    def embed(self, tokens: jax.Array) -> jax.Array:
        """Return the vectors `[batch, length, width]` of token ids `[batch, length]`."""
        scale = jnp.asarray(self.shape.width**0.5, self.embedding.dtype)
        return self.embedding[tokens] * scale

    def __call__(
        self,
        x: jax.Array,
        positions: jax.Array,
        masks: AttentionMasks,
        cache: Cache,
        slot: jax.Array | int,
    ) -> tuple[jax.Array, Cache]:
        """Return hidden states `[batch, length, width]` of vectors `x`, and the cache with their
        keys and values in the slots from `slot` on. `masks` has a column for every slot of the
        cache.
        """
        shape = self.shape
        far = rotation(positions / shape.position_scale, shape.head_width, shape.theta)
        near = rotation(positions, shape.head_width, shape.near_theta)
        sliding, sandwich = jnp.asarray(shape.sliding), "attend_out" in _KINDS[shape.kind]

        def layer(x: jax.Array, scanned: Any) -> tuple[jax.Array, Cache]:
            p, slides, keys, values = scanned
            mask = jnp.where(slides, masks.nearby, masks.everywhere)
            turn = jnp.where(slides, near[0], far[0]), jnp.where(slides, near[1], far[1])
            h = norm(x, p["attend_in"], shape.epsilon)
            h, keys, values = _attend(h, p, shape, turn, mask, keys, values, slot)
            if sandwich:
                h = norm(h, p["attend_out"], shape.epsilon)
            x = x + h
            h = norm(x, p["mlp_in"], shape.epsilon)
            h = (jax.nn.gelu(h @ p["gate"], approximate=True) * (h @ p["up"])) @ p["down"]
            if sandwich:
                h = norm(h, p["mlp_out"], shape.epsilon)
            return x + h, (keys, values)

        stacked = {name: param[...] for name, param in self.layers.items()}
        x, cache = jax.lax.scan(layer, x, (stacked, sliding, *cache))
        return norm(x, self.final[...], shape.epsilon), cache

    def logits(self, hidden: jax.Array, rows: jax.Array | None = None) -> jax.Array:
        """Return float32 logits over the vocabulary, or over some of its `rows`, after the soft
        cap.
        """
        table = self.embedding[...] if rows is None else self.embedding[rows]
        raw = hidden.astype(jnp.float32) @ table.astype(jnp.float32).T
        cap = self.shape.logit_cap
        return raw if cap is None else cap * jnp.tanh(raw / cap)

    def empty_cache(self, batch: int, slots: int) -> Cache:
        """Return an empty cache."""
        shape = self.shape
        size = (shape.layers, batch, slots, shape.kv_heads, shape.head_width)
        return jnp.zeros(size, self.embedding.dtype), jnp.zeros(size, self.embedding.dtype)


def norm(x: jax.Array, weight: jax.Array, epsilon: float) -> jax.Array:
    """Return the root-mean-square norm, with weights counted from one, computed in float32."""
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + epsilon)
    return (wide * (1.0 + weight)).astype(x.dtype)


def rotation(positions: jax.Array, width: int, theta: float) -> tuple[jax.Array, jax.Array]:
    """Return cosine and sine of rotary positions, float32 `[batch, length, 1, width]`."""
    rates = theta ** (-jnp.arange(0, width, 2, dtype=jnp.float32) / width)
    angles = positions[..., None].astype(jnp.float32) * rates
    angles = jnp.concatenate([angles, angles], axis=-1)[:, :, None, :]
    return jnp.cos(angles), jnp.sin(angles)


def rotate(x: jax.Array, turn: tuple[jax.Array, jax.Array]) -> jax.Array:
    half = x.shape[-1] // 2
    swapped = jnp.concatenate([-x[..., half:], x[..., :half]], axis=-1)
    return (x * turn[0] + swapped * turn[1]).astype(x.dtype)


def _attend(
    x: jax.Array,
    p: Mapping[str, jax.Array],
    shape: GemmaShape,
    turn: tuple[jax.Array, jax.Array],
    mask: jax.Array,
    keys: jax.Array,
    values: jax.Array,
    slot: jax.Array | int,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Attention over the cache's slots; `mask`: bool `[batch, queries, slots]`."""
    batch, length = x.shape[:2]
    groups = shape.heads // shape.kv_heads
    query = (x @ p["query"]).reshape(batch, length, shape.heads, -1)
    key = (x @ p["key"]).reshape(batch, length, shape.kv_heads, -1)
    if "query_norm" in p:
        query = norm(query, p["query_norm"], shape.epsilon)
        key = norm(key, p["key_norm"], shape.epsilon)
    query, key = rotate(query, turn), rotate(key, turn)
    value = (x @ p["value"]).reshape(batch, length, shape.kv_heads, -1)
    keys = jax.lax.dynamic_update_slice_in_dim(keys, key.astype(keys.dtype), slot, axis=1)
    values = jax.lax.dynamic_update_slice_in_dim(values, value.astype(values.dtype), slot, axis=1)
    query = query.reshape(batch, length, shape.kv_heads, groups, -1)
    scores = jnp.einsum("blkgd,bskd->bkgls", query, keys) * shape.query_scale
    if shape.attention_cap is not None:
        scores = shape.attention_cap * jnp.tanh(scores / shape.attention_cap)
    scores = jnp.where(mask[:, None, None], scores.astype(jnp.float32), -1e30)
    shares = jax.nn.softmax(scores, axis=-1).astype(values.dtype)
    mixed = jnp.einsum("bkgls,bskd->blkgd", shares, values)
    return mixed.reshape(batch, length, -1) @ p["out"], keys, values
