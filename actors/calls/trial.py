"""Whether an endpoint would answer, found out in a second: is anybody there, is the key let in, is
there such a model, has the account credit.

`GET /models` is free. One token of chat is asked for where it does not name the model (an alias, a
server that lists nothing), and where calls cost money: an account without credit lists its models
all the same. What a busy server cannot say is no refusal: the gateway waits. A proxy's error (502)
counts when it came three times.
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

TRIAL_TIMEOUT_S = 10.0  # for one request of the trial
MAX_LISTED_MODELS = 8  # models named in a message
REFUSED_STATUS = (401, 403)
DOWN_STATUS = (500, 502, 504)  # of a proxy whose server does not answer, ...
TRIES, PAUSE_S = 3, 1.0  # ... asked so often, with a pause in between
NO_CREDIT = ("insufficient_quota", "billing_hard_limit_reached")  # codes of an error


@runtime_checkable
class ChatEndpoint(Protocol):
    """An endpoint that can be asked for one token."""

    @property
    def token_limit(self) -> str: ...
    @property
    def extra_body(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class TrialReply:
    """Status 0: there was none, for the `reason`. `html`: it is a page."""

    status: int = 0
    body: Any = None
    reason: str = ""
    html: bool = False


def is_local_address(base_url: str) -> bool:
    """Whether the address is this machine's own."""
    return urlsplit(base_url).hostname in ("127.0.0.1", "localhost", "::1")


def refusal(endpoint: Endpoint, seconds: float = TRIAL_TIMEOUT_S) -> str | None:
    """Why no call can succeed from this process, in a sentence; None where one may."""
    try:
        key = endpoint.key()
    except UserError as error:
        return str(error)
    place = endpoint.place
    listing = _asked_again(endpoint, key, "/models", seconds)
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
    """Whether what is at the address is a web page also where the models should be listed."""
    return _ask(endpoint, endpoint.key(), "/models", TRIAL_TIMEOUT_S).html


def html_page(place: str) -> str:
    return f"{place}: an HTML page; is base_url right? it usually ends in /v1"


def is_html(body: bytes) -> bool:
    return body[:200].lstrip().lower().startswith((b"<!doctype", b"<html"))


def no_credit(place: str, status: int, error: Any) -> str | None:
    """That an account has no credit, where a status and the error object with it say so."""
    told: Mapping[str, Any] = error if isinstance(error, Mapping) else {}
    if status != 402 and str(told.get("code") or told.get("type")) not in NO_CREDIT:
        return None
    said = " ".join(hide_secrets(str(told.get("message") or error)).split())[:300]
    return (
        f"{place}: the account has no credit left ({said}); add credit and run the same command "
        "again: what is finished is kept"
    )


def _broken(endpoint: Endpoint, listing: TrialReply) -> str | None:
    """Why an answer is none of an endpoint that works."""
    if said := no_credit(endpoint.place, listing.status, _error(listing.body)):
        return None if _has_fallback(endpoint) else said
    if listing.status in DOWN_STATUS:
        page = ": an HTML page" if listing.html else ""
        return (
            f"{endpoint.place}: HTTP {listing.status}{page}, {TRIES} times: something answers in "
            "the server's place, which is down; start it or try later (try_endpoints=false starts "
            "without asking)"
        )
    return html_page(endpoint.place) if listing.html and listing.status < 400 else None


def _without_credit(endpoint: Endpoint, key: str, seconds: float) -> str | None:
    """That the account of a model that costs money has no credit, by one token of chat."""
    price = endpoint.price
    if not isinstance(endpoint, ChatEndpoint) or not price.usd(1, 1) or _has_fallback(endpoint):
        return None
    said = _ask(endpoint, key, "/chat/completions", seconds, _one_token(endpoint, endpoint))
    return no_credit(endpoint.place, said.status, _error(said.body))


def _has_fallback(endpoint: Any) -> bool:
    """Whether others are asked where this one has no credit."""
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
    said = _ask(endpoint, key, "/chat/completions", seconds, _one_token(endpoint, endpoint))
    if said.html and said.status < 400:
        return html_page(place)
    if lacks := no_credit(place, said.status, _error(said.body)):
        return None if _has_fallback(endpoint) else lacks
    if said.status in REFUSED_STATUS:
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
    shown = ", ".join(sorted(names)[:MAX_LISTED_MODELS])
    more = f" and {len(names) - MAX_LISTED_MODELS} more" if len(names) > MAX_LISTED_MODELS else ""
    return f"{place}: there is no such model{meant} There are: {shown}{more}"


def _busy(status: int) -> bool:
    return status == 429 or status >= 500


def _names(body: Any) -> list[str]:
    """The models of a listing: OpenAI's form, or a plain list of them."""
    rows = body.get("data") if isinstance(body, Mapping) else body
    return [str(row["id"]) for row in rows or () if isinstance(row, Mapping) and "id" in row]


def _asked_again(endpoint: Endpoint, key: str, path: str, seconds: float) -> TrialReply:
    """As `_ask`, once more where a proxy says that its server is down."""
    answer = _ask(endpoint, key, path, seconds)
    for _ in range(TRIES - 1):
        if answer.status not in DOWN_STATUS:
            break
        time.sleep(PAUSE_S)
        answer = _ask(endpoint, key, path, seconds)
    return answer


def _ask(
    endpoint: Endpoint, key: str, path: str, seconds: float, body: Mapping[str, Any] | None = None
) -> TrialReply:
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
            return _answer(reply.status, reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return _answer(error.code, error.read())
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        said = getattr(reason, "strerror", None) or reason
        return TrialReply(reason=hide_secrets(str(said)).lower() or type(error).__name__)


def _answer(status: int, body: bytes) -> TrialReply:
    return TrialReply(status=status, body=_json(body), html=is_html(body))


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
