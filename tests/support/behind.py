"""The offline rules, or the scripted model, behind an endpoint: they answer from the messages that
arrive there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.llm.offline import rules
from actors.llm.openai import OpenAI
from actors.llm.replay import hash_messages, hash_sent_forms
from actors.llm.scripted import fill_reply
from actors.part import LlmConfig, RunContext
from loopback.replies import as_message
from mustsee.calls.llm import Llm, Reply, Request
from mustsee.errors import BadRow
from mustsee.files.store import Store


@dataclass
class Behind:
    """`reply` for a loopback server, and the context of a run that calls it. A rule also reads
    parts of a request that are not sent: these bypass the server, by the hash of the messages.
    """

    coordinator: Coordinator = field(default_factory=Coordinator)
    requests: dict[str, Request] = field(default_factory=dict[str, Request])

    def reply(self, payload: Mapping[str, Any]) -> str:
        arrived = tuple(map(as_message, payload["messages"]))
        request = self.requests[hash_messages(arrived, payload["seed"])]
        try:
            return rules().get(request.prompt, fill_reply)(replace(request, messages=arrived))
        except BadRow:
            return "Who knows?"  # The rules cannot measure this question.

    def context(self, store: str) -> RunContext:
        def connect(config: LlmConfig) -> Llm:
            assert isinstance(config, OpenAI)
            self.coordinator.register_account(config.endpoint.account, config.endpoint.limits)
            recorder = RequestRecorder(config.open(), self.requests)
            return Gateway(recorder, Store(store), self.coordinator, config)

        return RunContext(store=Store(store), llm=connect, count=lambda name, n: None)


@dataclass(frozen=True)
class RequestRecorder:
    """A model that records each request before it passes it on."""

    llm: Llm
    requests: dict[str, Request]

    @property
    def identity(self) -> str:
        return self.llm.identity

    async def complete(self, request: Request) -> Reply:
        self.requests.update(dict.fromkeys(hash_sent_forms(request), request))
        return await self.llm.complete(request)
