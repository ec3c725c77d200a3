"""The OpenAI-compatible client against a local server, through the gateway and alone."""

from __future__ import annotations

import asyncio

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.llm.openai import OpenAI
from loopback.endpoint import Loopback
from mustsee.calls.llm import Message, Request
from mustsee.files.store import Store
from tests.support.bench import at_once

FORM = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["answer"],
    "additionalProperties": False,
}


def config(server: Loopback, **more) -> OpenAI:
    return OpenAI(model="m", base_url=server.url, prices={"m": [1.0, 2.0]}, **more)


def asked(text: str = "How many?", images: tuple[bytes, ...] = (), **more) -> Request:
    return Request(prompt="test/x", digest="", messages=(Message("user", text, images),), **more)


def connect(server: Loopback, tmp_path, coordinator: Coordinator | None = None, **more) -> Gateway:
    model = config(server, **more)
    coordinator = coordinator or Coordinator()
    coordinator.register_account(model.endpoint.account, model.endpoint.limits)
    return Gateway(model.open(), Store(str(tmp_path)), coordinator, model, sleep=at_once)


def once(server: Loopback, request: Request, **more):
    """Make one call by the client alone, without the gateway."""
    return asyncio.run(config(server, **more).open().complete(request))
