"""One contract for every captioner that runs here, and what each of them promises beside it."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from actors.caption.jax import JaxCaptioner
from actors.caption.openai import OpenAICaptioner
from actors.caption.pixels import Pixels
from actors.caption.transformers import TYPED, TransformersCaptioner, sentence
from actors.llm.openai import OpenAI
from actors.part import Part, RunContext
from mustsee import schemas
from mustsee.errors import BadRow, UserError
from mustsee.prompts import Prompts
from mustsee.records import Caption, Keyframe, Video
from mustsee.store import Store, digest, identity
from ray_jobs.benches.loopback import Loopback, RefusedRequest
from tests.support.contract import sent, worker
from tests.support.tiny_llava import llava, paligemma_with_processor

pytest.importorskip("torch")
# PaliGemma's own processor, when it makes labels that are not asked for
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]
NAMES = ["pixels", "jax", "transformers", "transformers chat", "openai"]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    return {
        "paligemma": str(paligemma_with_processor(folder / "paligemma")),
        "llava": str(llava(folder / "llava")),
    }


@pytest.fixture(scope="module")
def captioners(checkpoints: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Name -> part, and the run it is opened in; the models are loaded once."""
    store = Store(str(tmp_path_factory.mktemp("store")))
    with Loopback(reply=look) as server:
        endpoint = OpenAI(model="m", base_url=server.url, key_env=None)
        parts: dict[str, Part] = {
            "pixels": Pixels(),
            "jax": sent(
                "caption", "jax", model=checkpoints["paligemma"], dtype="float32", max_tokens=6,
                batches=[4],
            ),
            "transformers": sent(
                "caption", "transformers", model=checkpoints["paligemma"], prompt="caption en",
                batch_size=2, dtype="float32", max_tokens=6,
            ),
            "transformers chat": sent(
                "caption", "transformers", model=checkpoints["llava"], dtype="float32",
                max_tokens=6, batch_size=2,
            ),
            "openai": OpenAICaptioner(endpoint=endpoint),
        }  # fmt: skip
        held: dict[str, tuple[Callable[..., list[Any]], Counter[str]]] = {}

        def opened(name: str) -> tuple[Callable[..., list[Any]], Counter[str]]:
            if name not in held:
                held[name] = worker(parts[name], store)
            return held[name]

        yield parts, opened


def look(payload: Any) -> str:
    """What the endpoint says of pictures; one that is none is refused, as endpoints do."""
    import base64

    parts = payload["messages"][-1]["content"]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    for url in urls:
        if not base64.b64decode(url.partition(",")[2]).startswith(b"\xff\xd8"):
            raise RefusedRequest(400, "this is no picture", "invalid_image")
    count = int(re.findall(r"You describe (\d+) frame", parts[-1]["text"])[0])
    return "\n".join(f"{i}: a wall" for i in range(1, count + 1))


