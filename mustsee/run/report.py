"""`report/index.html`: one self-contained page that shows what a run found.

No script runs in it and nothing is fetched: pictures are inlined, and all text is escaped.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mustsee.records import Question, Video
from mustsee.run.best import best, evidence_frames
from mustsee.run.tables import Tables
from mustsee.store import Store

MAX_VIDEOS = 100
MANY_VIDEOS = 10_000  # of more, not every question is read whole
MAX_PICTURES = 10
SHOWN = (  # of a video
    "title", "start", "duration", "width", "height", "shots", "lines", "captions", "segments",
    "heard_by", "drop", "problem", "lineage",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One video on the page: its row, its questions, and a few pictures as data addresses."""

    video: Video
    questions: Sequence[Question]
    pictures: Sequence[tuple[float, str]]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """One of the best questions on the page, with frames of its evidence as data addresses."""

    question: Question
    pictures: Sequence[tuple[float, str]]


@dataclass(frozen=True)
class Bar:
    """One bar of a plot: its label, its value, and its length as a share of the longest."""

    label: str
    value: float
    share: float


def bars(counts: Mapping[str, float]) -> list[Bar]:
    """Counts as bars, in the order given."""
    longest = max(counts.values(), default=0) or 1
    return [Bar(label, value, value / longest) for label, value in counts.items()]


def write_report(folder: Path, record: Mapping[str, Any], store: Store | None) -> Path:
    """Write `folder/report/index.html` from the files of a run in `folder` and its `run.json`."""
    tables = Tables(folder)
    videos = tables.videos_among(MAX_VIDEOS, *SHOWN)
    by_video: dict[str, list[Question]] = {}
    for question in tables.questions_of([video.video_id for video in videos]):
        by_video.setdefault(question.video_id, []).append(question)
    panels = [
        Panel(
            video=video,
            questions=by_video.get(video.video_id, []),
            pictures=list(_pictures(video, store)),
        )
        for video in videos
    ]
    asked = any(step["stage"] == "ask" for step in record["funnel"])
    slots = Counter(
        q.answer_index
        for q in tables.questions("answer_index", "drop")
        if q.drop is None and q.answer_index is not None
    )
    page = (
        environment()
        .get_template("report.html.j2")
        .render(
            record=record,
            panels=panels,
            best=list(_best(tables, store, by_video)) if asked else [],
            more=tables.count() - len(videos),
            types=bars(record["questions"]["types"]),
            slots=bars({chr(65 + slot): slots[slot] for slot in sorted(slots)}),
            evidence=bars(_positions(panels)),
            config=json.dumps(record["config"], indent=2, ensure_ascii=False),
        )
    )
    path = folder / "report" / "index.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def environment() -> Environment:
    """Where the pages' templates are, and what they may use."""
    found = Environment(
        loader=FileSystemLoader(Path(__file__).parents[1] / "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["clock"] = clock
    return found


def clock(seconds: float) -> str:
    """1:02:03 or 2:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _best(
    tables: Tables, store: Store | None, shown: Mapping[str, Sequence[Question]]
) -> Iterator[Shown]:
    """The best questions of the run; of a large one, those of the videos on the page."""
    small = tables.count() <= MANY_VIDEOS
    chosen = best(tables.questions() if small else (q for each in shown.values() for q in each))
    films = {q.video_id for q in chosen}
    rows = {v.video_id: v for v in tables.videos("lineage") if v.video_id in films}
    for question in chosen:
        frames = evidence_frames(question, rows[question.video_id], store) if store else []
        yield Shown(question=question, pictures=[(k.time, _address(k.jpeg)) for k in frames])


def _address(jpeg: bytes) -> str:
    return "data:image/jpeg;base64," + base64.b64encode(jpeg).decode()


def _pictures(video: Video, store: Store | None) -> Iterator[tuple[float, str]]:
    """A few of the keyframes that `look` left in the store, spread over the video."""
    key = video.lineage.get("look")
    found = store.get_table("look", key) if store is not None and key else None
    if found is None or "keyframes" not in found.column_names:
        return
    frames = found["keyframes"][0].as_py() or []
    step = max(1, -(-len(frames) // MAX_PICTURES))
    for frame in frames[::step]:
        yield frame["time"], _address(frame["jpeg"])


def _positions(panels: Sequence[Panel]) -> dict[str, float]:
    """Where in the videos shown the evidence of kept questions lies: spans by the fifth in which
    their middle falls.
    """
    names = ("first fifth", "second", "middle", "fourth", "last fifth")
    counts: dict[str, float] = dict.fromkeys(names, 0.0)
    for panel in panels:
        video = panel.video
        if not video.duration:
            continue
        for span in (s for q in panel.questions if q.drop is None for s in q.evidence):
            middle = (span.start + span.end) / 2 - (video.start or 0.0)
            counts[names[min(4, max(0, int(5 * middle / video.duration)))]] += 1
    return counts
