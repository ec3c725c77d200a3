"""`report/index.html` of an audit: the battery as one picture, what the video adds, the worst
questions with their frames, by type and by length.

Told from `audit.json` and the questions beside it, so that it can be written anew.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mustsee.audit.audit import FAILS
from mustsee.audit.guessers import ABOUT
from mustsee.audit.show import MIN_AUDITED
from mustsee.errors import MustseeError
from mustsee.evaluate.answers import Answer, answers
from mustsee.records import Question, Video
from mustsee.run.report import bars, environment
from mustsee.run.tables import Tables
from mustsee.verify.conditions.seen import spread, stretch

FRAMES_PER_QUESTION = 4  # of a question
FRAME_PIXELS = 240  # pixels
GAINS = ("blind_gap", "visual_gain", "temporal_gain", "needed", "recovery")
MAX_LISTED = 40  # pairs, keys in doubt, and findings


@dataclass(frozen=True, kw_only=True)
class WorstQuestion:
    """One of the worst questions, with its row of `audit.json` and frames as data addresses."""

    item: Mapping[str, Any]
    question: Question
    pictures: Sequence[tuple[float, str]]
    replies: Sequence[Answer]


def write(folder: Path, record: Mapping[str, Any], _: object = None) -> Path:
    """Write the page of the audit in `folder`, given its `run.json`."""
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
    """The guessers, then each answerer's conditions."""
    for kind, answerer in dict.fromkeys((t["kind"], t["answerer"]) for t in battery):
        some = [t for t in battery if (t["kind"], t["answerer"]) == (kind, answerer)]
        yield answerer or "guessers that ask no model", some


def _fewest(figures: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Any]]]:
    for one in figures:
        told = one["fewest"]
        if told is not None:
            names = {n: "blind" if n == "0" else f"{n} pictures" for n in told["counts"]}
            names |= {"1": "1 picture"} if "1" in names else {}
            counts = {names[n]: c for n, c in told["counts"].items()}
            yield one["answerer"], bars({**counts, "not even then": told["never"]})


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
            pictures=_pictures(videos[question.video_id], question),
            replies=answers(question),
        )


def _pictures(video: Video, question: Question) -> list[tuple[float, str]]:
    """Frames of its evidence, or of the whole video; none where there is no video."""
    if not video.uri or video.duration is None or video.problem is not None:
        return []
    from mustsee.media.video import frames_at

    times = spread(question.evidence or (stretch(video),), FRAMES_PER_QUESTION)
    try:
        found = list(frames_at(video.uri, times))
    except MustseeError:  # it was there when it was asked about
        return []
    shown = [p.jpeg(FRAME_PIXELS, 75) for p in found]
    return [
        (time, "data:image/jpeg;base64," + base64.b64encode(jpeg).decode())
        for time, jpeg in zip(sorted(times), shown, strict=True)
    ]
