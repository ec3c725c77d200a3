"""A small cross-encoder: MiniLM reads question, candidate and reference in one sequence.

The published sentence encoder stays as it is, and what was learnt for judging is added: low-rank
adapters (Hu et al. 2021) on the linear maps of the upper layers, and a head over the mean of the
last states and the lexical features. Adapters and head fit in a file below 1 MB; the encoder is one
that the embeddings use anyway. Pure JAX on plain arrays, so that the layers below the first adapter
can be run once and kept while training.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longshot.errors import UserError
from longshot.gem import Refused, Triple
from longshot.lexical import FEATURES, features

Arrays = dict[str, Any]
MAPS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
CLS, SEP, PAD = 101, 102, 0  # of the uncased BERT vocabulary
POSITIONS = 512
SCALE = 2.0  # of the adapters' product
SPREAD = 4.0  # of the mean state beside the standardised features


@dataclass(frozen=True)
class Base:
    """The MiniLM checkpoint in `folder`: its weights [name -> array] and tokenizer."""

    folder: str

    @cached_property
    def weights(self) -> Arrays:
        from safetensors.numpy import load_file

        path = Path(self.folder, "model.safetensors")
        if not path.exists():
            raise UserError(f"no MiniLM weights at {str(path)!r}")
        return {k.removeprefix("bert."): v for k, v in load_file(path).items()}

    @cached_property
    def tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer: Any = Tokenizer.from_file(str(Path(self.folder, "tokenizer.json")))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True  # "[SEP]" in an answer is text
        return tokenizer

    @cached_property
    def digest(self) -> str:
        names = ("model.safetensors", "tokenizer.json")
        total = hashlib.sha256()
        for name in names:
            total.update(hashlib.sha256(Path(self.folder, name).read_bytes()).digest())
        return total.hexdigest()

    def encode(self, triple: Triple) -> tuple[list[int], list[int]]:
        """(token ids, segment ids): question first, then candidate, then reference.

        Raises Refused where they do not fit: nothing is cut.
        """
        parts = [triple.question, triple.candidate, triple.reference]
        texts = self.tokenizer.encode_batch(parts, add_special_tokens=False)
        ids, kinds = [CLS], [0]
        for kind, text in zip((0, 1, 1), texts, strict=True):
            ids += [*text.ids, SEP]
            kinds += [kind] * (len(text.ids) + 1)
        if len(ids) > POSITIONS:
            raise Refused(
                f"the prompt has {len(ids)} tokens, the limit is {POSITIONS}: shorten the question "
                "or the reference (the candidate is cut at 100 words)"
            )
        return ids, kinds


def embed(base: Arrays, ids: Any, kinds: Any) -> Any:
    """Embeddings [b, n, d] of ids and segment ids [b, n]."""
    places = base["embeddings.position_embeddings.weight"][: ids.shape[1]]
    x = (
        base["embeddings.word_embeddings.weight"][ids]
        + base["embeddings.token_type_embeddings.weight"][kinds]
        + places
    )
    return _norm(base, "embeddings.LayerNorm", x)


def layer(base: Arrays, adapter: Mapping[str, Any], index: int, x: Any, real: Any) -> Any:
    """One encoder layer: `x` [b, n, d], `real` [b, n] true for tokens."""
    import jax
    import jax.numpy as jnp

    place = f"encoder.layer.{index}."

    def linear(name: str, y: Any) -> Any:
        out = y @ base[f"{place}{name}.weight"].T + base[f"{place}{name}.bias"]
        key = f"{index}.{name}"
        if f"{key}.down" in adapter:
            out = out + (y @ adapter[f"{key}.down"]) @ adapter[f"{key}.up"] * SCALE
        return out

    b, n, d = x.shape
    heads = 12

    def split(y: Any) -> Any:
        return y.reshape(b, n, heads, d // heads).transpose(0, 2, 1, 3)

    q, k, v = (split(linear(f"attention.self.{m}", x)) for m in ("query", "key", "value"))
    logits = q @ k.transpose(0, 1, 3, 2) / math.sqrt(d // heads)
    weights = jax.nn.softmax(jnp.where(real[:, None, None, :], logits, -1e9), axis=-1)
    mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(b, n, d)
    x = _norm(
        base, f"{place}attention.output.LayerNorm", linear("attention.output.dense", mixed) + x
    )
    inner = jax.nn.gelu(linear("intermediate.dense", x), approximate=False)
    return _norm(base, f"{place}output.LayerNorm", linear("output.dense", inner) + x)


def _norm(base: Arrays, name: str, x: Any) -> Any:
    import jax.numpy as jnp

    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-12) * base[f"{name}.weight"] + base[f"{name}.bias"]


def depth(base: Mapping[str, Any]) -> int:
    return 1 + max(int(k.split(".")[2]) for k in base if k.startswith("encoder.layer."))


def first_adapted(head: Mapping[str, Any], layers: int) -> int:
    """The lowest layer with an adapter; all below are the published encoder's."""
    adapted = [int(k.split(".")[0]) for k in head if k[0].isdigit()]
    return min(adapted, default=layers)


