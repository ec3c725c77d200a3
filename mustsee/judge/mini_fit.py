"""Train the cross-encoder of the judge `mini` on human labels, on two CPU cores in minutes.

Three savings make that possible. The layers below the adapters run once per pair. Pairs that the
words alone decide are thinned out, and the remaining ones get a higher weight, so that the expected
loss is the same. Batches hold pairs of similar length.
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
    """Settings of the training.

    `layers` is the number of upper layers with adapters of this `rank`. Of the pairs that the words
    decide (probability outside `easy`), the share `easy_share` is kept. Prompts of more than
    `longest` tokens are left out.
    """

    layers: int = 3
    """Number of upper layers with adapters."""
    rank: int = 8
    """Rank of the adapters."""
    epochs: int = 3
    """Passes over the training set; of several the best by dev AUC is kept."""
    batch: int = 32
    rate: float = 1e-3
    """Learning rate."""
    hidden: int = 64
    decay: float = 0.01
    dropout: float = 0.1
    """Share of activations dropped in training."""
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
    """Return the reference that shares most words with the candidate: the label is about it."""
    return max(pair.references, key=lambda r: (token_recall(pair.candidate, r), -len(r)))


def examples(base: Base, pairs: Sequence[LabelledPair], fit: MiniTraining) -> list[Example]:
    """Return the encoded training examples, thinned and without long prompts."""
    rows: list[Example] = []
    for pair in pairs:
        cleaned, _ = triple(pair.question, pair.candidate, nearest(pair))
        with contextlib.suppress(UnjudgeableItem):
            rows.append(Example(cross.encode(base, cleaned), float(pair.label)))
    words = np.array([r.encoded.words for r in rows])
    p = logistic(words, np.array([r.label for r in rows]))(words)
    low, high = fit.easy
    thinned: list[Example] = []
    rng = random.Random(f"{fit.seed}/mini/thin")
    for row, probability in zip(rows, p, strict=True):
        easy = (probability > high and row.label == 1) or (probability < low and row.label == 0)
        if easy and rng.random() >= fit.easy_share:
            continue
        weight = 1 / fit.easy_share if easy else 1.0
        if len(row.encoded.ids) <= fit.longest:
            thinned.append(replace(row, weight=weight))
    return thinned


def logistic(words: Any, labels: Any, ridge: float = 1e-3) -> Callable[[Any], Any]:
    """Fit a logistic regression on the lexical features; return a function rows -> p(TRUE)."""
    from scipy.optimize import minimize

    mean, spread = words.mean(0), words.std(0) + 1e-6
    z = (words - mean) / spread

    def loss(w: Any) -> tuple[float, Any]:
        logits = z @ w[:-1] + w[-1]
        error = 1 / (1 + np.exp(-logits)) - labels
        value = np.mean(np.logaddexp(0, logits) - labels * logits) + ridge * np.sum(w[:-1] ** 2)
        return float(value), np.append(z.T @ error / len(z) + 2 * ridge * w[:-1], error.mean())

    optimum: Any = minimize(loss, np.zeros(z.shape[1] + 1), jac=True)
    w = optimum.x
    return lambda rows: 1 / (1 + np.exp(-((rows - mean) / spread @ w[:-1] + w[-1])))


def initial(base: Base, rows: Sequence[Example], fit: MiniTraining) -> dict[str, Any]:
    """Return the initial parameters: adapters that change nothing, and a small random head."""
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
    head["feature_mean"], head["feature_spread"] = words.mean(0), words.std(0) + 1e-3
    return head | _random_head(rng, width + len(FEATURES), fit.hidden)


def _random_head(rng: np.random.Generator, into: int, hidden: int) -> dict[str, Any]:
    """Return a small random head over `into` values, of which the last are the features."""
    return {
        "hidden.weight": rng.normal(0, into**-0.5, (into, hidden)).astype(np.float32),
        "hidden.bias": np.zeros(hidden, np.float32),
        "out.weight": rng.normal(0, hidden**-0.5, (hidden, 1)).astype(np.float32),
        "words.weight": np.zeros((len(FEATURES), 1), np.float32),
        "out.bias": np.zeros(1, np.float32),
    }


def train(
    base: Base,
    rows: Sequence[Example],
    fit: MiniTraining,
    log: Callable[[str], None] = print,
    each_epoch: Callable[[int, dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Return the trained parameters as numpy arrays.

    `each_epoch(epoch, head)` is called after every epoch, with those so far.
    """
    import jax
    import optax

    params, shape = base.model
    below = cross.depth(params) - fit.layers
    started = time.process_time()
    states = _states_below_adapters(shape, params, rows, below)
    log(f"{len(rows)} pairs through {below} layers: {time.process_time() - started:.0f} CPU s")
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
        dropout_mask = jax.random.bernoulli(key, 1 - fit.dropout, (x.shape[0], 1, x.shape[2]))
        x = x * dropout_mask / (1 - fit.dropout)
        logits = cross.pool_and_judge({**head, **fixed}, x, real, words)
        return (w * optax.sigmoid_binary_cross_entropy(logits, y)).sum() / w.sum()

    @jax.jit
    def step(head: Any, state: Any, key: Any, *batch: Any) -> Any:
        value, slope = jax.value_and_grad(loss)(head, *batch, key)
        change, state = optimiser.update(slope, state, head)
        return optax.apply_updates(head, change), state, value

    key, steps_done = jax.random.key(fit.seed), 0
    for epoch in range(fit.epochs):
        total: list[float] = []
        for picked, length in _batches(rows, fit, epoch):
            key, step_key = jax.random.split(key)
            head, state, value = step(head, state, step_key, *_stack(rows, states, picked, length))
            steps_done += 1
            total.append(float(value))
        cpu_s = time.process_time() - started
        log(f"epoch {epoch + 1}: loss {np.mean(total):.4f}, {steps_done} steps, {cpu_s:.0f} CPU s")
        if each_epoch is not None:
            each_epoch(epoch, _as_numpy(head, fixed))
    return _as_numpy(head, fixed)


