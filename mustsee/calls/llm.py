"""The one seam to language models: a `Request` goes in, a `Reply` comes out.

Every model (rules, an endpoint, recorded replies) is an `Llm`. Recipes and filters call `ask`,
which renders a prompt, sends it, reads the reply strictly by its form (`mustsee.replies.forms`),
and asks again with the error when the reply is of another form.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.prompts import Prompts
from mustsee.records import Span, Video
from mustsee.replies.forms import Form
from mustsee.replies.thinking import has_only_closing_tag

T = TypeVar("T")
HALF_MARKED = (
    "it holds the closing tag of a model's thoughts without an opening one; if the server does not "
    "tell thoughts apart, start it with its reasoning parser or set llm.opens_thoughts=true"
)
PICTURE = "\ufffc"  # stands in a text where a picture goes
RULES = "offline"  # the identity of the rules that stand in for a model begins with this word
UNTESTED = "Not tested against a language model."


def is_rules(identity: str) -> bool:
    """Whether an identity, as verdicts and provenances hold it, is that of rules, and of no model
    that took over from them.
    """
    return all(name.split(" ", 1)[0] == RULES for name in identity.split(" + "))


def untested_note(asked: Mapping[str, Collection[str]]) -> str:
    """What is to be said of verdicts: `asked` is by filter or condition the identities of those who
    were asked. Empty where a language model was asked everywhere.
    """
    ruled = [name for name, models in asked.items() if models and all(map(is_rules, models))]
    if not ruled:
        return ""
    return f"{UNTESTED} Rules were asked in its place: {', '.join(ruled)}."


@dataclass(frozen=True, kw_only=True)
class VideoClip:
    """A stretch of a video as a model watches it: an MP4 file, or the `address` at which its
    endpoint finds the video. `digest`: of the video, the stretch and how it was made; it stands for
    the bytes, which an encoder of another version may make otherwise.
    """

    span: Span
    digest: str
    mp4: bytes = field(default=b"", repr=False)
    address: str = ""


@dataclass(frozen=True, kw_only=True)
class VideoInput:
    """What videos a model takes: `max_seconds` and `max_mb` (files, before base64 adds a third) in
    one request, in at most `max_parts` clips. What has to be coded anew gets `fps` pictures a
    second, `longest` pixels along the longer side. `tokens`: a second of video costs, for the
    estimate. `address`: under it the endpoint finds videos by the names of their files; null: they
    are sent. `part`: what the endpoint calls such a part of a message.
    """

    max_seconds: float = 3300.0
    max_mb: float = 14.0
    max_parts: int = 8
    fps: float = 2.0
    longest: int = 512
    tokens: float = 290.0
    address: str | None = None
    part: Literal["video_url", "image_url"] = "video_url"

    def __post_init__(self) -> None:
        for name in ("max_seconds", "max_mb", "max_parts", "fps", "longest"):
            if getattr(self, name) <= 0:
                raise UserError(f"video.{name}={getattr(self, name)!r}: more than 0")
        if self.part not in ("video_url", "image_url"):
            raise UserError(f"video.part={self.part!r}: choose one of video_url, image_url")


class PreparesVideo(Protocol):
    """How a model that watches is given videos (`mustsee.verify.conditions.watch`)."""

    @property
    def video(self) -> VideoInput: ...

    def clips(
        self, video: Video, spans: Sequence[Span], *, sound: bool, exact: bool
    ) -> tuple[VideoClip, ...] | None:
        """A clip for each stretch; None where that is more than the model takes."""
        ...


@dataclass(frozen=True)
class Message:
    """One chat turn; `images` are JPEG bytes. A text that holds a mark (`PICTURE`) for each of them
    has them in those places; before any other text they come first, and before these the `clips`.
    """

    role: str
    text: str
    images: tuple[bytes, ...] = ()
    clips: tuple[VideoClip, ...] = ()

    @property
    def parts(self) -> tuple[str | bytes | VideoClip, ...]:
        """Videos, text and pictures in the order in which the model is shown them."""
        first, *rest = self.text.split(PICTURE)
        if len(rest) != len(self.images):
            return (*self.clips, *self.images, self.text.replace(PICTURE, ""))
        placed = zip(self.images, rest, strict=True)
        pieces = (first, *(piece for pair in placed for piece in pair))
        return (*self.clips, *(p for p in pieces if isinstance(p, bytes) or p.strip()))


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """`top_logprobs` > 0 asks for the log-probabilities of that many alternatives for each output
    token.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 4096
    top_logprobs: int = 0


