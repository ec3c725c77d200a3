"""A connection to an OpenAI-compatible endpoint, and the errors that its failures become.

Chats use aiohttp. The official client takes more than twice the CPU per call
(`benchmarks.bench what=llm`), and its import as much as some 500 calls, so it is used only for
requests that are not plain JSON. Neither retries: the gateway does.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from actors.calls.endpoint import Endpoint
from actors.calls.reply_bodies import parse_bill
from actors.calls.trial import html_page, is_html, no_credit, serves_web_page
from mustsee.calls.quota import Quota, quotas_in
from mustsee.errors import (
    BadRow,
    Busy,
    KeyRefused,
    NoCredit,
    Transient,
    UserError,
    hide_secrets,
)

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from openai import APIStatusError, AsyncOpenAI

T = TypeVar("T")

MAX_MESSAGE_CHARACTERS = 300  # characters of an endpoint's error message that are passed on
RETRYABLE_STATUS = (408, 409, 425, 429)  # statuses besides 5xx that are worth a retry
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

    async def call(
        self, work: Callable[[AsyncOpenAI], Awaitable[T]], seconds: float | None = None
    ) -> T:
        """Run `work` with the client, at most `max_connections` at once, within `seconds` (default:
        `timeout`). Raises Transient, BadRow, UserError or BudgetSpent.
        """
        import openai

        client, seconds = await self._client(), seconds or self.endpoint.timeout
        try:
            async with self._room, asyncio.timeout(seconds):
                return await work(client)
        except openai.APIStatusError as error:
            body = error.body or error.message
            raise self.refusal(error.status_code, body, retry_after(error)) from None
        except (TimeoutError, openai.APITimeoutError) as error:
            raise self._no_answer(seconds) from error
        except openai.APIConnectionError as error:
            reason = error.__cause__ or error
            raise Transient(f"{self.place}: {type(reason).__name__}: {reason}", sent=True) from None
        except (openai.APIError, ValueError) as error:  # a truncated body, or not JSON
            reason = hide_secrets(str(error))[:MAX_MESSAGE_CHARACTERS]
            raise Transient(f"{self.place}: unparseable reply: {reason}", sent=True) from None

    async def post(
        self, path: str, body: Mapping[str, Any], seconds: float | None = None
    ) -> Mapping[str, Any]:
        """Post a JSON body and return the JSON object of the reply. `seconds`, and what it raises:
        as `call`; any other reply is Transient.
        """
        import aiohttp

        session = await self._open()
        data = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        url, seconds = self.endpoint.base_url.rstrip("/") + path, seconds or self.endpoint.timeout
        body_file = io.BytesIO(data)  # aiohttp sends it in pieces; large bytes block it.
        try:
            async with (
                self._room,
                asyncio.timeout(seconds),
                session.post(url, data=body_file, proxy=self._proxy) as response,
            ):
                raw, status = await response.read(), response.status
                wait = None if status < 400 else retry_after_s(response.headers)
                self.quotas = quotas_in(response.headers)
        except TimeoutError as error:
            raise self._no_answer(seconds, sent=_was_read(body_file)) from error
        except aiohttp.ClientError as error:
            reason = f"{self.place}: {type(error).__name__}: {error}"
            raise Transient(reason, sent=_was_read(body_file)) from None
        if status >= 400:
            raise self._with_bill(self.refusal(status, _error(raw), wait), raw)
        try:
            reply = json.loads(raw)
        except (ValueError, RecursionError) as error:  # a truncated body, or not JSON
            if is_html(raw):
                raise await self._html() from None
            reason = hide_secrets(str(error))[:MAX_MESSAGE_CHARACTERS]
            raise Transient(f"{self.place}: unparseable reply: {reason}", sent=True) from None
        self._answered = True
        if not isinstance(reply, Mapping):
            raise Transient(
                f"{self.place}: the reply is not a JSON object: {hide_secrets(str(reply))[:80]!r}",
                sent=True,
            )
        return reply

    def _no_answer(self, seconds: float, *, sent: bool = True) -> Transient:
        message = f"{self.place}: no answer within {seconds:g} s"
        return Transient(message, sent=sent, waited=seconds)

    def _with_bill(self, error: Exception, raw: bytes) -> Exception:
        """The error, with what its body says the call cost."""
        with contextlib.suppress(ValueError, RecursionError):
            body = json.loads(raw)
            if isinstance(error, Transient | BadRow) and isinstance(body, Mapping):
                error.usage = parse_bill(body, self.endpoint.price)
        return error

    async def _html(self) -> Exception:
        """The error of an HTML page in place of a reply: Transient if the endpoint has answered
        before or lists its models, else UserError, because the address is not an endpoint.
        """
        if not self._answered and await asyncio.to_thread(serves_web_page, self.endpoint):
            return UserError(html_page(self.place))
        return Transient(f"{self.place}: an HTML page in place of a reply")

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
            self._plain: AsyncIterator[ClientSession] | None = None
            self._official: AsyncIterator[AsyncOpenAI] | None = None

    async def _open(self) -> ClientSession:
        await self._bind()
        if self._plain is None:
            async with self._opened:
                if self._plain is None:
                    sessions = self._sessions()
                    self._session, self._plain = await anext(sessions), sessions
        return self._session

    async def _client(self) -> AsyncOpenAI:
        await self._bind()
        if self._official is None:
            async with self._opened:
                if self._official is None:
                    clients = self._clients()
                    self._openai, self._official = await anext(clients), clients
        return self._openai

    async def _sessions(self) -> AsyncIterator[ClientSession]:
        """Yield a session. An event loop that shuts down closes its async generators, and with them
        the session.
        """
        import aiohttp

        proxies = {} if proxy_bypass(urlsplit(self.endpoint.base_url).netloc) else getproxies()
        self._proxy = proxies.get(urlsplit(self.endpoint.base_url).scheme)
        headers = {
            "authorization": f"Bearer {self.endpoint.key()}",
            "content-type": "application/json",
        }
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self.endpoint.max_connections),
            timeout=aiohttp.ClientTimeout(total=None),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
        ) as session:
            yield session

    async def _clients(self) -> AsyncIterator[AsyncOpenAI]:
        """As `_sessions`."""
        import openai

        limits = type(openai.DEFAULT_CONNECTION_LIMITS)(
            max_connections=self.endpoint.max_connections,
            max_keepalive_connections=self.endpoint.max_connections,
        )
        async with openai.AsyncOpenAI(
            api_key=self.endpoint.key(),
            base_url=self.endpoint.base_url,
            max_retries=0,
            timeout=self.endpoint.timeout,
            http_client=openai.DefaultAioHttpClient(limits=limits),
        ) as client:
            yield client

    def refusal(self, status: int, body: Any, retry_after: float | None = None) -> Exception:
        """The error that an HTTP status and the error object of its body become."""
        error: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
        code, param, reason = str(error.get("code") or ""), error.get("param"), _message(body)
        if lacks := no_credit(self.place, status, body):
            return NoCredit(lacks)
        if status >= 500 or status in RETRYABLE_STATUS:
            kind = Busy if status in BUSY_STATUS else Transient
            return kind(f"{self.place}: HTTP {status}: {reason}", retry_after)
        # Some endpoints answer a wrong key with status 400.
        refused = code == "invalid_api_key" or "API key not valid" in reason
        if status in (401, 403) or refused:
            return KeyRefused(self.endpoint.refused_key(status))
        if status == 404 or code == "model_not_found":
            return UserError(
                f"{self.place}: HTTP {status}: no such model or address ({reason}); check model= "
                "and base_url= (it usually ends in /v1)"
            )
        unknown = code in ("unsupported_parameter", "unsupported_value", "unknown_parameter")
        if unknown and not str(param).startswith("response_format"):
            return UserError(
                f"{self.place} does not accept {param!r} ({reason}); leave it out with "
                f"omit=[{param}]; token_limit= names the limit of output tokens"
            )
        return BadRow(f"{self.place}: HTTP {status}: {reason}")


def _was_read(file: io.BytesIO) -> bool:
    """Whether any of a body was read in order to be sent."""
    return file.closed or file.tell() > 0


def _error(raw: bytes) -> Any:
    """The error object of a response, or its text."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return raw.decode(errors="replace")
    return body.get("error", body) if isinstance(body, dict) else body


def _message(body: Any) -> str:
    """The endpoint's own message, shortened; "an HTML page" for one."""
    text = str((body.get("message") if isinstance(body, Mapping) else body) or body).strip()
    if is_html(text.encode()):
        return "an HTML page"
    return " ".join(hide_secrets(text).split())[:MAX_MESSAGE_CHARACTERS]


def retry_after(error: APIStatusError) -> float | None:
    """Seconds to wait, from `retry-after-ms`, or from `retry-after` in seconds or as a date. A date
    is relative to the header `date`, where there is one.
    """
    return retry_after_s(error.response.headers)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """As `retry_after`, from the headers of a response."""
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
