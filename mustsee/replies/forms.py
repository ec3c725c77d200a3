"""The form of a reply: one definition for each prompt.

It gives the JSON schema that is sent, the parser of JSON, and the parser of the text form. Both
parsers return the same value.

    PICK = form(text=parse_pick, shape=record(Pick, answer=one_of("AB", "the letter")))
    pick = await asker.ask("filters/pick", PICK, options=options)

A request says one form. If it carries the schema, its prompt does not speak of lines; the names and
descriptions of the schema's properties say what each holds, and what to write if there is nothing.
If it carries none (`structured=none`, an endpoint that refused or ignored a schema, a local model),
the prompt's block `lines` is appended, which asks for labelled lines. Properties have the names and
the order of the lines (`WRONG ANSWER 1` is `wrong_answer_1`). Any reply is read in both forms.

Schemas use only what all endpoints accept: every property is required, no others are allowed, and
there are no minimums or maximums (Anthropic, Azure and Gemini refuse those). Where a prompt wants N
items, each has a property of its own, or the parser counts them. A reply in plain words (a
sentence, a story, one letter) has no schema: `free`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from mustsee.errors import Unparsed

T = TypeVar("T")
S = TypeVar("S", covariant=True)
U = TypeVar("U")


@dataclass(frozen=True)
class Shape(Generic[S]):
    """A JSON value: its schema and its parser.

    `read` takes the value and its place, which messages name. It raises Unparsed.
    """

    schema: Mapping[str, Any]
    read: Callable[[Any, str], S]

    def map(self, make: Callable[[S], U]) -> Shape[U]:
        """Return a shape that passes the value through `make`, which may raise Unparsed."""
        return Shape(self.schema, lambda value, where: make(self.read(value, where)))


@dataclass(frozen=True)
class Form(Generic[S]):
    """The parser of a reply.

    `schema`: sent to endpoints that support schemas; None for plain words. `read` raises Unparsed
    and nothing else.
    """

    schema: Mapping[str, Any] | None
    read: Callable[[str], S]

    def map(self, make: Callable[[S], U]) -> Form[U]:
        """Return a form that passes the value through `make`, which may raise Unparsed."""
        return Form(self.schema, lambda reply: make(self.read(reply)))

    def keep_reply(self) -> Form[tuple[str, S]]:
        """Return a form whose value is the reply's own text and its parsed value."""
        return Form(self.schema, lambda reply: (reply, self.read(reply)))


def free(text: Callable[[str], T]) -> Form[T]:
    """Return the form of a reply in plain words, which `text` parses."""
    return Form(None, lambda reply: text(strip_chat_markup(reply)))


def form(*, text: Callable[[str], T], shape: Shape[T]) -> Form[T]:
    """Return the form of a reply with several fields.

    `shape` parses a reply that is a JSON object, alone or in a fence, and an object surrounded by
    words that do not contradict it. `text` parses any other reply, and an object that lacks some of
    the fields; it raises Unparsed.

    A model may quote an answer that is not its own. Where both cannot be distinguished, the form
    raises Unparsed: for different lines with one label, and for a second answer in a fence or in an
    object.
    """
    fields = set[str](shape.schema.get("required", ()))
    labels = tuple(_single_labels(shape.schema))

    def parse_words(reply: str) -> T:
        plain = strip_chat_markup(reply)
        _check_labels_agree(plain, labels)
        value = text(plain)
        outside = _BLOCK.sub("\n", reply)
        if outside == reply:
            return value
        if (other := _parsed_or_none(text, strip_chat_markup(outside))) and other != value:
            raise Unparsed("it gives different answers inside and outside of a fence")
        return value

    def read(reply: str) -> T:
        raw = find_json(reply, fields)
        if raw is None:
            return parse_words(reply)
        keys = normalize_keys(cast(dict[str, Any], raw)).keys() if isinstance(raw, dict) else ()
        if len(fields) > 1 and not fields <= set(keys):
            with suppress(Unparsed):
                return parse_words(reply)
        value = shape.read(raw, "the reply")
        if rest := strip_json(reply, fields):
            plain = strip_chat_markup(rest)
            _check_labels_agree(plain, labels)
            if (other := _parsed_or_none(text, plain)) and other != value:
                raise Unparsed("it gives different answers in JSON and in words")
        return value

    return Form(shape.schema, read)


def _parsed_or_none(parse: Callable[[str], T], text: str) -> T | None:
    with suppress(Unparsed):
        return parse(text)
    return None


