"""The Gemma decoder in JAX against transformers, on random weights: logits at every position."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from mustsee.errors import UserError
from mustsee.nn.gemma import Gemma, GemmaShape, attention_masks, shared_axis
from tests.support import tiny_gemma

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch")

STRETCHED: dict[str, Any] = {
    "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    }
}


def logits(folder: Path, ids: np.ndarray) -> np.ndarray:
    """The logits of the JAX decoder, float32 `[batch, length, vocabulary]`."""
    model = Gemma.load(str(folder))
    batch, length = ids.shape
    positions = jnp.broadcast_to(jnp.arange(length), ids.shape)
    masks = attention_masks(jnp.ones(ids.shape, bool), positions, model.shape.window)
    cache = model.empty_cache(batch, length)
    hidden, _ = model(model.embed(jnp.asarray(ids)), positions, masks, cache, 0)
    return np.asarray(model.logits(hidden))


def transformers_logits(folder: Path, ids: np.ndarray) -> np.ndarray:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    with torch.no_grad():
        return model(torch.tensor(ids)).logits.numpy()


@pytest.mark.parametrize("kind", ["2", "3", "3 stretched"])
def test_logits_equal_those_of_transformers(kind: str, tmp_path: Path) -> None:
    changed = STRETCHED if kind == "3 stretched" else {}
    folder = tiny_gemma.checkpoint(
        tmp_path, layers=7, third=kind != "2", window=9, spread=0.1, **changed
    )
    ids = np.random.default_rng(0).integers(6, 300, (2, 30))
    expected = transformers_logits(folder, ids)
    assert expected.std() > 0.1
    np.testing.assert_allclose(logits(folder, ids), expected, atol=1e-4)


def test_devices_share_large_matrices_by_whole_heads_where_they_divide() -> None:
    shape = GemmaShape.of({
        "model_type": "gemma2", "hidden_size": 3584, "num_attention_heads": 16,
        "num_key_value_heads": 8, "num_hidden_layers": 42, "vocab_size": 256000,
    })  # fmt: skip
    sizes = {
        "embedding": (256000, 3584), "query": (42, 3584, 4096), "key": (42, 3584, 2048),
        "value": (42, 3584, 2048), "out": (42, 4096, 3584), "gate": (42, 3584, 14336),
        "up": (42, 3584, 14336), "down": (42, 14336, 3584), "mlp_in": (42, 3584), "final": (3584,),
    }  # fmt: skip

    def axes(devices: int) -> dict[str, int | None]:
        return {name: shared_axis(shape, name, size, devices) for name, size in sizes.items()}

    columns, rows = dict.fromkeys(("query", "key", "value", "gate", "up"), 2), {"out": 1, "down": 1}
    norms = dict.fromkeys(("mlp_in", "final"))
    assert axes(4) == axes(8) == {"embedding": 0, **columns, **rows, **norms}
    assert axes(16) == {"embedding": 0, **columns, **rows, **norms, "key": None, "value": None}
    assert set(axes(3).values()) == {None}


def test_old_and_new_configurations_give_the_same_shape() -> None:
    plain = {
        "model_type": "gemma3_text", "hidden_size": 8, "num_attention_heads": 2,
        "num_key_value_heads": 1, "num_hidden_layers": 7, "vocab_size": 9, "sliding_window": 512,
    }  # fmt: skip
    old = {**plain, "rope_theta": 1e6, "rope_local_base_freq": 1e4, "sliding_window_pattern": 6}
    slides = ["sliding_attention"] * 5
    kinds = {"layer_types": [*slides, "full_attention", "sliding_attention"]}
    even = {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}
    new = {**plain, **kinds, "rope_parameters": even}
    assert GemmaShape.of(old) == GemmaShape.of(new) == GemmaShape.of(plain)
    stretched = GemmaShape.of({**old, "rope_scaling": {"rope_type": "linear", "factor": 8.0}})
    assert stretched == GemmaShape.of({**plain, **STRETCHED})
    with pytest.raises(UserError, match="'yarn'"):
        GemmaShape.of({**old, "rope_scaling": {"rope_type": "yarn", "factor": 8.0}})
    with pytest.raises(UserError, match="'llama'"):
        GemmaShape.of(json.loads(json.dumps({**plain, "model_type": "llama"})))
