"""`report/index.html`: a self-contained page with the summary of a run and all its questions.

The summary needs no script; searching and opening questions does. The page fetches nothing, all
text is escaped, and only the page's own script may run, by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mustsee.files.store import Store
from mustsee.records import is_rules, untested_note
from mustsee.run.best import BEST_QUESTIONS
from mustsee.run.browse import (
    PER_PACK,
    Browser,
    PageQuestion,
    browser,
    pack_json,
    packs,
    place_span,
)
from mustsee.run.tables import Tables, asked_models
from mustsee.text import clock
from mustsee.verify.reasons import FILTERS, STAGES, SUBSETS

RULES_NOTE = (
    "Composed by rules: nothing is asked about causes, aims, changes or what somebody knows. Such "
    "questions need a model."
)
NEEDED_S = (5, 15, 30, 60, 120)  # borders of the bars of seconds that questions need
ASSETS = Path(__file__).parents[1] / "assets"


@dataclass(frozen=True)
class PlotBar:
    """One bar of a plot; `share`: its length as a share of the longest bar."""

    label: str
    value: float
    share: float


def bars(counts: Mapping[str, float]) -> list[PlotBar]:
    """Return a bar for each count, in order."""
    longest = max(counts.values(), default=0) or 1
    return [PlotBar(label, value, value / longest) for label, value in counts.items()]


def write_report(folder: Path, record: Mapping[str, Any], store: Store | None) -> Path:
    """Write `folder/report/index.html` from the tables of a run in `folder` and its `run.json`."""
    tables, templates = Tables(folder), environment()
    subset = (record["config"].get("vet") or {}).get("subset")
    content = browser(tables, store, subset)
    slots, needed = Counter[int](), list[float]()
    for question in tables.questions("answer_index", "metrics", "drop"):
        if question.drop is not None:
            continue
        if question.answer_index is not None:
            slots[question.answer_index] += 1
        if "reach_seconds" in question.metrics:
            needed.append(question.metrics["reach_seconds"])
    script = (ASSETS / "browse.js").read_text(encoding="utf-8")
    digest = hashlib.sha256(script.encode()).digest()
    page = templates.get_template("report.html.j2").stream(
        record=record,
        browser=content,
        untested=untested_note(asked_models(tables)),
        by_rules=RULES_NOTE if are_by_rules(tables) else "",
        first=[content.with_frames(s) for s in content.questions[:BEST_QUESTIONS]],
        per_pack=PER_PACK,
        filter_meanings=FILTERS,
        stage_meanings=STAGES,
        subset_meanings=SUBSETS,
        more=max(0, tables.count() - len(content.panels)),
        types=bars(record["questions"]["types"]),
        slots=bars({chr(65 + slot): slots[slot] for slot in sorted(slots)}),
        evidence=bars(_positions(content.questions)),
        needed=bars(count_needed(needed)),
        config=json.dumps(record["config"], indent=2, ensure_ascii=False),
        data=_data(content, templates.get_template("question.html.j2").module),
        script=script,
        script_hash="sha256-" + base64.b64encode(digest).decode(),
    )
    path = folder / "report" / "index.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    page.dump(str(path), encoding="utf-8")
    return path


def are_by_rules(tables: Tables) -> bool:
    """Whether rules listed all facts of which the questions of a run were composed."""
    composed = [q for q in tables.questions("form", "provenance") if q.form and q.provenance]
    return bool(composed) and all(q.provenance and is_rules(q.provenance.llm) for q in composed)


def count_needed(seconds: Sequence[float]) -> dict[str, int]:
    """Count questions by the seconds of video that one must see for them, in sum; nothing where
    none is known.
    """
    if not seconds:
        return {}
    counts = Counter(bisect_right(NEEDED_S, each) for each in seconds)
    names = [
        f"under {NEEDED_S[0]:g} s",
        *(f"{a:g} to {b:g} s" for a, b in pairwise(NEEDED_S)),
        f"{NEEDED_S[-1]:g} s or more",
    ]
    return {name: counts[n] for n, name in enumerate(names)}


def _data(content: Browser, macros: Any) -> Iterator[tuple[str, str]]:
    """Yield the script's data: the id of an element, and its text."""
    yield "index", pack_json(content.index())
    for number, pack in enumerate(packs(content.questions, macros.question)):
        yield f"questions-{number}", pack
    for number, pack in enumerate(packs(content.panels, macros.video)):
        yield f"videos-{number}", pack
    for video, frames in content.frames.items():
        # Base64 and numbers need no escaping.
        yield f"frames-{video}", json.dumps(frames)


def environment() -> Environment:
    """Return the environment of the pages' templates, with their filters."""
    templates = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: Mapping[str, Any] = {"clock": clock, "place_span": place_span}
    templates.filters.update(filters)
    return templates


def _positions(items: Sequence[PageQuestion]) -> dict[str, float]:
    """Count the evidence spans of kept questions by the fifth of the video with their middle."""
    names = ("first fifth", "second", "middle", "fourth", "last fifth")
    counts: dict[str, float] = dict.fromkeys(names, 0.0)
    for one in items:
        video = one.video
        if one.question.drop is not None or not video.duration:
            continue
        for span in one.question.evidence:
            middle = (span.start + span.end) / 2 - (video.start or 0.0)
            counts[names[min(4, max(0, int(5 * middle / video.duration)))]] += 1
    return counts
