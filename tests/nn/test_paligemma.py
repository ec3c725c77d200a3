"""PaliGemma in JAX gives the results of transformers, on tiny random checkpoints."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mustsee.errors import BadRow, UserError
from mustsee.nn.paligemma import Captioner, Decoding
from mustsee.nn.siglip import pixels
from tests.support.tiny_paligemma import paligemma

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")
PROMPT = "what colour is the house"  # one length for all, so that programs are shared


@pytest.fixture(scope="module")
def captioner(tmp_path_factory: pytest.TempPathFactory) -> Captioner:
    folder = paligemma(tmp_path_factory.mktemp("paligemma"))
    return Captioner.load(str(folder), dtype="float32", batches=(1, 4))


def jpeg(seed: int) -> bytes:
    from PIL import Image

    noise = np.random.default_rng(seed).integers(0, 255, (9, 13, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(noise).resize((130, 90)).save(out, "JPEG")
    return out.getvalue()


def reference(folder: Path, images: Any, prompt: Any, **options: Any) -> Any:
    """The logits, or with `options` the generated tokens, of transformers for the same inputs."""
    from transformers import PaliGemmaForConditionalGeneration

    model = PaliGemmaForConditionalGeneration.from_pretrained(folder).eval()
    patches = (model.config.vision_config.image_size // model.config.vision_config.patch_size) ** 2
    ids = [model.config.image_token_id] * patches + prompt.tolist()
    inputs = {
        "input_ids": torch.tensor([ids] * len(images)),
        "pixel_values": torch.tensor(images.transpose(0, 3, 1, 2)),
        "attention_mask": torch.ones(len(images), len(ids), dtype=torch.long),
        "token_type_ids": torch.zeros(len(images), len(ids), dtype=torch.long),
    }
    with torch.no_grad():
        if options:
            return model.generate(**inputs, **options)[:, len(ids) :].numpy()
        return model(**inputs).logits[:, patches:].numpy()


@pytest.mark.parametrize("second", [True, False], ids=["paligemma2", "paligemma"])
def test_logits_and_greedy_tokens_equal_those_of_transformers(second: bool, tmp_path: Path) -> None:
    import jax
    from flax import nnx

    folder = paligemma(tmp_path, second=second)
    captioner = Captioner.load(str(folder), dtype="float32", batches=(4,))
    images = pixels([jpeg(1), jpeg(2), jpeg(3)], captioner.size)
    prompt = captioner.tokens(PROMPT)
    graph = captioner._graph
    slots = captioner._patches + len(prompt)
    run = jax.jit(lambda state: nnx.merge(graph, state).prefill(images, prompt, slots)[0])
    theirs = reference(folder, images, prompt)
    np.testing.assert_allclose(np.asarray(run(captioner._state)), theirs[:, -1], atol=1e-4)
    if not second:
        return  # decoding is the same code, and this saves compiling a program
    expected = reference(
        folder, images, prompt, max_new_tokens=8, do_sample=False, min_new_tokens=0
    )
    ids = captioner.generate(images, prompt, Decoding(max_tokens=8))
    for row, wanted in zip(ids, expected.tolist(), strict=True):
        assert row == (wanted[: wanted.index(1)] if 1 in wanted else wanted)


def test_an_image_has_the_same_caption_in_any_batch(captioner: Captioner) -> None:
    jpegs = [jpeg(n) for n in range(6)]
    together = captioner.caption(jpegs, PROMPT, Decoding(max_tokens=8))
    assert [captioner.caption([j], PROMPT, Decoding(max_tokens=8))[0] for j in jpegs] == together
    assert captioner.compiled == 2  # one program for each size of batch


def test_drawing_follows_the_seed(captioner: Captioner) -> None:
    jpegs = [jpeg(1), jpeg(1)]
    hot = Decoding(max_tokens=8, temperature=1.5, seed=3)
    first = captioner.caption(jpegs, PROMPT, hot)
    assert captioner.caption(jpegs, PROMPT, hot) == first
    assert first[0] != first[1]
    assert (
        captioner.caption(jpegs, PROMPT, Decoding(max_tokens=8, temperature=1.5, seed=4)) != first
    )


def test_data_that_is_not_an_image_is_a_bad_row(captioner: Captioner) -> None:
    with pytest.raises(BadRow, match="image 1 of 2"):
        captioner.caption([jpeg(1), b"not an image"], PROMPT)
    assert captioner.caption([], PROMPT) == []


def test_another_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(UserError, match="'llama'"):
        Captioner.load(str(tmp_path))
