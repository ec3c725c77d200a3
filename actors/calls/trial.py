"""A trial of an endpoint in about a second: address, key, model, credit of the account, and the
parameters that the model takes.

`GET /models` is free. One token of chat is requested if the list does not name the model (an alias,
a server with an empty list), if calls cost money, because an account without credit may still list
its models, or if the store does not know yet which parameters the model takes. Those that it
refuses are left out from then on (`actors.calls.parameters`). A busy server is not a refusal: the
gateway waits. A proxy's error (502) counts if it comes three times.
"""

from __future__ import annotations

import asyncio
import difflib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable
from urllib.parse import quote, urlsplit

from actors.calls.connection import (
    html_page,
    is_html,
    no_access,
    no_credit,
    read_json,
)
from actors.calls.endpoint import Endpoint
from actors.calls.parameters import Learned, read
from mustsee.calls.endpoint_errors import UNKNOWN_STATUS, error_in_reply, read_error
from mustsee.calls.refusals import adapt_request, values_sent
from mustsee.errors import (
    BadRow,
    NoCredit,
    NoSuchModel,
    Transient,
    UnreadableReply,
    UserError,
    hide_secrets,
)
from mustsee.files.fetch import fetch, redirect_message, redirect_target
from mustsee.files.store import Store

TRIAL_TIMEOUT_S = 10.0  # seconds for one request of the trial
MAX_LISTED_MODELS = 8  # models named in a message
REFUSED_STATUS = (401, 403)
DOWN_STATUS = (500, 502, 504)  # statuses of a proxy whose server does not answer
TRIES, PAUSE_S = 3, 1.0  # requests to such a proxy, and seconds between two of them


@runtime_checkable
class ChatEndpoint(Protocol):
    """An endpoint that chats, so that one token can be requested."""

    def trial_body(self) -> dict[str, Any]:
        """The body of that request, with all parameters that no call decides."""
        ...

    def open(self) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class TrialReply:
    """A reply; status 0: there was none, for the `reason`. `html`: the body is a web page.
    `location`: where a redirect points.
    """

    status: int = 0
    body: Any = None
    reason: str = ""
    html: bool = False
    location: str = ""


def is_local_address(base_url: str) -> bool:
    """Whether the address is on this machine."""
    return urlsplit(base_url).hostname in ("127.0.0.1", "localhost", "::1")


def refusal(
    endpoint: Endpoint, seconds: float = TRIAL_TIMEOUT_S, store: Store | None = None
) -> str | None:
    """The reason why no call from this process can succeed; None if one may. `store`: keeps which
    parameters the model refuses.
    """
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
    if reason := _no_access(endpoint, listing) or _broken(endpoint, listing):
        return reason
    if _busy(listing.status):
        return None
    names = [*(listed_models(listing.body) or ())]
    named = endpoint.model in names or f"models/{endpoint.model}" in names
    if not named:
        alone = _ask(endpoint, key, f"/models/{quote(endpoint.model, safe='')}", seconds)
        named = _status(alone) == 200 and isinstance(alone.body, Mapping)
    if not isinstance(endpoint, ChatEndpoint):
        return None if named or not names else _no_such_model(place, endpoint.model, names)
    known = read(store, endpoint) if store is not None else Learned()
    sent = values_sent(adapt_request(endpoint.trial_body(), known.changes))
    paid = endpoint.price.usd(1, 1) and not _has_fallback(endpoint)
    if named and not (paid or (store is not None and sent - known.taken)):
        return None
    try:
        asyncio.run(_request_token(endpoint, seconds, store))
    except NoCredit as error:
        return None if _has_fallback(endpoint) else str(error)
    except NoSuchModel as error:
        return str(error) if named or not names else _no_such_model(place, endpoint.model, names)
    except UserError as error:  # also a refused key
        return str(error)
    except UnreadableReply as error:
        return (
            f"{error}: not an OpenAI-compatible endpoint; check base_url= (it usually ends in /v1)"
        )
    except (Transient, BadRow):  # it is busy, or refuses this prompt
        return None
    return None


