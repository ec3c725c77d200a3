"""Reads narrations as timed lines of each video.

The inputs are Ego4D's `narration.json`, and any table with a video, a time and a text column, such
as those of EPIC-KITCHENS 55 and 100. A `NarrationColumns` from `conf/columns/` names the columns.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mustsee.errors import UserError
from mustsee.files.store import resolve
from mustsee.files.tables import TABLES, parse_json, read_table, suffix_of
from mustsee.media.pixels import are_measured
from mustsee.records import Line

# Ego4D marks the actor with a tag before the sentence: "#C C opens a drawer", "#O a man waves".
_TAG = re.compile(r"#\s*(unsure|summary|[co])\b\s*", re.IGNORECASE)
_UNSURE = re.compile(r"#\s*unsure\b", re.IGNORECASE)
_CLOCK = re.compile(r"(?:(\d+):)?(\d{1,2}):(\d{1,2}(?:[.,]\d+)?)")


@dataclass(frozen=True, kw_only=True)
class NarrationColumns:
    """The columns of a narration file.

    One pass alone describes no action twice.
    """

    form: str = "table"
    """Format of the file; ego4d: the nested JSON of Ego4D."""
    video: str = "video_id"
    """Column with the video id."""
    time: str = "time"
    """Column with the start of the action, clock time."""
    text: str = "text"
    """Column with the narration."""
    end: str | None = None
    """Column with the end of the action, clock time."""
    subject: str = ""
    """Text put before each narration: EPIC says "open door", the prompts say who did it."""
    narrator: str = "longest"
    """Pass that is read: longest, narration_pass_1, narration_pass_2."""


@dataclass(frozen=True, kw_only=True)
class Narrations:
    """Timed lines of each video in order. `skipped`: number of rows without a text. `durations`:
    ends of the videos in seconds, where the file holds them.
    """

    lines: Mapping[str, tuple[Line, ...]]
    skipped: int = 0
    durations: Mapping[str, float] = field(default_factory=dict[str, float])

    def __len__(self) -> int:
        return sum(map(len, self.lines.values()))


def seconds(value: object) -> float:
    """Parse seconds from a number or a clock time ("00:01:02.5", "1:02").

    Raises ValueError for anything else, and for a negative or infinite time.
    """
    text = str(value).strip()
    clock = _CLOCK.fullmatch(text)
    if clock:
        hours, minutes, rest = clock.groups()
        return int(hours or 0) * 3600 + int(minutes) * 60 + float(rest.replace(",", "."))
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError(f"not a time from the start of a video: {value!r}")
    return number


def clean(text: str) -> str:
    """Remove Ego4D's tags and double spaces from a narration."""
    return " ".join(_TAG.sub(" ", text).split())


def read(path: str, columns: NarrationColumns) -> Narrations:
    """Read the narrations of a file (.json, .csv, .tsv, .jsonl or .parquet; local, s3:// or gs://).
    Captions are read from a run's folder, too.

    Raises UserError if the file is missing, or not of the form that `columns` describes.
    """
    if columns.form == "ego4d":
        try:
            data = parse_json(_bytes(path).decode("utf-8-sig"))
        except ValueError as error:
            raise UserError(f"{path}: not JSON, as Ego4D's narrations are: {error}") from error
        return from_ego4d(data, columns, where=path)
    if columns.form == "captions":
        table = videos_table(path)
        return from_captions(read_table(table), where=table)
    if columns.form != "table":
        raise UserError(
            f"narrations form {columns.form!r} is unknown: use 'table', 'ego4d' or 'captions'"
        )
    return from_rows(read_table(path), columns, where=path)


def videos_table(path: str) -> str:
    """Return the address of a run's `videos.parquet`, given itself or the run's folder."""
    return path if suffix_of(path) in TABLES else f"{path.rstrip('/')}/videos.parquet"


def from_ego4d(
    data: Any, columns: NarrationColumns, *, where: str = "narration.json"
) -> Narrations:
    """Read Ego4D's parsed `narration.json`, with or without its outer "videos"."""
    videos = data.get("videos", data) if isinstance(data, Mapping) else None
    if not isinstance(videos, Mapping):
        raise UserError(f"{where}: expected an object of videos, as in Ego4D's narration.json")
    lines_of: dict[str, list[Line]] = {}
    skipped = 0
    for video, passes in videos.items():
        if not isinstance(passes, Mapping):
            continue
        lines: list[Line] = []
        for item in _one_pass(passes, columns.narrator):
            text = str(item.get("narration_text") or "")
            if not clean(text) or _UNSURE.search(text):
                skipped += 1
                continue
            try:
                time = seconds(item["timestamp_sec"])
            except (KeyError, ValueError) as error:
                raise UserError(
                    f"{where}: video {video!r} has a narration without a usable timestamp_sec: "
                    f"{item!r}"
                ) from error
            lines.append(Line(start=time, end=time, text=clean(text)))
        if lines:
            lines_of[str(video)] = lines
    return Narrations(lines=_in_order(lines_of), skipped=skipped)


