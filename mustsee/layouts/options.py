"""The options of one row of a plain table: their texts, and the labels by which a key names them.

    options_of({"A": "red", "B": "blue"}, ["A", "B"])
    options_of({"choices": {"text": ["red", "blue"], "label": ["A", "B"]}}, ["choices"])

A table has a column per option, or one column with a list, with an object by label, or with texts
and labels apart. A null option is none; the text "None" is one. Letters that the options carry
themselves ("A. red") are taken off by `without_letters`.
"""

from __future__ import annotations

import ast
import io
import math
import re
import token
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from tokenize import TokenError, generate_tokens
from typing import Any, cast

from mustsee.files.tables import parse_json
from mustsee.text import LETTERS

_TEXT_KEYS = frozenset(
    ("text", "texts", "content", "option", "options", "choice", "choices", "value")
)
_LABEL_KEYS = frozenset(("label", "labels", "letter", "letters", "key", "keys", "id", "index"))
_KEY = re.compile(r"\W*(?:option|choice|answer)?[\W_]*([A-Za-z]|\d{1,2})\W*", re.IGNORECASE)
_ARRAY = re.compile(r"\barray\((\[.*?\])(?:,\s*dtype=[^()]*)?\)", re.DOTALL)
_LETTER = "[A-Za-zＡ-Ｚａ-ｚ]"
_MARKED = re.compile(
    rf"\s*(?:(?:option|choice|answer)\s+)?"
    rf"(?:[(\[（［【「]\s*(?P<inside>{_LETTER})\s*[)\]）］】」]|(?P<before>{_LETTER})\s*(?P<mark>[.．、)）:：]))"
    r"(?P<space>\s*)(?P<rest>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
# "(a)(c)(b)" is an order, not an option "(c)(b)".
_ORDER = re.compile(r"\W*[(\[]?[A-Za-z0-9]\s*[)\]]")


@dataclass(frozen=True, kw_only=True)
class LabelledOptions:
    """Options without null ones.

    `written`: as in the file, with any letter. `labels`: how a key names each. `places`: where each
    stood, from 0, null options counted. `own`: the labels are the file's, not letters by place.
    """

    texts: tuple[str, ...]
    written: tuple[str, ...]
    labels: tuple[str, ...]
    places: tuple[int, ...]
    own: bool = False

    def by_label(self, label: str) -> int | None:
        """Return the option that a key means by its label: "B", "b", "(B)", "B." or "B. blue"."""
        key = re.sub(r"^(\d+)\.0$", r"\1", unicodedata.normalize("NFKC", label).strip().upper())
        if key not in self.labels and (lone := re.fullmatch(r"[(\[]?\s*(\w+)\s*[)\].:]?", key)):
            key = lone[1]
        if key in self.labels:
            return self.labels.index(key)
        marked = _mark(label)
        index = self.by_label(marked.letter) if marked is not None else None
        if marked is None or index is None or marked.rest.strip() != self.texts[index].strip():
            return None
        return index

    def by_number(self, number: int, first: int) -> int | None:
        """Return the option that a key means by its number, counted from `first`."""
        if self.own and all(label.isdecimal() for label in self.labels):
            return None  # such a number is a label
        return self.places.index(number - first) if number - first in self.places else None


def options_of(row: Mapping[str, Any], columns: Sequence[str]) -> LabelledOptions | None:
    """Return a row's options; None if the one column holds nothing that is read as options.

    Of several columns, empty cells at the end are left out, and an empty one before others stays.
    """
    if len(columns) > 1:
        cells: list[Any] = [row.get(name) for name in columns]
        cells = [cell.strip() if isinstance(cell, str) else cell for cell in cells]
        while cells and (_is_null(cells[-1]) or cells[-1] == ""):
            cells.pop()
        return _labelled(cells, None)
    value: Any = row.get(columns[0])
    return _nested_options(parse_cell(value) if isinstance(value, str) else value)


def parse_cell(text: str) -> Any:
    """Return the list or object that a cell spells as JSON, as Python or as NumPy prints it; None
    for another text.
    """
    try:
        return parse_json(text)
    except ValueError:
        pass
    text = _ARRAY.sub(r"\1", text).strip()
    try:
        words = [t for t in generate_tokens(io.StringIO(text).readline) if t.string.strip()]
        texts = [word.string for word in words if word.type == token.STRING]
        if any(one.type == two.type == token.STRING for one, two in pairwise(words)):
            # Python would join texts without a comma; ['a' 'b'] is a list as NumPy prints it.
            is_numpy_list = ["[", *texts, "]"] == [word.string for word in words]
            return [ast.literal_eval(text) for text in texts] if is_numpy_list else None
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, TokenError):
        return None


def _nested_options(value: Any) -> LabelledOptions | None:
    if isinstance(value, Mapping):
        return _options_of_object(cast(Mapping[str, Any], value))
    if not isinstance(value, list | tuple):
        return None
    items = list(cast(Sequence[Any], value))
    if not any(isinstance(item, Mapping) for item in items):
        return _labelled(items, None)
    if not all(isinstance(item, Mapping) or item is None for item in items):
        return None
    objects = [cast(Mapping[str, Any], item) for item in items if item is not None]
    entries = [(key, text) for one in objects for key, text in one.items() if text is not None]
    if len(entries) == len(objects) == len({key for key, _ in entries}):  # [{"A": "x"}, {"B": "y"}]
        return _options_of_object(dict(entries))
    pairs = [_text_and_label(one) for one in objects]
    texts, labels = [p[0] for p in pairs if p], [p[1] for p in pairs if p]
    if len(texts) < len(objects):
        return None
    has_labels = all(label is not None for label in labels)
    return _labelled(texts, [str(label) for label in labels] if has_labels else None)


