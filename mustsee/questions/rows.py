"""Replies that are rows with cells, of one kind or of several.

    VERDICTS = rows_form(point=(one_of(VALUES, "the verdict"), ...))

    POINT 1: ENTAILED | he opens the box
    POINT 2: ABSENT | nothing is said of it

As JSON, each kind of row is a list of objects with the row's `number` and its cells by name. Both
parsers return the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mustsee.errors import Unparsed
from mustsee.questions.drafts import plain
from mustsee.questions.replies import is_none
from mustsee.replies.forms import Form, Shape, form, list_of, record, whole, words

_BREAK = re.compile(r"\s*\|\s*")


@dataclass(frozen=True)
class Row:
    """A row of a reply: its number there, and its cells by name."""

    number: int
    cells: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.cells[name]


Rows = Mapping[str, tuple[Row, ...]]  # by kind, in the order of the reply


def rows_form(
    kinds: Mapping[str, Mapping[str, str]],
    *,
    optional: Collection[str] = (),
    brief: Collection[str] = (),
    paragraphs: bool = False,
) -> Form[Rows]:
    """Return the form of a reply with rows of some kinds.

    `kinds`: name of a kind -> name of a cell -> what it holds. The last cell of a row may contain
    the mark between cells. `optional`: kinds of which there may be no row; a reply without any row,
    where that may be, is the word NONE. `brief`: kinds whose
    last cell may be left out in words, and is then empty. `paragraphs`: whether a row goes on
    behind an empty line. `read` raises Unparsed for a row with too few cells, and if there is no
    row of a kind that is not optional.
    """
    shapes = {
        kind: list_of(_row_shape(kind, cells), f"the rows of the kind {kind}, in order")
        for kind, cells in kinds.items()
    }

    def group(**rows: tuple[Row, ...]) -> Rows:
        return rows

    def check(rows: Rows) -> Rows:
        for kind in kinds:
            if not rows[kind] and kind not in optional:
                raise Unparsed(f"it has no row '{_label(kind)} 1: {_cells_text(kinds[kind])}'")
        return rows

    def parse(reply: str) -> Rows:
        parsed = _split_rows(reply, kinds, paragraphs)
        if not any(parsed.values()) and not is_none(reply):
            first = next(iter(kinds))
            raise Unparsed(f"it has no row '{_label(first)} 1: {_cells_text(kinds[first])}'")
        return {
            kind: tuple(_row(kind, *row, kinds[kind], kind in brief) for row in found)
            for kind, found in parsed.items()
        }

    return form(text=parse, shape=record(group, **shapes)).map(check)


def _row_shape(kind: str, cells: Mapping[str, str]) -> Shape[Row]:
    def make_row(**values: Any) -> Row:
        return Row(values["number"], {name: plain(values[name]) for name in cells})

    shapes = {name: words(about) for name, about in cells.items()}
    return record(make_row, number=whole(f"the number of the {kind}"), **shapes)


def _split_rows(
    reply: str, kinds: Collection[str], paragraphs: bool
) -> dict[str, list[tuple[int, str]]]:
    """Return the rows of a text by kind, each with its number and its text behind that."""
    labels = {_label(kind): kind for kind in kinds}
    names = "|".join(re.escape(label).replace(r"\ ", r"[\s_-]+") for label in labels)
    head = re.compile(
        rf"^[\s>*_#•|-]*({names})[\s*_]*(?:no\.?|\#)?\s*(\d{{1,4}})[*_]*\s*[:：.)|-][\s*_]*(.*)$",
        re.IGNORECASE,
    )
    rows: dict[str, list[tuple[int, list[str]]]] = {kind: [] for kind in kinds}
    last: list[str] | None = None
    for line in reply.splitlines():
        if match := head.match(line):
            kind = labels[re.sub(r"[\s_-]+", " ", match[1]).upper()]
            last = [match[3]]
            rows[kind].append((int(match[2]), last))
        elif last is not None and line.strip():
            last.append(line.strip())
        elif not paragraphs:
            last = None
    return {
        kind: [(number, " ".join(lines)) for number, lines in found] for kind, found in rows.items()
    }


def _row(kind: str, number: int, text: str, cells: Mapping[str, str], brief: bool) -> Row:
    parts = _BREAK.split(text.strip().strip("|").strip(), maxsplit=len(cells) - 1)
    missing = len(cells) - len(parts)
    if missing > int(brief):
        raise Unparsed(
            f"{_label(kind)} {number} has {len(parts)} of {len(cells)} parts; "
            f"expected {_cells_text(cells)}"
        )
    texts = [plain(_without_name(part, name)) for part, name in zip(parts, cells, strict=False)]
    return Row(number, dict(zip(cells, [*texts, *[""] * missing], strict=True)))


def _without_name(text: str, name: str) -> str:
    """Return a cell without its name, which models copy from the form: "stated by B", "right: C4".
    A name of one word may be a word of the text, but for one with a colon behind it.
    """
    behind = r"(?:[\s*_]*[:=]|\s)" if "_" in name else r"[\s*_]*[:=]"
    label = re.escape(name).replace("_", r"[\s_-]+")
    return re.sub(rf"^[\s*_]*{label}{behind}\s*", "", text, flags=re.IGNORECASE)


def _label(kind: str) -> str:
    return kind.replace("_", " ").upper()


def _cells_text(cells: Mapping[str, str]) -> str:
    return " | ".join(name.replace("_", " ") for name in cells)


def numbered_rows(rows: Sequence[Row], count: int, what: str) -> tuple[Row, ...]:
    """Return the rows of the numbers 1 to `count`, in order. Raises Unparsed unless each number has
    exactly one.
    """
    by_number = {row.number: row for row in rows}
    if len(by_number) < len(rows):
        numbers = [row.number for row in rows]
        repeated = next(number for number in numbers if numbers.count(number) > 1)
        raise Unparsed(f"{what} {repeated} is answered twice")
    if wrong := sorted(by_number.keys() ^ set(range(1, count + 1))):
        missing = "is not answered" if wrong[0] not in by_number else "is not one of the numbers"
        raise Unparsed(f"{what} {wrong[0]} {missing}; expected 1 to {count}")
    return tuple(by_number[number] for number in range(1, count + 1))


def parse_choice(text: str, allowed: Collection[str], what: str) -> str:
    """Return the one of some words in capitals that a cell holds, in any case and between any
    marks. Raises Unparsed for any other text; `what` names the cell.
    """
    word = re.sub(r"[\W_]+", " ", text).strip().upper()
    if word not in allowed:
        raise Unparsed(f"{what} is answered with {text[:40]!r}; expected {', '.join(allowed)}")
    return word
