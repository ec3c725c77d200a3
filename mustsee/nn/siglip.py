"""SigLIP in JAX (arXiv 2303.15343): images to one vector per patch or per image, and texts to
vectors whose cosine with those of images measures how well they fit.

Reads Hugging Face safetensors, alone or inside a PaliGemma checkpoint. The layers' weights are
stacked and scanned over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from numpy.typing import NDArray

from mustsee.errors import BadRow, UserError
from mustsee.nn import weights

# Our short names of a layer's weights, and the names in a checkpoint.
LINEAR = {
    "query": "self_attn.q_proj",
    "key": "self_attn.k_proj",
    "value": "self_attn.v_proj",
    "out": "self_attn.out_proj",
    "up": "mlp.fc1",
    "down": "mlp.fc2",
}
NORMS = {"attend_in": "layer_norm1", "mlp_in": "layer_norm2"}
TEXT_BATCH = 16  # texts of a padded batch
Params = dict[str, Any]  # arrays by short name, those of all layers stacked under "layers"


@dataclass(frozen=True, kw_only=True)
class SiglipShape:
    """The values of a checkpoint's configuration that the computation needs.

    `image_size`, `patch`: sides in pixels.
    """

    width: int
    heads: int
    layers: int
    image_size: int
    patch: int
    epsilon: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> SiglipShape:
        """Return the shape in a `vision_config`. Raises UserError for other activations."""
        _check_activation("vision", config)
        return cls(
            width=int(config.get("hidden_size", 768)),
            heads=int(config.get("num_attention_heads", 12)),
            layers=int(config.get("num_hidden_layers", 12)),
            image_size=int(config.get("image_size", 224)),
            patch=int(config.get("patch_size", 16)),
            epsilon=float(config.get("layer_norm_eps", 1e-6)),
        )

    @property
    def patches(self) -> int:
        """The number of patches of an image."""
        return (self.image_size // self.patch) ** 2


class Siglip(nnx.Module):
    """The vision tower. `tensors`: names from `embeddings.` and `encoder.` on."""

    def __init__(self, shape: SiglipShape, tensors: Mapping[str, Any], dtype: Any) -> None:
        self.shape = shape
        try:
            patch = tensors["embeddings.patch_embedding.weight"]  # [out, channels, height, width]
            patch = patch.transpose(2, 3, 1, 0).reshape(-1, shape.width)
            self.patch = nnx.Param(jnp.asarray(patch, dtype))
            self.patch_bias = nnx.Param(
                jnp.asarray(tensors["embeddings.patch_embedding.bias"], dtype)
            )
            self.positions = nnx.Param(
                jnp.asarray(tensors["embeddings.position_embedding.weight"], dtype)
            )
            self.final = nnx.Param(jnp.asarray(tensors["post_layernorm.weight"], dtype))
            self.final_bias = nnx.Param(jnp.asarray(tensors["post_layernorm.bias"], dtype))
            layers = _stack_layers(tensors, shape.layers)
            self.layers = nnx.Dict(
                {name: nnx.Param(jnp.asarray(array, dtype)) for name, array in layers.items()}
            )
        except KeyError as error:
            raise UserError(f"the weights lack {error}: not a SigLIP vision tower") from error

    def __call__(self, images: jax.Array) -> jax.Array:
        """Return patch vectors `[batch, patches, width]` of images `[batch, height, width, 3]`,
        with pixels from -1 to 1.
        """
        shape = self.shape
        batch, side = images.shape[0], shape.image_size // shape.patch
        patches = images[:, : side * shape.patch, : side * shape.patch]
        patches = patches.reshape(batch, side, shape.patch, side, shape.patch, 3)
        patches = patches.transpose(0, 1, 3, 2, 4, 5).reshape(batch, side * side, -1)
        x = patches.astype(self.patch.dtype) @ self.patch[...] + self.patch_bias[...]
        x = x + self.positions[...]
        layers = {name: param[...] for name, param in self.layers.items()}
        x = _run_layers(x, layers, shape.heads, shape.epsilon)
        return _norm(x, self.final[...], self.final_bias[...], shape.epsilon)


class Pooling(nnx.Module):
    """SigLIP's head: one vector per image, by attention of a learnt query over its patches.
    `tensors`: names from `head.` on.
    """

    def __init__(self, shape: SiglipShape, tensors: Mapping[str, Any], dtype: Any) -> None:
        self.shape = shape

        def param(name: str) -> nnx.Param[jax.Array]:
            return nnx.Param(jnp.asarray(tensors[name].T, dtype))

        try:
            self.probe = nnx.Param(jnp.asarray(tensors["probe"], dtype))
            projections = np.split(tensors["attention.in_proj_weight"], 3)
            shifts = np.split(tensors["attention.in_proj_bias"], 3)
            projections_by_name = zip(("query", "key", "value"), projections, shifts, strict=True)
            self.attention = nnx.Dict(
                {
                    key: nnx.Param(jnp.asarray(array, dtype))
                    for name, matrix, shift in projections_by_name
                    for key, array in ((name, matrix.T), (f"{name}_bias", shift))
                }
                | {
                    "out": param("attention.out_proj.weight"),
                    "out_bias": param("attention.out_proj.bias"),
                }
            )
            self.scale, self.shift = param("layernorm.weight"), param("layernorm.bias")
            self.up, self.up_bias = param("mlp.fc1.weight"), param("mlp.fc1.bias")
            self.down, self.down_bias = param("mlp.fc2.weight"), param("mlp.fc2.bias")
        except KeyError as error:
            raise UserError(f"the weights lack {error}: not the head of a SigLIP") from error

    def __call__(self, patches: jax.Array) -> jax.Array:
        """Return vectors `[batch, width]` of patch vectors `[batch, patches, width]`."""
        p = {name: value[...] for name, value in self.attention.items()}
        probe = jnp.broadcast_to(self.probe[...], (patches.shape[0], 1, patches.shape[2]))
        x = _attend(probe, p, self.shape.heads, patches)
        h = _norm(x, self.scale[...], self.shift[...], self.shape.epsilon)
        h = jax.nn.gelu(h @ self.up[...] + self.up_bias[...], approximate=True)
        return (x + h @ self.down[...] + self.down_bias[...])[:, 0]


class FrameEncoder:
    """Encodes frames as vectors whose cosine measures their similarity. Made by `load`; one call at
    a time.

    Batches are padded to `batch` images, so that one program is compiled.
    """

    def __init__(self, tower: Siglip, head: Pooling | None, batch: int) -> None:
        self.size, self.dimensions, self.batch = tower.shape.image_size, tower.shape.width, batch
        graph, self._state = nnx.split((tower, head))

        def run(state: Any, images: jax.Array) -> jax.Array:
            tower, head = nnx.merge(graph, state)
            patches = tower(images)
            vectors = (patches.mean(axis=1) if head is None else head(patches)).astype(jnp.float32)
            return _unit(vectors)

        self._run = jax.jit(run)

    @classmethod
    def load(
        cls,
        path_or_id: str,
        *,
        revision: str | None = None,
        dtype: str = "bfloat16",
        batch: int = 32,
    ) -> FrameEncoder:
        """Return a SigLIP by folder or Hugging Face id in the cache, or the tower of a PaliGemma.

        The latter has no head: its vectors are the mean over the patches. Raises UserError.
        """
        folder = weights.find(path_or_id, revision)
        config = weights.read_config(folder)
        if config.get("model_type") not in ("siglip", "siglip_vision_model", "paligemma"):
            raise UserError(f"{path_or_id!r} is a {config.get('model_type')!r}, not a SigLIP")
        shape = SiglipShape.of(config.get("vision_config", config))
        tensors = {
            re.sub(r"^(model\.|vision_tower\.|vision_model\.)+", "", name): value
            for name, value in weights.tensors(folder)
            if not re.match(r"(model\.)?(language_model|text_model)\.", name)
        }
        heads = {n.removeprefix("head."): t for n, t in tensors.items() if n.startswith("head.")}
        head = Pooling(shape, heads, jnp.dtype(dtype)) if heads else None
        return cls(Siglip(shape, tensors, jnp.dtype(dtype)), head, batch)

    def encode(self, jpegs: Sequence[bytes]) -> NDArray[np.float32]:
        """Return one vector of length 1 per image, float32 `[n, dimensions]`. Raises BadRow for
        data that is not an image.
        """
        encoded = np.zeros((len(jpegs), self.dimensions), np.float32)
        for start in range(0, len(jpegs), self.batch):
            chosen = pixels(jpegs[start : start + self.batch], self.size)
            batch = np.zeros((self.batch, *chosen.shape[1:]), np.float32)
            batch[: len(chosen)] = chosen
            vectors = np.asarray(self._run(self._state, batch))
            encoded[start : start + len(chosen)] = vectors[: len(chosen)]
        return encoded


def pixels(jpegs: Sequence[bytes], size: int) -> NDArray[np.float32]:
    """Return JPEGs as float32 `[n, size, size, 3]` from -1 to 1, resized as in SigLIP's training
    (bicubic, without the aspect ratio). Raises BadRow for data that is not an image.
    """
    import io

    from PIL import Image, UnidentifiedImageError

    batch = np.empty((len(jpegs), size, size, 3), np.float32)
    for index, jpeg in enumerate(jpegs):
        try:
            image = Image.open(io.BytesIO(jpeg)).convert("RGB")
        except (UnidentifiedImageError, OSError) as error:
            raise BadRow(f"image {index} of {len(jpegs)} is not readable: {error}") from error
        resized = image.resize((size, size), Image.Resampling.BICUBIC)
        batch[index] = np.asarray(resized, np.float32) / 127.5 - 1.0
    return batch


class TextEncoder:
    """Encodes texts as vectors. Made by `load`; one call at a time."""

    def __init__(self, tokenizer: Any, params: Params, heads: int, epsilon: float) -> None:
        self._tokenizer, self._params = tokenizer, params
        self._run = jax.jit(partial(_forward, heads=heads, epsilon=epsilon))
        self._length = int(params["positions"].shape[0])
        self.dimensions = int(params["head"].shape[1])

    @classmethod
    def load(
        cls, path_or_id: str, *, revision: str | None = None, dtype: str = "bfloat16"
    ) -> TextEncoder:
        """Return a SigLIP by folder or Hugging Face id in the cache. Raises UserError."""
        folder = weights.find(path_or_id, revision)
        config = weights.read_config(folder)
        if config.get("model_type") != "siglip":
            raise UserError(f"{path_or_id!r} is a {config.get('model_type')!r}, not a whole SigLIP")
        text = config.get("text_config", {})
        _check_activation("text", text)
        params = _params(folder, int(text.get("num_hidden_layers", 12)), jnp.dtype(dtype))
        heads, epsilon = text.get("num_attention_heads", 12), text.get("layer_norm_eps", 1e-6)
        return cls(_tokenizer(folder), params, int(heads), float(epsilon))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of length 1 per text, float32 `[n, dimensions]`.

        A text is cut, or padded, to the model's length (64 tokens), as in training.
        """
        encoded = np.zeros((len(texts), self.dimensions), np.float32)
        for start in range(0, len(texts), TEXT_BATCH):
            chosen = list(texts[start : start + TEXT_BATCH])
            ids = self._tokenizer(
                chosen, padding="max_length", truncation=True, max_length=self._length
            )["input_ids"]
            tokens = np.zeros((TEXT_BATCH, self._length), np.int32)
            tokens[: len(chosen)] = ids
            vectors = np.asarray(self._run(self._params, tokens))
            encoded[start : start + len(chosen)] = vectors[: len(chosen)]
        return encoded