def pool_and_judge(head: Mapping[str, Any], x: Any, real: Any, words: Any) -> Any:
    """logit(TRUE) - logit(FALSE) [b] from the last states and the lexical features [b, f]."""
    import jax.numpy as jnp

    mean = (x * real[..., None]).sum(1) / jnp.maximum(real.sum(1, keepdims=True), 1)
    scaled = jnp.clip((words - head["feature_mean"]) / head["feature_spread"], -5, 5)
    both = jnp.concatenate([mean * SPREAD, scaled], axis=1)
    hidden = jnp.tanh(both @ head["hidden.weight"] + head["hidden.bias"])
    return (hidden @ head["out.weight"] + scaled @ head["words.weight"] + head["out.bias"])[:, 0]


def forward(base: Arrays, head: Mapping[str, Any], batch: Batch) -> Any:
    """The logit differences [b] of a batch."""
    x = embed(base, batch.ids, batch.kinds)
    for index in range(depth(base)):
        x = layer(base, head, index, x, batch.real)
    return pool_and_judge(head, x, batch.real, batch.words)


@dataclass(frozen=True)
class Batch:
    """Padded arrays: ids, segments, which are real [b, n], lexical features [b, f]."""

    ids: NDArray[np.int32]
    kinds: NDArray[np.int32]
    real: NDArray[np.bool_]
    words: NDArray[np.float32]


@dataclass(frozen=True)
class Encoded:
    """One triple as the cross-encoder reads it."""

    ids: Sequence[int]
    kinds: Sequence[int]
    words: Sequence[float]


def encode(base: Base, triple: Triple) -> Encoded:
    return Encoded(*base.encode(triple), features(triple))


def pad(rows: Sequence[Encoded], length: int, size: int) -> Batch:
    """`size` rows of `length` tokens; rows that are not there are empty."""
    ids = np.full((size, length), PAD, np.int32)
    kinds, real = np.zeros((size, length), np.int32), np.zeros((size, length), bool)
    words = np.zeros((size, len(FEATURES)), np.float32)
    for i, row in enumerate(rows):
        n = len(row.ids)
        ids[i, :n], kinds[i, :n], real[i, :n], words[i] = row.ids, row.kinds, True, row.words
    return Batch(ids, kinds, real, words)


def save(path: str | Path, head: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Adapters in half precision and the head, with `about` (sources, hashes, figures) inside."""
    from safetensors.numpy import save_file

    kept = {
        k: np.ascontiguousarray(v, dtype=np.float16 if k[0].isdigit() else np.float32)
        for k, v in head.items()
    }
    text = json.dumps({**about, "features": list(FEATURES)}, sort_keys=True)
    save_file(kept, path, metadata={"about": text})


def load(path: str | Path) -> tuple[Arrays, dict[str, Any]]:
    """(head in float32, about). Raises UserError where the features are not this version's."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            about = json.loads((file.metadata() or {}).get("about", "{}"))
            head = {k: np.asarray(file.get_tensor(k), np.float32) for k in file.keys()}  # noqa: SIM118
    except (FileNotFoundError, SafetensorError) as error:
        raise UserError(f"no head of the judge mini at {str(path)!r}: {error}") from None
    if about.get("features") != list(FEATURES):
        raise UserError(
            f"{str(path)!r} was trained on other features than this version has: train it anew "
            "with `python -m ray_jobs.judge_train train=mini`"
        )
    return head, about
