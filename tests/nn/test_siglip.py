"""The SigLIP frame encoder in JAX gives the image vectors of transformers."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mustsee.errors import BadRow, UserError
from mustsee.nn.siglip import FrameEncoder, pixels
from tests.support.tiny_paligemma import paligemma

pytestmark = pytest.mark.slow


def siglip(folder: Path) -> Path:
    """A tiny random SigLIP vision model with its head."""
    torch = pytest.importorskip("torch")
    from transformers import SiglipVisionConfig, SiglipVisionModel

    torch.manual_seed(0)
    config = SiglipVisionConfig(
        hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=2,
        image_size=32, patch_size=8,
    )  # fmt: skip
    model = SiglipVisionModel(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.25)
    model.save_pretrained(folder)
    return folder


def jpeg(seed: int) -> bytes:
    noise = np.random.default_rng(seed).integers(0, 255, (5, 7, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(noise).resize((90, 64)).save(out, "JPEG")
    return out.getvalue()


JPEGS = [jpeg(n) for n in range(5)]


def test_vectors_equal_those_of_transformers(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from transformers import SiglipVisionModel

    folder = siglip(tmp_path)
    encoder = FrameEncoder.load(str(folder), dtype="float32", batch=2)
    vectors = encoder.encode(JPEGS)
    with torch.no_grad():
        inputs = torch.tensor(pixels(JPEGS, 32).transpose(0, 3, 1, 2))
        theirs = SiglipVisionModel.from_pretrained(folder).eval()(inputs).pooler_output.numpy()
    expected = theirs / np.linalg.norm(theirs, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, expected, atol=1e-4)
    assert vectors.dtype == np.float32
    assert encoder.encode([]).shape == (0, 24)
    with pytest.raises(BadRow, match="image 0 of 1"):
        encoder.encode([b"not an image"])


def test_the_tower_of_a_paligemma_encodes_frames(tmp_path: Path) -> None:
    folder = str(paligemma(tmp_path))
    encoder = FrameEncoder.load(folder, dtype="float32", batch=5)
    vectors = encoder.encode(JPEGS)
    short = FrameEncoder.load(folder, batch=5).encode(JPEGS)  # bfloat16, the default
    assert ((vectors * short).sum(axis=1) > 0.999).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(JPEGS[2:3])[0], vectors[2], atol=1e-5)
    similarity = vectors @ vectors.T
    assert similarity[0, 1] < 0.999


def test_another_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "vit"}')
    with pytest.raises(UserError, match="'vit'"):
        FrameEncoder.load(str(tmp_path))
