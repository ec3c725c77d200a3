"""Refusals of parameters in the words of each family of endpoints.

    Loopback(refuse=refuse_in_words_of("mistral", ["seed", "max_completion_tokens"]))

A request that has one of the parameters is refused; like real endpoints, most families name one
parameter at a time, Gemini and Azure all of them.

An undeclared limit refuses calls beyond some per second, or in flight.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Payload = Mapping[str, Any]
Refuse = Callable[[Payload], tuple[int, Any] | None]
Words = Callable[[Sequence[str]], tuple[int, Any]]
_EXTRA = "Extra inputs are not permitted"


def _openai(names: Sequence[str]) -> tuple[int, Any]:
    name = names[0]
    path = "messages[0].content[0].image_url.detail" if name == "detail" else name
    said = f"Unsupported parameter: '{path}' is not supported with this model."
    if name == "max_tokens":
        said += " Use 'max_completion_tokens' instead."
    error = {"message": said, "type": "invalid_request_error", "param": path}
    return 400, {"error": {**error, "code": "unsupported_parameter"}}


def _azure(names: Sequence[str]) -> tuple[int, Any]:
    said = f"Unrecognized request arguments supplied: {', '.join(map(_loose, names))}"
    error = {"message": said, "type": "invalid_request_error", "param": None, "code": None}
    return 400, {"error": error}


def _gemini(names: Sequence[str]) -> tuple[int, Any]:
    said = [
        f'Invalid JSON payload received. Unknown name "{_loose(n)}": Cannot find field.'
        for n in names
    ]
    details = [{"fieldViolations": [{"description": each} for each in said]}]
    error = {"code": 400, "message": "\n".join(said), "status": "INVALID_ARGUMENT"}
    return 400, [{"error": {**error, "details": details}}]


def _mistral(names: Sequence[str]) -> tuple[int, Any]:
    place = ["body", *_place(names[0])]
    detail = [{"type": "extra_forbidden", "loc": place, "msg": _EXTRA, "input": 1}]
    error = {"object": "error", "message": {"detail": detail}, "type": "invalid_request_error"}
    return 422, {**error, "param": None, "code": None}


def _vllm(names: Sequence[str]) -> tuple[int, Any]:
    place = ("body", *_place(names[0]))
    said = f"[{{'type': 'extra_forbidden', 'loc': {place!r}, 'msg': '{_EXTRA}', 'input': 1}}]"
    return 400, {"object": "error", "message": said, "type": "BadRequestError", "code": 400}


def _sglang(names: Sequence[str]) -> tuple[int, Any]:
    place = [str(part) for part in ("body", *_place(names[0]))]
    return 422, {"detail": [{"type": "extra_forbidden", "loc": place, "msg": _EXTRA}]}


def _openrouter(names: Sequence[str]) -> tuple[int, Any]:
    raw = json.dumps(_openai(names)[1])
    metadata = {"raw": raw, "provider_name": "OpenAI"}
    return 400, {"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}}


def _xai(names: Sequence[str]) -> tuple[int, Any]:
    head, *rest = names[0].split("_")
    camel = "image detail" if names[0] == "detail" else head + "".join(map(str.title, rest))
    said = f"Argument not supported on this model: {camel}"
    return 400, {"code": "Client specified an invalid argument", "error": said}


def _ollama(names: Sequence[str]) -> tuple[int, Any]:
    said = f"{_loose(names[0])!r} is not supported for this model"
    if names[0] == "reasoning_effort":
        said = '"llama3.1:8b" does not support thinking'
    return 400, {"error": {"message": said, "type": "api_error", "param": None, "code": None}}


def _status_200(names: Sequence[str]) -> tuple[int, Any]:
    return 200, {"id": "gen-1", **_openai(names)[1], "choices": None}


def _place(name: str) -> tuple[str | int, ...]:
    return ("messages", 0, "content", 0, "image_url", name) if name == "detail" else (name,)


def _loose(name: str) -> str:
    return "image_url.detail" if name == "detail" else name


FAMILIES: Mapping[str, Words] = {
    "openai": _openai, "azure": _azure, "gemini": _gemini, "mistral": _mistral, "vllm": _vllm,
    "sglang": _sglang, "openrouter": _openrouter, "xai": _xai, "ollama": _ollama,
    "status_200": _status_200,
}  # fmt: skip


def refuse_in_words_of(family: str, parameters: Sequence[str]) -> Refuse:
    """Return what refuses requests that have any of the parameters, in a family's words."""

    def refuse(payload: Payload) -> tuple[int, Any] | None:
        sent = json.dumps(payload["messages"])
        has_detail = '"detail": ' in sent
        names = [p for p in parameters if (has_detail if p == "detail" else p in payload)]
        return FAMILIES[family](names) if names else None

    return refuse


Kind = Literal["rate", "window"]


@dataclass(kw_only=True)
class HiddenLimit:
    """Accept `limit(seconds since the first call)` calls per second, or in flight."""

    kind: Kind
    limit: Callable[[float], float]
    clock: Callable[[], float] = time.monotonic
    answered: list[float] = field(default_factory=list[float])
    refused: list[float] = field(default_factory=list[float])
    in_flight: int = 0
    _began: float | None = None
    _level: float = 1.0
    _at: float = 0.0

    @property
    def now(self) -> float:
        if self._began is None:
            self._began = self.clock()
        return self.clock() - self._began

    def enter(self) -> float | None:
        """Admit a call (None), or refuse it and return the seconds for Retry-After (0: none)."""
        now = self.now
        limit = self.limit(now)
        if self.kind == "rate":
            self._level = min(max(1.0, limit), self._level + (now - self._at) * limit)
            self._at = now
            admitted = self._level >= 1
        else:
            admitted = self.in_flight < limit
        if not admitted:
            self.refused.append(now)
            return (1 - self._level) / limit if self.kind == "rate" else 0.0
        self._level -= 1
        self.in_flight += 1
        return None

    def leave(self) -> None:
        """End an admitted call."""
        self.in_flight -= 1
        self.answered.append(self.now)
