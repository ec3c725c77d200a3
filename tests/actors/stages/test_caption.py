"""The contract of every local captioner, and what each promises besides."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from actors.llm.openai import OpenAI
from actors.part import Part, RunContext
from actors.stages.caption import OpenAICaptioner, Pixels
from actors.stages.caption_local import TYPED, JaxCaptioner, TransformersCaptioner, sentence
from loopback.endpoint import Loopback, RefusedRequest
from mustsee.errors import BadRow, UserError
from mustsee.files.store import Store, digest, identity
from mustsee.prompts import Prompts
from mustsee.records import Caption
from tests.support.captioners import ROWS, Rows, check_captioner, jpeg, video
from tests.support.contract import sent, worker
from tests.support.tiny_llava import llava, paligemma_with_processor

# A warning of PaliGemma's processor, which makes labels that are not needed.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]
NAMES = ["pixels", "jax", "transformers", "transformers chat", "openai"]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Name -> folder of a tiny checkpoint, made once; skips without torch."""
    folder = tmp_path_factory.mktemp("models")
    makes = {"paligemma": paligemma_with_processor, "llava": llava}
    return functools.cache(lambda name: str(makes[name](folder / name)))


@pytest.fixture(scope="module")
def captioners(
    checkpoints: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], tuple[Part, Rows, Counter[str]]]]:
    """Name -> part, the opened part, and its counters; each model is loaded once."""
    store = Store(str(tmp_path_factory.mktemp("store")))
    with Loopback(reply=look) as server:
        endpoint = OpenAI(model="m", base_url=server.url, key_env=None)
        makes: dict[str, Callable[[], Part]] = {
            "pixels": Pixels,
            "jax": lambda: sent(
                "caption", "jax", model=checkpoints("paligemma"), dtype="float32", max_tokens=6,
                batches=[4], also=None,
            ),
            "transformers": lambda: sent(
                "caption", "transformers", model=checkpoints("paligemma"), prompt="caption en",
                batch_size=2, dtype="float32", max_tokens=6,
            ),
            "transformers chat": lambda: sent(
                "caption", "transformers", model=checkpoints("llava"), dtype="float32",
                max_tokens=6, batch_size=2,
            ),
            "openai": lambda: OpenAICaptioner(endpoint=endpoint),
        }  # fmt: skip

        @functools.cache
        def opened(name: str) -> tuple[Part, Rows, Counter[str]]:
            part = makes[name]()
            return part, *worker(part, store)

        yield opened


def look(payload: Any) -> str:
    """The endpoint's captions of images; invalid image data is refused, as endpoints do."""
    import base64

    parts = payload["messages"][-1]["content"]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    for url in urls:
        if not base64.b64decode(url.partition(",")[2]).startswith(b"\xff\xd8"):
            raise RefusedRequest(400, "not an image", "invalid_image")
    count = int(re.findall(r"You describe (\d+) frame", parts[-1]["text"])[0])
    return "\n".join(f"{i}: a wall" for i in range(1, count + 1))


@pytest.mark.parametrize("name", NAMES)
def test_the_contract(name: str, captioners: Any) -> None:
    part, caption, _ = captioners(name)
    check_captioner(part, caption)


@pytest.mark.parametrize("name", ["jax", "transformers", "transformers chat"])
def test_every_image_has_a_caption_of_its_own(name: str, captioners: Any) -> None:
    _, caption, _ = captioners(name)
    together = caption(video("v", jpeg(1), jpeg(2), jpeg(3)))[0].captions
    assert [c.time for c in together] == [0.0, 2.0, 4.0]
    assert len({c.text for c in together}) > 1
    alone = [caption(video("v", jpeg(n)))[0].captions[0].text for n in (1, 2, 3)]
    assert [c.text for c in together] == alone


@pytest.mark.parametrize("name", ["jax", "transformers", "transformers chat"])
def test_an_unreadable_image_is_named(name: str, captioners: Any) -> None:
    (failed,) = captioners(name)[1](ROWS[2])
    assert isinstance(failed, BadRow)
    assert "image 1 of 2" in str(failed)


