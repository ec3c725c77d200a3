"""The interface to language models: a `Request` goes in, a `Reply` comes out.

Every model (rules, an endpoint, recorded replies) is an `Llm`. Recipes and filters call
`Asker.ask`, which renders a prompt, sends it, and parses the reply strictly by its form
(`mustsee.replies.forms`). An unparseable reply is returned to the model with the error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.files.store import hardware
from mustsee.prompts import Prompts, RenderedPrompt
from mustsee.records import Span, Video, is_rules
from mustsee.replies.forms import Form
from mustsee.replies.thinking import has_only_closing_tag

T = TypeVar("T")
ONLY_CLOSING_TAG = (
    "it has the closing tag of a model's reasoning without an opening one; if the server does not "
    "split off reasoning, start it with its reasoning parser or set llm.opens_thoughts=true"
)
IMAGE_MARK = "\ufffc"  # marks the place of an image in a text


@dataclass(frozen=True, kw_only=True)
class VideoClip:
    """A clip of a video for a model that watches: an MP4 file, or an `address` for the endpoint.

    `digest`: hash of the video, the span and the encoding settings. It identifies the clip in place
    of the bytes, which differ between versions of an encoder.
    """

    span: Span
    digest: str
    mp4: bytes = field(default=b"", repr=False)
    address: str = ""


@dataclass(frozen=True, kw_only=True)
class VideoInput:
    """The videos that a model takes."""

    max_seconds: float = 3300
    """Seconds of video in one request; more is shown as frames (Gemini: 1 million tokens)."""
    max_mb: float = 14
    """MB of video in one request, before base64 adds a third (Gemini: 20 MB in all)."""
    max_parts: int = 8
    """Clips in one request (vLLM: --limit-mm-per-prompt)."""
    fps: float = 2
    """Frame rate of clips that must be encoded, frames per second."""
    longest: int = 512
    """Longer side of such a clip, pixels."""
    tokens: float | None = hardware(None)
    """Tokens per second of video, for the estimate; null: by the rule of the model's family."""
    address: str | None = None
    """Base URL where the endpoint finds the videos by their file names; null: they are sent."""
    part: Literal["video_url", "image_url"] = "video_url"
    """Endpoint's name for a video in a message: video_url, image_url."""

    def __post_init__(self) -> None:
        for name in ("max_seconds", "max_mb", "max_parts", "fps", "longest"):
            if getattr(self, name) <= 0:
                raise UserError(f"video.{name}={getattr(self, name)!r}: more than 0")
        if self.part not in ("video_url", "image_url"):
            raise UserError(f"video.part={self.part!r}: choose one of video_url, image_url")


class PreparesVideo(Protocol):
    """Prepares videos for a model that watches them (`mustsee.verify.conditions.video_frames`)."""

    @property
    def video(self) -> VideoInput: ...

    def clips(
        self, video: Video, spans: Sequence[Span], *, sound: bool, exact: bool
    ) -> tuple[VideoClip, ...] | None:
        """Return a clip for each span, or None where they exceed what the model takes."""
        ...


