"""The columns of a plain table: their known names, and the override that names others.

known_columns(["vid", "question", "a0", "a1", "answer"])
columns_from({"video": "clip", "question": "ask", "options": ["w", "x"], "answer": "key"})
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from mustsee.errors import UserError
from mustsee.text import LETTERS

Answers = Literal["text", "letter", "number from 0", "number from 1"]
NAMES: Mapping[str, tuple[str, ...]] = {  # the columns' names in released tables
    "video": ("video", "videoID", "video_id", "video_name", "vid_name", "vid"),
    "question": ("question", "q"),
    "answer": (
        "answer", "answer_idx", "correct", "label", "correct_answer", "correct_option", "key",
        "answerKey",
    ),
    "question_type": ("question_type", "type", "task_type", "category"),
    "question_id": ("question_id", "qid", "id"),
}  # fmt: skip
OPTIONAL = ("answer", "question_type", "question_id", "start", "end")  # columns in `table=`
LISTED = ("options", "choices", "candidates")
# "option_10", "choice b", "answer_3", "a0": the name of a family of columns, and the option's own.
_OPTION = re.compile(r"(option|choice|candidate|answer_)[_ ]?(\d{1,2}|[a-z])|(a)(\d{1,2})", re.I)
_HYDRA_WORDS = frozenset({"null", "true", "false", "nan", "inf"})


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """The names of a table's columns.

    `video` is None for a table without videos: each question counts as of a video of its own.
    `options` has one column per option, in order, or the one column with a list. `answers` is the
    kind of `answer` (None: inferred from the rows). `start` and `end` are those of the evidence, in
    seconds.
    """

    video: str | None
    question: str
    options: Sequence[str]
    answer: str | None = None
    question_type: str | None = None
    question_id: str | None = None
    start: str | None = None
    end: str | None = None
    answers: Answers | None = None

    @property
    def column_names(self) -> list[str]:
        single = (self.video, self.question, self.answer, self.question_type, self.question_id)
        return [c for c in (*single, self.start, self.end, *self.options) if c is not None]


def columns_from(settings: Mapping[str, Any] | None) -> TableColumns | None:
    """Return the columns that a job's `table=` names; None without it. Raises UserError."""
    if settings is None:
        return None
    names = {f.name for f in fields(TableColumns)}
    if wrong := sorted(set(settings) - names):
        raise UserError(f"table: {wrong} are not among {', '.join(sorted(names))}")
    if missing := {"video", "question", "options"} - set(settings):
        raise UserError(
            f"table: {sorted(missing)} must be set too (video: null where no column names it)"
        )
    options: Any = settings["options"]
    listed = [options] if isinstance(options, str) else list(options)
    values: dict[str, Any] = {**settings, "options": listed}
    kinds = get_args(Answers)
    if values.get("answers") not in (None, *kinds):
        raise UserError(f"table: answers={values['answers']!r}: expected one of {', '.join(kinds)}")
    return TableColumns(**values)


def known_columns(names: Collection[str]) -> TableColumns | None:
    """Return the columns with known names; None without a question or options.

    A table may lack the video where it has the answer.
    """
    column_of, options = _columns_by_content(names)
    video, question, answer = (column_of[key] for key in ("video", "question", "answer"))
    if question is None or not options or (video is None and answer is None):
        return None
    return TableColumns(
        video=video, question=question, options=options, answer=answer,
        question_type=column_of["question_type"], question_id=column_of["question_id"],
    )  # fmt: skip


def _columns_by_content(names: Collection[str]) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Return content -> the column with a known name, and the columns of the options."""
    column_of = {
        key: next((n for n in known_names if n in names), None)
        for key, known_names in NAMES.items()
    }
    rest = [n for n in names if n not in column_of.values() and n not in LISTED]
    options = max((_lettered_columns(rest), *_option_families(rest)), key=len)
    return column_of, options if len(options) > 1 else tuple(n for n in LISTED if n in names)[:1]


def _lettered_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns A, B, C and so on (or a, b, c), up to the first letter that is missing."""
    found: list[str] = []
    for letter in LETTERS:
        column = next((n for n in (letter, letter.lower()) if n in names), None)
        if column is None:
            break
        found.append(column)
    return tuple(found)


def _option_families(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the columns of each prefix ("option_", "a"), in the order of their numbers."""
    families: dict[tuple[str, bool], list[tuple[int, str]]] = {}
    for name in names:
        if match := _OPTION.fullmatch(name):
            own = match[2] or match[4]
            place = int(own) if own.isdecimal() else LETTERS.index(own.upper())
            family = families.setdefault(((match[1] or match[3]).lower(), own.isdecimal()), [])
            family.append((place, name))
    return [tuple(name for _, name in sorted(family)) for family in families.values()] or [()]


def unread_option_columns(names: Collection[str], columns: TableColumns) -> list[str]:
    """Return the columns of one letter that follow a gap (A, B, D), which are read as no option."""
    if not re.fullmatch("[A-Za-z]", columns.options[-1]):
        return []
    rest = [n for n in names if n not in columns.column_names]
    after = LETTERS.index(columns.options[-1].upper())
    return [n for n in rest if re.fullmatch("[A-Z]", n) and LETTERS.index(n) == after + 2]


def override(columns: TableColumns) -> str:
    """Return the override that names the columns, as a word of a shell."""
    parts = [
        f"video: {'null' if columns.video is None else _quoted(columns.video)}",
        f"question: {_quoted(columns.question)}",
        f"options: [{', '.join(map(_quoted, columns.options))}]",
        *(f"{key}: {_quoted(name)}" for key in OPTIONAL if (name := getattr(columns, key))),
        *([f"answers: {columns.answers}"] if columns.answers is not None else []),
    ]
    return shlex.quote(f"table={{{', '.join(parts)}}}")


def _quoted(name: str) -> str:
    """Return a name as a value of an override: in quotes where Hydra's grammar needs them."""
    if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) and name.lower() not in _HYDRA_WORDS:
        return name
    escaped = re.sub(r'(\\*)("|$)', lambda m: m[1] * 2 + m[2].replace('"', '\\"'), name)
    return f'"{escaped}"'


def suggested_override(names: Collection[str]) -> str:
    """Return the override that names the columns, with capitals for unknown ones."""
    column_of, options = _columns_by_content(names)
    return override(
        TableColumns(
            video=column_of["video"] or "V",
            question=column_of["question"] or "Q",
            options=options or ("A", "B", "C"),
            answer=column_of["answer"] or "K",
        )
    )


def missing_columns(names: Collection[str]) -> str:
    """Return a message with the contents that no known column has, and how to name them."""
    column_of, options = _columns_by_content(names)
    contents = {
        "the video": column_of["video"],
        "the question": column_of["question"],
        "the options": options,
        "the right answer": column_of["answer"],
    }
    missing = [content for content, column in contents.items() if not column]
    without_video = "; video: null where no column names it" if not column_of["video"] else ""
    return (
        f"no column that is known to hold {', '.join(missing)} among {', '.join(names)}; name "
        f"them: {suggested_override(names)} (V, Q, K and A, B, C stand for your columns"
        f"{without_video})"
    )
