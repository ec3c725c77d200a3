"""PaliGemma and PaliGemma 2 in JAX (arXiv 2407.07726, 2412.03555): an image and a prompt to text.

SigLIP's patches, projected, come before the prompt. Image and prompt attend to each other freely
(prefix-LM), the answer is causal. Runs on TPU, GPU and CPU from this file; a batch is split over
the devices of a host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from mustsee.errors import UserError
from mustsee.nn import weights
from mustsee.nn.gemma import AttentionMasks, Cache, Gemma, GemmaShape, attention_masks
from mustsee.nn.siglip import Siglip, SiglipShape, pixels


class PaliGemma(nnx.Module):
    """The weights: vision tower, projector, decoder."""

    def __init__(self, config: Mapping[str, Any], tensors: Mapping[str, Any], dtype: Any) -> None:
        self.tower = Siglip(
            SiglipShape.of(config["vision_config"]), _under(tensors, "vision_tower."), dtype
        )
        self.decoder = Gemma(
            GemmaShape.of(config["text_config"]), _under(tensors, "language_model."), dtype
        )
        projector = _under(tensors, "multi_modal_projector.linear.")
        self.project = nnx.Param(jnp.asarray(projector["weight"].T, dtype))
        self.project_bias = nnx.Param(jnp.asarray(projector["bias"], dtype))

    def prefill(self, images: jax.Array, prompt: jax.Array, slots: int) -> tuple[jax.Array, Cache]:
        """Return float32 logits of the token after the prompt, `[batch, vocabulary]`, and the
        cache.

        `images`: `[batch, size, size, 3]`; `prompt`: ids `[length]`, the same for all.
        """
        batch = images.shape[0]
        patches = self.tower(images) @ self.project[...] + self.project_bias[...]
        tokens = self.decoder.embed(jnp.broadcast_to(prompt, (batch, prompt.shape[0])))
        x = jnp.concatenate([patches.astype(tokens.dtype), tokens], axis=1)
        length = x.shape[1]
        positions = jnp.broadcast_to(jnp.arange(1, length + 1), (batch, length))
        all_tokens = jnp.ones((batch, length), bool)
        masks = attention_masks(all_tokens, positions, self.decoder.shape.window, all_tokens)
        padding = ((0, 0), (0, 0), (0, slots - length))
        masks = AttentionMasks(jnp.pad(masks.everywhere, padding), jnp.pad(masks.nearby, padding))
        cache = self.decoder.empty_cache(batch, slots)
        hidden, cache = self.decoder(x, positions, masks, cache, 0)
        return self.decoder.logits(hidden[:, -1]), cache

    def step(self, tokens: jax.Array, slot: jax.Array, cache: Cache) -> tuple[jax.Array, Cache]:
        """Return the logits after `tokens` `[batch]`, which get the cache's slot `slot`."""
        batch, slots = tokens.shape[0], cache[0].shape[2]
        position = jnp.full((batch, 1), slot + 1)
        filled = jnp.arange(slots) <= slot
        near = filled & (slot - jnp.arange(slots) < self.decoder.shape.window)
        masks = AttentionMasks(
            jnp.broadcast_to(filled, (batch, 1, slots)), jnp.broadcast_to(near, (batch, 1, slots))
        )
        x = self.decoder.embed(tokens[:, None])
        hidden, cache = self.decoder(x, position, masks, cache, slot)
        return self.decoder.logits(hidden[:, 0]), cache


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How tokens are chosen: the likeliest one at `temperature` 0; otherwise drawn, by `seed` and
    the image's place in the call.
    """

    max_tokens: int = 48
    temperature: float = 0.0
    seed: int = 0


class Captioner:
    """Describes images in text. Made by `load`; one call at a time.

    Batches are padded to one of the sizes `batches`, so at most that many programs are compiled for
    a prompt of one length; `compiled` counts them.
    """

    def __init__(self, model: PaliGemma, tokenizer: Any, eos: int, batches: Sequence[int]) -> None:
        devices = jax.local_devices()
        self.batches = sorted({-(-size // len(devices)) * len(devices) for size in batches})
        mesh = Mesh(np.array(devices), ("data",))
        self._split = NamedSharding(mesh, PartitionSpec("data"))
        self._graph, state = nnx.split(model)
        self._state = jax.device_put(state, NamedSharding(mesh, PartitionSpec()))
        self._tokenizer, self._eos = tokenizer, eos
        self.size = model.tower.shape.image_size
        self._patches = model.tower.shape.patches
        self.compiled = 0
        self._shapes: set[tuple[Any, ...]] = set()

    @classmethod
    def load(
        cls,
        path_or_id: str,
        *,
        revision: str | None = None,
        dtype: str = "bfloat16",
        batches: Sequence[int] = (1, 8, 32),
    ) -> Captioner:
        """Return a PaliGemma by folder or Hugging Face id in the cache. Raises UserError."""
        from tokenizers import Tokenizer

        folder = weights.find(path_or_id, revision)
        config = weights.read_config(folder)
        if config.get("model_type") != "paligemma":
            raise UserError(f"{path_or_id!r} is a {config.get('model_type')!r}, not a PaliGemma")
        tokenizer = Tokenizer.from_file(str(weights.find_file(folder, "tokenizer.json")))
        tensors = {_canonical_name(name): value for name, value in weights.tensors(folder)}
        model = PaliGemma(config, tensors, jnp.dtype(dtype))
        eos = int(config.get("eos_token_id") or config["text_config"].get("eos_token_id") or 1)
        return cls(model, tokenizer, eos, batches)

    def caption(
        self, jpegs: Sequence[bytes], prompt: str, decoding: Decoding = Decoding()
    ) -> list[str]:
        """Return one text per image. Raises BadRow for data that is not an image."""
        return self.texts(self.generate(pixels(jpegs, self.size), self.tokens(prompt), decoding))

    def texts(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Return token ids as text, with runs of white space as one space."""
        return [" ".join(self._tokenizer.decode(list(row)).split()) for row in ids]

    def tokens(self, prompt: str) -> NDArray[np.int32]:
        """Return the prompt's ids as PaliGemma reads them: BOS, the text, a line break."""
        bos = self._tokenizer.token_to_id("<bos>")
        ids = self._tokenizer.encode(prompt + "\n", add_special_tokens=False).ids
        return np.array([bos, *ids], np.int32)

    def generate(
        self, images: NDArray[np.float32], prompt: NDArray[np.int32], decoding: Decoding
    ) -> list[list[int]]:
        """Return token ids for each image, without the end token."""
        generated: list[list[int]] = []
        while len(generated) < len(images):
            remaining = len(images) - len(generated)
            size = next((b for b in self.batches if b >= remaining), self.batches[-1])
            chosen = images[len(generated) : len(generated) + size]
            batch = np.zeros((size, *images.shape[1:]), np.float32)
            batch[: len(chosen)] = chosen
            self._shapes.add((size, len(prompt), decoding.max_tokens, decoding.temperature > 0))
            self.compiled = len(self._shapes)
            rows = len(generated) + np.arange(size)
            drawn = _generate(
                self._graph, self._state, jax.device_put(batch, self._split), prompt,
                jax.device_put(rows, self._split), decoding.seed, decoding.temperature,
                eos=self._eos, steps=decoding.max_tokens, draw=decoding.temperature > 0,
            )  # fmt: skip
            for row in np.asarray(drawn)[: len(chosen)].tolist():
                generated.append(row[: row.index(self._eos)] if self._eos in row else row)
        return generated