def _tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, ImportError, KeyError) as error:
        reason = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        raise UserError(f"the tokenizer in {str(folder)!r} cannot be loaded: {reason}") from error


def _params(folder: Path, layers: int, dtype: Any) -> Params:
    """The weights under short names, the layers stacked; matrices `[in, out]`."""
    tensors = {
        name.removeprefix("text_model."): value
        for name, value in weights.tensors(folder)
        if name.startswith("text_model.")
    }
    try:
        params = {
            "words": tensors["embeddings.token_embedding.weight"],
            "positions": tensors["embeddings.position_embedding.weight"],
            "final": tensors["final_layer_norm.weight"],
            "final_bias": tensors["final_layer_norm.bias"],
            "head": tensors["head.weight"].T,
            "head_bias": tensors["head.bias"],
            "layers": _stack_layers(tensors, layers),
        }
    except KeyError as error:
        raise UserError(f"the weights lack {error}: not a SigLIP text tower") from error
    return jax.tree.map(lambda array: jnp.asarray(array, dtype), params)


def _forward(params: Params, tokens: jax.Array, *, heads: int, epsilon: float) -> jax.Array:
    """Vectors `[batch, dimensions]` of tokens `[batch, length]`: the last token's, projected."""
    x = params["words"][tokens] + params["positions"]
    x = _run_layers(x, params["layers"], heads, epsilon)
    last = _norm(x, params["final"], params["final_bias"], epsilon)[:, -1]
    return _unit((last @ params["head"] + params["head_bias"]).astype(jnp.float32))


