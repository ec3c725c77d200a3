"""Ask a question of an exported task, find its video, and score the reply.

This file is copied into every task, into the package `reading` beside the copy of `extract`; it
imports nothing else of Mustsee. A row has a question's columns with `video` (the video's file
name), `start` and `end` (of a clip) and `source` (the video that a clip is from).

Questions of one `group` score together, too: those of a set share their options (`relation` is
"set"), those of a pair have opposite answers ("pair").
"""

import os
import shlex
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mustsee.replies.extract.choice import extract

Row = Mapping[str, Any]
GROUP_METRICS = {"set": ("set_all_right", "set_squared"), "pair": ("pair_both_right",)}
ENDINGS = ("mp4", "mkv", "webm", "mov", "avi", "m4v", "mpg", "mpeg", "ts", "m2ts", "mts", "wmv",
           "flv", "3gp", "ogv", "vob", "mxf")  # fmt: skip


def is_multiple_choice(row: Row) -> bool:
    """Return whether the row is a multiple-choice question with a known answer, not a twin."""
    has_answer = bool(row["options"]) and row["answer_index"] is not None
    return has_answer and not row.get("sibling_of")


def question_text(row: Row) -> str:
    """Return the question with its options by letter."""
    options = zip(string.ascii_uppercase, row["options"], strict=False)
    return "\n".join([row["question"], *(f"{letter}. {option}" for letter, option in options)])


def letter(row: Row) -> str:
    """Return the letter of the right answer."""
    return string.ascii_uppercase[row["answer_index"]]


def video_path(row: Row, beside: Path) -> str:
    """Return the path of the video in the folder MUSTSEE_VIDEOS, else in `beside`/videos.

    Raises FileNotFoundError, for a clip with the command that cuts it.
    """
    folder = Path(os.environ.get("MUSTSEE_VIDEOS") or beside / "videos")
    video_file = row.get("video") or ""
    endings = [*ENDINGS, *map(str.upper, ENDINGS)]
    names = [f"{row['video_id']}.{ending}" for ending in endings]
    clip = row.get("start") is not None
    names = [n for n in names if n != video_file] if clip else [video_file, *names]
    # Names that lead out of the folder are ignored.
    safe_names = [n for n in names if n and not Path(n).is_absolute() and ".." not in Path(n).parts]
    path = next((folder / n for n in safe_names if (folder / n).is_file()), None)
    if path is not None:
        return str(path)
    message = f"no video for {row['video_id']!r} in {str(folder)!r}: set MUSTSEE_VIDEOS"
    if clip and video_file:
        target = f"{row['video_id']}{Path(video_file).suffix}"
        target = target if target != video_file else f"clips/{target}"
        message += (
            f", and cut the clip: ffmpeg -ss {row['start']} -to {row['end']} "
            f"-i {shlex.quote(video_file)} -c copy {shlex.quote(target)}"
        )
    raise FileNotFoundError(message)


def score_reply(row: Row, reply: str) -> dict[str, Any]:
    """Return the reply's row of results."""
    extracted = extract(reply, row["options"])
    return {
        "question_id": row["question_id"],
        "video_id": row.get("source") or row["video_id"],
        "type": row["question_type"],
        "relation": row.get("relation"),
        "group": row.get("group"),
        "right": float(extracted.letter == letter(row)),
        "unparsed": float(extracted.letter is None),
        "letter": extracted.letter,
        "rule": extracted.rule,
    }


def mean(rows: Sequence[Row], key: str) -> float:
    return sum(row[key] for row in rows) / len(rows)


def mean_of_types(rows: Sequence[Row]) -> float:
    """Return the mean over question types of the share of right replies."""
    by_type: dict[str, list[float]] = {}
    for row in rows:
        by_type.setdefault(row["type"], []).append(row["right"])
    return sum(sum(k) / len(k) for k in by_type.values()) / len(by_type)


def group_scores(rows: Sequence[Row]) -> dict[str, float]:
    """Return the scores of sets and pairs by the names of `GROUP_METRICS`; empty without any.

    `set_all_right`, `pair_both_right`: the share of groups whose questions are all right.
    `set_squared`: the mean over sets of the square of the share of right questions.
    """
    groups: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row["group"] is not None and row["relation"] in GROUP_METRICS:
            groups.setdefault((row["relation"], row["group"]), []).append(row["right"])
    scores: dict[str, float] = {}
    for kind, metrics in GROUP_METRICS.items():
        shares = [sum(g) / len(g) for (k, _), g in groups.items() if k == kind and len(g) > 1]
        values = ([float(share == 1) for share in shares], [share**2 for share in shares])
        if shares:
            scores |= {m: sum(v) / len(v) for m, v in zip(metrics, values, strict=False)}
    return scores
