"""The one seam to language models: a `Request` goes in, a `Reply` comes out.

Every model (rules, an endpoint, recorded replies) is an `Llm`. Recipes and filters call `ask`,
which renders a prompt, sends it, parses the reply strictly, and asks again with the error when the
reply is not of the form asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.prompts import Prompts

T = TypeVar("T")
PICTURE = "\ufffc"  # stands in a text where a picture goes


@dataclass(frozen=True)
class Message:
    """One chat turn; `images` are JPEG bytes. A text that holds a mark (`PICTURE`) for each of them
    has them in those places; before any other text they come first.
    """

    role: str
    text: str
    images: tuple[bytes, ...] = ()

    @property
    def parts(self) -> tuple[str | bytes, ...]:
        """Text and pictures in the order in which the model is shown them."""
        first, *rest = self.text.split(PICTURE)
        if len(rest) != len(self.images):
            return (*self.images, self.text.replace(PICTURE, ""))
        placed = zip(self.images, rest, strict=True)
        pieces = (first, *(piece for pair in placed for piece in pair))
        return tuple(p for p in pieces if isinstance(p, bytes) or p.strip())


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
        rest = [identity, self.prompt, vars(self.sampling), self.seed, self.form, self.attempt]
        total.update(json.dumps(rest, sort_keys=True, default=str).encode())
        return total.hexdigest()


@dataclass(frozen=True, kw_only=True)
class Reply:
    """`text`: what is said, without the `thoughts` of a thinking model. `tokens_out`: of both, of
    which `tokens_thought` are thoughts. `finish` is "stop", "length" (cut by max_tokens) or
    "refusal". `batched`: it came by an endpoint's batch route. `logprobs`: for each output token,
    the alternatives.
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


@dataclass(frozen=True, kw_only=True)
class Asker:
    """A model with the prompts and the manner of asking: what a recipe holds.

    `tries`: how often one prompt may be answered in a wrong form before the row becomes a problem.
    """

    llm: Llm
    prompts: Prompts
    sampling: Sampling = Sampling()
    tries: int = 3

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise UserError(f"tries={self.tries!r}: at least 1")

    async def ask(
        self,
        name: str,
        parse: Callable[[str], T],
        *,
        seed: int = 0,
        images: Sequence[bytes] = (),
        history: Sequence[Message] = (),
        form: Mapping[str, Any] | None = None,
        **variables: Any,
    ) -> T:
        """Render prompt `name`, send it, parse the reply with `parse`.

        `parse` raises Unparsed with a reason; the model is shown its reply and the reason, and
        asked again. Where the reply was cut off, the same is asked with twice the room. `history`:
        earlier turns of the same chat. Raises BadRow after `tries` replies of a wrong form.
        """
        rendered = self.prompts.render(name, **variables)
        opening = (Message("system", rendered.system),) if rendered.system and not history else ()
        messages = (*opening, *history, Message("user", rendered.user, tuple(images)))
        reason, sampling = "", self.sampling
        for attempt in range(self.tries):
            request = Request(
                prompt=name,
                digest=rendered.digest,
                messages=messages,
                variables=variables,
                sampling=sampling,
                seed=seed,
                form=form,
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
                return parse(reply.text)
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