def _one_pass(passes: Mapping[str, Any], narrator: str) -> Sequence[Mapping[str, Any]]:
    candidates: dict[str, list[Any]] = {
        name: list(body.get("narrations") or ())
        for name, body in sorted(passes.items())
        if isinstance(body, Mapping) and (narrator == "longest" or name == narrator)
    }
    return max(candidates.values(), key=len, default=[])


def from_rows(
    rows: Iterable[Mapping[str, Any]], columns: NarrationColumns, *, where: str = "table"
) -> Narrations:
    """Read narrations from the rows of a table. A row without a text is skipped and counted.

    Raises UserError for a missing column or an invalid time, naming the row (counted from 1).
    """
    columns_wanted = [c for c in (columns.video, columns.time, columns.text, columns.end) if c]
    lines_of: dict[str, list[Line]] = defaultdict(list)
    skipped = 0
    for number, row in enumerate(rows, 1):
        missing = [c for c in columns_wanted if c not in row]
        if missing:
            raise UserError(
                f"{where}: no column {missing[0]!r}, there are {sorted(row)!r}; "
                "choose another columns= or set its column names"
            )
        text = str(row[columns.text] or "").strip()
        if not text:
            skipped += 1
            continue
        try:
            start = seconds(row[columns.time])
            end = seconds(row[columns.end]) if columns.end else start
        except ValueError as error:
            raise UserError(
                f"{where}: row {number}: {error}; expected seconds or hh:mm:ss.ss"
            ) from error
        text_of_line = f"{columns.subject} {clean(text)}".strip()
        lines_of[str(row[columns.video])].append(
            Line(start=start, end=max(start, end), text=text_of_line)
        )
    if not lines_of:
        raise UserError(f"{where}: there are no narrations in it")
    return Narrations(lines=_in_order(lines_of), skipped=skipped)


def from_captions(rows: Iterable[Mapping[str, Any]], *, where: str) -> Narrations:
    """Read the captions of a run as narrations; a clip of another video is a video of its own.

    Raises UserError where there are none, and for captions by rules, which name nobody's acts.
    """
    lines_of: dict[str, list[Line]] = {}
    ends: dict[str, float] = {}
    for row in rows:
        captions = row.get("captions") or ()
        if captions:
            lines_of[str(row["video_id"])] = [
                Line(start=c["time"], end=c["time"], text=c["text"]) for c in captions
            ]
            end = row.get("duration") if row.get("end") is None else row["end"]
            if end is not None:
                ends[str(row["video_id"])] = end
    if not lines_of:
        raise UserError(f"{where}: no video in it has captions")
    if are_measured(line.text for lines in lines_of.values() for line in lines):
        example = next(iter(lines_of.values()))[0].text
        raise UserError(
            f"{where}: its captions were measured by rules (caption=pixels), such as {example!r}: "
            "they say what is bright or red, and not what is done. Make the run again with "
            "caption=openai caption.wearer=true (docs/egoschema.md, from raw video)"
        )
    return Narrations(lines=_in_order(lines_of), durations=ends)


def _in_order(lines_of: Mapping[str, list[Line]]) -> dict[str, tuple[Line, ...]]:
    return {
        video: tuple(sorted(lines, key=lambda line: (line.start, line.end, line.text)))
        for video, lines in sorted(lines_of.items())
    }


def durations(
    path: str, *, video: str = "video_id", duration: str = "duration"
) -> dict[str, float]:
    """Read lengths of videos in seconds from a table with a video and a duration column. A row
    without a duration (of a failed video) is skipped.
    """
    try:
        values = [(str(row[video]), row[duration]) for row in read_table(path)]
        return {name: seconds(value) for name, value in values if value not in (None, "")}
    except KeyError as error:
        raise UserError(
            f"{path}: no column {error.args[0]!r}; name the columns of durations"
        ) from None
    except ValueError as error:
        raise UserError(f"{path}: {error}; expected seconds or hh:mm:ss.ss") from None


def _bytes(path: str) -> bytes:
    filesystem, place = resolve(path)
    try:
        with filesystem.open_input_file(place) as file:
            return file.read()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UserError(f"no file {path!r}; check narrations=") from error


def prompt_lines(lines: Sequence[Line], start: float = 0.0) -> str:
    """Format narrations for a prompt, one `<second> - <sentence>` a line, with seconds from the
    clip's `start` (EgoSchema, 6.1).
    """
    return "\n".join(f"{int(line.start - start)} - {line.text}" for line in lines)
