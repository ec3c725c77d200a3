"""Replies of a model that were collected elsewhere, from a file.

    replies = read_predictions("preds.jsonl")      # {"q1": "B", "q2": "The red one."}

The file is a table (CSV, JSONL, Parquet) with a column of question ids and one of replies, or a
JSON object of both. A reply is a letter, an option's text, or whatever the model wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mustsee.errors import UserError
from mustsee.files.tables import TABLES, one_line_error, parse_json, read_table, suffix_of

IDS = ("question_id", "questionID", "question id", "qid", "id", "doc_id", "uid", "q_uid")
REPLIES = (
    "reply", "raw_reply", "prediction", "pred", "predicted", "response", "model_response",
    "output", "model_output", "generated", "answer",
)  # fmt: skip


def read_predictions(
    path: str, id: str | None = None, reply: str | None = None, *, key: str = "answer.path"
) -> dict[str, str]:
    """Return the replies by question id. `id`, `reply`: columns; None: found by their names. `key`:
    names the setting in messages. Raises UserError for another kind of file, a column that is not
    there, and an id that comes twice.
    """
    given = f"{key}={path!r}"
    rows = _read_object(path, given) if suffix_of(path) == "json" else _read_rows(path, given)
    id = id or _find_column("id", IDS, rows, given)
    reply = reply or _find_column("reply", REPLIES, rows, given)
    replies: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        for name in (id, reply):
            if name not in row:
                raise UserError(f"{path!r}, row {number} has no {name!r}")
        if row[id] is None:
            raise UserError(f"{path!r}, row {number} has no value in {id!r}")
        key = str(row[id])
        if key in replies:
            raise UserError(f"{path!r}, row {number}: the id {key!r} comes twice")
        if row[reply] is not None:
            replies[key] = str(row[reply])
    return replies


def _read_rows(path: str, given: str) -> list[dict[str, Any]]:
    if suffix_of(path) not in TABLES:
        raise UserError(f"{given}: expected .json, .{', .'.join(sorted(TABLES))}")
    return read_table(path)


def _read_object(path: str, given: str) -> list[dict[str, Any]]:
    """Return the rows of a JSON file: a list of objects, or one object of replies by id."""
    try:
        value = parse_json(Path(path).read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise UserError(f"{given}: {one_line_error(error)}") from error
    if isinstance(value, Mapping):
        return [{IDS[0]: key, REPLIES[0]: text} for key, text in value.items()]
    if isinstance(value, list) and all(isinstance(row, dict) for row in value):
        return value
    raise UserError(f"{given}: expected an object of replies by id, or a list of rows")


def _find_column(
    content: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]], given: str
) -> str:
    columns = list(dict.fromkeys(name for row in rows[:100] for name in row))
    found = [name for name in names if name in columns]
    if not found:
        listed = ", ".join(columns) or "none"
        is_answer = given.startswith("answer.")
        setting = f"set answer.{content}= to" if is_answer else "rename"
        evaluated = (
            "" if is_answer else ", or give the folder of its evaluation (mustsee evaluate "
            "answer=file answer.path=... answer.id=... answer.reply=...)"
        )  # fmt: skip
        raise UserError(
            f"{given}: {setting} the column with the {content} ({', '.join(names)})"
            f"{evaluated}; columns: {listed}"
        )
    return found[0]
