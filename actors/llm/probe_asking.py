"""The model under probe: as any other endpoint, but what its replies count and refuse is recorded,
and a video that it seems to ignore ends nothing. What a probe of it costs at most; one call, and
what became of it; and a short ramp: more and more calls at once, until the server refuses one.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from actors.calls.reply_bodies import parse_object, parse_tokens
from actors.llm.openai import OpenAI, OpenAIChat
from actors.part import LlmConfig
from mustsee.calls.limits import Quota
from mustsee.calls.llm import Llm, Reply, Request, Sampling
from mustsee.errors import BadRow, BudgetSpent, Busy, KeyRefused, Transient, Unparsed, UserError
from mustsee.prompts import Prompts
from mustsee.server_probe.record import NO_USAGE, RampStep, ReportedUsage, State
from mustsee.server_probe.steps import ProbeSettings, ProbeStep, planned_steps, word_step
from mustsee.text import money

MAX_REASON = 300  # characters of an endpoint's words that are kept
MAX_STEP_S = 60.0  # seconds for which the calls of one step are waited for
POLL_S = 0.02  # seconds between two looks at the log
VIDEO_PARTS = ("video_url", "image_url")  # names of a video in a message


@dataclass
class ReplyLog:
    """What the replies report. `usages`: by the mark of their request. `models`: named in them.
    `busy`: the Retry-After, in seconds, of each refusal for overload; None: it had none.
    """

    usages: dict[str, ReportedUsage] = field(default_factory=dict[str, ReportedUsage])
    models: dict[str, None] = field(default_factory=dict[str, None])
    busy: list[float | None] = field(default_factory=list[float | None])
    quotas: Mapping[str, Quota] = field(default_factory=dict[str, Quota])


@dataclass(frozen=True, kw_only=True)
class ProbedModel(OpenAI):
    """An endpoint whose replies are recorded in `log`."""

    log: ReplyLog = field(default_factory=ReplyLog, metadata={"identity": False})

    @classmethod
    def of(cls, llm: LlmConfig, model: str | None, attempts: int, patience: float) -> ProbedModel:
        """Return `llm` as a model under probe: alone, call by call, without a search for limits.
        `model`: its name in place of that of `llm`. Raises UserError for a model that is no
        endpoint.
        """
        if not isinstance(llm, OpenAI):
            raise UserError("llm= of a probe must be an endpoint: llm=openai")
        given: dict[str, Any] = {f.name: getattr(llm, f.name) for f in fields(llm)}
        own: dict[str, Any] = {
            "fallback": (), "batch": "never", "frames_as": "images", "model": model or llm.model,
            "limits": replace(llm.limits, search=False), "attempts": attempts, "patience": patience,
        }  # fmt: skip
        return cls(**{**given, **own})

    def open(self) -> ProbedChat:
        return ProbedChat(self)


class ProbedChat(OpenAIChat):
    """The connected model under probe."""

    def __init__(self, config: ProbedModel) -> None:
        super().__init__(config)
        self._log = config.log

    async def complete(self, request: Request) -> Reply:
        try:
            return await super().complete(request)
        except Busy as error:
            self._log.busy.append(error.retry_after)
            raise

    def whole_body(self, request: Request) -> dict[str, Any]:
        """As of any model, with the parameters that the request tries, and its name of a video."""
        body = {**request.variables.get("parameters", {}), **super().whole_body(request)}
        part = request.variables.get("part")
        return {**body, "messages": [_rename_video(m, part) for m in body["messages"]]}

    def read(self, request: Request, completion: Mapping[str, Any]) -> Reply:
        usage = completion.get("usage")
        self._log.usages[request.variables["mark"]] = read_usage(usage)
        reply = super().read(request, completion)
        self._log.models[reply.model] = None
        self._log.quotas = self.quotas or self._log.quotas
        return reply

    def _check_videos_counted(self, request: Request, tokens_in: int | None) -> None:
        """Nothing: the probe itself says whether the video was seen and counted."""


def _rename_video(message: Mapping[str, Any], part: str | None) -> Mapping[str, Any]:
    """The message with its videos under the name `part`, if one is given."""
    content: Any = message.get("content")
    if not part or not isinstance(content, list):
        return message
    return {**message, "content": [
        {"type": part, part: each[each["type"]]} if _is_video(each) else each for each in content
    ]}  # fmt: skip


def _is_video(part: Mapping[str, Any]) -> bool:
    kind = part["type"]
    return kind == "video_url" or (
        kind in VIDEO_PARTS and str(part[kind].get("url", "")).startswith("data:video/")
    )


def read_usage(usage: Any) -> ReportedUsage:
    """Return the counts of a `usage` as they are; a field that is no number counts as missing."""
    given = parse_object(usage)
    details, thought = (
        parse_object(given.get(f"{name}_tokens_details")) for name in ("prompt", "completion")
    )
    return ReportedUsage(
        prompt=parse_tokens(given.get("prompt_tokens")),
        reply=parse_tokens(given.get("completion_tokens")),
        total=parse_tokens(given.get("total_tokens")),
        cached=parse_tokens(details.get("cached_tokens")),
        thought=parse_tokens(thought.get("reasoning_tokens")),
    )


@dataclass(frozen=True, kw_only=True)
class CallPlan:
    """Upper limits: calls, tokens in and out, and USD; None: the model's price is not known."""

    calls: int
    tokens_in: int
    tokens_out: int
    usd: float | None

    def lines(self, place: str) -> Iterator[str]:
        """Yield what is printed before the first call."""
        cost = "at an unknown price" if self.usd is None else f"{money(self.usd)} USD"
        yield (
            f"probe of {place}: at most {self.calls} calls, {self.tokens_in:,} tokens in, "
            f"{self.tokens_out:,} out, {cost}, retries apart; far less where replies are short and "
            "no fault shows"
        )


