"""Any OpenAI-compatible chat endpoint: OpenAI, Gemini, vLLM, SGLang, Ollama, or one in the cluster.

python -m ray_jobs.neptune videos=V out=O llm=openai llm.model=gpt-6-luna
"""

from __future__ import annotations

import base64
import functools
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, get_args

from actors.calls.batches import BatchClient, BatchSettings, Count
from actors.calls.connection import Connection, connect
from actors.calls.endpoint import CHARACTERS_PER_TOKEN, CallEstimate, Endpoint
from actors.calls.parameters import EndpointParameters
from actors.calls.reply_bodies import (
    UNREADABLE,
    is_filtered,
    parse_bill,
    parse_cache,
    parse_counts,
    parse_logprobs,
    parse_message,
    parse_model,
    parse_object,
    parse_tokens,
)
from actors.part import Capabilities
from mustsee.calls.image_tokens import Detail, image_rule, video_second
from mustsee.calls.limits import Limits, Quota
from mustsee.calls.llm import Message, Reply, Request, VideoClip, VideoInput
from mustsee.calls.refusals import DETAIL, LIMITS, SCHEMA, adapt_request
from mustsee.errors import BadRow, Transient, Unparsed, UserError, hide_secrets
from mustsee.files.store import Store, hardware
from mustsee.media.clips import added_characters, clip_parts, goes_as_clip
from mustsee.replies.forms import find_json, whole_characters

TRIAL_TEXT = "Hello"  # the prompt of the trial
TRIAL_FORM = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
THOUGHT_TOKENS = 4096  # room for the reasoning of a model that reasons
VIDEO_SECOND = 290.0  # tokens of a second of video, of a model whose family is not known to take it


