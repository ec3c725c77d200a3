"""The columns of a training set, and its rows as questions.

    columns = columns_of(["problem", "options", "solution", "path", "problem_type"], None)
    read_question(row, columns, "train.jsonl/7")

A row has its question, options and answer in columns of their own, or is a chat (`conversations` of
LLaVA, `messages`). Of a chat with several turns nothing is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, cast, get_args

from mustsee.errors import UserError
from mustsee.files.folders import without_media_suffix
from mustsee.layouts.columns import NAMES, Answers, known_columns
from mustsee.layouts.options import LabelledOptions, options_of, without_letters
from mustsee.replies.overlap import normalize
from mustsee.text import LETTERS, NUMBERS

Kind = Literal["choice", "yes/no", "number", "text", "open"]
KEYS: Mapping[str, Sequence[str]] = {  # what a column holds -> its known names
    "question": (*NAMES["question"], "problem", "prompt", "instruction"),
    "answer": (*NAMES["answer"], "solution", "ground_truth", "gt_answer", "output", "response"),
    "video": (*NAMES["video"], "videos", "video_path", "vid_path", "path", "clip"),
    "question_type": (*NAMES["question_type"], "problem_type", "qtype", "question_category"),
    "question_id": (*NAMES["question_id"], "problem_id", "sample_id"),
    "source": ("source", "data_source", "dataset", "source_dataset", "data_type"),
    "seconds": ("duration", "video_duration", "seconds", "video_length", "length"),
    "chat": ("conversations", "messages", "conversation"),
}
VIDEO_PATHS = ("path", "video", "video_id", "filename", "file_name", "uri", "url")
TEXT_WORDS = re.compile(r"\bocr\b|text.?(?:reading|recognition)|reading.?text", re.I)
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.S | re.I)
_BOXED = re.compile(r"^\$?\\boxed\{(.*)\}\$?\.?$", re.S)
_MEDIA = re.compile(r"<(?:video|image|audio)>\s*", re.I)
_OPTION_LINE = re.compile(r"^[ \t]*[(\[]?([A-Z])[)\].:][ \t]*(\S.*)$", re.M)
_FIGURE = r"[-+]?\d[\d,]*(?:\.\d+)?"
_BOX = re.compile(
    rf"<\|?(?:box|bbox|quad|ref|point)|\bbbox|^\W*{_FIGURE}(?:[\s,;]+{_FIGURE}){{3,}}\W*$", re.I
)
_TIME = r"(?:\d+:\d\d(?::\d\d)?(?:\.\d+)?|\d+(?:\.\d+)?)"
_SPAN = re.compile(
    rf"^(?:from |between )?[\[(]?{_TIME} ?(s|sec|seconds)?[\])]? ?(-|–|—|to|and|,) ?"
    rf"[\[(]?{_TIME} ?(s|sec|seconds)?[\])]?\.?$",
    re.I,
)
_NUMBER = re.compile(rf"^({_FIGURE})\s*(?:%|[a-z²³/°.]{{1,12}})?\.?$", re.I)
_WORDED = re.compile(rf"^({'|'.join(NUMBERS)})\.?$", re.I)


@dataclass(frozen=True, kw_only=True)
class TrainingColumns:
    """The names of a training set's columns; null where there is none. `options`: a column for
    each, or one with a list. `seconds`: the length of the video. `answers`: the kind of the answers
    (`mustsee.layouts.columns`); null: inferred.
    """

    question: str | None = None
    answer: str | None = None
    options: Sequence[str] = ()
    video: str | None = None
    question_type: str | None = None
    question_id: str | None = None
    source: str | None = None
    seconds: str | None = None
    chat: str | None = None
    answers: Answers | None = None

    @property
    def first(self) -> int | None:
        """The number of the first option, where answers are numbers of options."""
        return {"number from 0": 0, "number from 1": 1}.get(self.answers or "")


def columns_of(names: Collection[str], given: Mapping[str, Any] | None) -> TrainingColumns:
    """Return the columns of a table with these `names`: those that `table=` gives, and known names
    for the others. Raises UserError where no column holds a question, or a given one is missing.
    """
    keys = {f.name for f in fields(TrainingColumns)}
    if wrong := sorted(set(given or {}) - keys):
        raise UserError(f"table: {wrong} are not among {', '.join(sorted(keys))}")
    known = known_columns(names)
    values: dict[str, Any] = {
        key: next((n for n in known_names if n in names), None) for key, known_names in KEYS.items()
    }
    values["options"] = known.options if known is not None else ()
    if not values["options"]:
        values["options"] = tuple(n for n in ("options", "choices", "candidates") if n in names)[:1]
    values |= given or {}
    options: Any = values["options"]
    values["options"] = (options,) if isinstance(options, str) else tuple(options or ())
    columns, kinds = TrainingColumns(**values), get_args(Answers)
    if columns.answers not in (None, *kinds):
        raise UserError(f"table: answers={columns.answers!r}: expected one of {', '.join(kinds)}")
    apart = ("options", "answers")
    named = [v for k, v in (given or {}).items() if isinstance(v, str) and k not in apart]
    if missing := sorted({*named, *columns.options} - set(names)):
        raise UserError(f"questions: no column {missing}; it has {sorted(names)}")
    if columns.question is None and columns.chat is None:
        raise UserError(
            f"questions: no column is known to hold the question among {', '.join(names)}; name "
            "it: 'table={question: Q, answer: A, video: V}'"
        )
    return columns


def count_from(rows: Iterable[Mapping[str, Any]], columns: TrainingColumns) -> TrainingColumns:
    """Return the columns with the number of the first option, as the answers of some rows show it.
    Raises UserError where they are numbers that fit both 0 and 1.
    """
    if columns.answers is not None or columns.answer is None:
        return columns
    numbers, counts = list[int](), list[int]()
    for row in rows:
        options = _options(row, columns)
        text = _plain_answer(_text(row, columns.answer))
        if options is None or text in (*options.texts, *options.written):
            continue
        if re.fullmatch(r"\d{1,2}", text) and options.by_label(text) is None:
            numbers.append(int(text))
            counts.append(len(options.texts))
    if not numbers:
        return columns
    from_zero = sum(n >= count for n, count in zip(numbers, counts, strict=True))
    from_one = sum(n == 0 or n > count for n, count in zip(numbers, counts, strict=True))
    if from_zero == from_one:
        raise UserError(
            f"questions: the answers in {columns.answer!r} ({sorted(set(numbers))[:5]}) are "
            "numbers of options counted from 0 or from 1: say which, as in "
            "'table={answers: number from 0}'"
        )
    return replace(columns, answers="number from 1" if from_one < from_zero else "number from 0")


@dataclass(frozen=True, kw_only=True)
class TrainingRow:
    """A row as a question. `left`: why it is left alone, else empty; then it has a `kind`, an
    `answer`, and of `choice` the `options` and the index of the right one.
    """

    question_id: str
    video: str
    source: str
    question_type: str
    seconds: float | None = None
    question: str = ""
    options: tuple[str, ...] = ()
    answer_index: int | None = None
    answer: str = ""
    kind: Kind | None = None
    left: str = ""


def read_question(
    row: Mapping[str, Any], columns: TrainingColumns, own: str, source: str, fault: str = ""
) -> TrainingRow:
    """Return a row as a question. `own`: its id where no column has one. `source`: that of a table
    without a column for it. `fault`: why the row could not be read.
    """
    try:
        return _read_question(row, columns, own, source, fault)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        left = f"a value has an unexpected type ({type(error).__name__})"
        return TrainingRow(question_id=own, video=own, source=source, question_type="", left=left)


def _read_question(
    row: Mapping[str, Any], columns: TrainingColumns, own: str, source: str, fault: str
) -> TrainingRow:
    cell = _text(row, columns.question_id)
    about: dict[str, Any] = {
        "question_id": cell or own,
        "video": _video(row.get(columns.video) if columns.video else None) or cell or own,
        "source": _text(row, columns.source) or source,
        "question_type": _text(row, columns.question_type),
        "seconds": _seconds(row.get(columns.seconds) if columns.seconds else None),
    }
    if fault:
        return TrainingRow(**about, left=fault)
    if columns.chat and row.get(columns.chat):
        question, answer = _chat(row[columns.chat])
        if question is None:
            return TrainingRow(**about, left="a chat of several turns")
    else:
        question = _text(row, columns.question)
        answer = row.get(columns.answer) if columns.answer else None
    question = _MEDIA.sub("", question).strip()
    if not question:
        return TrainingRow(**about, left="no question")
    options = _options(row, columns)
    if options is None:
        question, options = _options_in(question)
    return _with_answer(about, question, options, answer, columns.first)


def _with_answer(
    about: Mapping[str, Any], question: str, options: LabelledOptions | None, answer: Any,
    first: int | None,
) -> TrainingRow:  # fmt: skip
    if left := _not_a_text(answer):
        return TrainingRow(**about, question=question, left=left)
    text = _plain_answer("" if answer is None else str(answer))
    if options is not None and len(options.texts) > 1:
        if len(options.texts) > len(LETTERS):
            return TrainingRow(**about, question=question, left="too many options")
        index = _right_option(text, options, first)
        if index is None:
            left = "no answer" if not text else "its answer is none of the options"
            return TrainingRow(**about, question=question, left=left)
        return TrainingRow(
            **about, question=question, options=options.texts, answer_index=index,
            answer=options.texts[index], kind="choice",
        )  # fmt: skip
    if not text:
        return TrainingRow(**about, question=question, left="no answer")
    if _BOX.search(text):
        return TrainingRow(**about, question=question, answer=text, left="its answer is a box")
    if _is_span(text):
        return TrainingRow(**about, question=question, answer=text, left="its answer is a span")
    kind = _kind_of(text, str(about["question_type"]))
    return TrainingRow(**about, question=question, answer=text, kind=kind)


def _kind_of(answer: str, question_type: str) -> Kind:
    if normalize(answer) in ("yes", "no", "true", "false"):
        return "yes/no"
    if TEXT_WORDS.search(question_type):
        return "text"
    return "open" if number_in(answer) is None else "number"


def number_in(text: str) -> float | None:
    """Return the number that a text is, with a unit at most; None for any other text."""
    text = text.strip()
    if match := _NUMBER.match(text):
        return float(match[1].replace(",", ""))
    match = _WORDED.match(text)
    return float(NUMBERS[match[1].lower()]) if match else None


def _is_span(text: str) -> bool:
    """Whether an answer is two times: with a unit, a clock's colon, a decimal or brackets, because
    "3 - 4" may be a score.
    """
    match = _SPAN.match(text.strip())
    return match is not None and bool(match[1] or match[3] or re.search(r"[:.\[(]", text))


def _not_a_text(answer: Any) -> str:
    if isinstance(answer, Mapping):
        return "its answer is an object"
    if not isinstance(answer, list | tuple):
        return ""
    values = list(cast(Sequence[Any], answer))
    figures = sum(isinstance(v, int | float) for v in values)
    if figures == len(values) == 4:
        return "its answer is a box"
    if figures == len(values) == 2 or (values and all(isinstance(v, list) for v in values)):
        return "its answer is a span"
    return "its answer is a list"


def _plain_answer(text: str) -> str:
    """Return an answer without the marks that training sets put around it."""
    match = _ANSWER.search(text)
    text = (match[1] if match else text).strip()
    boxed = _BOXED.match(text)
    return boxed[1].strip() if boxed else text


def _right_option(text: str, options: LabelledOptions, first: int | None) -> int | None:
    """Return the index of the right option: by its text, its letter, or its number."""
    for texts in (options.texts, options.written):
        if text in texts:
            return texts.index(text)
    if (index := options.by_label(text)) is not None:
        return index
    plain = [normalize(option) for option in options.texts]
    if plain.count(normalize(text)) == 1:
        return plain.index(normalize(text))
    if first is not None and re.fullmatch(r"\d{1,2}", text):
        return options.by_number(int(text), first)
    return None


def _options(row: Mapping[str, Any], columns: TrainingColumns) -> LabelledOptions | None:
    if not columns.options or all(row.get(c) in (None, "", []) for c in columns.options):
        return None
    ((options,), _) = without_letters([options_of(row, columns.options)])
    return options


def _options_in(question: str) -> tuple[str, LabelledOptions | None]:
    """Return a question without the options on its last lines ("A. red"), and these."""
    lines = list(_OPTION_LINE.finditer(question))
    letters = [line[1] for line in lines]
    if len(lines) < 2 or letters != list(LETTERS[: len(lines)]):
        return question, None
    texts = tuple(line[2].strip() for line in lines)
    options = LabelledOptions(
        texts=texts, written=texts, labels=tuple(letters), places=tuple(range(len(texts)))
    )
    rest = question[: lines[0].start()].strip()
    return (rest or question), options


def _chat(turns: Any) -> tuple[Any, Any]:
    """Return the question and the answer of a chat; (None, None) for several turns."""
    asked, answered = list[str](), list[str]()
    for turn in turns if isinstance(turns, list | tuple) else ():
        if not isinstance(turn, Mapping):
            return "", None
        role = str(turn.get("from") or turn.get("role") or "").lower()
        content: Any = turn.get("value", turn.get("content"))
        if isinstance(content, list):
            texts = [c.get("text") for c in content if isinstance(c, Mapping) and c.get("text")]
            content = "\n".join(map(str, texts))
        if role in ("human", "user"):
            asked.append(str(content or ""))
        elif role in ("gpt", "assistant", "model"):
            answered.append(str(content or ""))
    if len(asked) > 1 or len(answered) > 1:
        return None, None
    return "".join(asked), "".join(answered)


def _text(row: Mapping[str, Any], column: str | None) -> str:
    value = row.get(column) if column is not None else None
    return "" if value is None else str(value).strip()


def _video(value: Any) -> str:
    """Return the id of a video: the name of its file, without its ending."""
    if isinstance(value, list | tuple) and value:
        value = cast(Sequence[Any], value)[0]
    if isinstance(value, Mapping):
        paths = cast(Mapping[str, Any], value)
        value = next((paths[key] for key in VIDEO_PATHS if paths.get(key)), None)
    return "" if value is None else without_media_suffix(str(value).rpartition("/")[2])


def _seconds(value: Any) -> float | None:
    try:
        seconds = float(value) if value not in (None, "") else math.nan
    except (TypeError, ValueError):
        return None
    return seconds if math.isfinite(seconds) else None