def _check_activation(tower: str, config: Mapping[str, Any]) -> None:
    if config.get("hidden_act", "gelu_pytorch_tanh") != "gelu_pytorch_tanh":
        raise UserError(f"{tower} tower with {config['hidden_act']!r}: expected SigLIP's gelu")


def _stack_layers(tensors: Mapping[str, Any], layers: int) -> dict[str, NDArray[Any]]:
    """Return the weights of a tower's layers under short names, stacked; matrices `[in, out]`."""

    def stack(name: str) -> NDArray[Any]:
        arrays = [tensors[f"encoder.layers.{i}.{name}"] for i in range(layers)]
        return np.stack([p.T if p.ndim == 2 else p for p in arrays])

    return {
        f"{short}{ours}": stack(f"{long}.{theirs}")
        for short, long in {**LINEAR, **NORMS}.items()
        for ours, theirs in (("", "weight"), ("_bias", "bias"))
    }


def _run_layers(x: jax.Array, layers: Params, heads: int, epsilon: float) -> jax.Array:
    """Return the vectors after all `layers` (from `_stack_layers`)."""

    def layer(x: jax.Array, p: Params) -> tuple[jax.Array, None]:
        h = _norm(x, p["attend_in"], p["attend_in_bias"], epsilon)
        x = x + _attend(h, p, heads)
        h = _norm(x, p["mlp_in"], p["mlp_in_bias"], epsilon)
        h = jax.nn.gelu(h @ p["up"] + p["up_bias"], approximate=True)
        return x + h @ p["down"] + p["down_bias"], None

    return jax.lax.scan(layer, x, layers)[0]


