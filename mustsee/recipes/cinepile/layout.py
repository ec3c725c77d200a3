"""CinePile's release: a parquet (or csv) table of one row per question.

`hard_split` and `visual_reliance` are strings; category names hold a literal line break; the
answer is there as text (`answer_key`) and as a number (`answer_key_position`). In our records they
are `metrics["hardness"]`, `metrics["vision_reliance"]` (0 or 1), a category in one line, and both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mustsee.errors import UserError
from mustsee.files.parquet import Parquet
from mustsee.layouts import reading
from mustsee.layouts.card import Card, CardCounts, card_text
from mustsee.layouts.options import parse_cell
from mustsee.layouts.reading import Notes, QuestionFile, Questions, Row
from mustsee.records import Line, Question, Segment, Video

if TYPE_CHECKING:
    import pyarrow as pa

CATEGORIES = (  # categories, worded as released
    "Character and\nRelationship Dynamics",
    "Narrative and\nPlot Analysis",
    "Setting and\nTechnical Analysis",
    "Temporal",
    "Theme Exploration",
)
SPLITS = ("train", "test")
_BROKEN = {c.replace("\n", " "): c for c in CATEGORIES}
_TRUTH = {"true": 1.0, "1": 1.0, "1.0": 1.0, "false": 0.0, "0": 0.0, "0.0": 0.0}


def read(path: Path) -> QuestionFile:
    """Read a table, or a folder of them (parquet before csv). Each row's clip becomes a video with
    its subtitles as untimed lines and the scene description as one segment.
    """
    files = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    files = files or sorted(path.rglob("*.csv"))
    if not files:
        raise UserError(f"no .parquet or .csv file in {str(path)!r}")
    questions, videos, findings = list[Question](), dict[str, Video](), []
    count: dict[str, int] = {}
    for file in files:
        notes = Notes(file)
        for number, row in enumerate(reading.rows_of(file)):
            clip = _clip(row, number, notes)
            count[clip] = count.get(clip, 0) + 1
            name = f"{clip}/{count[clip]}"
            questions.append(_question(number, row, notes, clip, name))
            if clip not in videos:
                videos[clip] = _video(row, clip, notes, number)
        findings += notes.findings
    return QuestionFile(
        layout="cinepile",
        questions=tuple(questions),
        videos=tuple(videos.values()),
        findings=tuple(findings),
    )


def is_folder(path: Path) -> bool:
    """Return False: only the columns of its tables distinguish this layout."""
    return False


def is_table(columns: Collection[str]) -> bool:
    """Whether a file with these columns is in this layout."""
    return "answer_key" in columns or "yt_clip_link" in columns


def _clip(row: Row, number: int, notes: Notes) -> str:
    if row.get("videoID"):
        return str(row["videoID"])
    link = str(row.get("yt_clip_link") or "")
    name = reading.youtube_id(link)
    if name is None:
        notes.add(number, "", "no clip id in yt_clip_link", link or None)
    return name or str(row.get("yt_clip_title") or link or f"row-{number}")


def _listed(value: Any) -> tuple[str, ...]:
    """Parse a list column, which a csv table has in Python's or numpy's spelling."""
    if isinstance(value, str):
        parsed = parse_cell(value)
        value = parsed if isinstance(parsed, list | tuple) else filter(None, [value.strip()])
    return tuple(str(v) for v in value or ())


def _flag(value: Any, key: str, number: int, name: str, notes: Notes) -> float | None:
    if value is None or value == "":
        return None
    truth = _TRUTH.get(str(value).strip().lower())
    if truth is None:
        notes.add(number, name, f"{key} is neither true nor false", value)
    return truth


def _question(number: int, row: Row, notes: Notes, clip: str, name: str) -> Question:
    options = _listed(row.get("choices"))
    if len(options) != 5:
        notes.add(number, name, "not five choices", len(options))
    answer: Any = row.get("answer_key")
    given: Any = row.get("answer_key_position")
    index = notes.index(number, name, options, answer=answer, given=given)
    flags = {
        "hardness": _flag(row.get("hard_split"), "hard_split", number, name, notes),
        "vision_reliance": _flag(
            row.get("visual_reliance"), "visual_reliance", number, name, notes
        ),
    }
    return Question(
        question_id=name,
        video_id=clip,
        recipe="cinepile",
        question=notes.text(number, name, row, "question"),
        question_type=re.sub(r"\s+", " ", str(row.get("question_category") or "")).strip(),
        options=options,
        answer_index=index,
        answer=str(answer or ""),
        metrics={k: v for k, v in flags.items() if v is not None},
        subsets=("hard",) if flags["hardness"] else (),
    )


def _video(row: Row, clip: str, notes: Notes, number: int) -> Video:
    subtitles, scene = str(row.get("subtitles") or ""), str(row.get("movie_scene") or "")
    year: Any = row.get("year")
    try:
        year = int(float(year)) if year not in (None, "") else None
    except ValueError:
        notes.add(number, clip, "year is not a number", year)
        year = None
    lines = tuple(
        Line(start=0.0, end=0.0, text=text) for text in subtitles.split("\n") if text.strip()
    )
    return Video(
        video_id=clip,
        uri=str(row.get("yt_clip_link") or ""),
        title=row.get("yt_clip_title"),
        movie_name=row.get("movie_name"),
        year=year,
        genre=_listed(row.get("genre")),
        lines=lines if "subtitles" in row else None,
        segments=(Segment(start=0.0, end=0.0, topic="scene", dense_caption=scene),)
        if scene
        else None,
    )


def write(
    questions: Questions,
    path: str | Path,
    videos: Iterable[Video] = (),
    *,
    line_breaks: bool = True,
    card: Card | None = None,
) -> None:
    """Write the kept questions to `path` (a .parquet), or into the folder `path`: one
    `<split>.parquet` for each of the subsets "train" and "test" that occur, else `test.parquet`.

    `line_breaks`: category names as released, with a line break. The flags are "True" or "False".
    `card`: text of the folder's README; null writes none.
    """
    path, chosen = Path(path), reading.first(questions)
    source_videos, clips = list[Video](), dict[str, Row]()
    for video in videos:
        source_videos.append(reading.facts(video))
        clips[video.video_id] = _clip_columns(video)
    table = partial(_table, clips=clips, line_breaks=line_breaks)
    is_file = path.suffix == ".parquet"
    splits_there = set() if is_file else {s for q in chosen for s in q.subsets if s in SPLITS}
    splits = tuple(s for s in SPLITS if s in splits_there)
    tally = CardCounts(splits or ("test",), card.compared if card is not None else {})
    with ExitStack() as files:
        tables = {
            split: files.enter_context(
                Parquet(path if is_file else path / f"{split}.parquet", table, compression="snappy")
            )
            for split in splits or ("test",)
        }
        for question in chosen:
            for split, file in tables.items():
                if split in question.subsets or not splits:
                    file.add(question)
                    tally.keep(question, split)
    if card is not None and not is_file:
        for question in questions:
            tally.count_made(question)
        text = card_text(card, tally, source_videos, files="{}.parquet")
        (path / "README.md").write_text(text, encoding="utf-8")


def _table(rows: Sequence[Question], clips: Mapping[str, Row], line_breaks: bool) -> pa.Table:
    import pyarrow as pa

    text, listed, number = pa.string(), pa.list_(pa.string()), pa.int64()
    schema = pa.schema(
        {
            "movie_name": text, "year": number, "genre": listed, "yt_clip_title": text,
            "yt_clip_link": text, "movie_scene": text, "subtitles": text, "question": text,
            "choices": listed, "answer_key": text, "answer_key_position": number,
            "question_category": text, "hard_split": text, "visual_reliance": text,
            "videoID": text,
        }.items()
    )  # fmt: skip
    return pa.Table.from_pylist([_row(q, clips, line_breaks) for q in rows], schema=schema)


def _clip_columns(video: Video) -> Row:
    """Return the columns that all rows on one clip share."""
    return {
        "movie_name": video.movie_name,
        "year": video.year,
        "genre": list(video.genre),
        "yt_clip_title": video.title,
        "yt_clip_link": video.uri,
        "movie_scene": "\n".join(s.dense_caption for s in video.segments or ()),
        "subtitles": "\n".join(line.text for line in video.lines or ()),
    }


def _row(question: Question, clips: Mapping[str, Row], line_breaks: bool) -> dict[str, Any]:
    name, kind = question.video_id, question.question_type
    hard = question.metrics.get("hardness", 1.0 if "hard" in question.subsets else None)
    relies = question.metrics.get("vision_reliance")
    return {
        **(clips.get(name) or _clip_columns(Video(video_id=name, uri=""))),
        "question": question.question,
        "choices": list(question.options),
        "answer_key": reading.answer_of(question),
        "answer_key_position": question.answer_index,
        "question_category": _BROKEN.get(kind, kind) if line_breaks else kind,
        "hard_split": None if hard is None else str(bool(hard)),
        "visual_reliance": None if relies is None else str(bool(relies)),
        "videoID": name,
    }