def _single_labels(schema: Mapping[str, Any]) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the fields that the text form writes in one line, each with a pattern of that line."""
    for name, field in cast(Mapping[str, Any], schema.get("properties", {})).items():
        items = field.get("items", {})
        if field.get("type") != "array" or "enum" in items or items.get("type") == "integer":
            label = re.escape(name).replace("_", r"[\s_-]+")
            line = rf"^[\s>*_#`•-]*(?:final\s+|correct\s+)?{label}[\s*_]*[:：=][\s*_]*(.*)$"
            yield name, re.compile(line, re.IGNORECASE | re.MULTILINE)


def _check_labels_agree(text: str, labels: Sequence[tuple[str, re.Pattern[str]]]) -> None:
    """Raise Unparsed where lines with one label differ."""
    for name, line in labels:
        values = (" ".join(value.split()).casefold() for value in line.findall(text))
        if len({value.strip(" *_.`\"'") for value in values}) > 1:
            label = name.replace("_", " ").upper()
            raise Unparsed(f"it has different lines '* {label}: ...'; write one")


def words(about: str) -> Shape[str]:
    """Return the shape of a text with single spaces. A number is accepted as text."""

    def read(value: Any, where: str) -> str:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise Unparsed(f"{where} is {_short(value)}, not a text")
        return " ".join(str(value).split())

    return Shape({"type": "string", "description": about}, read)


def number(about: str) -> Shape[float]:
    """Return the shape of a finite number."""

    def read(value: Any, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Unparsed(f"{where} is {_short(value)}, not a number")
        try:
            finite = float(value)
        except OverflowError:
            finite = math.inf
        if not math.isfinite(finite):
            raise Unparsed(f"{where} is not a finite number")
        return finite

    return Shape({"type": "number", "description": about}, read)


def whole(about: str) -> Shape[int]:
    """Return the shape of a whole number."""

    def read(value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Unparsed(f"{where} is {_short(value)}, not a whole number")
        return value

    return Shape({"type": "integer", "description": about}, read)


def one_of(values: Sequence[str], about: str) -> Shape[str]:
    """Return the shape of a text that is one of `values`, in any case."""
    by_folded = {value.casefold(): value for value in values}

    def read(value: Any, where: str) -> str:
        match = by_folded.get(value.strip().casefold()) if isinstance(value, str) else None
        if match is None:
            raise Unparsed(f"{where} is {_short(value)}, not one of {', '.join(values)}")
        return match

    return Shape({"type": "string", "enum": list(values), "description": about}, read)


def list_of(each: Shape[T], about: str) -> Shape[tuple[T, ...]]:
    """Return the shape of a list of any length."""

    def read(value: Any, where: str) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise Unparsed(f"{where} is {_short(value)}, not a list")
        return tuple(
            each.read(item, f"{where}, item {n}")
            for n, item in enumerate(cast(list[Any], value), 1)
        )

    return Shape({"type": "array", "items": dict(each.schema), "description": about}, read)


def record(make: Callable[..., T], **parts: Shape[Any]) -> Shape[T]:
    """Return the shape of an object; `make` takes its fields by name and may raise Unparsed.

    A list is accepted in place of an object with a single field.
    """
    schema = {
        "type": "object",
        "properties": {name: dict(part.schema) for name, part in parts.items()},
        "required": list(parts),
        "additionalProperties": False,
    }

    def read(value: Any, where: str) -> T:
        if isinstance(value, list) and len(parts) == 1:
            value = {next(iter(parts)): value}
        if not isinstance(value, dict):
            raise Unparsed(f"{where} is {_short(value)}, not an object")
        values = normalize_keys(cast(dict[str, Any], value))
        for name in parts:
            if name not in values:
                raise Unparsed(f"{where} lacks {name!r}")
        return make(**{name: part.read(values[name], name) for name, part in parts.items()})

    return Shape(schema, read)


def object_with(name: str, part: Shape[T]) -> Shape[T]:
    """Return the shape of an object with one field, for a list: a schema's root is an object."""

    def single_value(**parts: T) -> T:
        return parts[name]

    return record(single_value, **{name: part})