def _unit(vectors: jax.Array) -> jax.Array:
    return vectors / jnp.maximum(jnp.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _norm(x: jax.Array, weight: jax.Array, bias: jax.Array, epsilon: float) -> jax.Array:
    """Return the layer norm, computed in float32."""
    wide = x.astype(jnp.float32)
    wide = wide - wide.mean(axis=-1, keepdims=True)
    wide = wide * jax.lax.rsqrt((wide * wide).mean(axis=-1, keepdims=True) + epsilon)
    return (wide * weight + bias).astype(x.dtype)


def _attend(
    x: jax.Array, p: Mapping[str, jax.Array], heads: int, over: jax.Array | None = None
) -> jax.Array:
    """Return the attention of `x` over itself, or `over` other vectors."""
    batch, length, width = x.shape

    def split(name: str, x: jax.Array) -> jax.Array:
        return (x @ p[name] + p[f"{name}_bias"]).reshape(batch, x.shape[1], heads, -1)

    over = x if over is None else over
    scores = jnp.einsum("blhd,bshd->bhls", split("query", x), split("key", over))
    scores = scores.astype(jnp.float32) * (width // heads) ** -0.5
    shares = jax.nn.softmax(scores, axis=-1).astype(x.dtype)
    mixed = jnp.einsum("bhls,bshd->blhd", shares, split("value", over))
    mixed = mixed.reshape(batch, length, width)
    return mixed @ p["out"] + p["out_bias"]
