"""The Llama decoder in JAX against transformers, on random weights written as GGUF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mustsee.errors import UserError
from mustsee.nn.llama import Llama, make_tokenizer
from tests.support import tiny_gguf

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch")

HEADS, KV_HEADS, WIDTH, LAYERS, INNER = 6, 2, 48, 3, 64
NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}  # fmt: skip
PREFIX, TEXTS = "a cab", [" bad", " a", "dab cab a bad", " cab"]


def metadata(**changes: Any) -> dict[str, Any]:
    letters = ["<|end|>", "Ġ", *"abcd", "ab", "ca", "Ġa", "ad", "cab"]
    return {
        "general.architecture": "llama",
        "llama.block_count": LAYERS,
        "llama.embedding_length": WIDTH,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 1e4,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": letters,
        "tokenizer.ggml.token_type": [3, *[1] * (len(letters) - 1)],
        "tokenizer.ggml.merges": ["a b", "c a", "Ġ a", "a d", "ca b"],
        **changes,
    }


def models(folder: Path) -> tuple[Any, Llama]:
    """The same random weights in transformers, and read from a GGUF file."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=11, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, rms_norm_eps=1e-5,
        tie_word_embeddings=True, initializer_range=0.3,
    )  # fmt: skip
    theirs = LlamaForCausalLM(config).eval()
    weights = {name: tensor.numpy() for name, tensor in theirs.state_dict().items()}
    tensors = {
        "token_embd.weight": tiny_gguf.floats(weights["model.embed_tokens.weight"]),
        "output_norm.weight": tiny_gguf.floats(weights["model.norm.weight"]),
    }
    for layer in range(LAYERS):
        for long, short in NAMES.items():
            matrix = weights[f"model.layers.{layer}.{long}.weight"]
            if short in ("attn_q", "attn_k"):  # as the converter to GGUF orders rotary pairs
                heads = HEADS if short == "attn_q" else KV_HEADS
                halves = matrix.reshape(heads, 2, len(matrix) // heads // 2, WIDTH)
                matrix = halves.swapaxes(1, 2).reshape(matrix.shape)
            tensors[f"blk.{layer}.{short}.weight"] = tiny_gguf.floats(matrix)
    return theirs, Llama.load(tiny_gguf.write(folder / "m.gguf", metadata(), tensors))


def test_likelihoods_equal_those_of_transformers(tmp_path: Path) -> None:
    theirs, ours = models(tmp_path)
    tokenizer = make_tokenizer(metadata())
    before = tokenizer.encode(PREFIX).ids
    expected: list[float] = []
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        with torch.no_grad():
            logs = theirs(torch.tensor([before + ids])).logits[0].log_softmax(-1)
        expected.append(float(np.mean([logs[len(before) - 1 + n, i] for n, i in enumerate(ids)])))
    assert np.std(expected) > 0.1
    np.testing.assert_allclose(ours.score(PREFIX, TEXTS), expected, atol=1e-4)


def test_continuations_do_not_see_each_other(tmp_path: Path) -> None:
    _, ours = models(tmp_path)
    together = ours.score(PREFIX, TEXTS)
    np.testing.assert_allclose(together, [ours.score(PREFIX, [t])[0] for t in TEXTS], atol=1e-4)
    many = [" cab bad" * n for n in range(1, 60)]  # more than one pass holds
    np.testing.assert_allclose(
        ours.score(PREFIX, many)[:1], ours.score(PREFIX, many[:1]), atol=1e-4
    )
    assert len(ours.score("a bad cab " * 900, TEXTS)) == len(TEXTS)


def test_the_tokenizer_merges_and_never_reads_special_tokens_in_pieces() -> None:
    tokenizer = make_tokenizer(metadata())
    assert tokenizer.encode("cab a").tokens == ["c", "ab", "Ġa"]
    assert tokenizer.encode("<|end|>").ids == [0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"general.architecture": "qwen2"}, "only llama"),
        ({"tokenizer.ggml.pre": "llama-bpe"}, "smollm"),
        ({"llama.rope.scaling.type": "yarn"}, "scaled"),
        ({}, "lacks 'blk.0.attn_q.weight'"),
    ],
)
def test_other_models_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tiny_gguf.write(tmp_path / "m.gguf", metadata(**changes), {})
    with pytest.raises(UserError, match=message):
        Llama.load(path)
