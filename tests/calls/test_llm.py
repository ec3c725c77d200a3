"""The contract of every model that runs without a network."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.llm.offline import Offline
from actors.llm.openai import OpenAI
from actors.llm.replay import Replay
from actors.llm.transformers import Transformers
from actors.part import LlmConfig
from loopback.endpoint import Loopback, RefusedRequest
from loopback.replies import Payload, canned_reply
from mustsee.calls.llm import IMAGE_MARK, Message, Reply, Request, Sampling
from mustsee.errors import BadRow
from mustsee.files.schemas import dump, load
from mustsee.files.store import Store
from mustsee.prompts import Prompts, neutral
from tests.support.tiny_gemma import checkpoint

NAME = "filters/blind"


def request(question: str, *, seed: int = 0) -> Request:
    variables = {"question": question, "options": ("red", "blue"), "context": None, "about": ""}
    rendered = Prompts().render(NAME, **variables)
    messages = (Message("system", rendered.system), Message("user", rendered.user))
    return Request(
        prompt=NAME,
        digest=rendered.digest,
        messages=messages,
        variables=variables,
        sampling=Sampling(max_tokens=8),
        seed=seed,
    )


GOOD = [
    request("Which colour has the car?"),
    request("Which colour has the car?", seed=1),
    request("Which colour has the house?"),
    request(""),
    request("\N{GRINNING FACE} " * 100),
]
BAD = Request(
    prompt="not/there", digest="", messages=(Message("user", "What is it?", (b"not an image",)),)
)


def picky(payload: Payload) -> str:
    """Refuse requests with images, as an endpoint does with an invalid one."""
    if "image_url" in json.dumps(payload["messages"]):
        raise RefusedRequest(400, "this is not an image", "invalid_image")
    return canned_reply(payload)


@pytest.fixture(
    params=["offline", "replay", "openai", pytest.param("transformers", marks=pytest.mark.slow)]
)
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LlmConfig]:
    """A model's configuration, pickled as for a worker process."""
    factories: dict[str, Callable[[Loopback], LlmConfig]] = {
        "offline": lambda server: Offline(),
        "replay": lambda server: recorded(tmp_path),
        "openai": lambda server: OpenAI(model="m", base_url=server.url, key_env=None),
        "transformers": lambda server: tiny(tmp_path),
    }
    with Loopback(reply=picky) as server:
        yield pickle.loads(pickle.dumps(factories[request.param](server)))


def recorded(folder: Path) -> LlmConfig:
    path = str(folder / "replies.jsonl")
    ask(Replay(path=path, record=Offline()), Store(str(folder / "recording")), GOOD)
    return Replay(path=path)


def tiny(folder: Path) -> LlmConfig:
    pytest.importorskip("torch")
    return Transformers(model=str(checkpoint(folder / "model")), dtype="float32", device="cpu")


def ask(config: LlmConfig, store: Store, requests: list[Request]) -> list[Any]:
    """Return the reply or the error of each request, sent through the gateway."""

    async def work() -> list[Any]:
        meter: Any = config if isinstance(config, OpenAI) else None
        llm = Gateway(config.open(), store, Coordinator(), meter)
        return await asyncio.gather(*map(llm.complete, requests), return_exceptions=True)

    return asyncio.run(work())


def test_every_model_keeps_the_contract(config: LlmConfig, tmp_path: Path) -> None:
    assert config.identity
    *good, bad, repeated = ask(config, Store(str(tmp_path / "one")), [*GOOD, BAD, GOOD[0]])
    assert isinstance(bad, BadRow)
    for reply in (*good, repeated):
        assert isinstance(reply, Reply), reply
        assert load(Reply, dump(reply)) == reply
        assert reply.model
        assert reply.finish in ("stop", "length")
        assert reply.tokens_in >= 0 <= reply.tokens_out
    assert repeated.text == good[0].text
    other = ask(config, Store(str(tmp_path / "two")), GOOD)
    assert [r.text for r in other] == [r.text for r in good]
    stored = ask(config, Store(str(tmp_path / "one")), list(reversed(GOOD)))
    assert all(r.cached for r in stored)
    assert [r.text for r in stored] == [r.text for r in reversed(good)]


def test_images_go_where_the_text_marks_them() -> None:
    marked = Message("user", f"one:\n{IMAGE_MARK}\ntwo:\n{IMAGE_MARK}\n", (b"1", b"2"))
    assert marked.parts == ("one:\n", b"1", "\ntwo:\n", b"2")
    assert Message("user", "look", (b"1", b"2")).parts == (b"1", b"2", "look")
    fewer_marks = Message("user", f"one: {IMAGE_MARK}", (b"1", b"2"))
    assert fewer_marks.parts == (b"1", b"2", "one: ")


def test_untrusted_text_cannot_mark_the_place_of_an_image() -> None:
    assert IMAGE_MARK not in neutral(f"a {IMAGE_MARK} b")