@dataclass(frozen=True, kw_only=True)
class Request:
    """One call. `variables` are what the messages were rendered from: rules read them, endpoints
    never see them.

    `form` is a JSON schema when a JSON reply is wanted. `attempt` counts the times that the reply
    could not be parsed, `reason` is why not.
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

    def key(self, identity: str) -> str:
        """Content hash of everything that decides the reply: the model's identity, messages,
        sampling, seed, form.
        """
        total = hashlib.sha256()
        for message in self.messages:
            total.update(json.dumps([message.role, message.text, len(message.images)]).encode())
            for image in message.images:
                total.update(hashlib.sha256(image).digest())
            for clip in message.clips:
                total.update(f"clip {clip.digest} {clip.address}".encode())
        rest = [identity, self.prompt, vars(self.sampling), self.seed, self.form, self.attempt]
        total.update(json.dumps(rest, sort_keys=True, default=str).encode())
        return total.hexdigest()


@dataclass(frozen=True, kw_only=True)
class Reply:
    """`text`: what is said, without the `thoughts` of a thinking model. `tokens_out`: of both, of
    which `tokens_thought` are thoughts. `finish` is "stop", "length" (cut by max_tokens) or
    "refusal". `by`: the identity of the model that answered in place of the one asked. `batched`:
    it came by an endpoint's batch route. `logprobs`: for each output token, the alternatives.
    """

    text: str
    model: str
    thoughts: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_thought: int = 0
    usd: float = 0.0
    finish: str = "stop"
    cached: bool = False
    by: str = ""
    batched: bool = False
    logprobs: tuple[Mapping[str, float], ...] | None = None


class Llm(Protocol):
    """Anything that answers. `identity` names all that decides a reply besides the request: model,
    revision, endpoint.
    """

    @property
    def identity(self) -> str: ...

    async def complete(self, request: Request) -> Reply:
        """Raises Transient (try later), BadRow (this request will never work), BudgetSpent."""
        ...


class ProvenanceRecorder:
    """A model, for one row, that knows who has answered for it: its identity is theirs."""

    def __init__(self, llm: Llm) -> None:
        self._llm = llm
        self._answered: dict[str, None] = {}

    @property
    def identity(self) -> str:
        return " + ".join(self._answered) or self._llm.identity

    async def complete(self, request: Request) -> Reply:
        reply = await self._llm.complete(request)
        self._answered[reply.by or self._llm.identity] = None
        return reply


@dataclass(frozen=True, kw_only=True)
class Asker:
    """A model with the prompts and the manner of asking: what a recipe holds.

    `tries`: how often one prompt may be answered in a wrong form before the row becomes a problem.
    `watch`: gives it videos; null: it is shown pictures.
    """

    llm: Llm
    prompts: Prompts
    sampling: Sampling = Sampling()
    tries: int = 3
    watch: PreparesVideo | None = None

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise UserError(f"tries={self.tries!r}: at least 1")

    def with_provenance(self) -> Asker:
        """The same for one row, whose records name who answered."""
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
        """Render prompt `name`, send it with the schema of its form, read the reply by it.

        A reply of another form raises Unparsed with a reason; the model is shown its reply and the
        reason, and asked again. Where the reply was cut off, the same is asked with twice the room.
        `history`: earlier turns of the same chat. Raises BadRow after `tries` replies of a wrong
        form.
        """
        rendered = self.prompts.render(name, **variables)
        opening = (Message("system", rendered.system),) if rendered.system and not history else ()
        said = Message("user", rendered.user, tuple(images), tuple(clips))
        messages = (*opening, *history, said)
        reason, sampling = "", self.sampling
        for attempt in range(self.tries):
            request = Request(
                prompt=name,
                digest=rendered.digest,
                messages=messages,
                variables=variables,
                sampling=sampling,
                seed=seed,
                form=form.schema,
                attempt=attempt,
                reason=reason,
            )
            reply = await self.llm.complete(request)
            if reply.finish == "length":
                reason = f"it was cut off after {reply.tokens_out} tokens"
                sampling = replace(sampling, max_tokens=2 * sampling.max_tokens)
                continue
            try:
                if reply.finish == "refusal":
                    raise Unparsed("it declines to answer")
                if form.schema is None and has_only_closing_tag(reply.text):
                    raise Unparsed(HALF_MARKED)
                return form.read(reply.text)
            except Unparsed as error:
                reason = str(error)
                again = Message("user", correction(reason))
                messages = (*messages, Message("assistant", reply.text or "(nothing)"), again)
        raise BadRow(
            f"prompt {name!r}: none of {self.tries} replies of {self.llm.identity} could be "
            f"parsed; the last one: {reason}"
        )


def correction(reason: str) -> str:
    """What a model is told when its reply had the wrong form."""
    return (
        f"Your reply could not be used: {reason}. "
        "Answer again, complete, in exactly the form asked for."
    )
