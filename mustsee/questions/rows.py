"""Replies of several values: rows with cells, a text for each number, a level for each scale.

    VERDICTS = rows_form(point=(one_of(VALUES, "the verdict"), ...))

    POINT 1: ENTAILED | he opens the box
    POINT 2: ABSENT | nothing is said of it

As JSON, each kind of row is a list of objects with the row's `number` and its cells by name. Both
parsers return the same rows. `numbered_texts` reads "1: ...", `levels_form` reads "LOGIC: 2".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mustsee.errors import Unparsed
from mustsee.questions.drafts import plain
from mustsee.questions.replies import is_none
from mustsee.replies.forms import (
    Form,
    Shape,
    find_json,
    form,
    free,
    label_lines,
    list_of,
    normalize_keys,
    object_with,
    record,
    strip_chat_markup,
    strip_json,
    whole,
    words,
)

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
        raise Unparsed(f"{what} {_repeated([row.number for row in rows])} is answered twice")
    if wrong := sorted(by_number.keys() ^ set(range(1, count + 1))):
        missing = "is not answered" if wrong[0] not in by_number else "is not one of the numbers"
        raise Unparsed(f"{what} {wrong[0]} {missing}; expected 1 to {count}")
    return tuple(by_number[number] for number in range(1, count + 1))


def _repeated(numbers: Sequence[int]) -> int:
    """Return the first number that occurs more than once."""
    return next(number for number in numbers if numbers.count(number) > 1)


def parse_choice(text: str, allowed: Collection[str], what: str) -> str:
    """Return the one of some words in capitals that a cell holds, in any case and between any
    marks. Raises Unparsed for any other text; `what` names the cell.
    """
    word = re.sub(r"[\W_]+", " ", text).strip().upper()
    if word not in allowed:
        raise Unparsed(f"{what} is answered with {text[:40]!r}; expected {', '.join(allowed)}")
    return word


_ITEM = re.compile(
    r"^[\s>*_#-]*(?:(?:frame|picture|image|item|no\.?)\s*)?(\d{1,4})[*_]*"
    r"\s*(?:[:：.)、]|[-–—](?=\s))(.*)$",
    re.I,
)
NumberedTexts = Sequence[tuple[int, str]]  # numbers and their texts, in the order of the reply


def numbered_texts(n: int) -> Form[tuple[str, ...]]:
    """Return the form of a reply with a text for each number 1 to `n`; for one, plain words."""
    if n == 1:
        return free(lambda reply: complete_texts(_lines(reply) or [(1, plain(reply))], 1))
    shape = item_list("sentences", "number", "sentence")
    return form(text=_lines, shape=shape).map(lambda parsed: complete_texts(parsed, n))


def item_list(name: str, number_key: str, text_key: str) -> Shape[NumberedTexts]:
    """Return the JSON shape of a list `name` of objects with a number and a text."""

    def pair(**values: int | str) -> tuple[int, str]:
        return int(values[number_key]), plain(str(values[text_key]))

    number = whole("the number of what it is about, counted from 1")
    one = record(pair, **{number_key: number, text_key: words(f"the {text_key}")})
    return object_with(name, list_of(one, "one for each, in the order of the numbers"))


def complete_texts(numbered: NumberedTexts, n: int) -> tuple[str, ...]:
    """Return the texts of the numbers 1 to `n`. Raises Unparsed for a missing, repeated or unknown
    number, and for an empty text.
    """
    texts: Mapping[int, str] = dict(numbered)
    if len(texts) < len(numbered):
        raise Unparsed(f"number {_repeated([number for number, _ in numbered])} appears twice")
    expected = set(range(1, n + 1))
    if set(texts) != expected:
        missing, unknown = sorted(expected - set(texts)), sorted(set(texts) - expected)
        what = f"number {missing[0]} is missing" if missing else f"there is no number {unknown[0]}"
        raise Unparsed(f"expected {n} numbered lines, but {what}")
    for i in sorted(texts):
        if not any(c.isalnum() for c in texts[i]):
            raise Unparsed(f"the text of number {i} is empty")
    return tuple(texts[i] for i in sorted(texts))


def _lines(reply: str) -> NumberedTexts:
    """Return the numbered lines of a text.

    Tolerates bold, bullets, "Frame 1:", "1.", "1)", prose before the first number and, after a
    blank line, behind the last, and texts that continue on the next line.
    """
    numbered: list[tuple[int, list[str]]] = []
    in_item = False
    for line in reply.strip().splitlines():
        if match := _ITEM.match(line):
            numbered.append((int(match[1]), [match[2]]))
            in_item = True
        elif in_item and line.strip():
            numbered[-1][1].append(line)
        elif in_item:
            in_item = not any(text.strip(" *_") for text in numbered[-1][1])
    return [(number, plain(" ".join(lines))) for number, lines in numbered]


# Keys under which a nested score stands.
_SCORE_KEYS = ("score", "level", "value", "rating", "grade")
_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)(?:\s*(?:/|out of)\s*5)?\s*")


def levels_form(scales: Mapping[str, Sequence[int]]) -> Form[tuple[Mapping[str, int], str]]:
    """Return the form of a reply with a level for each scale, and its text in lines.

    `scales`: name -> allowed levels. Models nest scores (`{"relevance": {"reason": "...", "score":
    "4"}}`), quote them, or write "4/5" or MLVU's `score_relevance`. All are parsed as long as each
    name has one value.
    """
    properties: dict[str, Any] = {}
    for name, levels in scales.items():
        properties[f"{name}_reason"] = {"type": "string", "description": "the reason for the level"}
        about = f"the level, one of {', '.join(map(str, levels))}"
        properties[name] = {"type": "integer", "description": about}
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }

    def read(reply: str) -> tuple[Mapping[str, int], str]:
        text = strip_chat_markup(reply)
        inner = text[text.find("{") : text.rfind("}") + 1]
        value = find_json(reply) or find_json(inner)
        rest = strip_json(reply)
        if isinstance(value, (dict, list)):
            pairs = [*_nested(value), *_lined(strip_chat_markup(rest).replace(inner, " "))]
        else:
            pairs = list(_lined(text))
        parsed = {name: _level(name, levels, pairs) for name, levels in scales.items()}
        return parsed, label_lines(reply)

    return Form(schema, read)


def _level(name: str, levels: Sequence[int], pairs: Sequence[tuple[str, float]]) -> int:
    """Return the level of one scale. `pairs`: the names and numbers of the reply."""
    values = {value for key, value in pairs if key == name}
    expected = f"one of {', '.join(map(str, levels))} is wanted"
    if len(values) != 1:
        what = "several levels" if values else "no level"
        raise Unparsed(f"it holds {what} for {name.replace('_', ' ')}: {expected}")
    if (value := values.pop()) not in levels:
        raise Unparsed(f"{name.replace('_', ' ')} is {value:g}: {expected}")
    return int(value)


def _nested(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers in a JSON value, each with the nearest name around it."""
    if isinstance(value, list):
        for place, item in enumerate(cast(list[Any], value), 1):
            number = item.get("point") if isinstance(item, dict) else None
            yield from _nested(item, f"point_{number if isinstance(number, int) else place}")
    elif isinstance(value, dict):
        for key, inner in normalize_keys(cast(dict[str, Any], value)).items():
            own = _bare(key)
            yield from _nested(inner, name if own in _SCORE_KEYS and name else own)
    elif not isinstance(value, bool) and (match := _NUMBER.fullmatch(str(value))):
        yield name, float(match[1])


_LINE = re.compile(
    r"(?:^|[,;{])[\s>*_#\"'•-]*(?P<name>[A-Za-z]+(?:[ _]\w+){0,2})[\"'*_]*\s*[:：=][\s*_\"'(\[]*"
    r"(?P<value>\d+(?:\.\d+)?)(?:\s*/\s*5)?(?![\w.]*\w)",
    re.MULTILINE,
)


def _lined(text: str) -> Iterator[tuple[str, float]]:
    """Yield the names and numbers of lines of the form `RELEVANCE: 4`."""
    for match in _LINE.finditer(text):
        yield _bare(re.sub(r"\s+", "_", match["name"].lower())), float(match["value"])


def _bare(name: str) -> str:
    """Return a scale's name without "score" or "level": `score_relevance` -> `relevance`."""
    bare = re.sub(r"^score_|_(?:score|level)$", "", name)
    return re.sub(r"^(?:scoring_)?point_?(?=\d)", "point_", bare)
