"""The models that a run asks: their prices, and what their endpoints and the table of models say of
them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from actors.calls.endpoint import Endpoint
from actors.calls.gateway import MeteredModel
from actors.calls.trial import TrialReply, get_models, listed_models
from mustsee.calls.models import end_note, find_model, model_table, parse_day
from mustsee.calls.usage import price
from mustsee.errors import UserError
from ray_jobs.runtime.trials import walk_parts

LISTING_TIMEOUT_S = 5.0  # seconds for the list of models
# Names of the day on which a model stops: in OpenAI's list of models, and in OpenRouter's.
SHUTDOWN_KEYS = ("shutdown_date", "expiration_date")
MAX_LISTED_MODELS = 5  # models named in a note


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The models that an endpoint lists, each with its row; `models` None: not known, `why`."""

    models: Mapping[str, Mapping[str, Any]] | None = None
    why: str = ""


@dataclass
class Listings:
    """Asks each address for its list of models once."""

    seconds: float = LISTING_TIMEOUT_S
    _asked: dict[tuple[str, str | None], Listing] = field(
        default_factory=dict[tuple[str, str | None], Listing]
    )

    def get(self, endpoint: Endpoint) -> Listing:
        at = (endpoint.base_url, endpoint.key_env)
        if at not in self._asked:
            self._asked[at] = self._ask(endpoint)
        return self._asked[at]

    def _ask(self, endpoint: Endpoint) -> Listing:
        try:
            key = endpoint.key()
        except UserError:
            return Listing(why=f"{endpoint.key_env} is not set")
        return read_listing(get_models(endpoint, key, self.seconds))


def read_listing(reply: TrialReply) -> Listing:
    """Read a reply to `GET /models`, in OpenAI's form or as a plain list."""
    if reply.status != 200:
        return Listing(why=f"HTTP {reply.status}" if reply.status else reply.reason)
    if (listed := listed_models(reply.body)) is None:
        return Listing(why="it gives no list of models")
    models = {name.removeprefix("models/"): row for name, row in listed.items()}
    return Listing(models=models) if models else Listing(why="its list of models is empty")


def model_notes(endpoint: Endpoint, listing: Listing, today: date) -> Iterator[str]:
    """Yield what is wrong with a model: it is not served, takes no images, or stops soon."""
    known, name = endpoint.table_row, endpoint.model.removeprefix("models/")
    row = (listing.models or {}).get(name)
    if listing.models is not None and row is None:
        yield f"is not served here{_instead(name, list(listing.models))}"
    days = (parse_day((row or {}).get(key)) for key in SHUTDOWN_KEYS)
    announced = next((day for day in days if day), known.shutdown if known else None)
    if note := end_note(announced, known.successor if known else "", today):
        yield note
    takes = known.inputs if known else None
    if takes is not None and "image" not in takes and getattr(endpoint, "looks", False):
        yield "takes no images: set looks=false for it, or name another model"


def _instead(name: str, served: list[str]) -> str:
    similar = difflib.get_close_matches(name, served, n=1, cutoff=0.5)
    if similar:
        return f"; did you mean {similar[0]!r}?"
    more = len(served) - MAX_LISTED_MODELS
    listed = ", ".join(sorted(served)[:MAX_LISTED_MODELS])
    return f"; served are {listed}" + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True, kw_only=True)
class AskedModels:
    """What an estimate says of the models asked.

    `unpriced`: a sentence for each model of unknown price. `notes`: for each model that is not
    served, stops soon or takes no images. `prices`: where the prices come from.
    """

    unpriced: Sequence[str] = ()
    notes: Sequence[str] = ()
    prices: str = ""

    def plain(self) -> dict[str, Any]:
        return {"unpriced": list(self.unpriced), "notes": list(self.notes), "prices": self.prices}


def asked_endpoints(parts: Sequence[Any]) -> dict[str, Endpoint]:
    """The endpoints of configured parts and their fallbacks, by account."""
    metered = (
        item for part in parts for item in walk_parts(part) if isinstance(item, MeteredModel)
    )
    # A chat model's `ways` are itself and its fallbacks.
    return {w.account: w for m in metered for w in getattr(m.endpoint, "ways", (m.endpoint,))}


def describe_models(endpoints: Mapping[str, Endpoint]) -> AskedModels:
    """Ask each address for its list of models, and look all models up in the table."""
    if not endpoints:
        return AskedModels()
    listings, today = Listings(), datetime.now(UTC).date()
    notes: dict[str, None] = {}
    for endpoint in endpoints.values():
        listing = listings.get(endpoint)
        for note in model_notes(endpoint, listing, today):
            notes[f"{endpoint.place} {note}"] = None
        if listing.models is None:
            unasked = f"not known: which models are served at {endpoint.base_url} ({listing.why})"
            notes[unasked] = None
    return AskedModels(
        unpriced=[
            f"the price of {e.place} is not known: its calls count as 0 USD below; give it as "
            f"'prices={{{e.model}: [USD per million tokens in, out]}}' of that model"
            for e in endpoints.values()
            if e.known_price is None
        ],
        notes=list(notes),
        prices=" ".join(_price_lines(endpoints)),
    )


def _price_lines(endpoints: Mapping[str, Endpoint]) -> Iterator[str]:
    """Say what each model costs, and where that comes from."""
    shown: list[str] = []
    for endpoint in endpoints.values():
        known = find_model(endpoint.model, endpoint.base_url)
        if price(endpoint.prices, endpoint.model) is not None:
            shown.append(f"{endpoint.model} {_figures(endpoint)} (prices=)")
        elif known is not None:
            shown.append(f"{endpoint.model} {_figures(endpoint)} ({known.name})")
        elif endpoint.known_price is not None:
            shown.append(f"{endpoint.model} free (key_env=null)")
    if shown:
        yield f"prices of {model_table()}, USD per million tokens in/out: {'; '.join(shown)}"


def _figures(endpoint: Endpoint) -> str:
    known = endpoint.table_row
    if known is not None and known.price is None and known.usd_second is not None:
        return f"{60 * known.usd_second:g} a minute"
    return f"{endpoint.price.tokens_in:g}/{endpoint.price.tokens_out:g}"
