"""What is known of models: prices, context, modalities, limits and shutdown dates.

The table is assets/models.json, of litellm, which `make upgrade` renews
(`deploy/model_snapshot.py`, decision 0112). A model has a row for each provider, because the
same name may have several prices; the address of an endpoint says which provider it is.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mustsee.calls.usage import LongPrice, Price, price, read_price

FILE = Path(__file__).parents[1] / "assets" / "models.json"
HOSTS = {  # ends of hosts, and litellm's names of their providers
    "api.openai.com": "openai",
    "openai.azure.com": "azure",
    "generativelanguage.googleapis.com": "gemini",
    "api.anthropic.com": "anthropic",
    "api.mistral.ai": "mistral",
    "api.deepseek.com": "deepseek",
    "api.x.ai": "xai",
    "api.groq.com": "groq",
    "api.together.xyz": "together_ai",
    "api.together.ai": "together_ai",
    "api.fireworks.ai": "fireworks_ai",
    "api.deepinfra.com": "deepinfra",
    "api.novita.ai": "novita",
    "api.studio.nebius.com": "nebius",
    "api.cerebras.ai": "cerebras",
    "aliyuncs.com": "dashscope",
    "api.moonshot.ai": "moonshot",
    "api.z.ai": "zai",
}
PROVIDERS = frozenset(HOSTS.values())
# Makers as a gateway (OpenRouter, a proxy) writes them before a model at the maker's price.
MAKERS = {
    "openai": "openai",
    "google": "gemini",
    "anthropic": "anthropic",
    "x-ai": "xai",
    "mistralai": "mistral",
    "deepseek": "deepseek",
    "moonshotai": "moonshot",
    "z-ai": "zai",
}
OPENROUTER = "openrouter.ai"
FREE = ":free"  # end of the names of OpenRouter's free models
SOON_DAYS = 90  # a shutdown date that is nearer is reported


@dataclass(frozen=True, kw_only=True)
class KnownModel:
    """A row of the table.

    `name`: provider and model. `price`: None where calls are not paid by tokens. `usd_second`: USD
    per second of sound. `context`, `longest_reply`: tokens. `inputs`: of image, video, audio; None:
    not known. `thinks`: whether it can reason. `shutdown`: day on which it stops. `successor`: what
    its maker names in its place.
    """

    name: str
    price: Price | None = None
    usd_second: float | None = None
    context: int | None = None
    longest_reply: int | None = None
    inputs: frozenset[str] | None = None
    thinks: bool = False
    shutdown: date | None = None
    successor: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelTable:
    """The table of models. `source`: its package and version. `taken`: when it was copied."""

    source: str
    taken: date
    models: Mapping[str, KnownModel]

    def __str__(self) -> str:
        return f"{self.source}, copied on {self.taken.isoformat()}"


@functools.cache
def model_table() -> ModelTable:
    content: Mapping[str, Any] = json.loads(FILE.read_text())
    return ModelTable(
        source=content["source"],
        taken=date.fromisoformat(content["taken"]),
        models={name: _known(name, row) for name, row in content["models"].items()},
    )


def _known(name: str, row: Mapping[str, Any]) -> KnownModel:
    usd: Sequence[float] | None = row.get("usd")
    long: Sequence[float] | None = row.get("long")
    return KnownModel(
        name=name,
        price=read_price(usd, _long(long) if long else None) if usd else None,
        usd_second=row.get("usd_second"),
        context=row.get("context"),
        longest_reply=row.get("longest_reply"),
        inputs=frozenset(row["inputs"]) if "inputs" in row else None,
        thinks=bool(row.get("thinks")),
        shutdown=parse_day(row.get("shutdown")),
        successor=str(row.get("successor") or "").rpartition("/")[2],
    )


def _long(row: Sequence[float]) -> LongPrice | None:
    return LongPrice(int(row[0]), read_price(row[1:])) if len(row) > 2 else None


def parse_day(text: Any) -> date | None:
    """The day at the beginning of an ISO date; None for anything else."""
    try:
        return date.fromisoformat(str(text)[:10])
    except ValueError:
        return None


@functools.lru_cache(maxsize=256)
def find_model(model: str, base_url: str) -> KnownModel | None:
    """Return what is known of a model at an address; None for a model that the table lacks.

    At an address that is no provider's (a proxy, a server of one's own) it is the row of the
    model's maker, if the maker's own name for it is given, with or without the maker before it.
    """
    host = urlsplit(base_url).hostname or ""
    name = model.removeprefix("models/")
    if host.endswith(OPENROUTER) and name.endswith(FREE):
        known = find_model(name.removesuffix(FREE), base_url) or KnownModel(name=name)
        return _free(known, name)
    rows = model_table().models
    provider = next((p for end, p in HOSTS.items() if host == end or host.endswith(f".{end}")), "")
    if provider:
        return rows.get(f"{provider}/{name}")
    maker, _, alone = name.rpartition("/")
    if maker:
        return rows.get(f"{MAKERS.get(maker, maker)}/{alone}") if maker in MAKERS else None
    makers = dict.fromkeys(MAKERS.values())
    return next((rows[key] for m in makers if (key := f"{m}/{name}") in rows), None)


def _free(known: KnownModel, name: str) -> KnownModel:
    """A free model: its maker's row, without a price and without the maker's shutdown date."""
    return KnownModel(
        name=f"openrouter/{name}", price=Price(0.0, 0.0), context=known.context,
        inputs=known.inputs, thinks=known.thinks,
    )  # fmt: skip


def find_price(
    prices: Mapping[str, Sequence[float]], model: str, base_url: str, *, paid: bool = True
) -> Price | None:
    """Return a model's price: the user's, else the table's; None if neither has one.

    `paid`: whether the endpoint takes a key. One that takes none bills nobody, so a model that the
    table lacks is free there. Raises UserError for malformed prices.
    """
    if (given := price(prices, model)) is not None:
        return given
    known = find_model(model, base_url)
    if known is not None and (known.price is not None or known.usd_second is not None):
        return known.price or Price(0.0, 0.0)
    return None if paid else Price(0.0, 0.0)


def end_note(shutdown: date | None, successor: str, today: date) -> str:
    """Say when a model stops; "" if that is not known or more than `SOON_DAYS` away."""
    if shutdown is None or (days := (shutdown - today).days) > SOON_DAYS:
        return ""
    instead = f"; its maker names {successor} in its place" if successor else ""
    day = shutdown.isoformat()
    if days <= 0:
        return f"has stopped ({day}){instead}"
    return f"stops in {days} {'day' if days == 1 else 'days'} ({day}){instead}"
