"""The models that a run asks: their prices, and what their endpoints and the table of models say of
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from actors.calls.endpoint import Endpoint
from actors.calls.gateway import MeteredModel
from actors.calls.served import Listings, model_notes
from mustsee.calls.models import find_model, model_table
from mustsee.calls.usage import price
from ray_jobs.runtime.trials import walk_parts


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
