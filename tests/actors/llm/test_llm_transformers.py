"""llm=transformers on tiny random checkpoints: a reply does not depend on its batch, and requests
that cannot be answered are refused.
"""

from __future__ import annotations

import asyncio
import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from actors.llm.transformers import Transformers
from mustsee.calls.llm import Llm, Message, Reply, Request, Sampling
from mustsee.errors import BadRow, UserError
from mustsee.evaluate.answers import likeliest
from mustsee.nn import weights
from mustsee.recipes.neptune import layout as neptune
from ray_jobs.cli.launch import build, compose
from ray_jobs.runtime.cluster import connect_ray
from tests.support import sample_videos
from tests.support.evaluation import questions
from tests.support.tiny_gemma import checkpoint as gemma
from tests.support.tiny_llava import llava, paligemma_with_processor

torch = pytest.importorskip("torch")
# A warning of PaliGemma's processor, which makes labels that are not needed.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]
SHORT = Sampling(max_tokens=6)
TEMPLATE = (
    "{% for m in messages %}"
    "{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "<start_of_turn>{{ m.role }}\n{{ m.content }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    gemma(folder / "chat")
    (folder / "chat" / "chat_template.jinja").write_text(TEMPLATE)
    gemma(folder / "text")
    return {
        "text": folder / "text",
        "chat": folder / "chat",
        "llava": llava(folder / "llava"),
        "paligemma": paligemma_with_processor(folder / "paligemma"),
    }


@pytest.fixture(scope="module")
def models(folders: dict[str, Path]) -> dict[str, Llm]:
    return {name: opened(folder) for name, folder in folders.items()}


def opened(folder: Path, **fields: Any) -> Llm:
    return Transformers(model=str(folder), dtype="float32", device="cpu", **fields).open()


def jpeg(seed: int) -> bytes:
    noise = np.random.default_rng(seed).integers(0, 255, (5, 7, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(noise).resize((64, 48)).save(out, "JPEG")
    return out.getvalue()


def request(text: str, *images: bytes, system: str = "", seed: int = 0, **sampling: Any) -> Request:
    opening = (Message("system", system),) if system else ()
    return Request(
        prompt="p", digest="d", seed=seed, sampling=replace(SHORT, **sampling),
        messages=(*opening, Message("user", text, images)),
    )  # fmt: skip


def together(llm: Llm, requests: Sequence[Request]) -> list[Reply | BaseException]:
    async def work() -> list[Reply | BaseException]:
        return await asyncio.gather(*map(llm.complete, requests), return_exceptions=True)

    return asyncio.run(work())


def alone(llm: Llm, asked: Request) -> Reply:
    return asyncio.run(llm.complete(asked))


@pytest.mark.parametrize("name", ["text", "chat", "llava", "paligemma"])
def test_a_reply_does_not_depend_on_its_batch(name: str, models: dict[str, Llm]) -> None:
    images = (jpeg(1), jpeg(2)) if name in ("llava", "paligemma") else ()
    requests = [
        request("what is red?", *images),
        request("who was in the house first, the cat or the dog?", *images, system="look"),
        *(request("how many", *images, seed=n, temperature=1.0, top_p=0.9) for n in range(3)),
        request("where", *images, top_logprobs=5),
    ]
    replies = together(models[name], requests)
    assert replies == [alone(models[name], one) for one in requests]
    assert len({r.text for r in replies[2:5] if isinstance(r, Reply)}) > 1  # by seed


def test_greedy_replies_are_those_of_transformers(folders: dict[str, Path]) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folders["text"])
    model = AutoModelForCausalLM.from_pretrained(folders["text"], dtype=torch.float32).eval()
    inputs = tokenizer("what is red?", return_tensors="pt")
    generated = model.generate(**inputs, max_new_tokens=6, do_sample=False)
    expected = tokenizer.decode(
        generated[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True
    )
    reply = alone(opened(folders["text"]), request("what is red?", top_logprobs=10_000))
    assert reply.text == expected.strip()
    assert reply.tokens_in == inputs["input_ids"].shape[1]
    with torch.no_grad():
        first = model(**inputs).logits[0, -1].log_softmax(-1)
    assert reply.logprobs is not None
    assert sum(map(math.exp, reply.logprobs[0].values())) == pytest.approx(1, abs=1e-4)
    for word in (" red", "A", " dog"):
        ids = tokenizer(word, add_special_tokens=False)["input_ids"]
        if len(ids) == 1:
            assert reply.logprobs[0][word] == pytest.approx(first[ids[0]].item(), abs=1e-4)


def test_samples_follow_the_models_probabilities(models: dict[str, Llm]) -> None:
    logprob_request = request("red", top_logprobs=10_000, max_tokens=1)
    chances = alone(models["text"], logprob_request).logprobs
    assert chances is not None
    top, value = max(chances[0].items(), key=lambda pair: pair[1])
    drawn = together(
        opened_like(models["text"], 256),
        [request("red", seed=n, temperature=1.0, top_logprobs=1, max_tokens=1) for n in range(512)],
    )
    share = sum(r.text == top.strip() for r in drawn if isinstance(r, Reply)) / 512
    expected = math.exp(value)
    assert abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / 512) + 1e-3


def opened_like(llm: Any, batch: int) -> Llm:
    return replace(llm._config, batch_size=batch).open()


def test_a_reply_ends_at_any_end_token(folders: dict[str, Path]) -> None:
    llm: Any = opened(folders["text"])
    cut = alone(llm, request("red", max_tokens=3))
    assert (cut.finish, cut.tokens_out) == ("length", 3)
    first = llm._tokenizer(cut.text, add_special_tokens=False)
    assert first["input_ids"]
    llm._ends = set(range(len(llm._tokenizer)))  # every token is an end token
    ended = alone(llm, request("red", max_tokens=3))
    assert (ended.finish, ended.tokens_out, ended.text) == ("stop", 1, "")


def test_only_the_bad_request_of_a_batch_fails(models: dict[str, Llm]) -> None:
    requests = [request("a", jpeg(1)), request("b", b"not an image"), request("c", jpeg(2))]
    good, bad, other = together(models["llava"], requests)
    assert isinstance(bad, BadRow)
    assert "image 0 of 1" in str(bad)
    assert [good, other] == [
        alone(models["llava"], requests[0]),
        alone(models["llava"], requests[2]),
    ]


def test_an_unsupported_request_is_a_bad_row(models: dict[str, Llm]) -> None:
    with pytest.raises(BadRow, match="takes no images"):
        alone(models["chat"], request("red", jpeg(1)))
    with pytest.raises(BadRow, match="show fewer frames"):
        alone(models["llava"], request("red " * 300, jpeg(1)))
    with pytest.raises(BadRow, match="does not take this request"):
        alone(models["paligemma"], request("a PaliGemma wants an image"))


def test_missing_weights_are_reported_before_the_job(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="hf download acme/talk --revision v2"):
        Transformers(model="acme/talk", revision="v2").check(None)
    with pytest.raises(UserError, match=r"dtype='int3'"):
        Transformers(model="acme/talk", dtype="int3")
    with pytest.raises(UserError, match="batch_size=0"):
        Transformers(model="acme/talk", batch_size=0)


def test_code_from_a_models_folder_is_never_run(tmp_path: Path) -> None:
    (tmp_path / "talk.py").write_text("raise SystemExit('this was run')")
    auto = {"AutoConfig": "talk.C", "AutoModelForCausalLM": "talk.M"}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "talk", "auto_map": auto}))
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(UserError, match="cannot be loaded"):
        opened(tmp_path)


