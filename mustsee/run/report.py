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

import pyarrow.parquet as pq
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mustsee import schemas
from mustsee.records import Question, Video
from mustsee.store import Store

MAX_VIDEOS = 100
MAX_PICTURES = 10


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One video on the page: its row, its questions, and a few pictures as data addresses."""

    video: Video
    questions: Sequence[Question]
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
    questions = _questions(folder / "questions.parquet")
    by_video: dict[str, list[Question]] = {}
    for question in questions:
        by_video.setdefault(question.video_id, []).append(question)
    panels = [
        Panel(
            video=video,
            questions=by_video.get(video.video_id, []),
            pictures=list(_pictures(video, store)),
        )
        for video in _videos(folder / "videos.parquet", MAX_VIDEOS)
    ]
    kept = [q for q in questions if q.drop is None]
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parents[1] / "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["clock"] = clock
    slots = Counter(q.answer_index for q in kept if q.answer_index is not None)
    page = environment.get_template("report.html.j2").render(
        record=record,
        panels=panels,
        more=max(0, pq.read_metadata(folder / "videos.parquet").num_rows - MAX_VIDEOS),
        types=bars(record["questions"]["types"]),
        slots=bars({chr(65 + slot): slots[slot] for slot in sorted(slots)}),
        evidence=bars(_positions(kept, panels)),
        config=json.dumps(record["config"], indent=2, ensure_ascii=False),
    )
    path = folder / "report" / "index.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def clock(seconds: float) -> str:
    """1:02:03 or 2:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _videos(path: Path, limit: int) -> Iterator[Video]:
    left = limit
    for batch in pq.ParquetFile(path).iter_batches(batch_size=min(limit, 16)):
        known = [c for c in batch.schema.names if c in schemas.schema(Video).names]
        for row in batch.select(known).to_pylist()[:left]:
            yield schemas.load(Video, row)
        left -= batch.num_rows
        if left <= 0:
            return


def _questions(path: Path) -> list[Question]:
    return [schemas.load(Question, row) for row in pq.read_table(path).to_pylist()]


def _pictures(video: Video, store: Store | None) -> Iterator[tuple[float, str]]:
    """A few of the keyframes that `look` left in the store, spread over the video."""
    key = video.lineage.get("look")
    found = store.get_table("look", key) if store is not None and key else None
    if found is None or "keyframes" not in found.column_names:
        return
    frames = found["keyframes"][0].as_py() or []
    step = max(1, -(-len(frames) // MAX_PICTURES))
    for frame in frames[::step]:
        yield frame["time"], "data:image/jpeg;base64," + base64.b64encode(frame["jpeg"]).decode()


def _positions(questions: Sequence[Question], panels: Sequence[Panel]) -> dict[str, float]:
    """Where in the video the evidence lies: spans by the fifth in which their middle falls."""
    videos = {p.video.video_id: p.video for p in panels}
    names = ("first fifth", "second", "middle", "fourth", "last fifth")
    counts: dict[str, float] = dict.fromkeys(names, 0.0)
    for question in questions:
        video = videos.get(question.video_id)
        if video is None or not video.duration:
            continue
        for span in question.evidence:
            middle = (span.start + span.end) / 2 - (video.start or 0.0)
            counts[names[min(4, max(0, int(5 * middle / video.duration)))]] += 1
    return counts
