"""The judge `mini`, a small cross-encoder: MiniLM reads question, candidate and reference together.

The published sentence encoder is unchanged. Training adds low-rank adapters (Hu et al. 2021) to the
linear maps of the upper layers, and a head over the mean of the last states and the lexical
features. Adapters and head are a file below 1 MB; the encoder is also used for embeddings. Layers
run one by one, so that training can cache the states below the first adapter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import UserError
from mustsee.judge.judge import UnjudgeableItem
from mustsee.judge.lexical import FEATURES, features
from mustsee.judge.prompt import Triple

Arrays = dict[str, Any]
MAPS = ("query", "key", "value", "out", "up", "down")  # the linear maps in `bert.LAYER`
CLS, SEP, PAD = 101, 102, 0  # of the uncased BERT vocabulary
MAX_TOKENS = 512  # positions of the encoder
ADAPTER_SCALE = 2.0  # factor of the adapters' product
STATE_SCALE = 4.0  # factor of the mean state beside the standardised features


@dataclass(frozen=True)
class Base:
    """The MiniLM checkpoint in `folder`: its weights [name -> array] and tokenizer."""

    folder: str

    @cached_property
    def model(self) -> tuple[Arrays, Any]:
        """`bert`'s parameters and shape. Raises UserError if the checkpoint does not load."""
        from mustsee.nn import bert

        return bert.read(Path(self.folder))

    @cached_property
    def tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer: Any = Tokenizer.from_file(str(Path(self.folder, "tokenizer.json")))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True  # so that "[SEP]" in an answer is plain text
        return tokenizer

    @cached_property
    def digest(self) -> str:
        names = ("model.safetensors", "tokenizer.json")
        total = hashlib.sha256()
        for name in names:
            total.update(hashlib.sha256(Path(self.folder, name).read_bytes()).digest())
        return total.hexdigest()

    def encode(self, triple: Triple) -> tuple[list[int], list[int]]:
        """Return (token ids, segment ids) of question, candidate and reference, in this order.

        Raises UnjudgeableItem if there are more than `MAX_TOKENS`; nothing is truncated.
        """
        texts = [triple.question, triple.candidate, triple.reference]
        encodings = self.tokenizer.encode_batch(texts, add_special_tokens=False)
        ids, kinds = [CLS], [0]
        for kind, encoding in zip((0, 1, 1), encodings, strict=True):
            ids += [*encoding.ids, SEP]
            kinds += [kind] * (len(encoding.ids) + 1)
        if len(ids) > MAX_TOKENS:
            raise UnjudgeableItem(
                f"the prompt has {len(ids)} tokens, the limit is {MAX_TOKENS}: shorten the "
                "question or the reference (the candidate is cut at 100 words)"
            )
        return ids, kinds


def layer(shape: Any, base: Arrays, head: Mapping[str, Any], index: int, x: Any, real: Any) -> Any:
    """Run one encoder layer with its adapters: `x` [b, n, d], `real` [b, n] true for tokens."""
    from mustsee.nn import bert

    weights = {name: tuple(p[index] for p in tensors) for name, tensors in base["layers"].items()}
    for name in MAPS:
        key = f"{index}.{bert.LAYER[name]}"
        if f"{key}.down" in head:
            weights[name] += (head[f"{key}.down"], head[f"{key}.up"] * ADAPTER_SCALE)
    return bert.layer(x, weights, real, shape)


def depth(base: Arrays) -> int:
    """Return the number of encoder layers."""
    return int(base["layers"]["query"][0].shape[0])


def pool_and_judge(head: Mapping[str, Any], x: Any, real: Any, words: Any) -> Any:
    """Return logit(TRUE) - logit(FALSE) [b] from the last states and the features [b, f]."""
    import jax.numpy as jnp

    mean = (x * real[..., None]).sum(1) / jnp.maximum(real.sum(1, keepdims=True), 1)
    scaled = jnp.clip((words - head["feature_mean"]) / head["feature_spread"], -5, 5)
    both = jnp.concatenate([mean * STATE_SCALE, scaled], axis=1)
    hidden = jnp.tanh(both @ head["hidden.weight"] + head["hidden.bias"])
    return (hidden @ head["out.weight"] + scaled @ head["words.weight"] + head["out.bias"])[:, 0]


def forward(shape: Any, base: Arrays, head: Mapping[str, Any], batch: Batch) -> Any:
    """Return the logit differences [b] of a batch."""
    import jax
    import jax.numpy as jnp

    from mustsee.nn import bert

    with jax.default_matmul_precision("highest"):
        ids, kinds = jnp.asarray(batch.ids), jnp.asarray(batch.kinds)
        x = bert.embed(base, ids, kinds, shape)
        for index in range(depth(base)):
            x = layer(shape, base, head, index, x, batch.real)
        return pool_and_judge(head, x, batch.real, batch.words)


class Batch(NamedTuple):
    """Padded arrays: token ids, segments and token mask [b, n], lexical features [b, f]."""

    ids: NDArray[np.int32]
    kinds: NDArray[np.int32]
    real: NDArray[np.bool_]
    words: NDArray[np.float32]


@dataclass(frozen=True)
class EncodedTriple:
    """One encoded triple: token ids, segment ids and lexical features."""

    ids: Sequence[int]
    kinds: Sequence[int]
    words: Sequence[float]


def encode(base: Base, triple: Triple) -> EncodedTriple:
    return EncodedTriple(*base.encode(triple), features(triple))


def pad(rows: Sequence[EncodedTriple], length: int, size: int) -> Batch:
    """Return a batch of `size` rows of `length` tokens; missing rows are all padding."""
    ids = np.full((size, length), PAD, np.int32)
    kinds, real = np.zeros((size, length), np.int32), np.zeros((size, length), bool)
    words = np.zeros((size, len(FEATURES)), np.float32)
    for i, row in enumerate(rows):
        n = len(row.ids)
        ids[i, :n], kinds[i, :n], real[i, :n], words[i] = row.ids, row.kinds, True, row.words
    return Batch(ids, kinds, real, words)


def save(path: str | Path, head: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Write adapters (float16) and head (float32), with `about` (sources, hashes, figures)."""
    from safetensors.numpy import save_file

    tensors = {
        k: np.ascontiguousarray(v, dtype=np.float16 if k[0].isdigit() else np.float32)
        for k, v in head.items()
    }
    text = json.dumps({**about, "features": list(FEATURES)}, sort_keys=True)
    save_file(tensors, path, metadata={"about": text})


def load(path: str | Path) -> tuple[Arrays, dict[str, Any]]:
    """Return (head in float32, about). Raises UserError if its features are not `FEATURES`."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            about = json.loads((file.metadata() or {}).get("about", "{}"))
            head = {k: np.asarray(file.get_tensor(k), np.float32) for k in file.keys()}  # noqa: SIM118
    except (FileNotFoundError, SafetensorError) as error:
        raise UserError(
            f"no head of the judge mini at {str(path)!r} ({error}): set head= to a file of "
            "`python -m ray_jobs.judge_train train=mini`"
        ) from None
    if about.get("features") != list(FEATURES):
        raise UserError(
            f"{str(path)!r} was trained on other features than this version's: train it again "
            "with `python -m ray_jobs.judge_train train=mini`"
        )
    return head, about