async def _request_token(endpoint: ChatEndpoint, seconds: float, store: Store | None) -> None:
    """Request one token, without the parameters that are refused, and keep in the store which these
    are. Raises as a call.
    """
    chat = endpoint.open()
    if store is not None:
        chat.remember(store)

    async def post(body: Mapping[str, Any]) -> Mapping[str, Any]:
        return await chat.connection.post("/chat/completions", body, seconds)

    await chat.parameters.send(post, lambda: chat.parameters.adapt(endpoint.trial_body()))


def _status(reply: TrialReply) -> int:
    """The status of a reply, or the one that an error within status 200 carries."""
    is_reply = reply.status == 200 and not isinstance(reply.body, str)
    found = error_in_reply(reply.body) if is_reply else None
    return reply.status if found is None else read_error(found).status or UNKNOWN_STATUS


def _no_access(endpoint: Endpoint, reply: TrialReply) -> str | None:
    """The reason if a reply redirects elsewhere or refuses the key."""
    status = _status(reply)
    if 300 <= status < 400:
        target = redirect_target(endpoint.base_url, reply.location)
        return f"{endpoint.place}: {redirect_message(status, target)} with base_url="
    if status not in REFUSED_STATUS:
        return None
    return no_access(endpoint, status, "" if reply.html else reply.body)


def _broken(endpoint: Endpoint, listing: TrialReply) -> str | None:
    """The reason why a reply does not come from a working endpoint; None if it may."""
    if reason := no_credit(endpoint.place, listing.status, listing.body):
        return None if _has_fallback(endpoint) else reason
    if listing.status in DOWN_STATUS:
        page = ": an HTML page" if listing.html else ""
        return (
            f"{endpoint.place}: HTTP {listing.status}{page}, {TRIES} times: a proxy answers, "
            "but the server behind it is down; start it or try later (try_endpoints=false starts "
            "without this check)"
        )
    return html_page(endpoint.place) if listing.html and listing.status < 400 else None


def _has_fallback(endpoint: Any) -> bool:
    """Whether other accounts are asked if this one has no credit."""
    return bool(getattr(endpoint, "fallback", ()))


def _no_such_model(place: str, model: str, names: Sequence[str]) -> str:
    similar = difflib.get_close_matches(model, names, n=1, cutoff=0.5)
    hint = f"; did you mean {similar[0]!r}?" if similar else "."
    listed = ", ".join(sorted(names)[:MAX_LISTED_MODELS])
    more = f" and {len(names) - MAX_LISTED_MODELS} more" if len(names) > MAX_LISTED_MODELS else ""
    return f"{place}: there is no such model{hint} There are: {listed}{more}"


def _busy(status: int) -> bool:
    return status == 429 or status >= 500


def listed_models(body: Any) -> dict[str, Mapping[str, Any]] | None:
    """The models of a listing in OpenAI's form, or of a plain list, each with its row; None: it is
    no list.
    """
    rows = body.get("data") if isinstance(body, Mapping) else body
    if not isinstance(rows, list):
        return None
    return {str(row["id"]): row for row in rows if isinstance(row, Mapping) and "id" in row}


def _ask_with_retries(endpoint: Endpoint, key: str, path: str, seconds: float) -> TrialReply:
    """As `_ask`, with further requests while a proxy says that its server is down."""
    reply = _ask(endpoint, key, path, seconds)
    for _ in range(TRIES - 1):
        if reply.status not in DOWN_STATUS:
            break
        time.sleep(PAUSE_S)
        reply = _ask(endpoint, key, path, seconds)
    return reply


def _ask(endpoint: Endpoint, key: str, path: str, seconds: float) -> TrialReply:
    try:
        reply = fetch(endpoint.url(path), None, {"Authorization": f"Bearer {key}"}, seconds)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        message = getattr(reason, "strerror", None) or reason
        return TrialReply(reason=hide_secrets(str(message)).lower() or type(error).__name__)
    return TrialReply(
        status=reply.status,
        body=read_json(reply.body),
        html=is_html(reply.body),
        location=reply.headers.get("Location") or "",
    )


def get_models(endpoint: Endpoint, key: str, seconds: float) -> TrialReply:
    """The reply to `GET /models`, which is free."""
    return _ask(endpoint, key, "/models", seconds)