def test_both_engines_give_the_same_captions_for_the_same_weights(captioners: Any) -> None:
    (ours,), (theirs,) = (captioners(name)[1](ROWS[0]) for name in ("jax", "transformers"))
    assert ours.captions == theirs.captions
    assert isinstance(ours.captions[0], Caption)


def test_the_default_precision_works(checkpoints: Callable[[str], str], tmp_path: Path) -> None:
    for part in (
        JaxCaptioner(model=checkpoints("paligemma"), max_tokens=3, batches=(4,)),
        TransformersCaptioner(model=checkpoints("llava"), max_tokens=3, device="cpu"),
    ):
        caption, _ = worker(part, Store(str(tmp_path)))
        assert len(caption(ROWS[0])[0].captions) == 3


def test_compiled_programs_are_counted_and_few(captioners: Any) -> None:
    _, caption, counts = captioners("jax")
    caption(video("v", *(jpeg(n) for n in range(6))), ROWS[3])
    assert counts["caption programs compiled"] == 1  # one batch size, one task


def test_missing_weights_are_reported_before_the_job(tmp_path: Path) -> None:
    for make in (JaxCaptioner, TransformersCaptioner):
        with pytest.raises(UserError, match="hf download acme/eyes --revision v2"):
            make(model="acme/eyes", revision="v2").check(None)
        with pytest.raises(UserError, match="has no "):
            make(model=str(tmp_path)).check(None)
        (tmp_path / "config.json").write_text("{}")
        (tmp_path / "tokenizer.json").write_text("{}")
        with pytest.raises(UserError, match=r"has no model\.safetensors"):
            make(model=str(tmp_path)).check(None)
        (tmp_path / "config.json").unlink()
        with pytest.raises(UserError, match=r"dtype='int3'"):
            make(model="acme/eyes", dtype="int3")


def test_code_from_a_model_s_folder_is_never_run(tmp_path: Path) -> None:
    pytest.importorskip("torch")
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


def test_what_decides_a_caption_is_part_of_the_key_and_hardware_is_not(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    model = str(tmp_path)
    for make, quick in (
        (JaxCaptioner, {"batches": (64,)}),
        (TransformersCaptioner, {"batch_size": 64, "device": "cuda"}),
    ):
        base = make(model=model)
        assert digest(base) == digest(make(model=model, **quick))
        assert digest(base) != digest(make(model=model, prompt="ocr"))


def test_the_sentence_after_the_typed_answers_is_the_caption() -> None:
    typed = "PEOPLE: a man\nMOOD: calm\n\n**CAPTION:** A man\u00a0rows a boat.**\n"
    assert sentence(typed) == "A man rows a boat."
    assert sentence("CAPTION: a\nCAPTION: the better one") == "the better one"
    assert sentence("<think>CAPTION: a dog?</think>CAPTION: a cat") == "a cat"
    assert sentence("<think>It shows a dog, or") == ""
    assert sentence("A man rows\na boat.") == "A man rows a boat."  # not in the format
    assert "MOOD:" in Prompts().render(TYPED).user


def test_weights_and_typed_questions_are_part_of_the_key(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (typed, plain) = (TransformersCaptioner(model=str(tmp_path), prompt=p) for p in (None, "ocr"))
    assert identity(typed)["prompt"] == Prompts().digest(TYPED)
    assert (identity(plain)["prompt"], identity(plain)["revision"] is None) == ("ocr", False)
    before = digest(typed)
    (tmp_path / "config.json").write_text("{ }")
    assert digest(typed) != before


def test_answers_to_typed_questions_follow_the_caption(
    checkpoints: Callable[[str], str], tmp_path: Path
) -> None:
    plain = JaxCaptioner(model=checkpoints("paligemma"), max_tokens=3, batches=(4,))
    also = {"place": "answer en where is it?", "again": "caption en"}
    both = dataclasses.replace(plain, also=also)
    texts = [[c.text for c in worker(part, Store(str(tmp_path)))[0](ROWS[0])[0].captions]
             for part in (plain, both)]  # fmt: skip
    for one, several in zip(*texts, strict=True):
        assert several.startswith(one)
        assert several.endswith(f"; again: {one}")
    none = ("unanswerable", "No.")
    assert both._join("a dog runs", *none) == "a dog runs"
    assert both._join("", "a park", "") == "place: a park"
