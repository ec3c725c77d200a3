"""The offline rules behind an endpoint: they answer from the messages that arrive there."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.llm.offline import rules
from actors.llm.openai import OpenAI
from actors.llm.replay import hash_messages, spoken
from actors.part import LlmConfig, RunContext
from loopback.replies import as_message
from mustsee.calls.llm import Llm, Reply, Request, VideoClip
from mustsee.errors import BadRow
from mustsee.media.frames import encode
from mustsee.store import Store

FPS = 2.0  # frames per second of a clip that the rules get


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
            received = replace(request, messages=arrived)
            return rules()[request.prompt](_with_frames(received, request))
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
        self.requests.update(dict.fromkeys(spoken(request), request))
        return await self.llm.complete(request)


def _with_frames(received: Request, request: Request) -> Request:
    """Replace the clips that arrived by their frames, from which the rules answer."""
    clips = [clip for message in request.messages for clip in message.clips]
    if not clips or not request.prompt.startswith("filters/sight"):
        return received
    arrived = received.messages[-1].clips
    shots = [shot for one, clip in zip(arrived, clips, strict=True) for shot in _shots(one, clip)]
    last = replace(received.messages[-1], images=tuple(jpeg for _, jpeg in shots), clips=())
    frames = tuple(time for time, _ in shots)
    return replace(
        received,
        messages=(*received.messages[:-1], last),
        variables={**request.variables, "frames": frames},
    )


def _shots(arrived: VideoClip, sent: VideoClip) -> list[tuple[float, bytes]]:
    """Return the times in the video and the JPEGs of a clip's frames."""
    import av

    shots: list[tuple[float, bytes]] = []
    with av.open(io.BytesIO(arrived.mp4), "r") as container:
        for frame in container.decode(video=0):
            time = float(frame.time or 0.0)
            if time + 1e-6 >= len(shots) / FPS:
                image: Any = frame.to_ndarray(format="bgr24")
                shots.append((sent.span.start + time, encode(image, 90)))
    return shots
