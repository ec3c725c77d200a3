"""Configuration of an OpenAI-compatible endpoint: address, key, limits, prices, patience."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import urlsplit

from mustsee.calls.limits import Limits
from mustsee.calls.models import KnownModel, find_model, find_price
from mustsee.calls.usage import Price, require_price
from mustsee.errors import QUERY_SECRET, UserError, hide_secrets, secret
from mustsee.files.store import hardware

Prices = Mapping[str, Sequence[float]]

CHARACTERS_PER_TOKEN = 3.5  # English text has about 4; fewer make the estimate a safe one


@dataclass(frozen=True, kw_only=True)
class CallEstimate:
    """Upper estimates of a call: tokens in, tokens out, US dollars, and the dollars of them for the
    tokens in.
    """

    tokens_in: float = 0.0
    tokens_out: int = 0
    usd: float = 0.0
    usd_in: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """An endpoint's address, limits and prices.

    Only model and address decide a reply, so only they are part of the identity.
    """

    model: str
    """Name of the model at the endpoint."""
    base_url: str = "https://api.openai.com/v1"
    """Base URL of the endpoint."""
    key_env: str | None = hardware("OPENAI_API_KEY")
    """Name of the environment variable that holds the API key; null: no key needed."""
    timeout: float = hardware(120.0)
    """Seconds for one whole call."""
    max_connections: int = hardware(256)
    """Calls in flight, per worker."""
    limits: Limits = field(default_factory=Limits, metadata={"identity": False})
    """Ceilings for the whole cluster; the search for the endpoint's actual limits stays below
    them."""
    prices: Prices = field(default_factory=dict[str, Any], metadata={"identity": False})
    """USD per million tokens in place of those of the table of models: {MODEL: [input, output]}
    or {MODEL: [input, output, input from its cache of prompts]}."""
    attempts: int = hardware(6)
    """Failures of one call before it is given up."""
    patience: float = hardware(300.0)
    """Seconds: the longest Retry-After that is waited for, and the longest time without any
    reply."""

    @property
    def identity(self) -> str:
        return f"{self.model} at {self.base_url}"

    @property
    def place(self) -> str:
        """The endpoint's name in errors."""
        return f"model {self.model!r} at {self.base_url}"

    def refused_key(self, status: int) -> str:
        reason = f"the key in {self.key_env} was refused; check the key and its permissions"
        if self.key_env is None:
            reason = "it wants a key, and key_env=null sends none; name its variable: key_env=NAME"
        return f"{self.place}: HTTP {status}: {reason}"

    @property
    def account(self) -> str:
        """The name under which limits are counted; endpoints count by model."""
        return f"{self.model} at {self.base_url}"

    def url(self, path: str) -> str:
        """The address of a route, such as "/models". A query of `base_url` stays at the end."""
        return _route(self.base_url, path)

    @cached_property
    def table_row(self) -> KnownModel | None:
        """What the table of models has on this model at this address."""
        return find_model(self.model, self.base_url)

    @cached_property
    def known_price(self) -> Price | None:
        """The model's price; None where neither `prices` nor the table has it. A model that the
        table lacks is free where no key is sent.
        """
        return find_price(self.prices, self.model, self.base_url, paid=self.key_env is not None)

    @cached_property
    def price(self) -> Price:
        """The model's price; 0 where it is not known."""
        return self.known_price or Price(0.0, 0.0)

    def check(self, budget_usd: float | None) -> None:
        """Raise UserError for a malformed address, a missing key, a budget without a price, or an
        impossible number.
        """
        self.key()
        require_price(self.known_price, self.model, budget_usd)
        for name in ("timeout", "max_connections", "attempts"):
            if getattr(self, name) <= 0:
                raise UserError(
                    f"{name}={getattr(self, name)!r} of {self.model!r}: must be more than 0"
                )

    def key(self) -> str:
        """The key. Raises UserError for a malformed address, or if the variable is not set."""
        if wrong := find_address_fault(self.base_url):
            raise UserError(wrong)
        if self.key_env is None:
            return "none"
        key = os.environ.get(self.key_env, "").strip()
        if not key:
            raise UserError(
                f"no key for {self.base_url}: set the environment variable {self.key_env} "
                f"(export {self.key_env}=...), or name a server of your own that needs none: "
                "base_url=http://HOST:PORT/v1 key_env=null llm.model=MODEL"
            )
        return secret(key)


@lru_cache(maxsize=256)
def _route(base_url: str, path: str) -> str:
    parts = urlsplit(base_url)
    return parts._replace(path=parts.path.rstrip("/") + path).geturl()


def find_address_fault(base_url: str) -> str | None:
    """The fault of a malformed address, or None."""
    try:
        parts = urlsplit(base_url)
        parts.port  # noqa: B018  (raises for a port that is not a number)
    except ValueError as error:
        return f"base_url={base_url!r}: {error}; expected http://HOST:PORT/v1 or https://HOST/v1"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return f"base_url={base_url!r}: expected http://HOST:PORT/v1 or https://HOST/v1"
    if parts.username is not None or parts.password is not None:
        place = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        return (
            f"base_url={place!r} was given with a user and password before its host, which are not "
            "sent: leave them out, put the key into an environment variable, and name the variable "
            "with key_env=NAME"
        )
    if hide_secrets(parts.query) != parts.query or QUERY_SECRET.search(f"?{parts.query}"):
        place = parts._replace(query="").geturl()
        return (
            f"base_url={place!r} was given with a key in its query: leave it out, put the key into "
            "an environment variable, and name the variable with key_env=NAME"
        )
    return None