def _text_and_label(item: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """Return the text and the label (None without one) of an option that is an object."""
    texts = [k for k in item if k.lower() in _TEXT_KEYS]
    labels = [k for k in item if k.lower() in _LABEL_KEYS]
    if len(texts) != 1 or len(labels) > 1:
        return None
    return item[texts[0]], item[labels[0]] if labels else None


def _options_of_object(value: Mapping[str, Any]) -> LabelledOptions | None:
    """Return options by label, or of a list of texts beside a list of labels."""
    keys = {str(key).lower() for key in value}
    if keys & _TEXT_KEYS and keys <= _TEXT_KEYS | _LABEL_KEYS:
        apart = _text_and_label(value)
        if apart is None or not isinstance(apart[0], list | tuple):
            return None
        texts, labels = list(cast(Sequence[Any], apart[0])), apart[1]
        if labels is None:
            return _labelled(texts, None)
        if not isinstance(labels, list | tuple) or len(cast(Sequence[Any], labels)) != len(texts):
            return None
        return _labelled(texts, [str(label) for label in cast(Sequence[Any], labels)])
    labels = [_label(str(key)) for key in value]
    if len(set(labels)) < len(labels):
        return None
    pairs = list(zip(labels, value.values(), strict=True))
    if all(re.fullmatch("[A-Z]|[0-9]{1,2}", label) for label in labels):
        pairs.sort(key=lambda pair: (len(pair[0]), pair[0]))
    return _labelled([text for _, text in pairs], [label for label, _ in pairs])


def _label(key: str) -> str:
    """Return the label in a key: "A" of "A", "a", "(A)" and "option_a"."""
    key = unicodedata.normalize("NFKC", key).strip()
    match = _KEY.fullmatch(key)
    return (match[1] if match else key).upper()


def _labelled(items: Sequence[Any], labels: Sequence[str] | None) -> LabelledOptions | None:
    """Return the items that are not null; None where one is neither a text nor a number."""
    places = [place for place, item in enumerate(items) if not _is_null(item)]
    kept = [items[place] for place in places]
    if not all(isinstance(item, str | int | float) for item in kept):
        return None
    own = [_label(label) for label in labels] if labels is not None else None
    letters = [LETTERS[p] if p < len(LETTERS) else str(p) for p in range(len(items))]
    texts = tuple(str(item) for item in kept)
    return LabelledOptions(
        texts=texts,
        written=texts,
        labels=tuple((own or letters)[place] for place in places),
        places=tuple(places),
        own=own is not None,
    )


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


@dataclass(frozen=True, kw_only=True)
class _Mark:
    """A letter before an option. `is_initial`: it may be one of a name ("A. Miller")."""

    letter: str
    rest: str
    is_initial: bool


def _mark(text: str) -> _Mark | None:
    match = _MARKED.match(text)
    if match is None:
        return None
    rest, letter = match["rest"], match["inside"] or match["before"]
    mark = unicodedata.normalize("NFKC", match["mark"] or "()")
    joined = not match["space"] and re.match(r"[A-Za-z](?![A-Za-z])", rest)
    if (mark in ".:" and joined) or (mark in ("()", ")") and _ORDER.match(rest)):
        return None
    letter = unicodedata.normalize("NFKC", letter)
    return _Mark(letter=letter.upper(), rest=rest, is_initial=mark == ".")


def without_letters(
    rows: Sequence[LabelledOptions | None],
) -> tuple[list[LabelledOptions | None], list[int]]:
    """Return the rows' options without letters of their own ("A. red"), and the rows with letters
    in another order, which are left as they are.

    A row carries letters where each of its options does. Letters with a full stop may be initials
    ("A. Miller", "C. Reyes"): they count in the order A, B, C only, and of two options only where
    most rows of the table carry letters.
    """
    marks = [_row_marks(options) for options in rows]
    in_order = [
        m is not None and o is not None and tuple(x.letter for x in m) == o.labels
        for m, o in zip(marks, rows, strict=True)
    ]
    sure = [
        is_in_order and m is not None and (len(m) > 2 or not any(x.is_initial for x in m))
        for m, is_in_order in zip(marks, in_order, strict=True)
    ]
    count = sum(options is not None and len(options.texts) > 1 for options in rows)
    mostly = all(in_order) or 2 * sum(sure) >= max(1, count)
    result: list[LabelledOptions | None] = []
    other_order: list[int] = []
    for number, (options, row_marks) in enumerate(zip(rows, marks, strict=True)):
        is_initial = row_marks is not None and any(x.is_initial for x in row_marks)
        if options is None or row_marks is None:
            result.append(options)
        elif sure[number] or (in_order[number] and mostly) or not is_initial:
            labels = tuple(x.letter for x in row_marks)
            labels = options.labels if options.own or in_order[number] else labels
            result.append(replace(options, texts=tuple(x.rest for x in row_marks), labels=labels))
        else:
            result.append(options)
            letters = sorted(x.letter for x in row_marks)
            if len(letters) > 2 and letters == list(LETTERS[: len(letters)]):
                other_order.append(number)
    return result, other_order


def _row_marks(options: LabelledOptions | None) -> list[_Mark] | None:
    """Return the letters before a row's options; None unless all have one, each another."""
    marks = [_mark(text) for text in options.texts] if options is not None else []
    carried = [mark for mark in marks if mark is not None]
    if len(carried) < 2 or len(carried) < len(marks):
        return None
    return carried if len({mark.letter for mark in carried}) == len(carried) else None
