"""Training the cross-encoder of the judge `mini` on human labels, on two CPU cores in minutes.

Three savings make that possible. The layers below the adapters are run once. Pairs that the words
alone decide with certainty are thinned out, and the ones kept stand for the others by their weight,
so that the loss stays an estimate of the same thing. Batches are of one length.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mustsee.judge import mini as cross
from mustsee.judge.data import LabelledPair
from mustsee.judge.judge import UnjudgeableItem
from mustsee.judge.lexical import FEATURES, token_recall
from mustsee.judge.mini import Base, EncodedTriple
from mustsee.judge.prompt import triple

LENGTHS = (32, 48, 64, 96, 128, 192, 256, 384, 512)


@dataclass(frozen=True, kw_only=True)
class MiniTraining:
    """`layers`: how many upper layers get adapters of this `rank`. `easy_share`: of the pairs that
    words decide (probability outside `easy`), this share is kept.
    """

    layers: int = 3
    rank: int = 8
    epochs: int = 3
    batch: int = 32
    rate: float = 1e-3
    hidden: int = 64
    decay: float = 0.01
    dropout: float = 0.1
    easy: tuple[float, float] = (0.03, 0.985)
    easy_share: float = 0.25
    longest: int = 96
    seed: int = 0


@dataclass(frozen=True)
class Example:
    """One encoded pair; `weight` is the number of pairs that it stands for."""

    encoded: EncodedTriple
    label: float
    weight: float = 1.0


def nearest(pair: LabelledPair) -> str:
    """The reference that shares most words with the candidate: the one that a label is about."""
    return max(pair.references, key=lambda r: (token_recall(pair.candidate, r), -len(r)))


def examples(base: Base, pairs: Sequence[LabelledPair], fit: MiniTraining) -> list[Example]:
    """Encoded and thinned training examples. Long prompts are left out of the training."""
    rows: list[Example] = []
    for pair in pairs:
        cleaned, _ = triple(pair.question, pair.candidate, nearest(pair))
        with contextlib.suppress(UnjudgeableItem):
            rows.append(Example(cross.encode(base, cleaned), float(pair.label)))
    words = np.array([r.encoded.words for r in rows])
    p = logistic(words, np.array([r.label for r in rows]))(words)
    low, high = fit.easy
    kept: list[Example] = []
    rng = random.Random(f"{fit.seed}/mini/thin")
    for row, said in zip(rows, p, strict=True):
        easy = (said > high and row.label == 1) or (said < low and row.label == 0)
        if easy and rng.random() >= fit.easy_share:
            continue
        weight = 1 / fit.easy_share if easy else 1.0
        if len(row.encoded.ids) <= fit.longest:
            kept.append(replace(row, weight=weight))
    return kept


def logistic(words: Any, labels: Any, ridge: float = 1e-3) -> Callable[[Any], Any]:
    """Logistic regression on the lexical features: returns rows -> p(TRUE)."""
    from scipy.optimize import minimize

    mean, spread = words.mean(0), words.std(0) + 1e-6
    z = (words - mean) / spread

    def loss(w: Any) -> tuple[float, Any]:
        logits = z @ w[:-1] + w[-1]
        error = 1 / (1 + np.exp(-logits)) - labels
        value = np.mean(np.logaddexp(0, logits) - labels * logits) + ridge * np.sum(w[:-1] ** 2)
        return float(value), np.append(z.T @ error / len(z) + 2 * ridge * w[:-1], error.mean())

    found: Any = minimize(loss, np.zeros(z.shape[1] + 1), jac=True)
    w = found.x
    return lambda rows: 1 / (1 + np.exp(-((rows - mean) / spread @ w[:-1] + w[-1])))


def initial(base: Base, rows: Sequence[Example], fit: MiniTraining) -> dict[str, Any]:
    """Adapters that change nothing yet, and a small random head."""
    from mustsee.nn.bert import LAYER

    rng = np.random.default_rng(fit.seed)
    params, _ = base.model
    layers = cross.depth(params)
    head: dict[str, Any] = {}
    for index in range(layers - fit.layers, layers):
        for name in cross.MAPS:
            _, into, out = params["layers"][name][0].shape
            down = rng.normal(0, into**-0.5, (into, fit.rank))
            key = f"{index}.{LAYER[name]}"
            head[f"{key}.down"] = down.astype(np.float32)
            head[f"{key}.up"] = np.zeros((fit.rank, out), np.float32)
    words = np.array([r.encoded.words for r in rows], np.float32)
    width = params["norm"][0].shape[0]
    into = width + len(FEATURES)
    head["feature_mean"], head["feature_spread"] = words.mean(0), words.std(0) + 1e-3
    head["hidden.weight"] = rng.normal(0, into**-0.5, (into, fit.hidden)).astype(np.float32)
    head["hidden.bias"] = np.zeros(fit.hidden, np.float32)
    head["out.weight"] = rng.normal(0, fit.hidden**-0.5, (fit.hidden, 1)).astype(np.float32)
    head["words.weight"] = np.zeros((len(FEATURES), 1), np.float32)
    head["out.bias"] = np.zeros(1, np.float32)
    return head


def train(
    base: Base,
    rows: Sequence[Example],
    fit: MiniTraining,
    tell: Callable[[str], None] = print,
    each_epoch: Callable[[int, dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """The trained head (numpy arrays); `each_epoch(epoch, head)` may measure it."""
    import jax
    import optax

    params, shape = base.model
    below = cross.depth(params) - fit.layers
    started = time.process_time()
    states = _lower(shape, params, rows, below)
    tell(f"{len(rows)} pairs through {below} layers: {time.process_time() - started:.0f} CPU s")
    head = initial(base, rows, fit)
    fixed = {k: head.pop(k) for k in ("feature_mean", "feature_spread")}
    steps = fit.epochs * sum(1 for _ in _batches(rows, fit, 0))
    schedule = optax.warmup_cosine_decay_schedule(0.0, fit.rate, min(60, steps // 5 + 1), steps)
    optimiser = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=fit.decay)
    )
    state = optimiser.init(head)

    def loss(head: Any, x: Any, real: Any, words: Any, y: Any, w: Any, key: Any) -> Any:
        for index in range(below, below + fit.layers):
            x = cross.layer(shape, params, head, index, x, real)
        kept = jax.random.bernoulli(key, 1 - fit.dropout, (x.shape[0], 1, x.shape[2]))
        x = x * kept / (1 - fit.dropout)
        logits = cross.pool_and_judge({**head, **fixed}, x, real, words)
        return (w * optax.sigmoid_binary_cross_entropy(logits, y)).sum() / w.sum()

    @jax.jit
    def step(head: Any, state: Any, key: Any, *batch: Any) -> Any:
        value, slope = jax.value_and_grad(loss)(head, *batch, key)
        change, state = optimiser.update(slope, state, head)
        return optax.apply_updates(head, change), state, value

    key, seen = jax.random.key(fit.seed), 0
    for epoch in range(fit.epochs):
        total: list[float] = []
        for picked, length in _batches(rows, fit, epoch):
            key, now = jax.random.split(key)
            head, state, value = step(head, state, now, *_stack(rows, states, picked, length))
            seen += 1
            total.append(float(value))
        spent = time.process_time() - started
        tell(f"epoch {epoch + 1}: loss {np.mean(total):.4f}, {seen} steps, {spent:.0f} CPU s")
        if each_epoch is not None:
            each_epoch(epoch, _plain(head, fixed))
    return _plain(head, fixed)


def words_alone(
    rows: Sequence[Example], fit: MiniTraining, like: Mapping[str, Any], epochs: int = 6
) -> dict[str, Any]:
    """A head that sees the lexical features only, scaled as `like`'s, and not the encoder's states.
    It errs on other pairs than `train`'s does: the two together are better than either.
    """
    import jax
    import jax.numpy as jnp
    import optax

    words = np.array([r.encoded.words for r in rows], np.float32)
    labels = np.array([r.label for r in rows], np.float32)
    weight = np.array([r.weight for r in rows], np.float32)
    rng = np.random.default_rng(fit.seed)
    n = words.shape[1]
    scaled = (words - like["feature_mean"]) / like["feature_spread"]
    scaled = jnp.asarray(np.clip(scaled, -5, 5), jnp.float32)
    head: Any = {
        "hidden.weight": rng.normal(0, n**-0.5, (n, fit.hidden)).astype(np.float32),
        "hidden.bias": np.zeros(fit.hidden, np.float32),
        "out.weight": rng.normal(0, fit.hidden**-0.5, (fit.hidden, 1)).astype(np.float32),
        "words.weight": np.zeros((n, 1), np.float32),
        "out.bias": np.zeros(1, np.float32),
    }
    optimiser = optax.adamw(2e-3, weight_decay=fit.decay)
    state = optimiser.init(head)

    def loss(head: Any, x: Any, y: Any, w: Any, key: Any) -> Any:
        hidden = jnp.tanh(x @ head["hidden.weight"] + head["hidden.bias"])
        kept = jax.random.bernoulli(key, 1 - fit.dropout, hidden.shape)
        hidden = hidden * kept / (1 - fit.dropout)
        logits = (hidden @ head["out.weight"] + x @ head["words.weight"] + head["out.bias"])[:, 0]
        return (w * optax.sigmoid_binary_cross_entropy(logits, y)).sum() / w.sum()

    @jax.jit
    def step(head: Any, state: Any, key: Any, picked: Any) -> Any:
        batch = scaled[picked], jnp.asarray(labels)[picked], jnp.asarray(weight)[picked]
        change, state = optimiser.update(jax.grad(loss)(head, *batch, key), state, head)
        return optax.apply_updates(head, change), state

    key, size = jax.random.key(fit.seed), min(2 * fit.batch, len(rows))
    for _ in range(epochs):
        order = rng.permutation(len(rows))
        for at in range(0, len(rows) - size + 1, size):
            key, now = jax.random.split(key)
            head, state = step(head, state, now, order[at : at + size])
    return _plain(head, {})


def average_heads(both: Mapping[str, Any], alone: Mapping[str, Any]) -> dict[str, Any]:
    """One head whose logit is the mean of `train`'s and `words_alone`'s."""
    n, width = len(alone["hidden.weight"]), len(both["hidden.weight"])
    unseen = np.zeros((width - n, alone["hidden.weight"].shape[1]), np.float32)
    return {
        **both,
        "hidden.weight": np.hstack(
            [both["hidden.weight"], np.vstack([unseen, alone["hidden.weight"]])]
        ),
        "hidden.bias": np.hstack([both["hidden.bias"], alone["hidden.bias"]]),
        "out.weight": np.vstack([both["out.weight"], alone["out.weight"]]) / 2,
        "words.weight": (both["words.weight"] + alone["words.weight"]) / 2,
        "out.bias": (both["out.bias"] + alone["out.bias"]) / 2,
    }


def _plain(head: Any, fixed: Any) -> dict[str, Any]:
    return {k: np.asarray(v) for k, v in {**head, **fixed}.items()}


def bucket(length: int) -> int:
    return next(n for n in LENGTHS if n >= length)


def _lower(shape: Any, params: Any, rows: Sequence[Example], layers: int) -> list[Any]:
    """The states below the adapters of each row, in half precision."""
    import jax

    from mustsee.nn import bert

    @jax.jit
    def run(ids: Any, kinds: Any, real: Any) -> Any:
        x = bert.embed(params, ids, kinds, shape)
        for index in range(layers):
            x = cross.layer(shape, params, {}, index, x, real)
        return x

    order = sorted(range(len(rows)), key=lambda i: len(rows[i].encoded.ids))
    found: list[Any] = [None] * len(rows)
    for at in range(0, len(order), 64):
        here = order[at : at + 64]
        length = bucket(max(len(rows[i].encoded.ids) for i in here))
        batch = cross.pad([rows[i].encoded for i in here], length, 64)
        states = np.asarray(run(batch.ids, batch.kinds, batch.real)).astype(np.float16)
        for k, i in enumerate(here):
            found[i] = states[k, : len(rows[i].encoded.ids)].copy()
    return found


def _batches(
    rows: Sequence[Example], fit: MiniTraining, epoch: int
) -> Iterator[tuple[list[int], int]]:
    """(rows, length): full batches of like length, in an order of their own each epoch."""
    rng = random.Random(f"{fit.seed}/mini/epoch/{epoch}")
    order = list(range(len(rows)))
    rng.shuffle(order)
    found: list[tuple[list[int], int]] = []
    for at in range(0, len(order), fit.batch * 16):
        chunk = sorted(order[at : at + fit.batch * 16], key=lambda i: len(rows[i].encoded.ids))
        for k in range(0, len(chunk), fit.batch):
            picked = chunk[k : k + fit.batch]
            if len(picked) == fit.batch:
                found.append((picked, bucket(len(rows[picked[-1]].encoded.ids))))
    rng.shuffle(found)
    yield from found


def _stack(rows: Sequence[Example], states: Any, picked: Sequence[int], length: int) -> Any:
    batch = cross.pad([rows[i].encoded for i in picked], length, len(picked))
    x = np.zeros((len(picked), length, states[picked[0]].shape[1]), np.float32)
    for k, i in enumerate(picked):
        x[k, : len(states[i])] = states[i]
    labels = np.array([rows[i].label for i in picked], np.float32)
    return (
        x,
        batch.real,
        batch.words,
        labels,
        np.array([rows[i].weight for i in picked], np.float32),
    )