def test_what_decides_a_reply_is_part_of_the_key_and_hardware_is_not(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    base = Transformers(model=str(tmp_path))
    assert replace(base, batch_size=64, device="cuda").identity == base.identity
    assert replace(base, dtype="float32").identity != base.identity


def test_the_letter_after_an_opening_bracket_is_the_choice() -> None:
    bracket = {"[": -0.01, "A": -5.0}
    letters = {"B": -0.5, " b": -2.0, "A": -0.7}
    assert likeliest([bracket, letters], 3) == 1
    assert likeliest([letters, bracket], 3) == 1
    assert likeliest([{"I": -0.1, "C": -4.0}, letters], 3) == 2
    assert likeliest([{"I": -0.1}, letters], 3) is None
    assert likeliest([bracket], 3) is None


@pytest.fixture(scope="module")
def ray() -> Iterator[None]:
    with connect_ray():
        yield


@pytest.mark.usefixtures("ray")
def test_an_evaluation_with_frames(folders: dict[str, Path], tmp_path: Path) -> None:
    release, folder = tmp_path / "neptune_full.json", tmp_path / "videos"
    folder.mkdir()
    neptune.write(questions(4), release)
    for name in ("v0", "v1"):
        sample_videos.write(folder / f"{name}.mp4", sample_videos.cuts([12, 12]))
    overrides = {
        "questions": release, "videos": folder, "out": tmp_path / "out", "answer": "transformers",
        "answer.llm.model": folders["llava"], "answer.llm.device": "cpu",
        "answer.llm.dtype": "float32", "answer.see.frames": 1, "answer.see.longest": 64,
        "answer.prompt": "evaluate/choice", "answer.sampling.max_tokens": 4,
        "answer.sampling.top_logprobs": 10_000,
    }  # fmt: skip
    assert build(compose("evaluate", [f"{k}={v}" for k, v in overrides.items()]))() == 0
    (one,) = json.loads((tmp_path / "out" / "results.json").read_text())["results"]
    llava = f"{folders['llava']}@{weights.weights_identity(str(folders['llava']))[:12]}"
    assert one["model"] == f"transformers {llava} float32 1 frames"
    assert (one["failed"], one["weighted"]["n"], one["choice"]["n"]) == (0, 4, 4)
    replies = pq.read_table(tmp_path / "out" / "replies.parquet").to_pylist()
    assert all(row["choice"] in "ABCDE" for row in replies)
