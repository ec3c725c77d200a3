"""The SigLIP text tower in JAX (arXiv 2303.15343): texts to vectors in the space of the images.

Reads the Hugging Face safetensors of a whole SigLIP. `siglip.FrameEncoder` encodes the images.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mustsee.errors import UserError
from mustsee.nn import weights
from mustsee.nn.siglip import LINEAR, NORMS, attend, norm

Params = dict[str, Any]
BATCH = 16  # texts of a padded batch


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
        config = json.loads(weights.find_file(folder, "config.json").read_text())
        if config.get("model_type") != "siglip":
            raise UserError(f"{path_or_id!r} is a {config.get('model_type')!r}, not a whole SigLIP")
        text = config.get("text_config", {})
        if text.get("hidden_act", "gelu_pytorch_tanh") != "gelu_pytorch_tanh":
            raise UserError(f"text tower with {text['hidden_act']!r}: expected SigLIP's gelu")
        params = _params(folder, int(text.get("num_hidden_layers", 12)), jnp.dtype(dtype))
        heads, epsilon = text.get("num_attention_heads", 12), text.get("layer_norm_eps", 1e-6)
        return cls(_tokenizer(folder), params, int(heads), float(epsilon))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of length 1 per text, float32 `[n, dimensions]`.

        A text is cut, or padded, to the model's length (64 tokens), as in training.
        """
        encoded = np.zeros((len(texts), self.dimensions), np.float32)
        for start in range(0, len(texts), BATCH):
            chosen = list(texts[start : start + BATCH])
            ids = self._tokenizer(
                chosen, padding="max_length", truncation=True, max_length=self._length
            )["input_ids"]
            tokens = np.zeros((BATCH, self._length), np.int32)
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

    def stack_layers(name: str) -> Any:
        arrays = [tensors[f"encoder.layers.{i}.{name}"] for i in range(layers)]
        return np.stack([p.T if p.ndim == 2 else p for p in arrays])

    try:
        params = {
            "words": tensors["embeddings.token_embedding.weight"],
            "positions": tensors["embeddings.position_embedding.weight"],
            "final": tensors["final_layer_norm.weight"],
            "final_bias": tensors["final_layer_norm.bias"],
            "head": tensors["head.weight"].T,
            "head_bias": tensors["head.bias"],
            "layers": {
                f"{short}{ours}": stack_layers(f"{long}.{theirs}")
                for short, long in {**LINEAR, **NORMS}.items()
                for ours, theirs in (("", "weight"), ("_bias", "bias"))
            },
        }
    except KeyError as error:
        raise UserError(f"the weights lack {error}: not a SigLIP text tower") from error
    return jax.tree.map(lambda array: jnp.asarray(array, dtype), params)


def _forward(params: Params, tokens: jax.Array, *, heads: int, epsilon: float) -> jax.Array:
    """Vectors `[batch, dimensions]` of tokens `[batch, length]`: the last token's, projected."""
    x = params["words"][tokens] + params["positions"]

    def layer(x: jax.Array, p: Params) -> tuple[jax.Array, None]:
        h = norm(x, p["attend_in"], p["attend_in_bias"], epsilon)
        x = x + attend(h, p, heads)
        h = norm(x, p["mlp_in"], p["mlp_in_bias"], epsilon)
        h = jax.nn.gelu(h @ p["up"] + p["up_bias"], approximate=True)
        return x + h @ p["down"] + p["down_bias"], None

    x, _ = jax.lax.scan(layer, x, params["layers"])
    last = norm(x, params["final"], params["final_bias"], epsilon)[:, -1]
    vectors = (last @ params["head"] + params["head_bias"]).astype(jnp.float32)
    return vectors / jnp.maximum(jnp.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