def normalize_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with keys in lower case and underscores: "Wrong Answer 1" becomes
    `wrong_answer_1`.
    """
    return {re.sub(r"[\s\-]+", "_", key.strip().lower()): inner for key, inner in value.items()}


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]


_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
_BLOCK = re.compile(r"^[ \t]*```[^\n]*\n.*?\n[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)


def find_json(reply: str, keys: Collection[str] = ()) -> Any:
    """Return the JSON object or list of a reply, or None for a reply in words.

    It may be the whole reply, in a fence, or an object with all of `keys` among words. Raises
    Unparsed for broken JSON and for objects that differ.
    """
    text = _trimmed(reply)
    if isinstance(alone := _loaded(text), (dict, list)):
        return cast(Any, alone)
    values = [v for v in map(_loaded, _FENCE.findall(text)) if isinstance(v, (dict, list))]
    if keys:
        among_words = (value for value, _, _ in _objects(text))
        values += [o for o in among_words if set(keys) <= normalize_keys(o).keys()]
    if any(other != values[0] for other in values[1:]):
        raise Unparsed("it holds several JSON objects that differ; write one")
    if not values and re.match(r'(?:```(?:json)?\s*)?\{\s*"', text):
        raise Unparsed("it begins as a JSON object, but is not valid JSON")
    return values[0] if values else None


def strip_json(reply: str, keys: Collection[str] = ()) -> str:
    """Return the words around the JSON that `find_json` finds; empty if it is the whole reply."""
    text = _trimmed(reply)
    if isinstance(_loaded(text), (dict, list)):
        return ""
    text = _FENCE.sub(lambda m: m[0] if _loaded(m[1]) is None else "\n", text)
    for value, start, end in reversed(list(_objects(text))):
        if not keys or set(keys) <= normalize_keys(value).keys():
            text = f"{text[:start]}\n{text[end:]}"
    return text.strip()


def _trimmed(reply: str) -> str:
    return reply.replace("\r\n", "\n").strip("\ufeff \n\t")


def _loaded(text: str) -> Any:
    try:
        return _whole(text, json.loads(text, strict=False))
    except (ValueError, RecursionError):
        return None


def whole_characters(text: str) -> str:
    """Replace each lone surrogate by a question mark, because it cannot be stored or sent."""
    return text.encode(errors="replace").decode()


def _whole(text: str, value: Any) -> Any:
    """Replace the lone surrogates that escapes may have put into a JSON value."""
    if "\\u" not in text:
        return value
    return json.loads(whole_characters(json.dumps(value, ensure_ascii=False)))


def _objects(text: str) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Yield the outermost JSON objects in a text, each with its start and end."""
    decoder, at = json.JSONDecoder(strict=False), text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
            value = _whole(text, value)
        except RecursionError:  # not a real reply, and trying each of its braces would take long
            return
        except ValueError:
            end = at + 1
        else:
            yield value, at, end
        at = text.find("{", end)


_ENTITIES = {"&gt;": ">", "&lt;": "<", "&quot;": '"', "&#39;": "'", "&amp;": "&"}


def strip_chat_markup(reply: str) -> str:
    """Return a reply without Windows line ends, fences, and escapes of Markdown and HTML."""
    text = reply.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    text = re.sub(r"^[ \t]*```\w*[ \t]*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"&(?:gt|lt|quot|#39|amp);", lambda m: _ENTITIES[m[0]], text)
    return re.sub(r"\\([*_#>\[\]().\-`|~])", r"\1", text)


def label_lines(reply: str) -> str:
    """Return a reply as labelled lines, also if it is JSON: the form that is stored and shown."""
    try:
        value = find_json(reply)
    except Unparsed:
        return reply
    if not isinstance(value, dict):
        return reply
    lines = normalize_keys(cast(dict[str, Any], value)).items()
    return "\n".join(f"* {name.replace('_', ' ').upper()}: {_line(v)}" for name, v in lines)


def _line(value: Any) -> str:
    """Return a field in one line: letters as a ranking, spans as times, an object as its values."""
    if isinstance(value, dict):
        return " ".join(map(_line, cast(dict[str, Any], value).values()))
    if not isinstance(value, list):
        return " ".join(value.split()) if isinstance(value, str) else json.dumps(value)
    items = cast(list[Any], value)
    if all(isinstance(item, str) and len(item) == 1 for item in items) and items:
        return " > ".join(items)
    return "; ".join(map(_list_item, items)) or "NONE"


def _list_item(item: Any) -> str:
    if isinstance(item, dict) and item.keys() == {"start", "end"}:
        return f"{item['start']}-{item['end']}"
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
