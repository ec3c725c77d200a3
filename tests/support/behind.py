"""The offline rules behind an endpoint: they answer to what has arrived there, videos included."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.llm.offline import rules
from actors.llm.openai import OpenAI
from actors.llm.replay import hash_messages
from actors.part import LlmConfig, RunContext
from loopback.replies import as_message
from mustsee.calls.llm import Llm, Reply, Request, VideoClip
from mustsee.errors import BadRow
from mustsee.media.pictures import encode
from mustsee.store import Store

FPS = 2.0  # pictures a second that are looked at


@dataclass
class Behind:
    """`reply` for a loopback server, and the context of a run that asks it. What a rule reads of a
    request besides its messages is passed by the server, under the hash of what arrives there.
    """

    coordinator: Coordinator = field(default_factory=Coordinator)
    asked: dict[str, Request] = field(default_factory=dict[str, Request])

    def reply(self, payload: Mapping[str, Any]) -> str:
        arrived = tuple(map(as_message, payload["messages"]))
        request = self.asked[hash_messages(arrived, payload["seed"])]
        try:
            seen = replace(request, messages=arrived)
            return rules()[request.prompt](_looked(seen, request))
        except BadRow:
            return "Who can tell?"  # a question that the rules cannot measure

    def context(self, store: str) -> RunContext:
        def connect(config: LlmConfig) -> Llm:
            assert isinstance(config, OpenAI)
            self.coordinator.register_account(config.endpoint.account, config.endpoint.limits)
            told = Told(config.open(), self.asked)
            return Gateway(told, Store(store), self.coordinator, config)

        return RunContext(store=Store(store), llm=connect, count=lambda name, n: None)


@dataclass(frozen=True)
class Told:
    llm: Llm
    asked: dict[str, Request]

    @property
    def identity(self) -> str:
        return self.llm.identity

    async def complete(self, request: Request) -> Reply:
        self.asked[hash_messages(request.messages, request.seed)] = request
        return await self.llm.complete(request)


def _looked(seen: Request, request: Request) -> Request:
    """The videos that arrived as pictures at their times, which is what the rules look at."""
    clips = [clip for message in request.messages for clip in message.clips]
    if not clips or not request.prompt.startswith("filters/sight"):
        return seen
    arrived = seen.messages[-1].clips
    shots = [shot for one, clip in zip(arrived, clips, strict=True) for shot in _shots(one, clip)]
    last = replace(seen.messages[-1], images=tuple(jpeg for _, jpeg in shots), clips=())
    frames = tuple(time for time, _ in shots)
    return replace(
        seen,
        messages=(*seen.messages[:-1], last),
        variables={**request.variables, "frames": frames},
    )


def _shots(arrived: VideoClip, sent: VideoClip) -> list[tuple[float, bytes]]:
    import av

    found: list[tuple[float, bytes]] = []
    with av.open(io.BytesIO(arrived.mp4), "r") as container:
        for frame in container.decode(video=0):
            time = float(frame.time or 0.0)
            if time + 1e-6 >= len(found) / FPS:
                image: Any = frame.to_ndarray(format="bgr24")
                jpeg = encode(image, 90)
                found.append((sent.span.start + time, jpeg))
    return found
