"""Training every weight of a Gemma on several workers, each of which holds a share of it.

Weights, gradients and both moments of AdamW are float32: 16 bytes a weight, 148 GB of Gemma 2 9B.
Each worker holds its share of them; the layers are gathered one after the other, in bfloat16 if
set, as they are needed (PyTorch's `fully_shard`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mustsee.errors import UserError

GB = 1e9
TRAINED_BYTES = 16  # bytes of a weight that is trained: itself, its gradient, two moments
GATHERED_BYTES = 8  # bytes of a gathered weight: bfloat16 and float32, weight and gradient
FROZEN_BYTES = 2  # bytes of a weight beside adapters
STATES_BYTES = 2  # bytes of a hidden state
SCORES_BYTES = 8  # bytes of an attention score, forward and backward


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    """Numbers of a model. `gathered`: weights outside of layers, and of two layers."""

    weights: int
    gathered: int
    layers: int
    hidden: int
    heads: int


@dataclass(frozen=True, kw_only=True)
class TrainingMemory:
    """Gigabytes that one worker needs: what it keeps, the layers that it gathers, activations."""

    kept: float
    gathered: float
    activations: float

    @property
    def total(self) -> float:
        return self.kept + self.gathered + self.activations


def read_size(base: str) -> ModelSize:
    """Count the weights of a checkpoint by its configuration, without loading them."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config: Any = AutoConfig.from_pretrained(base)
    with torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(config)
    layers = decoder_layers(model)
    weights, of_layer = count(model), count(layers[0])
    text = config.get_text_config()
    return ModelSize(
        weights=weights,
        gathered=weights - of_layer * len(layers) + 2 * of_layer,
        layers=len(layers),
        hidden=text.hidden_size,
        heads=text.num_attention_heads,
    )


def estimate_memory(
    size: ModelSize, *, workers: int, adapters: bool, rows: int, tokens: int, checkpointing: bool
) -> TrainingMemory:
    """Return what a worker needs for `rows` prompts of `tokens` in one pass; about, for
    activations.
    """
    if adapters:
        kept, gathered = FROZEN_BYTES * size.weights, 0.0
    else:
        kept = TRAINED_BYTES * size.weights / workers
        gathered = GATHERED_BYTES * size.gathered if workers > 1 else 0.0
    states = STATES_BYTES * rows * tokens * size.hidden
    scores = SCORES_BYTES * rows * size.heads * tokens**2
    of_layer = 16 * states + scores  # the projections of a layer and its attention
    activations = size.layers * states + of_layer if checkpointing else size.layers * of_layer
    return TrainingMemory(kept=kept / GB, gathered=gathered / GB, activations=activations / GB)


def check_memory(needed: TrainingMemory, size: ModelSize, workers: int, gpu_gb: float) -> None:
    """Raise UserError if a worker needs more than its GPU has."""
    if needed.total <= gpu_gb:
        return
    fitting = math.inf
    left = gpu_gb - needed.gathered - needed.activations
    if needed.gathered and left > 0:
        fitting = math.ceil(TRAINED_BYTES * size.weights / GB / left)
    more = "" if math.isinf(fitting) else f"; {fitting} workers would do (train.workers=)"
    raise UserError(
        f"each of {workers} workers needs about {needed.total:.0f} GB ({describe(needed)}), and "
        f"its GPU has {gpu_gb:g} (train.gpu_gb){more}; more train.fit.passes need less"
    )


def describe(needed: TrainingMemory) -> str:
    return (
        f"{needed.kept:.3g} GB of weights, gradients and moments, {needed.gathered:.3g} of "
        f"gathered layers, {needed.activations:.3g} of activations"
    )


def decoder_layers(model: Any) -> Any:
    """The list of a model's decoder layers."""
    import torch

    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList)]
    return max(lists, key=len)


def count(module: Any) -> int:
    return sum(weights.numel() for weights in module.parameters())


def shard(model: Any, device: str, *, bf16: bool) -> Any:
    """Keep this worker's share of a model on its device, in float32, and gather each layer where it
    is needed, in bfloat16 if set. `device`: "cpu", "cuda:0".
    """
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    kind = torch.device(device).type
    mesh = init_device_mesh(kind, (torch.distributed.get_world_size(),))
    policy = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16 if bf16 else None, reduce_dtype=torch.float32
    )
    for part in (*decoder_layers(model), model):
        # A whole model in float32 would not fit: one layer at a time.
        part.float()
        fully_shard(part, mesh=mesh, mp_policy=policy)
    return model.to(device)


def whole_state(model: Any, optimiser: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the states of a model and its optimiser in this process's memory; of a sharded one in
    the first worker's, while all take part.
    """
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    return get_state_dict(model, optimiser, options=options)


def load_whole_state(
    model: Any, optimiser: Any, state: Mapping[str, Any], moments: Mapping[str, Any]
) -> None:
    """Give a model and its optimiser the states of `whole_state`, also if they are sharded."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_state_dict

    set_state_dict(
        model,
        optimiser,
        model_state_dict=dict(state),
        optim_state_dict=dict(moments),
        options=StateDictOptions(full_state_dict=True, strict=False),
    )
