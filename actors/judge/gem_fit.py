"""Training of a Gemma 2 or 3 as a judge: the loop that every worker of `ray_jobs.judge_train` runs.

The loss is that of the verdict's token over the whole vocabulary, which keeps the label mass near
one. Prefix or causal attention is chosen here and stored with the weights. Trained weights are
float32, and the forward pass is bfloat16 if set: at GEM's learning rate of 1e-6 an update is below
the last bit of a bfloat16 weight and would be lost. Frozen weights have the precision of the pass.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from actors.judge.gem import extend_cache, masks, states, window
from actors.judge.gem_shard import load_whole_state, shard, whole_state
from actors.judge.tokens import GemTokens, JudgeMetadata
from mustsee.errors import MustseeError, UserError, need
from mustsee.judge import calibrate
from mustsee.judge.data import LabelledPair
from mustsee.judge.judge import MAX_PROMPT_TOKENS
from mustsee.judge.prompt import prompt_hash, triple

Row = tuple[tuple[int, ...], bool, str]  # ids, label, question's group


@dataclass(frozen=True, kw_only=True)
class GemFit:
    """How a judge is trained."""

    base: str
    """Folder with an instruction-tuned Gemma 2 or 3."""
    attention: Literal["causal", "prefix"] = "prefix"
    """Attention over the prompt: prefix or causal (causal can reuse the states of the
    instructions)."""
    rank: int = 16
    """Rank of the LoRA adapters; 0: train every weight."""
    layers: int | None = None
    """Number of upper layers with adapters; null: all."""
    rate: float = 1e-4
    """Learning rate."""
    steps: int = 1000
    """Training steps."""
    batch: int = 32
    """Prompts in a step, over all workers."""
    passes: int = 1
    """Passes per step, to save memory."""
    warmup: int = 50
    decay: float = 0.0
    every: int = 100
    """Steps between evaluations."""
    patience: int = 5
    """Evaluations without a better dev loss before training stops; 0: never."""
    bf16: bool = True
    """Run the forward pass in bfloat16, learnt weights stay float32; set false on a CPU without
    bfloat16."""
    checkpointing: bool = True
    """Recompute activations to save memory."""
    limit: int = MAX_PROMPT_TOKENS
    """Tokens of the longest prompt; longer ones are left out."""
    seed: int = 0


@dataclass(frozen=True)
class TrainingWorker:
    """Process `rank` of `world`. `wrap`: distributes a model whose adapters are trained; one whose
    every weight is trained is shared among the workers. `report`: receives the figures.
    """

    rank: int = 0
    world: int = 1
    device: str = "cpu"
    wrap: Callable[[Any], Any] = lambda model: model
    report: Callable[[dict[str, Any]], None] = lambda figures: None


def encode_pairs(tokens: GemTokens, pairs: Sequence[LabelledPair], limit: int) -> list[Row]:
    """Prompts with labels; prompts over the limit are left out.

    A pair that is not equivalent gives a prompt for every reference, an equivalent one only for the
    nearest reference.
    """
    from mustsee.judge.mini_fit import nearest

    rows: list[Row] = []
    for pair in pairs:
        for reference in (nearest(pair),) if pair.label else pair.references:
            ids = tokens.prepare(triple(pair.question, pair.candidate, reference)[0]).payload
            if len(ids) <= limit:
                rows.append((ids, pair.label, pair.group))
    return rows


def fit(
    config: GemFit,
    train: Sequence[LabelledPair],
    dev: Sequence[LabelledPair],
    out: str,
    me: TrainingWorker,
) -> None:
    """Train, and write the best checkpoint by dev loss to `out`, beside `metrics.jsonl`.

    A run that was stopped resumes from `out/last.pt`.
    """
    need("train=gem", "mustsee[torch]", "torch", "peft")
    import torch

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    tokens = GemTokens(config.base)
    rows, dev_rows = (
        encode_pairs(tokens, train, config.limit),
        encode_pairs(tokens, dev, config.limit),
    )
    if not rows or not dev_rows:
        raise UserError(
            f"{len(rows)} training and {len(dev_rows)} dev prompts: neither may be empty"
        )
    torch.manual_seed(config.seed)
    shared = config.rank == 0 and me.world > 1
    model = _load(config, shared=shared)
    if shared:
        model = shard(model, me.device, bf16=config.bf16)
    model = model.to(me.device).train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=config.rate, weight_decay=config.decay)
    state = _resume(folder, config, model, optimiser)
    run = model if shared else me.wrap(model)
    began, losses = time.time(), list[float]()
    for step in range(state["step"], config.steps):
        if (
            config.patience and state["stale"] >= config.patience
        ):  # also when a stopped run is resumed
            break
        for group in optimiser.param_groups:
            group["lr"] = config.rate * _schedule(step, config)
        losses.append(
            _step(run, optimiser, trained, _batch(rows, step, config, me), tokens, config)
        )
        if (step + 1) % config.every and step + 1 != config.steps:
            continue
        figures = evaluate(model, dev_rows, tokens, config)
        figures |= {
            "step": step + 1,
            "epoch": round((step + 1) * config.batch / len(rows), 3),
            "train_loss": sum(losses) / len(losses),
            "seconds": round(time.time() - began, 1),
        }
        losses.clear()
        better = figures["dev_loss"] < state["best"]
        state |= {"step": step + 1, "stale": 0 if better else state["stale"] + 1}
        state["best"] = min(state["best"], figures["dev_loss"])
        _keep(folder, config, model, optimiser, state, figures, better=better, rank=me.rank)
        me.report(figures)


def evaluate(model: Any, rows: Sequence[Row], tokens: GemTokens, config: GemFit) -> dict[str, Any]:
    """Dev loss, and F1 and AUC of the label probabilities."""
    import torch

    model.eval()
    diffs, total = list[float](), 0.0
    rows = sorted(rows, key=length)
    with torch.no_grad():
        for at in range(0, len(rows), 32):
            batch = rows[at : at + 32]
            logits, labels = _logits(model, batch, tokens, config)
            total += float(torch.nn.functional.cross_entropy(logits, labels, reduction="sum"))
            two = logits[:, list(tokens.labels)]
            diffs += (two[:, 0] - two[:, 1]).tolist()
    model.train()
    labels, scores = [r[1] for r in rows], [1 / (1 + math.exp(-d)) for d in diffs]
    f1, auc = calibrate.choose(labels, scores).f1, calibrate.auc(labels, scores)
    return {
        "dev_loss": total / len(rows),
        "dev_f1": f1,
        "dev_auc": None if math.isnan(auc) else auc,
    }


def _load(config: GemFit, *, shared: bool) -> Any:
    """Load the base, on the CPU. `shared`: as it is stored, to be made float32 piece by piece."""
    import torch
    from transformers import AutoModelForCausalLM

    frozen = torch.bfloat16 if config.rank and config.bf16 else torch.float32
    model: Any = AutoModelForCausalLM.from_pretrained(
        config.base, dtype="auto" if shared else frozen, attn_implementation="eager"
    )
    model.config.use_cache = False
    if config.rank:
        from peft import LoraConfig, get_peft_model

        depth = model.config.get_text_config().num_hidden_layers
        upper = "|".join(map(str, range(depth)[-(config.layers or depth) :]))
        adapters = LoraConfig(
            r=config.rank,
            lora_alpha=2 * config.rank,
            target_modules=rf".*\.layers\.({upper})\.\w+\.\w+_proj",  # all linear maps
        )
        model = get_peft_model(model, adapters)
    if config.checkpointing:
        newer = getattr(model, "activation_checkpointing_enable", None)
        (newer or model.gradient_checkpointing_enable)({"use_reentrant": False})
        model.enable_input_require_grads()
    return model


def _schedule(step: int, config: GemFit) -> float:
    """Linear warm-up, then linear to zero."""
    rising = min(1.0, (step + 1) / max(config.warmup, 1))
    return rising * max(0.0, 1 - step / config.steps)


def length(row: Row) -> int:
    return len(row[0])


def _batch(rows: Sequence[Row], step: int, config: GemFit, me: TrainingWorker) -> list[Row]:
    """A worker's share of a step: prompts of similar length, so that padding is short. Every epoch
    has an order of its own; an incomplete last batch is left out.
    """
    epoch, place = divmod(step, max(1, len(rows) // config.batch))
    rng = random.Random(f"{config.seed}/gem/epoch/{epoch}")
    order, alike = rng.sample(rows, len(rows)), 16 * config.batch
    for at in range(0, len(order), alike):
        order[at : at + alike] = sorted(order[at : at + alike], key=length)
    batches = [order[at : at + config.batch] for at in range(0, len(order), config.batch)]
    full = [b for b in batches if len(b) == config.batch] or batches
    rng.shuffle(full)
    return full[place][me.rank :: me.world]


def _logits(model: Any, rows: Sequence[Row], tokens: GemTokens, config: GemFit) -> tuple[Any, Any]:
    """Capped float32 logits [b, vocabulary] at the readout position, and label ids [b].

    With causal attention the instructions are run once for all rows, and their gradient is the sum
    over the rows. Not with checkpointing, whose layers keep no states.
    """
    import torch

    first = next(model.parameters())
    kept = config.attention == "causal" and not config.checkpointing
    shared = tokens.prefix_ids() if kept else ()
    past = len(shared)
    width = max(len(ids) for ids, *_ in rows) - past
    ids = torch.full((len(rows), width), tokens.pad)
    real = torch.zeros((len(rows), width), dtype=torch.long)
    for k, (prompt, *_) in enumerate(rows):  # padded on the left, so that readouts are last
        start = width - len(prompt) + past
        ids[k, start:] = torch.tensor(prompt[past:])
        real[k, start:] = 1
    ids, real = ids.to(first.device), real.to(first.device)
    whole = getattr(model, "module", model)
    # A tensor, because with a slice torch would copy the head for every prompt.
    last = torch.tensor([-1], device=first.device)
    with _half(config, first.device):
        # By the model itself, because the distributing wrapper allows one pass a step.
        run = partial(whole, logits_to_keep=last)
        cache = extend_cache(states(run, shared, whole), len(rows)) if shared else None
        out = model(
            input_ids=ids,
            attention_mask=masks(real, past, config.attention, window(whole), torch.float32),
            position_ids=(real.cumsum(1) - 1).clamp(min=0) + past,
            past_key_values=cache,
            use_cache=cache is not None,
            logits_to_keep=last,
        ).logits
    labels = torch.tensor([tokens.labels[0 if label else 1] for _, label, _ in rows])
    return out[:, 0].float(), labels.to(first.device)


def _half(config: GemFit, device: Any) -> Any:
    import torch

    if not config.bf16:
        return contextlib.nullcontext()
    return torch.autocast(device.type, torch.bfloat16)


def _step(
    model: Any, optimiser: Any, trained: Any, rows: Sequence[Row], tokens: GemTokens, config: GemFit
) -> float:
    import torch

    optimiser.zero_grad()
    total = 0.0
    share = math.ceil(len(rows) / config.passes)
    for at in range(0, len(rows), share):
        micro_batch = rows[at : at + share]
        logits, labels = _logits(model, micro_batch, tokens, config)
        loss = torch.nn.functional.cross_entropy(logits, labels, reduction="sum") / len(rows)
        loss.backward()
        total += float(loss.detach())
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimiser.step()
    if not math.isfinite(total):
        raise MustseeError(f"the loss is {total!r}: lower the rate ({config.rate!r})")
    return total


def _resume(folder: Path, config: GemFit, model: Any, optimiser: Any) -> dict[str, Any]:
    import torch

    path = folder / "last.pt"
    if not path.exists():
        return {"step": 0, "best": math.inf, "stale": 0}
    saved = torch.load(path, map_location="cpu", weights_only=True)
    if saved["config"] != json.dumps(asdict(config), sort_keys=True):
        raise UserError(
            f"{str(path)!r} is from a run with other settings: set another out=, or delete it"
        )
    load_whole_state(model, optimiser, saved["model"], saved["optimiser"])
    return saved["state"]


def _keep(
    folder: Path, config: GemFit, model: Any, optimiser: Any, state: dict[str, Any],
    figures: dict[str, Any], *, better: bool, rank: int,
) -> None:  # fmt: skip
    """Write `last.pt` for resuming, `metrics.jsonl`, and the checkpoint if it is the best: the
    first worker does, and the others hand it their shares.
    """
    import torch

    weights, moments = whole_state(model, optimiser)
    if rank != 0:
        return
    trained = {n for n, p in model.named_parameters() if p.requires_grad}
    kept = {n: v for n, v in weights.items() if n in trained}
    saved: dict[str, Any] = {"model": kept, "optimiser": moments, "state": state}
    saved["config"] = json.dumps(asdict(config), sort_keys=True)
    torch.save(saved, folder / "last.new")
    (folder / "last.new").replace(folder / "last.pt")
    with (folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({**figures, "best": better}) + "\n")
    if better:
        save(folder, config, model, weights, figures)


def save(
    folder: Path, config: GemFit, model: Any, weights: Mapping[str, Any], figures: dict[str, Any]
) -> None:
    """Write a plain checkpoint (adapters merged into a copy), its tokenizer, and `judge.json`.

    `weights`: the whole model's.
    """
    import copy
    import shutil

    if config.rank:
        copy.deepcopy(model).float().merge_and_unload().save_pretrained(folder)
    else:
        tied = set(model.all_tied_weights_keys)  # stored once, under the name of their source
        stored = {name: values for name, values in weights.items() if name not in tied}
        model.save_pretrained(folder, state_dict=stored)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                 "tokenizer.model", "generation_config.json"):  # fmt: skip
        if Path(config.base, name).exists():
            shutil.copyfile(Path(config.base, name), folder / name)
    training = {**asdict(config), **figures}
    dtype = "bfloat16" if config.bf16 else "float32"
    JudgeMetadata(
        attention=config.attention, prompt=prompt_hash(), dtype=dtype, training=training
    ).write(folder)