def jpeg(seed: int) -> bytes:
    noise = np.random.default_rng(seed).integers(0, 255, (5, 7, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(noise).resize((64, 48)).save(out, "JPEG")
    return out.getvalue()


def video(name: str, *jpegs: bytes) -> Video:
    keyframes = tuple(
        Keyframe(time=2.0 * i, shot=i, jpeg=picture) for i, picture in enumerate(jpegs)
    )
    return Video(video_id=name, uri=f"{name}.mp4", keyframes=keyframes, title=name)


ROWS = (
    video("three", jpeg(1), jpeg(2), jpeg(3)),
    video("none"),
    video("bad", jpeg(1), b"no picture"),
    video("one", jpeg(2)),
    dataclasses.replace(video("unseen"), keyframes=None),
)


@pytest.mark.parametrize("name", NAMES)
def test_the_contract(name: str, captioners: Any) -> None:
    parts, opened = captioners
    part, (caption, _) = parts[name], opened(name)
    found = caption(*ROWS)
    assert part.writes == ("captions",)
    for row, done in zip(ROWS, found, strict=True):
        if isinstance(done, BadRow) and row.video_id == "bad":
            continue
        assert not isinstance(done, BaseException), done
        assert dataclasses.replace(done, captions=row.captions) == row  # nothing else is touched
        times = [keyframe.time for keyframe in row.keyframes or ()]
        assert {c.time for c in done.captions} <= set(times)
        assert [c.time for c in done.captions] == sorted(c.time for c in done.captions)
        assert all(c.text == c.text.strip() != "" for c in done.captions)
        stored = schemas.table([done], Video)
        assert schemas.load(Video, stored.to_pylist()[0]).captions == done.captions
    assert found[1].captions == found[4].captions == ()
    assert caption(ROWS[0])[0] == found[0]


@pytest.mark.parametrize("name", ["jax", "transformers", "transformers chat"])
def test_every_picture_has_a_caption_of_its_own(name: str, captioners: Any) -> None:
    caption, _ = captioners[1](name)
    together = caption(video("v", jpeg(1), jpeg(2), jpeg(3)))[0].captions
    assert [c.time for c in together] == [0.0, 2.0, 4.0]
    assert len({c.text for c in together}) > 1
    alone = [caption(video("v", jpeg(n)))[0].captions[0].text for n in (1, 2, 3)]
    assert [c.text for c in together] == alone


@pytest.mark.parametrize("name", ["jax", "transformers", "transformers chat"])
def test_a_picture_that_cannot_be_read_is_named(name: str, captioners: Any) -> None:
    (failed,) = captioners[1](name)[0](ROWS[2])
    assert isinstance(failed, BadRow)
    assert "picture 1 of 2" in str(failed)


def test_both_engines_say_the_same_of_the_same_weights(captioners: Any) -> None:
    (ours,), (theirs,) = (captioners[1](name)[0](ROWS[0]) for name in ("jax", "transformers"))
    assert ours.captions == theirs.captions
    assert isinstance(ours.captions[0], Caption)


def test_the_default_precision_works(checkpoints: dict[str, str], tmp_path: Path) -> None:
    for part in (
        JaxCaptioner(model=checkpoints["paligemma"], max_tokens=3, batches=(4,)),
        TransformersCaptioner(model=checkpoints["llava"], max_tokens=3, device="cpu"),
    ):
        caption, _ = worker(part, Store(str(tmp_path)))
        assert len(caption(ROWS[0])[0].captions) == 3


def test_compiled_programs_are_counted_and_few(captioners: Any) -> None:
    caption, counts = captioners[1]("jax")
    caption(video("v", *(jpeg(n) for n in range(6))), ROWS[3])
    assert counts["caption programs compiled"] == 1  # one batch size, one prompt


def test_missing_weights_are_said_before_the_job(tmp_path: Path) -> None:
    for make in (JaxCaptioner, TransformersCaptioner):
        with pytest.raises(UserError, match="hf download acme/eyes --revision v2"):
            make(model="acme/eyes", revision="v2").check(None)
        with pytest.raises(UserError, match="holds none of"):
            make(model=str(tmp_path)).check(None)
        (tmp_path / "config.json").write_text("{}")
        (tmp_path / "tokenizer.json").write_text("{}")
        with pytest.raises(UserError, match=r"holds none of model\.safetensors"):
            make(model=str(tmp_path)).check(None)
        (tmp_path / "config.json").unlink()
        with pytest.raises(UserError, match=r"dtype='int3'"):
            make(model="acme/eyes", dtype="int3")


def test_code_from_a_model_s_folder_is_never_run(tmp_path: Path) -> None:
    (tmp_path / "eyes.py").write_text("raise SystemExit('this was run')")
    auto = {
        "AutoConfig": "eyes.C",
        "AutoProcessor": "eyes.P",
        "AutoModelForImageTextToText": "eyes.M",
    }
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "eyes", "auto_map": auto}))
    save_file({"weight": np.zeros(1, np.float32)}, tmp_path / "model.safetensors")
    part = TransformersCaptioner(model=str(tmp_path), device="cpu")
    with pytest.raises(UserError, match="cannot be loaded"):
        part.open(RunContext(Store(str(tmp_path)), lambda config: None, lambda name, n: None))


def test_what_decides_a_caption_is_identity_and_hardware_is_not(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    model = str(tmp_path)
    for make, quick in (
        (JaxCaptioner, {"batches": (64,)}),
        (TransformersCaptioner, {"batch_size": 64, "device": "cuda"}),
    ):
        base = make(model=model)
        assert digest(base) == digest(make(model=model, **quick))
        assert digest(base) != digest(make(model=model, prompt="ocr"))


def test_the_sentence_behind_the_typed_answers_is_the_caption() -> None:
    typed = "PEOPLE: a man\nMOOD: calm\n\n**CAPTION:** A man\u00a0rows a boat.**\n"
    assert sentence(typed) == "A man rows a boat."
    assert sentence("CAPTION: a\nCAPTION: the better one") == "the better one"
    assert sentence("A man rows\na boat.") == "A man rows a boat."  # it could not follow
    assert "MOOD:" in Prompts().render(TYPED).user


def test_the_weights_and_the_typed_questions_are_the_captioners_identity(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (typed, told) = (TransformersCaptioner(model=str(tmp_path), prompt=p) for p in (None, "ocr"))
    assert identity(typed)["prompt"] == Prompts().digest(TYPED)
    assert (identity(told)["prompt"], identity(told)["revision"] is None) == ("ocr", False)
    before = digest(typed)
    (tmp_path / "config.json").write_text("{ }")
    assert digest(typed) != before


def test_typed_questions_are_answered_behind_the_caption(
    checkpoints: dict[str, str], tmp_path: Path
) -> None:
    plain = JaxCaptioner(model=checkpoints["paligemma"], max_tokens=3, batches=(4,))
    both = dataclasses.replace(plain, also=("answer en where is it?", "caption en"))
    texts = [[c.text for c in worker(part, Store(str(tmp_path)))[0](ROWS[0])[0].captions]
             for part in (plain, both)]  # fmt: skip
    for one, several in zip(*texts, strict=True):
        assert several.split("; ")[0] == one
        assert len(several.split("; ")) <= 2  # the same task says the same, once
