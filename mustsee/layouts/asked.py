"""How an exported task asks a question, finds its video, and scores the reply.

This file is copied into every task, into the package `reading` beside the copy of `extract`; it
imports nothing else of Mustsee. A row is a question's columns with `video` (the video's file name),
`start` and `end` (of a clip) and `video` (the video that a clip is from).
"""

import os
import shlex
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mustsee.replies.extract.choice import extract

Row = Mapping[str, Any]
ENDINGS = ("mp4", "mkv", "webm", "mov", "avi", "m4v", "mpg", "mpeg", "ts", "m2ts", "mts", "wmv",
           "flv", "3gp", "ogv", "vob", "mxf")  # fmt: skip


def is_multiple_choice(row: Row) -> bool:
    """Whether it is a multiple-choice question with a known answer, not made from another."""
    known = bool(row["options"]) and row["answer_index"] is not None
    return known and not row.get("sibling_of")


def question_text(row: Row) -> str:
    """The question with its options by letter."""
    options = zip(string.ascii_uppercase, row["options"], strict=False)
    return "\n".join([row["question"], *(f"{letter}. {option}" for letter, option in options)])


def letter(row: Row) -> str:
    """The right answer's."""
    return string.ascii_uppercase[row["answer_index"]]


def video_path(row: Row, beside: Path) -> str:
    """The video, in the folder that MUSTSEE_VIDEOS names, else in `beside`/videos. Raises
    FileNotFoundError, with the command that cuts the clip where it is one.
    """
    folder = Path(os.environ.get("MUSTSEE_VIDEOS") or beside / "videos")
    whole = row.get("video") or ""
    endings = [*ENDINGS, *map(str.upper, ENDINGS)]
    names = [f"{row['video_id']}.{ending}" for ending in endings]
    clip = row.get("start") is not None
    names = [n for n in names if n != whole] if clip else [whole, *names]
    # a name that leads out of the folder is not looked for
    inside = [n for n in names if n and not Path(n).is_absolute() and ".." not in Path(n).parts]
    found = next((folder / n for n in inside if (folder / n).is_file()), None)
    if found is not None:
        return str(found)
    told = f"no video for {row['video_id']!r} in {str(folder)!r}: set MUSTSEE_VIDEOS"
    if clip and whole:
        target = f"{row['video_id']}{Path(whole).suffix}"
        target = target if target != whole else f"clips/{target}"
        told += (
            f", and cut the clip: ffmpeg -ss {row['start']} -to {row['end']} "
            f"-i {shlex.quote(whole)} -c copy {shlex.quote(target)}"
        )
    raise FileNotFoundError(told)


def score_reply(row: Row, reply: str) -> dict[str, Any]:
    """The reply as a row of results."""
    found = extract(reply, row["options"])
    return {
        "question_id": row["question_id"],
        "video_id": row.get("source") or row["video_id"],
        "type": row["question_type"],
        "right": float(found.letter == letter(row)),
        "unparsed": float(found.letter is None),
        "letter": found.letter,
        "rule": found.rule,
    }


def mean(rows: Sequence[Row], key: str) -> float:
    return sum(row[key] for row in rows) / len(rows)


def mean_of_types(rows: Sequence[Row]) -> float:
    """The mean over the types of the share right in each."""
    kinds: dict[str, list[float]] = {}
    for row in rows:
        kinds.setdefault(row["type"], []).append(row["right"])
    return sum(sum(k) / len(k) for k in kinds.values()) / len(kinds)
