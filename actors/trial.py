"""Whether an endpoint would answer, found out in a second and for nothing: is anybody there, is the
key let in, is there such a model.

`GET /models` is free. Only where it does not name the model (an alias, a server that lists nothing)
one token of chat is asked for. What a busy server cannot say is no refusal: the gateway waits.
"""

from __future__ import annotations

import difflib
import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.parse import quote, urlsplit

from mustsee.errors import UserError, hidden

if TYPE_CHECKING:
    from actors.endpoint import Endpoint

SECONDS = 10.0  # for one request of the trial
LISTED = 8  # models named in a message
REFUSED = (401, 403)


@runtime_checkable
class Chats(Protocol):
    """An endpoint that can be asked for one token."""

    @property
    def token_limit(self) -> str: ...
    @property
    def extra_body(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Status 0: there was none, for the `reason`."""

    status: int = 0
    body: Any = None
    reason: str = ""


def wrong_address(base_url: str) -> str | None:
    """What is wrong with an address as it is written, or None."""
    try:
        found = urlsplit(base_url)
        found.port  # noqa: B018  (raises for a port that is no number)
    except ValueError as error:
        return f"base_url={base_url!r}: {error}; expected http://HOST:PORT/v1 or https://HOST/v1"
    if found.scheme not in ("http", "https") or not found.hostname:
        return f"base_url={base_url!r}: expected http://HOST:PORT/v1 or https://HOST/v1"
    if found.username is not None or found.password is not None:
        place = found._replace(netloc=found.netloc.rpartition("@")[2]).geturl()
        return (
            f"base_url={place!r} was given with a user and password before its host, which are not "
            "sent: leave them out, put the key into an environment variable, and name it with "
            "key_env=NAME"
        )
    return None


def at_home(base_url: str) -> bool:
    """Whether the address is this machine's own."""
    return urlsplit(base_url).hostname in ("127.0.0.1", "localhost", "::1")


def refusal(endpoint: Endpoint, seconds: float = SECONDS) -> str | None:
    """Why no call can succeed from this process, in a sentence; None where one may."""
    try:
        key = endpoint.key()
    except UserError as error:
        return str(error)
    place = endpoint.place
    listing = _ask(endpoint, key, "/models", seconds)
    if listing.status == 0:
        return (
            f"{place}: no answer ({listing.reason}); check base_url= (it usually ends in /v1), and "
            "that the server is up"
        )
    if listing.status in REFUSED:
        return endpoint.refused_key(listing.status)
    names = _names(listing.body)
    if endpoint.model in names or f"models/{endpoint.model}" in names or _busy(listing.status):
        return None
    return _unlisted(endpoint, key, place, names, seconds)


def _unlisted(
    endpoint: Endpoint, key: str, place: str, names: Sequence[str], seconds: float
) -> str | None:
    """As `refusal`, for a model that `GET /models` does not name."""
    alone = _ask(endpoint, key, f"/models/{quote(endpoint.model, safe='')}", seconds)
    if alone.status == 200 and isinstance(alone.body, Mapping) and "error" not in alone.body:
        return None
    if not isinstance(endpoint, Chats):
        return None if not names else _no_such_model(place, endpoint.model, names)
    body = {
        "model": endpoint.model,
        "messages": [{"role": "user", "content": "Hello"}],
        endpoint.token_limit: 1,
        **endpoint.extra_body,
    }
    said = _ask(endpoint, key, "/chat/completions", seconds, body)
    if said.status in REFUSED:
        return endpoint.refused_key(said.status)
    if said.status in (404, 405) or "model_not_found" in json.dumps(said.body):
        if names:
            return _no_such_model(place, endpoint.model, names)
        return (
            f"{place}: HTTP {said.status}: no such model or address; check model= and base_url= "
            "(it usually ends in /v1)"
        )
    if said.status == 200 and not isinstance(said.body, Mapping):
        return f"{place}: no OpenAI-compatible endpoint: check base_url= (it usually ends in /v1)"
    return None


def _no_such_model(place: str, model: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(model, names, n=1, cutoff=0.5)
    meant = f"; did you mean {near[0]!r}?" if near else "."
    shown = ", ".join(sorted(names)[:LISTED])
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"{place}: there is no such model{meant} There are: {shown}{more}"


def _busy(status: int) -> bool:
    return status == 429 or status >= 500


def _names(body: Any) -> list[str]:
    """The models of a listing: OpenAI's form, or a plain list of them."""
    rows = body.get("data") if isinstance(body, Mapping) else body
    return [str(row["id"]) for row in rows or () if isinstance(row, Mapping) and "id" in row]


def _ask(
    endpoint: Endpoint, key: str, path: str, seconds: float, body: Mapping[str, Any] | None = None
) -> Answer:
    request = urllib.request.Request(
        endpoint.base_url.rstrip("/") + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "User-Agent": "mustsee",  # some hosts refuse Python's own
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=seconds) as reply:
            return Answer(status=reply.status, body=_json(reply.read()))
    except urllib.error.HTTPError as error:
        with error:
            return Answer(status=error.code, body=_json(error.read()))
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        said = getattr(reason, "strerror", None) or reason
        return Answer(reason=hidden(str(said)).lower() or type(error).__name__)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
