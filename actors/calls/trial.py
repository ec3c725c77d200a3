"""A trial of an endpoint in about a second: address, key, model, and credit of the account.

`GET /models` is free. One token of chat is requested if the list does not name the model (an alias,
a server with an empty list), or if calls cost money, because an account without credit may still
list its models. A busy server is not a refusal: the gateway waits. A proxy's error (502) counts if
it comes three times.
"""

from __future__ import annotations

import difflib
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable
from urllib.parse import quote, urlsplit

from actors.calls.endpoint import Endpoint
from mustsee.errors import UserError, hide_secrets

TRIAL_TIMEOUT_S = 10.0  # seconds for one request of the trial
MAX_LISTED_MODELS = 8  # models named in a message
REFUSED_STATUS = (401, 403)
DOWN_STATUS = (500, 502, 504)  # statuses of a proxy whose server does not answer
TRIES, PAUSE_S = 3, 1.0  # requests to such a proxy, and seconds between two of them
NO_CREDIT = ("insufficient_quota", "billing_hard_limit_reached")  # error codes


@runtime_checkable
class ChatEndpoint(Protocol):
    """An endpoint that chats, so that one token can be requested."""

    @property
    def token_limit(self) -> str: ...
    @property
    def extra_body(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class TrialReply:
    """A reply; status 0: there was none, for the `reason`. `html`: the body is a web page."""

    status: int = 0
    body: Any = None
    reason: str = ""
    html: bool = False


def is_local_address(base_url: str) -> bool:
    """Whether the address is on this machine."""
    return urlsplit(base_url).hostname in ("127.0.0.1", "localhost", "::1")


def refusal(endpoint: Endpoint, seconds: float = TRIAL_TIMEOUT_S) -> str | None:
    """The reason why no call from this process can succeed; None if one may."""
    try:
        key = endpoint.key()
    except UserError as error:
        return str(error)
    place = endpoint.place
    listing = _ask_with_retries(endpoint, key, "/models", seconds)
    if listing.status == 0:
        return (
            f"{place}: no answer ({listing.reason}); check base_url= (it usually ends in /v1), and "
            "that the server is up"
        )
    if listing.status in REFUSED_STATUS:
        return endpoint.refused_key(listing.status)
    if broken := _broken(endpoint, listing):
        return broken
    names = _names(listing.body)
    named = endpoint.model in names or f"models/{endpoint.model}" in names
    if _busy(listing.status):
        return None
    if named:
        return _without_credit(endpoint, key, seconds)
    return _unlisted(endpoint, key, place, names, seconds)


def serves_web_page(endpoint: Endpoint) -> bool:
    """Whether the address returns a web page in place of the list of models."""
    return _ask(endpoint, endpoint.key(), "/models", TRIAL_TIMEOUT_S).html


def html_page(place: str) -> str:
    """The message about an address that returns a web page."""
    return f"{place}: an HTML page; is base_url right? it usually ends in /v1"


def is_html(body: bytes) -> bool:
    return body[:200].lstrip().lower().startswith((b"<!doctype", b"<html"))


def no_credit(place: str, status: int, error: Any) -> str | None:
    """The message that an account has no credit left, if status and error object say so."""
    fields: Mapping[str, Any] = error if isinstance(error, Mapping) else {}
    if status != 402 and str(fields.get("code") or fields.get("type")) not in NO_CREDIT:
        return None
    reason = " ".join(hide_secrets(str(fields.get("message") or error)).split())[:300]
    return (
        f"{place}: the account has no credit left ({reason}); add credit and run the same command "
        "again: what is finished is kept"
    )


def _broken(endpoint: Endpoint, listing: TrialReply) -> str | None:
    """The reason why a reply does not come from a working endpoint; None if it may."""
    if reason := no_credit(endpoint.place, listing.status, _error(listing.body)):
        return None if _has_fallback(endpoint) else reason
    if listing.status in DOWN_STATUS:
        page = ": an HTML page" if listing.html else ""
        return (
            f"{endpoint.place}: HTTP {listing.status}{page}, {TRIES} times: a proxy answers, "
            "but the server behind it is down; start it or try later (try_endpoints=false starts "
            "without this check)"
        )
    return html_page(endpoint.place) if listing.html and listing.status < 400 else None


def _without_credit(endpoint: Endpoint, key: str, seconds: float) -> str | None:
    """The message that the account of a paid model has no credit, found by one token of chat."""
    price = endpoint.price
    if not isinstance(endpoint, ChatEndpoint) or not price.usd(1, 1) or _has_fallback(endpoint):
        return None
    reply = _ask(endpoint, key, "/chat/completions", seconds, _one_token(endpoint, endpoint))
    return no_credit(endpoint.place, reply.status, _error(reply.body))


def _has_fallback(endpoint: Any) -> bool:
    """Whether other accounts are asked if this one has no credit."""
    return bool(getattr(endpoint, "fallback", ()))


def _error(body: Any) -> Any:
    return body.get("error", body) if isinstance(body, Mapping) else body


def _one_token(endpoint: Endpoint, chat: ChatEndpoint) -> dict[str, Any]:
    return {
        "model": endpoint.model,
        "messages": [{"role": "user", "content": "Hello"}],
        chat.token_limit: 1,
        **chat.extra_body,
    }


def _unlisted(
    endpoint: Endpoint, key: str, place: str, names: Sequence[str], seconds: float
) -> str | None:
    """As `refusal`, for a model that `GET /models` does not name."""
    alone = _ask(endpoint, key, f"/models/{quote(endpoint.model, safe='')}", seconds)
    if alone.status == 200 and isinstance(alone.body, Mapping) and "error" not in alone.body:
        return None
    if not isinstance(endpoint, ChatEndpoint):
        return None if not names else _no_such_model(place, endpoint.model, names)
    reply = _ask(endpoint, key, "/chat/completions", seconds, _one_token(endpoint, endpoint))
    if reply.html and reply.status < 400:
        return html_page(place)
    if reason := no_credit(place, reply.status, _error(reply.body)):
        return None if _has_fallback(endpoint) else reason
    if reply.status in REFUSED_STATUS:
        return endpoint.refused_key(reply.status)
    if reply.status in (404, 405) or "model_not_found" in json.dumps(reply.body):
        if names:
            return _no_such_model(place, endpoint.model, names)
        return (
            f"{place}: HTTP {reply.status}: no such model or address; check model= and base_url= "
            "(it usually ends in /v1)"
        )
    if reply.status == 200 and not isinstance(reply.body, Mapping):
        return (
            f"{place}: not an OpenAI-compatible endpoint: check base_url= (it usually ends in /v1)"
        )
    return None


def _no_such_model(place: str, model: str, names: Sequence[str]) -> str:
    similar = difflib.get_close_matches(model, names, n=1, cutoff=0.5)
    hint = f"; did you mean {similar[0]!r}?" if similar else "."
    listed = ", ".join(sorted(names)[:MAX_LISTED_MODELS])
    more = f" and {len(names) - MAX_LISTED_MODELS} more" if len(names) > MAX_LISTED_MODELS else ""
    return f"{place}: there is no such model{hint} There are: {listed}{more}"


def _busy(status: int) -> bool:
    return status == 429 or status >= 500


def _names(body: Any) -> list[str]:
    """The models of a listing in OpenAI's form, or of a plain list."""
    rows = body.get("data") if isinstance(body, Mapping) else body
    return [str(row["id"]) for row in rows or () if isinstance(row, Mapping) and "id" in row]


def _ask_with_retries(endpoint: Endpoint, key: str, path: str, seconds: float) -> TrialReply:
    """As `_ask`, with further requests while a proxy says that its server is down."""
    reply = _ask(endpoint, key, path, seconds)
    for _ in range(TRIES - 1):
        if reply.status not in DOWN_STATUS:
            break
        time.sleep(PAUSE_S)
        reply = _ask(endpoint, key, path, seconds)
    return reply


def _ask(
    endpoint: Endpoint, key: str, path: str, seconds: float, body: Mapping[str, Any] | None = None
) -> TrialReply:
    request = urllib.request.Request(
        endpoint.base_url.rstrip("/") + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "User-Agent": "mustsee",  # some hosts refuse that of Python
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=seconds) as reply:
            return _trial_reply(reply.status, reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return _trial_reply(error.code, error.read())
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        message = getattr(reason, "strerror", None) or reason
        return TrialReply(reason=hide_secrets(str(message)).lower() or type(error).__name__)


def _trial_reply(status: int, body: bytes) -> TrialReply:
    return TrialReply(status=status, body=_json(body), html=is_html(body))


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