@partial(jax.jit, static_argnames=("graph", "eos", "steps", "draw"))
def _generate(
    graph: Any, state: Any, images: jax.Array, prompt: jax.Array, rows: jax.Array,
    seed: int, temperature: float, *, eos: int, steps: int, draw: bool,
) -> jax.Array:  # fmt: skip
    """Ids `[batch, steps]`, padded with the end token; stops when every row has ended."""
    model: PaliGemma = nnx.merge(graph, state)
    length = model.tower.shape.patches + prompt.shape[0]
    logits, cache = model.prefill(images, prompt, length + steps)
    keys = jax.vmap(lambda row: jax.random.fold_in(jax.random.key(seed), row))(rows)

    def pick(logits: jax.Array, step: jax.Array | int) -> jax.Array:
        if not draw:
            return logits.argmax(axis=-1)
        each = jax.vmap(lambda key: jax.random.fold_in(key, step))(keys)
        return jax.vmap(jax.random.categorical)(each, logits / temperature)

    first = pick(logits, 0)
    out = jnp.full((images.shape[0], steps), eos, first.dtype).at[:, 0].set(first)

    def is_running(carry: Any) -> jax.Array:
        step, tokens, *_ = carry
        return (step < steps) & ~jnp.all(tokens == eos)

    def decode_step(carry: Any) -> Any:
        step, tokens, out, cache = carry
        logits, cache = model.step(tokens, length + step - 1, cache)
        tokens = jnp.where(tokens == eos, eos, pick(logits, step))
        return step + 1, tokens, out.at[:, step].set(tokens), cache

    return jax.lax.while_loop(is_running, decode_step, (1, first, out, cache))[2]


def _canonical_name(name: str) -> str:
    """A tensor's name without the prefixes that save formats of different ages add."""
    name = name.removeprefix("model.")
    for inner in ("language_model.model.", "vision_tower.vision_model."):
        outer = inner.split(".")[0] + "."
        if name.startswith(inner):
            return outer + name.removeprefix(inner)
    return name


def _under(tensors: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