@dataclass(frozen=True)
class Message:
    """One chat turn; `images` are JPEG bytes.

    `lines`: asks for the reply in labelled lines; appended to the text for a model that gets no
    JSON schema. Images go where the text has an `IMAGE_MARK` for each of them, and otherwise before
    the text. Clips go first.
    """

    role: str
    text: str
    images: tuple[bytes, ...] = ()
    clips: tuple[VideoClip, ...] = ()
    lines: str = ""

    def with_lines(self) -> Message:
        """Return the message for a model that gets no JSON schema."""
        if not self.lines:
            return self
        return replace(self, text=f"{self.text}\n\n{self.lines}", lines="")

    @property
    def parts(self) -> tuple[str | bytes | VideoClip, ...]:
        """Clips, text and images in the order in which the model gets them."""
        first, *rest = self.text.split(IMAGE_MARK)
        if len(rest) != len(self.images):
            return (*self.clips, *self.images, self.text.replace(IMAGE_MARK, ""))
        placed = zip(self.images, rest, strict=True)
        interleaved = (first, *(part for pair in placed for part in pair))
        return (*self.clips, *(p for p in interleaved if isinstance(p, bytes) or p.strip()))


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Settings of decoding."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 4096
    """Output tokens of one reply."""
    top_logprobs: int = 0
    """Alternatives per output token whose log-probabilities are requested."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One call.

    `messages`: without the request for labelled lines, which each of them has beside its text.
    `variables`: the prompt's variables; rules read them, and they are not sent to endpoints.
    `form`: the JSON schema of the reply, if it has one.
    `attempt`: number of earlier replies that could not be parsed.
    `reason`: why the last of them could not be parsed.
    `wait`: seconds for which the reply is waited for; None: as the model is configured.
    """

    prompt: str
    digest: str
    messages: tuple[Message, ...]
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sampling: Sampling = Sampling()
    seed: int = 0
    form: Mapping[str, Any] | None = None
    attempt: int = 0
    reason: str = ""
    wait: float | None = None

    def messages_for(self, *, schema: bool) -> tuple[Message, ...]:
        """Return the messages as they are sent. Exactly one of both says the form of the reply: the
        JSON `form`, if `schema` (it is sent beside them), or else the lines.
        """
        return self.messages if schema else tuple(m.with_lines() for m in self.messages)

    def key(self, identity: str) -> str:
        """Return the hash of everything that decides the reply: identity, messages with their
        lines, sampling, seed, form and attempt; of rules, which read them, the variables, too.
        Whether an endpoint took the schema is not part of it, so that a second run finds the
        replies of the first.
        """
        total = hashlib.sha256()
        for message in self.messages:
            turn = [message.role, message.text, len(message.images)]
            turn += [message.lines] if message.lines else []
            total.update(json.dumps(turn).encode())
            for image in message.images:
                total.update(hashlib.sha256(image).digest())
            for clip in message.clips:
                total.update(f"clip {clip.digest} {clip.address}".encode())
        rest = [identity, self.prompt, vars(self.sampling), self.seed, self.form, self.attempt]
        total.update(json.dumps(rest, sort_keys=True, default=str).encode())
        if is_rules(identity):
            total.update(repr(sorted(self.variables.items())).encode())
        return total.hexdigest()


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A model's reply.

    `text`: the reply without reasoning; `thoughts`: the reasoning.
    `tokens_out`: tokens of both, of which `tokens_thought` are reasoning. `tokens_cached`: of
    `tokens_in`, those that the endpoint took from its cache of prompts.
    `finish`: "stop", "length" (cut off by max_tokens) or "refusal".
    `by`: identity of the model that answered in place of the requested one, else "".
    `batched`: sent by an endpoint's batch route.
    `logprobs`: for each output token, the log-probabilities of alternatives.
    `left_out`: parameters of the request that the endpoint refuses, such as "seed".
    """

    text: str
    model: str
    thoughts: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_thought: int = 0
    tokens_cached: int = 0
    usd: float = 0.0
    finish: str = "stop"
    cached: bool = False
    by: str = ""
    batched: bool = False
    logprobs: tuple[Mapping[str, float], ...] | None = None
    left_out: tuple[str, ...] = ()


class Llm(Protocol):
    """A language model.

    `identity`: names everything besides the request that decides a reply: model, revision,
    endpoint.
    """

    @property
    def identity(self) -> str: ...

    async def complete(self, request: Request) -> Reply:
        """Return the reply. Raises Transient (try later), BadRow (can never work), BudgetSpent."""
        ...


class ProvenanceRecorder:
    """Wraps a model for one row and remembers which models answered: they are its identity."""

    def __init__(self, llm: Llm) -> None:
        self._llm = llm
        self._answered: dict[str, None] = {}

    @property
    def identity(self) -> str:
        return " + ".join(self._answered) or self._llm.identity

    async def complete(self, request: Request) -> Reply:
        reply = await self._llm.complete(request)
        without = f" without {', '.join(reply.left_out)}" if reply.left_out else ""
        self._answered[(reply.by or self._llm.identity) + without] = None
        return reply


@dataclass(frozen=True, kw_only=True)
class FreshReplies:
    """A model of which stored replies do not count that are not `readable`: it is asked anew."""

    llm: Llm
    readable: Callable[[Reply], bool]

    @property
    def identity(self) -> str:
        return self.llm.identity

    async def complete(self, request: Request) -> Reply:
        """As `Llm.complete`."""
        reply = await self.llm.complete(request)
        while reply.cached and not self.readable(reply):
            request = replace(request, attempt=request.attempt + 1)
            reply = await self.llm.complete(request)
        return reply


@dataclass(frozen=True)
class _UnreadableChat:
    """A chat without a readable reply: why the last one is not, and whether all are stored ones."""

    reason: str
    is_stored: bool


@dataclass(frozen=True, kw_only=True)
class Asker:
    """A model, the prompts and the settings with which a recipe asks it.

    `tries`: unparseable replies to one prompt after which the row becomes a problem.
    `watch`: prepares videos for the model; None: it gets frames. `retries_stored`: where all tries
    are unparseable replies from the store, the model is asked anew.
    """

    llm: Llm
    prompts: Prompts
    sampling: Sampling = Sampling()
    tries: int = 3
    watch: PreparesVideo | None = None
    retries_stored: bool = False

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise UserError(f"tries={self.tries!r}: at least 1")

    def with_provenance(self) -> Asker:
        """Return an asker for one row, whose identity names the models that answered."""
        return replace(self, llm=ProvenanceRecorder(self.llm))

    async def ask(
        self,
        name: str,
        form: Form[T],
        *,
        seed: int = 0,
        images: Sequence[bytes] = (),
        clips: Sequence[VideoClip] = (),
        history: Sequence[Message] = (),
        **variables: Any,
    ) -> T:
        """Render prompt `name`, send it with the form of the reply, and parse the reply. The model
        gets the form as a JSON schema, or as lines if it takes no schemas.

        An unparseable reply is returned to the model with the reason. After a reply that was cut
        off, the same prompt is sent with twice the `max_tokens`. `history`: earlier turns of the
        chat. Raises BadRow after `tries` unparseable replies; with `retries_stored`, replies from
        the store do not count.
        """
        rendered = self.prompts.render(name, **variables)
        first = Request(
            prompt=name,
            digest=rendered.digest,
            messages=_chat(rendered, images, clips, history),
            variables=variables,
            sampling=self.sampling,
            seed=seed,
            form=form.schema,
        )
        while True:
            result = await self._chat(first, form)
            if not isinstance(result, _UnreadableChat):
                return result
            if not (self.retries_stored and result.is_stored):
                break
            first = replace(first, attempt=first.attempt + self.tries)
        raise BadRow(
            f"prompt {name!r}: none of {self.tries} replies of {self.llm.identity} could be "
            f"parsed; the last one: {result.reason}"
        )

    async def _chat(self, first: Request, form: Form[T]) -> T | _UnreadableChat:
        """Send a request, and after each unparseable reply the reason, at most `tries` times in
        all.
        """
        request, reason, is_stored = first, "", True
        for attempt in range(first.attempt, first.attempt + self.tries):
            request = replace(request, attempt=attempt, reason=reason)
            reply = await self.llm.complete(request)
            is_stored = is_stored and reply.cached
            if reply.finish == "length":
                reason = f"it was cut off after {reply.tokens_out} tokens"
                sampling = request.sampling
                longer = replace(sampling, max_tokens=2 * sampling.max_tokens)
                request = replace(request, sampling=longer)
                continue
            try:
                if reply.finish == "refusal":
                    raise Unparsed("it declines to answer")
                if form.schema is None and has_only_closing_tag(reply.text):
                    raise Unparsed(ONLY_CLOSING_TAG)
                return form.read(reply.text)
            except Unparsed as error:
                reason = str(error)
                answer = Message("assistant", reply.text or "(nothing)")
                correcting = Message("user", correction(reason))
                request = replace(request, messages=(*request.messages, answer, correcting))
        return _UnreadableChat(reason, is_stored)

    def messages(
        self,
        name: str,
        *,
        images: Sequence[bytes] = (),
        clips: Sequence[VideoClip] = (),
        history: Sequence[Message] = (),
        **variables: Any,
    ) -> tuple[Message, ...]:
        """Return the messages of a chat that ends with prompt `name`."""
        return _chat(self.prompts.render(name, **variables), images, clips, history)


def _chat(
    rendered: RenderedPrompt,
    images: Sequence[bytes],
    clips: Sequence[VideoClip],
    history: Sequence[Message],
) -> tuple[Message, ...]:
    opening = (Message("system", rendered.system),) if rendered.system and not history else ()
    question = Message("user", rendered.user, tuple(images), tuple(clips), rendered.lines)
    return (*opening, *history, question)


def correction(reason: str) -> str:
    """Return the message that asks a model to repeat an unparseable reply."""
    return (
        f"Your reply could not be used: {reason}. "
        "Answer again, completely, and exactly in the form required."
    )