@dataclass(frozen=True, kw_only=True)
class OpenAI(Endpoint):
    """A chat endpoint.

    Without a schema, the prompt asks for the same reply in labelled lines.
    """

    structured: Literal["auto", "json_schema", "none"] = "auto"
    """Form of replies: json_schema, none (labelled lines), auto (a schema until the endpoint
    refuses or ignores one)."""
    token_limit: str = "max_completion_tokens"
    """Endpoint's name for the limit of output tokens (older: max_tokens)."""
    thought_tokens: int | None = None
    """Tokens for thinking, on top of those of the reply, e.g. 16000; null: 4096 for a model
    that thinks, by the table of models."""
    reasoning_effort: str | None = None
    """Amount of thinking, as the endpoint names it: none, low, medium, high; null: its
    default."""
    opens_thoughts: bool = False
    """Expect replies that begin inside the thinking, without an opening tag (a server without
    its reasoning parser)."""
    frames_as: Literal["images", "clip"] = "images"
    """Form in which frames are sent: images, clip (one clip of a frame a second, for a model
    that takes video; whether it sees as much was not verified)."""
    detail: Detail = "auto"
    """Resolution at which the endpoint reads frames: auto, low, medium (of Gemini), high."""
    image_tokens: float | None = hardware(None)
    """Tokens billed for a frame; null: by the rule of the model's family; corrected by the
    usage in replies."""
    omit: Sequence[str] = ()
    """Request parameters that are never sent, e.g. [temperature, top_p]; those that the
    endpoint refuses are left out by themselves."""
    extra_body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further JSON fields of every request."""
    looks: bool = hardware(True)
    """Capability: the model takes images; false: answers are not verified against the video."""
    watches: bool = hardware(False)
    """Capability: the model takes videos; true: it is shown the video itself in place of
    frames."""
    video: VideoInput = field(default_factory=VideoInput, metadata={"identity": False})
    """Settings of watches: true."""
    fallback: Sequence[Mapping[str, Any]] = hardware(())
    """Models asked when this one stops replying for patience=, has no credit or refuses its
    key: [{model: M, base_url: U, key_env: K}]."""
    batch: Literal["auto", "never", "always"] = hardware("never")
    """Use of the endpoint's batch route (half price, within a day): never, always, auto (where
    it exists and enough calls wait)."""
    batches: BatchSettings = field(default_factory=BatchSettings, metadata={"identity": False})
    """Settings of batch: always and auto."""

    def __post_init__(self) -> None:
        if self.batch not in ("auto", "never", "always"):
            raise UserError(f"batch={self.batch!r}: choose one of auto, never, always")
        if self.structured not in ("auto", "json_schema", "none"):
            raise UserError(
                f"structured={self.structured!r}: choose one of auto, json_schema, none"
            )
        if self.frames_as not in ("images", "clip"):
            raise UserError(f"frames_as={self.frames_as!r}: choose one of images, clip")
        if self.detail not in get_args(Detail):
            choices = ", ".join(get_args(Detail))
            raise UserError(f"detail={self.detail!r}: choose one of {choices}")
        if self.thought_tokens is not None and self.thought_tokens < 0:
            raise UserError(f"thought_tokens={self.thought_tokens!r}: must be 0 or more")

    @property
    def identity(self) -> str:
        """Model, address, and the fields that differ from their defaults."""
        named = f"openai {self.model} at {self.base_url}"
        other = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.metadata.get("identity", True) and f.name not in ("model", "base_url")
        }
        changed = {name: v for name, v in other.items() if v and v != DEFAULTS[name]}
        return named + (f" {json.dumps(changed, sort_keys=True, default=list)}" if changed else "")

    @property
    def ways(self) -> tuple[OpenAI, ...]:
        """This model and its fallbacks. Raises UserError for an unknown key of a fallback."""
        keys = {f.name for f in fields(self)} - {"fallback"}
        for number, differs in enumerate(self.fallback):
            for name in differs:
                if name not in keys:
                    raise UserError(
                        f"fallback[{number}] of {self.model!r} has a key {name!r}; "
                        f"keys: {', '.join(sorted(keys))}"
                    )
        differences = [
            {**d, "limits": Limits(**d["limits"])} if isinstance(d.get("limits"), dict) else d
            for d in self.fallback
        ]
        return (self, *(replace(self, fallback=(), **differs) for differs in differences))

    def check(self, budget_usd: float | None) -> None:
        """As `Endpoint.check`, for this model and its fallbacks."""
        for way in self.ways:
            Endpoint.check(way, budget_usd)

    @property
    def endpoint(self) -> Endpoint:
        return self

    @property
    def room_for_thoughts(self) -> int:
        """Tokens of a reply that may be reasoning, besides those asked for."""
        if self.thought_tokens is not None:
            return self.thought_tokens
        thinks = self.table_row is not None and self.table_row.thinks
        return THOUGHT_TOKENS if thinks and self.reasoning_effort != "none" else 0

    def _tokens(self, jpeg: bytes) -> float:
        """Tokens of an image."""
        if self.image_tokens is not None:
            return self.image_tokens
        return image_rule(self.model).image(*image_size(jpeg), self.detail)

    def frame_tokens(self, message: Message, *, clip: bool) -> float | None:
        """Tokens of the frames of a message as images, or as a clip; None: the family of the model
        takes no video.
        """
        rule = image_rule(self.model)
        frames = [rule.frame(*image_size(jpeg), self.detail) for jpeg in message.images]
        known = [frame for frame in frames if frame is not None]
        if clip and len(known) < len(frames):
            return None
        as_clip = clip and goes_as_clip(message)
        return rule.fps * sum(known) if as_clip else sum(map(self._tokens, message.images))

    def _frame_tokens(self, message: Message) -> float:
        """Tokens of the frames of a message as they are sent. A clip of a model whose family is
        not known to take video is counted as images are.
        """
        tokens = self.frame_tokens(message, clip=self.frames_as == "clip")
        return sum(map(self._tokens, message.images)) if tokens is None else tokens

    def video_tokens(self, request: Request) -> float:
        """Tokens of the videos of a request."""
        seconds = sum(clip.span.seconds for m in request.messages for clip in m.clips)
        tokens = self.video.tokens
        if tokens is None:
            tokens = video_second(self.model, self.video.longest, self.detail)
        return seconds * (VIDEO_SECOND if tokens is None else tokens)

    def clip_tokens(self, request: Request) -> float:
        """Tokens of the clips of frames of a request."""
        if self.frames_as == "images":
            return 0.0
        return sum(self._frame_tokens(m) for m in request.messages if goes_as_clip(m))

    def text_tokens(self, request: Request) -> float:
        """Tokens of the texts of a request and of what says the form of its reply."""
        schema = self.structured != "none" and request.form is not None
        characters = sum(len(m.text) for m in request.messages_for(schema=schema))
        characters += len(json.dumps(request.form)) if schema else 0
        if self.frames_as == "clip":
            characters += sum(added_characters(m) for m in request.messages)
        return characters / CHARACTERS_PER_TOKEN

    def estimate(self, request: Request) -> CallEstimate:
        tokens_in = sum(4 + self._frame_tokens(m) for m in request.messages)
        tokens_in += self.text_tokens(request) + self.video_tokens(request)
        most = request.sampling.max_tokens + self.room_for_thoughts
        usd, usd_in = self.price.usd(tokens_in, most), self.price.usd(tokens_in, 0)
        return CallEstimate(tokens_in=tokens_in, tokens_out=most, usd=usd, usd_in=usd_in)

    def open(self) -> OpenAIChat:
        return OpenAIChat(self)

    def trial_body(self) -> dict[str, Any]:
        """The request of the trial: one token, with all parameters that no call decides."""
        messages = (Message("user", TRIAL_TEXT),)
        request = Request(prompt="trial", digest="", messages=messages, form=TRIAL_FORM)
        body = adapt_request(self.open().whole_body(request), dict.fromkeys(self.omit, ""))
        return body | {name: 1 for name in LIMITS if name in body}

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            images=self.looks,
            video=self.video if self.watches else None,
            batch_rows=0 if self.batch == "never" else self.batches.rows,
        )

    def by_batch(self, store: Store, count: Count) -> BatchClient | None:
        """What batches the calls of this model; None: they are not batched."""
        if self.batch == "never":
            return None
        chat = self.open()
        chat.remember(store)
        return BatchClient(chat, self, store, count)


DEFAULTS = {f.name: f.default for f in fields(OpenAI)}


class OpenAIChat:
    """The connected model. Raises UserError without a key."""

    def __init__(self, config: OpenAI) -> None:
        self._config = config
        self.identity = config.identity  # computed once, because every call needs it
        self.connection: Connection = connect(config)
        self._structured = config.structured != "none"  # whether schemas are sent
        fixed = (SCHEMA,) if config.structured == "json_schema" else ()
        self.parameters = EndpointParameters(config, fixed, config.omit)

    def remember(self, store: Store) -> None:
        """Keep what the endpoint refuses in a store."""
        self.parameters.remember(store)

    @property
    def quotas(self) -> Mapping[str, Quota]:
        """The limits that the endpoint reported with its last reply."""
        return self.connection.quotas

    async def complete(self, request: Request) -> Reply:
        """Make one call, without retries, except after the refusal of a parameter. An empty,
        truncated or unparseable body is Transient; a filtered or too long request is BadRow. A
        model that declines gives a reply with finish "refusal".
        """

        async def post(body: Mapping[str, Any]) -> Mapping[str, Any]:
            return await self.connection.post("/chat/completions", body, request.wait)

        completion = await self.parameters.send(post, lambda: self.body(request))
        reply = self.read(request, completion)
        left_out = self._left_out(request)
        return replace(reply, left_out=left_out) if left_out else reply

    def _left_out(self, request: Request) -> tuple[str, ...]:
        """The parameters that the endpoint refuses and this request would have."""
        names = self.parameters.left_out
        whole = self.whole_body(request) if names else {}
        return tuple(n for n in names if n in whole or (n == DETAIL and any_images(request)))

    def _note_ignored_schema(self, request: Request, reply: str) -> None:
        """Send no more schemas if a reply is not JSON, which an endpoint that keeps to its schema
        cannot write. The lines then say the form.
        """
        if not self._structured or request.form is None or self._config.structured != "auto":
            return
        with suppress(Unparsed):  # A reply that is invalid JSON tried to keep to the schema.
            self._structured = find_json(reply, request.form.get("required", ())) is not None

    def body(self, request: Request) -> dict[str, Any]:
        """The JSON body of a request, without what the endpoint refuses."""
        return self.parameters.adapt(self.whole_body(request))

    def whole_body(self, request: Request) -> dict[str, Any]:
        """The JSON body of a request, with the parameters that the endpoint refuses."""
        config, sampling = self._config, request.sampling
        body: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": request.seed,
            config.token_limit: sampling.max_tokens + config.room_for_thoughts,
        }
        if config.reasoning_effort is not None:
            body["reasoning_effort"] = config.reasoning_effort
        if sampling.top_logprobs:
            body |= {"logprobs": True, "top_logprobs": sampling.top_logprobs}
        takes_schema = self._structured and SCHEMA not in self.parameters.changes
        if sends_schema := takes_schema and request.form is not None:
            schema = {
                "name": request.prompt.replace("/", "_"),
                "schema": request.form,
                "strict": is_strict(request.form),
            }
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        messages = request.messages_for(schema=sends_schema)
        body |= {"model": config.model, "messages": [self._message(m) for m in messages]}
        return {**body, **config.extra_body}

    def _message(self, message: Message) -> dict[str, Any]:
        if not message.images and not message.clips:
            return {"role": message.role, "content": message.text}
        as_clip = self._config.frames_as == "clip"
        parts = clip_parts(message) if as_clip else message.parts
        return {"role": message.role, "content": [self._part(part) for part in parts]}

    def _part(self, part: str | bytes | VideoClip) -> dict[str, Any]:
        if isinstance(part, str):
            return {"type": "text", "text": part}
        if isinstance(part, bytes):
            image = {"url": data_url(part), "detail": self._config.detail}
            return {"type": "image_url", "image_url": image}
        kind = self._config.video.part
        return {"type": kind, kind: {"url": part.address or data_url(part.mp4, "video/mp4")}}

    def read(self, request: Request, completion: Mapping[str, Any]) -> Reply:
        """Parse the body of a reply; returns and raises as `complete`."""
        try:
            return self._parse(request, completion)
        except (BadRow, Transient) as error:  # the reply may be billed all the same
            error.usage = parse_bill(completion, self.connection.endpoint.price)
            error.sent = error.usage is None and not completion.get("error")
            raise

    def _parse(self, request: Request, completion: Mapping[str, Any]) -> Reply:
        where = self.connection.place
        try:
            choice = completion["choices"][0]
            finish, message = choice.get("finish_reason"), choice["message"]
            declined = message.get("refusal")
            parsed = parse_message(message, opened=self._config.opens_thoughts)
        except UNREADABLE:
            raise Transient(f"{where}: the reply has no choice with a text") from None
        if is_filtered(finish):
            raise BadRow(f"{where}: the content filter stopped prompt {request.prompt!r}")
        text = hide_secrets(whole_characters(str(declined))) if declined else parsed.reply
        if parsed.unfinished:
            finish = "length"
        if not text.strip() and not parsed.thoughts and finish != "length":
            raise Transient(f"{where}: the reply is empty")
        finish = "refusal" if declined else finish
        if finish == "stop" and text.strip():
            self._note_ignored_schema(request, text)
        used = self._tokens_used(request, completion, parsed.thoughts, text)
        return Reply(
            text=text,
            model=parse_model(completion, self._config.model),
            thoughts=parsed.thoughts,
            tokens_in=used.tokens_in,
            tokens_out=used.tokens_out,
            tokens_thought=used.tokens_thought,
            tokens_cached=used.tokens_cached,
            usd=self.connection.endpoint.price.usd(
                used.tokens_in, used.tokens_out, used.tokens_cached, used.tokens_written
            ),
            finish=finish if finish in ("length", "refusal") else "stop",
            logprobs=parse_logprobs(choice) if request.sampling.top_logprobs else None,
        )

    def _tokens_used(
        self, request: Request, completion: Mapping[str, Any], thoughts: str, text: str
    ) -> _TokensUsed:
        """Tokens as the endpoint counts them, or estimated by characters where it gives no valid
        number.
        """
        usage = parse_object(completion.get("usage"))
        tokens_in, tokens_out = parse_counts(usage)
        self._check_videos_counted(request, tokens_in)
        if tokens_in is None:
            tokens_in = round(self._config.estimate(request).tokens_in)
        if tokens_out is None:
            tokens_out = round((len(thoughts) + len(text)) / CHARACTERS_PER_TOKEN)
        details = parse_object(usage.get("completion_tokens_details"))
        thought = parse_tokens(details.get("reasoning_tokens"))
        if thought is None:
            thought = round(tokens_out * len(thoughts) / max(1, len(thoughts) + len(text)))
        return _TokensUsed(tokens_in, tokens_out, thought, *parse_cache(usage, tokens_in))

    def _check_videos_counted(self, request: Request, tokens_in: int | None) -> None:
        """Raise UserError if the tokens counted are too few for the videos sent: some endpoints
        ignore content that they do not support, and answer without it.
        """
        videos = self._config.video_tokens(request) + self._config.clip_tokens(request)
        if tokens_in is None or not videos:
            return
        text = self._config.text_tokens(request)
        if videos >= text and tokens_in <= text:
            raise UserError(
                f"{self.connection.place} counts {tokens_in} tokens for a prompt of about "
                f"{text:.0f} and a video of about {videos:.0f}: it seems to ignore the video; try "
                "video.part=image_url, correct video.tokens=, or set watches=false (for frames: "
                "frames_as=images)"
            )


class _TokensUsed(NamedTuple):
    tokens_in: int
    tokens_out: int
    tokens_thought: int
    tokens_cached: int
    tokens_written: int


@functools.lru_cache(maxsize=64)
def image_size(jpeg: bytes) -> tuple[int, int]:
    """The width and height of an image; of what is none, which the endpoint will refuse, one
    pixel.
    """
    from PIL import Image

    try:
        return Image.open(io.BytesIO(jpeg)).size  # reads only the header
    except OSError:
        return 1, 1


def any_images(request: Request) -> bool:
    """Whether a request shows images."""
    return any(message.images for message in request.messages)


def data_url(content: bytes, kind: str = "image/jpeg") -> str:
    """The content as a `data:` URL."""
    return f"data:{kind};base64," + base64.b64encode(content).decode()


def is_strict(schema: Any) -> bool:
    """Whether a JSON schema meets the rule of strict structured output: every object lists all its
    properties as required and allows no others.
    """
    if isinstance(schema, Mapping):
        if schema.get("type") == "object" or "properties" in schema:
            listed = set(schema.get("properties", {}))
            if schema.get("additionalProperties") is not False:
                return False
            if set(schema.get("required", ())) != listed:
                return False
        return all(is_strict(value) for value in schema.values())
    return all(map(is_strict, schema)) if isinstance(schema, (list, tuple)) else True