def plan_calls(model: ProbedModel, settings: ProbeSettings, seed: int) -> CallPlan:
    """Return what the calls of a probe cost if every step is asked as often as it may be, and every
    reply is as long as it may be.
    """
    prompts, sampling = Prompts(), Sampling(max_tokens=settings.max_tokens)
    calls, tokens_in, tokens_out, usd = 1, 0.0, 0, 0.0  # one call tries the endpoint
    for step, times in planned_steps(settings, seed):
        estimate = model.estimate(step.request(prompts, "0" * 13, sampling, encoded=False))
        calls += times
        tokens_in += times * estimate.tokens_in
        tokens_out += times * estimate.tokens_out
        usd += times * estimate.usd
    return CallPlan(
        calls=calls, tokens_in=round(tokens_in), tokens_out=tokens_out,
        usd=None if model.known_price is None else usd,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ProbeReply:
    """What became of a call. `value`: the parsed reply; `why`: the reason where there is none."""

    state: State
    value: Any = None
    why: str = ""
    reply: Reply | None = None
    usage: ReportedUsage = NO_USAGE


class ProbeAsker:
    """Asks a model under probe. `run`: eight hexadecimal digits that mark the requests of this
    probe, so that no reply of an earlier one is taken for its own.
    """

    def __init__(self, model: ProbedModel, llm: Llm, run: str, max_tokens: int) -> None:
        self._model, self._llm, self._run = model, llm, run
        self._prompts, self._sampling = Prompts(), Sampling(max_tokens=max_tokens)
        self._numbers = itertools.count(1)
        self.sent = 0  # calls so far

    @property
    def log(self) -> ReplyLog:
        """What the replies report."""
        return self._model.log

    @property
    def quotas(self) -> Mapping[str, Quota]:
        """The limits that the replies' headers report."""
        return self._model.log.quotas

    def new_mark(self) -> str:
        """Return a mark that no other request has; all are of one length."""
        return f"{self._run}-{next(self._numbers):04d}"

    def request(self, step: ProbeStep, mark: str, *, encoded: bool = True) -> Request:
        return step.request(self._prompts, mark, self._sampling, encoded=encoded)

    async def ask(self, step: ProbeStep, mark: str | None = None) -> ProbeReply:
        """Make one call. Raises KeyRefused, which ends the probe."""
        request = self.request(step, mark or self.new_mark())
        self.sent += 1
        try:
            reply = await self._llm.complete(request)
        except KeyRefused:
            raise
        except BudgetSpent as error:
            return ProbeReply(state="unasked", why=_shorten(error))
        except (BadRow, UserError) as error:
            return ProbeReply(state="refused", why=_shorten(error))
        except Transient as error:
            return ProbeReply(state="failed", why=_shorten(error))
        usage = self._model.log.usages.get(request.variables["mark"], NO_USAGE)
        try:
            value = self._read(step, reply)
        except Unparsed as error:
            why = f"{error}; the reply: {reply.text[:80]!r}"
            return ProbeReply(state="untold", why=_shorten(why), reply=reply, usage=usage)
        return ProbeReply(state="answered", value=value, reply=reply, usage=usage)

    def _read(self, step: ProbeStep, reply: Reply) -> Any:
        if reply.finish == "length":
            raise Unparsed(f"it was cut off after {reply.tokens_out} tokens")
        if reply.finish == "refusal":
            raise Unparsed("it declines to answer")
        return step.form.read(reply.text)


def _shorten(error: object) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - 3] + "..."


async def climb(asker: ProbeAsker, levels: Sequence[int]) -> AsyncIterator[RampStep]:
    """Yield a step for each of the levels, up to the first with a refusal or a failure. A refused
    call is not waited for: its Retry-After is in the step.
    """
    for level in levels:
        step = await _send_at_once(asker, level)
        yield step
        if step.refused or step.failed:
            return


async def _send_at_once(asker: ProbeAsker, level: int) -> RampStep:
    busy_before = len(asker.log.busy)
    began = time.monotonic()
    calls = [asyncio.create_task(asker.ask(word_step(n))) for n in range(level)]
    pending = set(calls)
    while pending and time.monotonic() - began < MAX_STEP_S:
        _, pending = await asyncio.wait(pending, timeout=POLL_S)
        if len(pending) <= len(asker.log.busy) - busy_before:
            break  # all others wait for the server
    seconds = time.monotonic() - began
    for call in pending:
        call.cancel()
    ended = [call.result() for call in calls if call.done() and not call.cancelled()]
    busy = asker.log.busy[busy_before:]
    answered = sum(each.reply is not None for each in ended)
    return RampStep(
        in_flight=level,
        answered=answered,
        refused=len(busy),
        failed=max(0, level - answered - len(busy)),
        seconds=seconds,
        retry_after=max((wait or 0.0 for wait in busy), default=0.0) or None,
    )
