"""The exceptions that the project raises itself, and what a run does on each.

    MustseeError            ends the run, exit code 1
    ├── UserError           wrong configuration or input: one line before any work, exit code 2
    │   ├── NotInstalled    a choice lacks its package; a caller with another way goes on without it
    │   └── KeyRefused      the endpoint rejects the key; `llm.fallback` takes over where it is set
    ├── BadRow              becomes the row's `problem`, is stored, and the run goes on; computed
    │                       again only with `retry_problems=true`, as are rows that lack replies
    ├── Transient           is retried; after the last try it becomes the row's `problem`, which is
    │   │                   not stored, so that the next run tries again
    │   ├── Busy            is retried without counting as a failed try
    │   └── NoAnswer        is not retried; `llm.fallback` takes over, or unfinished rows stay so
    ├── BudgetSpent         becomes the `problem` of each unfinished row, not stored; the same
    │   │                   command with a higher `budget_usd` goes on
    │   └── NoCredit        the same; `llm.fallback` takes over where it is set
    ├── Unwritable          ends the run; what is finished is kept
    │   └── DiskFull        the same
    └── Unparsed            returns to the model with the reason, at most `tries` times; then BadRow

Any other exception is a bug: in a row it becomes the row's `problem`, with the line of code that
raised it, and is not stored; elsewhere it ends the run with a traceback.

All texts of a `MustseeError` pass `hide_secrets`.
"""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from urllib.parse import quote, quote_plus, unquote

MIN_SECRET_CHARS = 8  # shorter values are not hidden: "none" is a word, not a key
# USER:PASSWORD@ in an address. Keys of S3 hold slashes; a port is followed by one.
ACCOUNT = re.compile(
    r"""(?<=://)([^\s/?#@'"<>:]*):((?!\d+/)(?:(?!://)[^\s?#'"<>])*)(?=@)""",
)
# ?key=..., &api_key=..., ?sig=... of an address
QUERY_SECRET = re.compile(
    r"""([?&;](?:[\w-]*(?:key|token|secret|password|passwd|credential|signature)|sig|auth)=)"""
    r"""([^&;#\s'"<>]+)""",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_secrets: set[str] = set()


@dataclass(frozen=True, kw_only=True)
class BilledTokens:
    """What a call was billed: its tokens, and US dollars at list price. `tokens_thought`: of
    `tokens_out`; `tokens_cached`: of `tokens_in`.
    """

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_thought: int = 0
    tokens_cached: int = 0
    usd: float = 0.0


class MustseeError(Exception):
    """Base of the exceptions below. Its text says what is wrong, where, and what to do.

    `usage`: what the model's refused reply cost, where it says so. `sent`: a call was sent, and
    what it cost is unknown.
    """

    usage: BilledTokens | None = None
    sent: bool = False

    def __init__(self, *args: object) -> None:
        super().__init__(*(hide_secrets(a) if isinstance(a, str) else a for a in args))

    @property
    def usd(self) -> float | None:
        """US dollars of `usage`."""
        return None if self.usage is None else self.usage.usd


class UserError(MustseeError):
    """Wrong configuration or input; printed in one line, without a traceback."""


class NotInstalled(UserError):
    """A package that a choice needs is not installed."""


class KeyRefused(UserError):
    """The endpoint rejects the key."""


class NoSuchModel(UserError):
    """The endpoint knows no such model, or has no such address."""


class BadRow(MustseeError):
    """This row cannot be processed, and would fail again in the same way.

    `usage`, `sent`: as of `MustseeError`.
    """

    def __init__(
        self, *args: object, usage: BilledTokens | None = None, sent: bool = False
    ) -> None:
        super().__init__(*args)
        self.usage, self.sent = usage, sent


class Transient(MustseeError):
    """A timeout, a lost connection, a rate limit: the same call may succeed later.

    `retry_after`: seconds that the other side asked us to wait; None if it did not. `usage`,
    `sent`: as of `MustseeError`. `waited`: seconds after which the reply was waited for no longer;
    0 where something else failed.
    """

    def __init__(
        self,
        message: str,
        retry_after: float | None = None,
        *,
        usage: BilledTokens | None = None,
        sent: bool = False,
        waited: float = 0.0,
    ) -> None:
        super().__init__(message, retry_after)
        self.message = hide_secrets(message)
        self.retry_after = retry_after
        self.usage, self.sent, self.waited = usage, sent, waited

    def __str__(self) -> str:
        return self.message


class UnreadableReply(Transient):
    """The endpoint's reply is not a JSON object."""


class Busy(Transient):
    """The endpoint takes no more calls for now: too many a minute, or too many at once."""


class NoAnswer(Transient):
    """The endpoint has not answered for longer than its `patience` (seconds)."""


class BudgetSpent(MustseeError):
    """`budget_usd` is reached: no further paid call is made, and finished work is kept."""


class NoCredit(BudgetSpent):
    """The endpoint's account has no credit left."""


class Unwritable(MustseeError):
    """The store cannot be written. A reply that is to be stored is kept for another attempt."""


class DiskFull(Unwritable):
    """The disk of the store is full."""


class Unparsed(MustseeError):
    """A model's reply does not have the required form. The text says why, and is sent to the
    model.
    """


def need(what: str, install: str, *modules: str) -> None:
    """Raise NotInstalled, in one line, unless all `modules` can be imported.

    `what`: the choice that needs them. `install`: the requirement that pip installs.
    """
    for name in modules:
        try:
            import_module(name)
        except ImportError as error:
            raise NotInstalled(
                f"{what} needs {name.partition('.')[0]} ({error}): pip install '{install}' on "
                "every machine that runs it"
            ) from error


def secret(value: str) -> str:
    """Return `value`, and let `hide_secrets` hide it in this process from now on, also as it is
    written in URLs and in base64.
    """
    if len(value) >= MIN_SECRET_CHARS and value not in _secrets:
        _secrets.update(form for form in (value, *_encoded(value)) if len(form) >= MIN_SECRET_CHARS)
    return value


def _encoded(value: str) -> Iterator[str]:
    """The forms of a value in URLs, and in base64, alone or within a longer text."""
    for form in (quote(value), quote(value, safe=""), quote_plus(value)):
        yield form
        yield _ESCAPE.sub(lambda escape: escape.group().lower(), form)
    data = value.encode("utf-8", "surrogateescape")
    for encode in (b64encode, urlsafe_b64encode):
        alone = encode(data).decode()
        yield alone
        yield alone.rstrip("=")
        for before in range(3):  # bytes in front; letters that also encode other bytes are left out
            text = encode(b"\0" * before + data).decode()
            yield text[-(-8 * before // 6) : 8 * (before + len(data)) // 6]


def secrets_in(text: str) -> str:
    """Return `text`, and register the accounts of all addresses in it,
    SCHEME://USER:PASSWORD@HOST, and the keys of their queries, as secrets.
    """
    values = [value for account in ACCOUNT.finditer(text) for value in account.groups()]
    for value in (*values, *(query[2] for query in QUERY_SECRET.finditer(text))):
        secret(value)
        secret(unquote(value))
    return text


def hide_secrets(text: str) -> str:
    """Return `text` with every secret, and every account and key in an address, replaced by
    "(key)".

    Text from elsewhere needs this too: an endpoint may send back the key that it received. Shorten
    a text only afterwards, or a secret that was cut stays visible.
    """
    text = QUERY_SECRET.sub(r"\1(key)", ACCOUNT.sub("(key)", text))
    for value in sorted(_secrets, key=len, reverse=True):  # one may be a prefix of another
        text = text.replace(value, "(key)")
    return text
