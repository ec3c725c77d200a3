"""Every exception that the project raises by itself.

`UserError` is a mistake in configuration or input, said before any work (exit code 2). `BadRow` is
a deterministic failure of one row: the stage turns it into that row's `problem` and stores it.
`Transient` is a failure that another attempt may mend: it is never stored. Everything else is a bug
and is let out.
"""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from urllib.parse import quote, quote_plus, unquote

MIN_SECRET_CHARS = 8  # characters of a secret that is looked for: "none" is a word, not a key
# USER:PASSWORD@ of an address; keys of S3 hold slashes, which are no port's
_ACCOUNT = re.compile(
    r"""(?<=://)([^\s/?#@'"<>:]*):((?!\d+/)(?:(?!://)[^\s?#'"<>])*)(?=@)""",
)
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_secrets: set[str] = set()


def secret(value: str) -> str:
    """The value itself, which `hide_secrets` knows from now on in this process, in URLs and in
    base64, too.
    """
    if len(value) >= MIN_SECRET_CHARS and value not in _secrets:
        _secrets.update(form for form in (value, *_encoded(value)) if len(form) >= MIN_SECRET_CHARS)
    return value


def _encoded(value: str) -> Iterator[str]:
    """The forms that a value has in URLs, and in base64 alone or within a longer text."""
    for form in (quote(value), quote(value, safe=""), quote_plus(value)):
        yield form
        yield _ESCAPE.sub(lambda found: found.group().lower(), form)
    data = value.encode("utf-8", "surrogateescape")
    for encode in (b64encode, urlsafe_b64encode):
        alone = encode(data).decode()
        yield alone
        yield alone.rstrip("=")
        for before in range(3):  # bytes in front; letters that hold bits of others are left out
            text = encode(b"\0" * before + data).decode()
            yield text[-(-8 * before // 6) : 8 * (before + len(data)) // 6]


def secrets_in(text: str) -> str:
    """The text itself; the accounts of all addresses in it, SCHEME://USER:PASSWORD@HOST, are
    secrets from now on.
    """
    for found in _ACCOUNT.finditer(text):
        for part in found.groups():
            secret(part)
            secret(unquote(part))
    return text


def hide_secrets(text: str) -> str:
    """A text that comes from elsewhere, without the secrets and the accounts in addresses: an
    endpoint may send back the key that it was sent. To be cut short, if at all, afterwards.
    """
    text = _ACCOUNT.sub("(key)", text)
    for value in sorted(_secrets, key=len, reverse=True):  # one may be the beginning of another
        text = text.replace(value, "(key)")
    return text


class MustseeError(Exception):
    """Base of the exceptions below; the text says what is wrong, where, and what to do, and holds
    no secret.
    """

    def __init__(self, *said: object) -> None:
        super().__init__(*(hide_secrets(s) if isinstance(s, str) else s for s in said))


class UserError(MustseeError):
    """Wrong configuration or input; printed in one line, without a traceback."""


class NotInstalled(UserError):
    """A package that a choice needs is not there; what can do without it may."""


class BadRow(MustseeError):
    """This row cannot be processed, and would fail again in the same way."""


class Transient(MustseeError):
    """A time-out, a lost connection, a rate limit: the same call may work later.

    `retry_after` is the number of seconds that the other side asked us to wait, if it did.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message, retry_after)
        self.message = hide_secrets(message)
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.message


class Busy(Transient):
    """The endpoint takes no more calls for now: too many a minute, or at once."""


class NoAnswer(Transient):
    """The endpoint has answered nothing for longer than we have patience."""


class DiskFull(MustseeError):
    """The disk of the store takes no more."""


class BudgetSpent(MustseeError):
    """`budget_usd` is reached: no further paid call is made, everything finished is kept."""


class NoCredit(BudgetSpent):
    """The endpoint's account has nothing left."""


class KeyRefused(UserError):
    """The endpoint does not take the key."""


class Unparsed(MustseeError):
    """A model's reply is not of the form asked for; the text says what is wrong, and is shown to
    the model.
    """
