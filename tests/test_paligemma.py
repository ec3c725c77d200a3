"""PaliGemma in JAX gives what transformers gives, on tiny random checkpoints."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longshot.errors import BadRow, UserError
from longshot.nn.paligemma import Captioner, Decoding
from longshot.nn.siglip import pixels
from tests.tiny_paligemma import paligemma

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module", params=[True, False], ids=["paligemma2", "paligemma"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return paligemma(tmp_path_factory.mktemp("paligemma"), second=request.param)


@pytest.fixture(scope="module")
def captioner(folder: Path) -> Captioner:
    return Captioner.load(str(folder), dtype="float32", batches=(1, 4))


def jpeg(seed: int) -> bytes:
    from PIL import Image

    noise = np.random.default_rng(seed).integers(0, 255, (9, 13, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(noise).resize((130, 90)).save(out, "JPEG")
    return out.getvalue()


def reference(folder: Path, pictures: Any, prompt: Any, **options: Any) -> Any:
    """transformers' inputs for the same pictures and prompt."""
    from transformers import PaliGemmaForConditionalGeneration

    model = PaliGemmaForConditionalGeneration.from_pretrained(folder).eval()
    patches = (model.config.vision_config.image_size // model.config.vision_config.patch_size) ** 2
    ids = [model.config.image_token_id] * patches + prompt.tolist()
    inputs = {
        "input_ids": torch.tensor([ids] * len(pictures)),
        "pixel_values": torch.tensor(pictures.transpose(0, 3, 1, 2)),
        "attention_mask": torch.ones(len(pictures), len(ids), dtype=torch.long),
        "token_type_ids": torch.zeros(len(pictures), len(ids), dtype=torch.long),
    }
    with torch.no_grad():
        if options:
            return model.generate(**inputs, **options)[:, len(ids) :].numpy()
        return model(**inputs).logits[:, patches:].numpy()


def test_logits_and_greedy_tokens_are_transformers(folder: Path, captioner: Captioner) -> None:
    from flax import nnx

    pictures = pixels([jpeg(1), jpeg(2), jpeg(3)], captioner.size)
    prompt = captioner.tokens("what colour is the house")
    model = nnx.merge(captioner._graph, captioner._state)
    ours = np.asarray(model.prompt_logits(pictures, prompt))
    theirs = reference(folder, pictures, prompt)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    expected = reference(
        folder, pictures, prompt, max_new_tokens=12, do_sample=False, min_new_tokens=0
    )
    ids = captioner.generate(pictures, prompt, Decoding(max_tokens=12))
    for row, wanted in zip(ids, expected.tolist(), strict=True):
        assert row == (wanted[: wanted.index(1)] if 1 in wanted else wanted)


def test_a_picture_has_the_same_caption_in_any_batch(captioner: Captioner) -> None:
    jpegs = [jpeg(n) for n in range(6)]
    together = captioner.caption(jpegs, "what", Decoding(max_tokens=8))
    assert [captioner.caption([j], "what", Decoding(max_tokens=8))[0] for j in jpegs] == together
    assert captioner.compiled <= 6


def test_drawing_follows_the_seed(captioner: Captioner) -> None:
    jpegs = [jpeg(1), jpeg(1)]
    hot = Decoding(max_tokens=8, temperature=1.5, seed=3)
    first = captioner.caption(jpegs, "what", hot)
    assert captioner.caption(jpegs, "what", hot) == first
    assert first[0] != first[1]
    assert (
        captioner.caption(jpegs, "what", Decoding(max_tokens=8, temperature=1.5, seed=4)) != first
    )


def test_what_is_no_picture_is_said(captioner: Captioner) -> None:
    with pytest.raises(BadRow, match="picture 1 of 2"):
        captioner.caption([jpeg(1), b"no picture"], "what")
    assert captioner.caption([], "what") == []


def test_another_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(UserError, match="'llama'"):
        Captioner.load(str(tmp_path))
