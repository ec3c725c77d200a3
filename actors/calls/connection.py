"""A connection to an OpenAI-compatible endpoint, and the errors that its failures become.

All requests of the project's models are made here, by aiohttp: the official client takes more than
twice the CPU per call (`benchmarks.bench what=llm`), follows redirects, and reads replies of any
size. Nothing is retried here: the gateway does that.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator, Container, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from actors.calls.endpoint import Endpoint
from actors.calls.reply_bodies import parse_bill
from mustsee.calls.endpoint_errors import (
    MAX_MESSAGE_CHARACTERS,
    UNKNOWN_STATUS,
    error_in_reply,
    read_error,
)
from mustsee.calls.limits import Quota, quotas_in
from mustsee.calls.refusals import Change, refused_parameters
from mustsee.errors import (
    BadRow,
    Busy,
    KeyRefused,
    MustseeError,
    NoCredit,
    NoSuchModel,
    Transient,
    UnreadableReply,
    UserError,
    hide_secrets,
)
from mustsee.files.fetch import (
    ACCEPTED,
    MAX_REPLY_BYTES,
    Unpacker,
    check_length,
    redirect_message,
    redirect_target,
)

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, FormData

RETRYABLE_STATUS = (408, 409, 425, 429)  # statuses besides 5xx that are worth a retry
UNSUPPORTED = ("unsupported_parameter", "unsupported_value", "unknown_parameter")  # codes
NO_CREDIT = ("insufficient_quota", "billing_hard_limit_reached")  # codes
BUSY_STATUS = (429, 503, 529)  # statuses of an overloaded endpoint; 529 is Anthropic's


def connect(endpoint: Endpoint) -> Connection:
    """A connection to an endpoint, which opens no socket yet. Raises UserError without a key."""
    endpoint.key()
    return Connection(endpoint)


class Connection:
    """A client for each event loop; its sockets are closed when the loop shuts down."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.quotas: Mapping[str, Quota] = {}  # from the headers of the last reply
        self._answered = False
        self._loop: asyncio.AbstractEventLoop | None = None

    async def post(
        self, path: str, body: Mapping[str, Any], seconds: float | None = None
    ) -> Mapping[str, Any]:
        """Post a JSON body and return the JSON object of the reply, within `seconds` (default:
        `timeout`). Raises Transient, BadRow, UserError or BudgetSpent; an error within a reply of
        status 200 counts as the status that it carries.
        """
        data = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        raw = await self.request("POST", path, data, sent=body, seconds=seconds)
        return await self.parse(raw or b"", body)

    async def parse(self, raw: bytes, sent: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """The JSON object of a reply. `sent`: the body of its request. Raises as `post`."""
        try:
            reply = json.loads(raw)
        except (ValueError, RecursionError) as error:  # a truncated body, or not JSON
            if is_html(raw):
                raise await self._html() from None
            reason = hide_secrets(str(error))[:MAX_MESSAGE_CHARACTERS]
            raise UnreadableReply(f"{self.place}: unparseable reply: {reason}", sent=True) from None
        self._answered = True
        self.check_reply(reply, sent)
        if not isinstance(reply, Mapping):
            raise UnreadableReply(
                f"{self.place}: the reply is not a JSON object: {hide_secrets(str(reply))[:80]!r}",
                sent=True,
            )
        return reply

    def check_reply(self, reply: Any, sent: Mapping[str, Any] | None = None) -> None:
        """Raise the error within a reply of status 200, as that of the status that it carries."""
        found = error_in_reply(reply)
        if found is not None:
            error = read_error(found)
            status = error.status or (400 if error.moderated else UNKNOWN_STATUS)
            raise self._with_bill(self.refusal(status, found, sent=sent), reply)

    async def request(
        self,
        method: str,
        path: str,
        data: bytes | FormData | None = None,
        *,
        sent: Mapping[str, Any] | None = None,
        seconds: float | None = None,
        most: int = MAX_REPLY_BYTES,
        missing: Container[int] = (),
    ) -> bytes | None:
        """Make one request and return the body of the reply, at most `max_connections` at once. A
        body of bytes is JSON, with the content `sent`. No redirect is followed, and of a reply at
        most `most` unpacked bytes are read. None: the status is one of `missing`.
        """
        import aiohttp

        session, url = await self._open(), self.endpoint.url(path)
        seconds = seconds or self.endpoint.timeout
        is_json = isinstance(data, bytes)
        # aiohttp sends a file in pieces; large bytes block it.
        body_file = io.BytesIO(data) if isinstance(data, bytes) else data
        options: dict[str, Any] = {"proxy": self._proxy, "allow_redirects": False}
        options |= {"headers": {"content-type": "application/json"}} if is_json else {}
        try:
            async with (
                self._room,
                asyncio.timeout(seconds),
                session.request(method, url, data=body_file, **options) as response,
            ):
                status, headers = response.status, response.headers
                if 300 <= status < 400:
                    raise self.redirect_error(status, headers.get("location"))
                raw = await _read(response, most)
                wait = None if status < 400 else retry_after_s(headers)
                self.quotas = quotas_in(headers)
        except TimeoutError as error:
            message = f"{self.place}: no answer within {seconds:g} s"
            raise Transient(message, sent=_was_read(body_file), waited=seconds) from error
        except aiohttp.ClientError as error:
            reason = f"{self.place}: {type(error).__name__}: {error}"
            raise Transient(reason, sent=_was_read(body_file)) from None
        except ValueError as error:  # too large, or damaged
            raise Transient(f"{self.place}: {error}", sent=True) from None
        if status in missing:
            return None
        if status >= 400:
            body = read_json(raw)
            raise self._with_bill(self.refusal(status, body, wait, sent), body)
        return raw

    def redirect_error(self, status: int, location: str | None) -> UserError:
        """The error of a redirect, which is not followed."""
        target = redirect_target(self.endpoint.base_url, location)
        return UserError(f"{self.place}: {redirect_message(status, target)} with base_url=")

    def _with_bill(self, error: Exception, body: Any) -> Exception:
        """The error, with what the body of its reply says the call cost."""
        if isinstance(error, Transient | BadRow) and isinstance(body, Mapping):
            error.usage = parse_bill(body, self.endpoint.price)
        return error

    async def _html(self) -> Exception:
        """The error of an HTML page in place of a reply: Transient if the endpoint has answered
        before or lists its models, else UserError, because the address is not an endpoint.
        """
        with contextlib.suppress(MustseeError):
            if not self._answered and is_html(await self.request("GET", "/models") or b""):
                return UserError(html_page(self.place))
        return UnreadableReply(f"{self.place}: an HTML page in place of a reply")

    @property
    def place(self) -> str:
        return self.endpoint.place

    async def _bind(self) -> None:
        """Begin again on another event loop, to which clients belong."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            self._room = asyncio.Semaphore(self.endpoint.max_connections)
            self._opened = asyncio.Lock()
            self._sessions_of_loop: AsyncIterator[ClientSession] | None = None

    async def _open(self) -> ClientSession:
        await self._bind()
        if self._sessions_of_loop is None:
            async with self._opened:
                if self._sessions_of_loop is None:
                    sessions = self._sessions()
                    self._session, self._sessions_of_loop = await anext(sessions), sessions
        return self._session

    async def _sessions(self) -> AsyncIterator[ClientSession]:
        """Yield a session. An event loop that shuts down closes its async generators, and with them
        the session.
        """
        import aiohttp

        proxies = {} if proxy_bypass(urlsplit(self.endpoint.base_url).netloc) else getproxies()
        self._proxy = proxies.get(urlsplit(self.endpoint.base_url).scheme)
        headers = {
            "authorization": f"Bearer {self.endpoint.key()}",
            "accept-encoding": ACCEPTED,
        }
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self.endpoint.max_connections),
            timeout=aiohttp.ClientTimeout(total=None),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        ) as session:
            yield session

    def refusal(
        self,
        status: int,
        body: Any,
        retry_after: float | None = None,
        sent: Mapping[str, Any] | None = None,
    ) -> Exception:
        """The error that an HTTP status and the body of its response become. `sent`: the body of
        the request.
        """
        error = read_error(body)
        is_page = isinstance(body, str) and is_html(body.encode())
        reason = "an HTML page" if is_page else error.message
        said = f"{self.place}: HTTP {status}: {reason}"
        if lacks := no_credit(self.place, status, body):
            return NoCredit(lacks)
        if error.moderated and 400 <= status < 500 and status not in (401, *RETRYABLE_STATUS):
            return BadRow(f"{said} (refused for its content)")
        if changes := refused_parameters(status, body, sent or {}):
            return ParameterRefused.of(said, changes)
        if status >= 500 or status in RETRYABLE_STATUS:
            return (Busy if status in BUSY_STATUS else Transient)(said, retry_after)
        # Some endpoints answer a wrong key with status 400.
        refused = "invalid_api_key" in error.codes or "API key not valid" in reason
        if status in (401, 403) or refused:
            access = 401 if refused else status
            return KeyRefused(no_access(self.endpoint, status, "" if is_page else body, access))
        if status in (404, 405) or "model_not_found" in error.codes:
            return NoSuchModel(
                f"{self.place}: HTTP {status}: no such model or address ({reason}); check model= "
                "and base_url= (it usually ends in /v1)"
            )
        if any(code in UNSUPPORTED for code in error.codes):
            return UserError(f"{said}; this parameter cannot be left out")
        return BadRow(said)


def no_access(endpoint: Endpoint, status: int, body: Any, means: int | None = None) -> str:
    """The message about a refused key (401), or about what a key may not do, a country or a model
    (403), in the endpoint's own words.
    """
    said = read_error(body).message if body else ""
    if (means or status) == 403 and said:
        return f"{endpoint.place}: HTTP {status}: {said}; the endpoint gives this key no access"
    return endpoint.refused_key(status)


def html_page(place: str) -> str:
    """The message about an address that returns a web page."""
    return f"{place}: an HTML page; is base_url right? it usually ends in /v1"


def is_html(body: bytes) -> bool:
    return body[:200].lstrip().lower().startswith((b"<!doctype", b"<html"))


def no_credit(place: str, status: int, body: Any) -> str | None:
    """The message that an account has no credit left, if status and body say so."""
    error = read_error(body)
    if status != 402 and not any(code in NO_CREDIT for code in error.codes):
        return None
    return (
        f"{place}: the account has no credit left ({error.message}); add credit and run the same "
        "command again: what is finished is kept"
    )


class ParameterRefused(BadRow):
    """The endpoint refuses a parameter. `changes`: what to send instead."""

    changes: tuple[Change, ...] = ()

    @classmethod
    def of(cls, message: str, changes: tuple[Change, ...]) -> ParameterRefused:
        error = cls(message)
        error.changes = changes
        return error


async def _read(response: ClientResponse, most: int) -> bytes:
    """The unpacked body, read in pieces. Raises ValueError if it is too large or damaged."""
    check_length(response.headers, most)
    unpacker = Unpacker(response.headers.get("content-encoding", ""), most)
    async for piece in response.content.iter_any():
        unpacker.add(piece)
    return unpacker.body()


def _was_read(body: io.BytesIO | FormData | None) -> bool:
    """Whether any of a body was read in order to be sent; of a form, it is not known."""
    return not isinstance(body, io.BytesIO) or body.closed or body.tell() > 0


def read_json(raw: bytes) -> Any:
    """The JSON of a response, or its text."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw.decode(errors="replace")


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `retry-after-ms`, or from `retry-after` in seconds or as a date, which
    is relative to the header `date`, where there is one.
    """
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        if "retry-after" not in headers:
            return None
        value = headers["retry-after"]
        if value.replace(".", "", 1).isdigit():
            return float(value)
        until, now = parsedate_to_datetime(value), parsedate_to_datetime(headers.get("date", value))
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError):
        return None
