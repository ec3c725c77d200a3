"""`probe.html`: one page with all that a probe found. It needs no script and fetches nothing."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mustsee.run.report import environment
from mustsee.server_probe.cards import draw_card
from mustsee.server_probe.summary import count_lines, headline, seen_lines, server_lines

KINDS = {"images": "images", "video": "video", "file_url": "video by file URL",
         "video_as_image_url": "video as image_url", "fast_video": "fast video"}  # fmt: skip
EXAMPLE = 47  # numeral of the card that the page shows


@dataclass(frozen=True, kw_only=True)
class SentRow:
    """One request with numerals, as the page shows it: shares of what was sent, 0 to 1."""

    name: str
    sent: int
    seen: int
    misread: int
    missing: int
    order: str
    says: str
    tokens: int | None
    again: bool


def render(record: Mapping[str, Any]) -> str:
    """Return the page of a `probe.json`."""
    card = base64.b64encode(draw_card(EXAMPLE)).decode()
    return environment().get_template("probe.html.j2").render(
        probe=record,
        headline=headline(record),
        seen=list(seen_lines(record)),
        counts=list(count_lines(record)),
        server=list(server_lines(record)),
        rows=list(_rows([*record["images"], *record["videos"]])),
        card=f"data:image/jpeg;base64,{card}",
    )  # fmt: skip


def _rows(results: Sequence[Mapping[str, Any]]) -> Iterator[SentRow]:
    for result in results:
        frames = result["frames"]
        length = f" of {result['seconds']:g} s" if result["seconds"] else ""
        name = f"{KINDS[result['kind']]}{length}"
        if frames is None:
            yield SentRow(
                name=name, sent=result["count"], seen=0, misread=0, missing=0, order="–",
                says=f"{result['state']}: {result['why']}", tokens=result["tokens"],
                again=result["draw"] > 0,
            )  # fmt: skip
            continue
        kept = frames["in_order"]
        yield SentRow(
            name=name, sent=frames["sent"], seen=frames["seen"], misread=frames["misread"],
            missing=frames["missing"], order="–" if kept is None else f"{100 * kept:.0f} %",
            says="", tokens=result["tokens"], again=result["draw"] > 0,
        )  # fmt: skip
