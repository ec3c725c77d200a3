"""`report/index.html` of an audit: a chart of the battery, what the video adds, figures by type and
by length, and the worst questions with their frames.

It needs only `audit.json` and the questions beside it, so that it can be written again at any time.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mustsee.audit.audit import FAILS
from mustsee.audit.guessers import ABOUT, SHORT
from mustsee.audit.show import MIN_AUDITED
from mustsee.errors import MustseeError
from mustsee.evaluate.answers import Answer, answers
from mustsee.records import Question, Video
from mustsee.run.report import bars, environment
from mustsee.run.tables import Tables
from mustsee.verify.conditions.seen import spread, video_span

FRAMES_PER_QUESTION = 4
FRAME_PIXELS = 240  # pixels of the longer side
GAINS = ("blind_gap", "visual_gain", "temporal_gain", "needed", "recovery")
MAX_LISTED = 40  # pairs, doubtful keys and findings that are listed, at most


@dataclass(frozen=True, kw_only=True)
class WorstQuestion:
    """One of the worst questions, with its row of `audit.json` and frames as data URLs."""

    item: Mapping[str, Any]
    question: Question
    frames: Sequence[tuple[float, str]]
    replies: Sequence[Answer]


def write(folder: Path, record: Mapping[str, Any], _: object = None) -> Path:
    """Write the page of the audit in `folder`; return its path. `record`: the run's `run.json`."""
    audit = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    page = environment().get_template("audit.html.j2").render(
        record=record,
        audit=audit,
        name="/".join(Path(audit["dataset"]).parts[-2:]),
        few=MIN_AUDITED,
        reasons=[(name, n, FAILS[name]) for name, n in audit["fails"].items() if n],
        findings=audit["findings"][:MAX_LISTED],
        gains=any(f[key] for f in audit["figures"] for key in GAINS),
        about=ABOUT,
        short=SHORT,
        guessers=sum(t["alarm"] and t["kind"] == "guesser" for t in audit["battery"]),
        chart=list(_chart(audit["battery"])),
        fewest=list(_fewest(audit["figures"])),
        places=[t for t in audit["battery"] if t["place"]],
        worst=list(_worst(folder, audit["worst"])),
        suspects=audit["suspects"][:MAX_LISTED],
        most=MAX_LISTED,
        config=json.dumps(record["config"], indent=2, ensure_ascii=False),
    )  # fmt: skip
    path = folder / "report" / "index.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def _chart(battery: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Yield the bars of the guessers, then of each answerer, each with a heading."""
    for kind, answerer in dict.fromkeys((t["kind"], t["answerer"]) for t in battery):
        results = [t for t in battery if (t["kind"], t["answerer"]) == (kind, answerer)]
        yield answerer or "guessers without a model", results


def _fewest(figures: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Any]]]:
    for one in figures:
        fewest = one["fewest"]
        if fewest is not None:
            names = {n: "blind" if n == "0" else f"{n} frames" for n in fewest["counts"]}
            names |= {"1": "1 frame"} if "1" in names else {}
            counts = {names[n]: c for n, c in fewest["counts"].items()}
            yield one["answerer"], bars({**counts, "never": fewest["never"]})


def _worst(folder: Path, items: Sequence[Mapping[str, Any]]) -> Iterator[WorstQuestion]:
    tables = Tables(folder)
    wanted = {item["question_id"] for item in items}
    questions = {q.question_id: q for q in tables.questions() if q.question_id in wanted}
    video_ids = {q.video_id for q in questions.values()}
    columns = ("start", "end", "duration", "problem")
    videos = {v.video_id: v for v in tables.videos(*columns) if v.video_id in video_ids}
    for item in items:
        question = questions[item["question_id"]]
        yield WorstQuestion(
            item=item,
            question=question,
            frames=_frames(videos[question.video_id], question),
            replies=answers(question),
        )


def _frames(video: Video, question: Question) -> list[tuple[float, str]]:
    """Return times and data URLs of frames of a question's evidence, or else of the whole video;
    an empty list without a video.
    """
    if not video.uri or video.duration is None or video.problem is not None:
        return []
    from mustsee.media.video import frames_at

    times = spread(question.evidence or (video_span(video),), FRAMES_PER_QUESTION)
    try:
        jpegs = [frame.jpeg(FRAME_PIXELS, 75) for frame in frames_at(video.uri, times)]
    except MustseeError:  # the video was moved or deleted since the audit
        return []
    return [
        (time, "data:image/jpeg;base64," + base64.b64encode(jpeg).decode())
        for time, jpeg in zip(sorted(times), jpegs, strict=True)
    ]