def words_alone(
    rows: Sequence[Example], fit: MiniTraining, scaled_as: Mapping[str, Any], epochs: int = 6
) -> dict[str, Any]:
    """Train a head on the lexical features alone, standardised as those of the head `scaled_as`.

    Its errors differ from those of `train`'s head, so that the average of both is better.
    """
    import jax
    import jax.numpy as jnp
    import optax

    words = np.array([r.encoded.words for r in rows], np.float32)
    labels = np.array([r.label for r in rows], np.float32)
    weight = np.array([r.weight for r in rows], np.float32)
    rng = np.random.default_rng(fit.seed)
    scaled = (words - scaled_as["feature_mean"]) / scaled_as["feature_spread"]
    scaled = jnp.asarray(np.clip(scaled, -5, 5), jnp.float32)
    head: Any = _random_head(rng, len(FEATURES), fit.hidden)
    optimiser = optax.adamw(2e-3, weight_decay=fit.decay)
    state = optimiser.init(head)

    def loss(head: Any, x: Any, y: Any, w: Any, key: Any) -> Any:
        hidden = jnp.tanh(x @ head["hidden.weight"] + head["hidden.bias"])
        dropout_mask = jax.random.bernoulli(key, 1 - fit.dropout, hidden.shape)
        hidden = hidden * dropout_mask / (1 - fit.dropout)
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
        for start in range(0, len(rows) - size + 1, size):
            key, step_key = jax.random.split(key)
            head, state = step(head, state, step_key, order[start : start + size])
    return _as_numpy(head, {})


def average_heads(both: Mapping[str, Any], alone: Mapping[str, Any]) -> dict[str, Any]:
    """Return one head whose logit is the mean of those of `train` and `words_alone`."""
    n, width = len(alone["hidden.weight"]), len(both["hidden.weight"])
    no_states = np.zeros((width - n, alone["hidden.weight"].shape[1]), np.float32)
    return {
        **both,
        "hidden.weight": np.hstack(
            [both["hidden.weight"], np.vstack([no_states, alone["hidden.weight"]])]
        ),
        "hidden.bias": np.hstack([both["hidden.bias"], alone["hidden.bias"]]),
        "out.weight": np.vstack([both["out.weight"], alone["out.weight"]]) / 2,
        "words.weight": (both["words.weight"] + alone["words.weight"]) / 2,
        "out.bias": (both["out.bias"] + alone["out.bias"]) / 2,
    }


def _as_numpy(head: Any, fixed: Any) -> dict[str, Any]:
    return {k: np.asarray(v) for k, v in {**head, **fixed}.items()}


def bucket(length: int) -> int:
    """Return the smallest padded length that holds `length` tokens."""
    return next(n for n in LENGTHS if n >= length)


def _states_below_adapters(
    shape: Any, params: Any, rows: Sequence[Example], layers: int
) -> list[Any]:
    """Return the states of each row below the adapters [tokens, width], in float16."""
    import jax

    from mustsee.nn import bert

    @jax.jit
    def run(ids: Any, kinds: Any, real: Any) -> Any:
        x = bert.embed(params, ids, kinds, shape)
        for index in range(layers):
            x = cross.layer(shape, params, {}, index, x, real)
        return x

    order = sorted(range(len(rows)), key=lambda i: len(rows[i].encoded.ids))
    states_by_row: list[Any] = [None] * len(rows)
    for start in range(0, len(order), 64):
        indices = order[start : start + 64]
        length = bucket(max(len(rows[i].encoded.ids) for i in indices))
        batch = cross.pad([rows[i].encoded for i in indices], length, 64)
        states = np.asarray(run(batch.ids, batch.kinds, batch.real)).astype(np.float16)
        for k, i in enumerate(indices):
            states_by_row[i] = states[k, : len(rows[i].encoded.ids)].copy()
    return states_by_row


def _batches(
    rows: Sequence[Example], fit: MiniTraining, epoch: int
) -> Iterator[tuple[list[int], int]]:
    """Yield (row indices, padded length) of full batches, in a new order each epoch."""
    rng = random.Random(f"{fit.seed}/mini/epoch/{epoch}")
    order = list(range(len(rows)))
    rng.shuffle(order)
    batches: list[tuple[list[int], int]] = []
    for start in range(0, len(order), fit.batch * 16):
        chunk = sorted(
            order[start : start + fit.batch * 16], key=lambda i: len(rows[i].encoded.ids)
        )
        for k in range(0, len(chunk), fit.batch):
            picked = chunk[k : k + fit.batch]
            if len(picked) == fit.batch:
                batches.append((picked, bucket(len(rows[picked[-1]].encoded.ids))))
    rng.shuffle(batches)
    yield from batches


def _stack(rows: Sequence[Example], states: Any, picked: Sequence[int], length: int) -> Any:
    batch = cross.pad([rows[i].encoded for i in picked], length, len(picked))
    x = np.zeros((len(picked), length, states[picked[0]].shape[1]), np.float32)
    for k, i in enumerate(picked):
        x[k, : len(states[i])] = states[i]
    labels = np.array([rows[i].label for i in picked], np.float32)
    weights = np.array([rows[i].weight for i in picked], np.float32)
    return x, batch.real, batch.words, labels, weights
