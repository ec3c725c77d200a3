"""Converts records to Arrow and back.

Arrow types are derived from the dataclass annotations, so that a column has the same type in every
block and file, even if all its values are null. `Annotated[float, "float32"]` is stored in single
precision. A mapping is stored as a list of `name` and `value`, because Hugging Face `datasets` does
not support Arrow maps.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import pyarrow as pa

from mustsee.records import Question, Video

T = TypeVar("T")

_SCALARS: dict[Any, pa.DataType] = {
    str: pa.string(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    bytes: pa.binary(),
}


def _bare(hint: Any) -> Any:
    """Return the hint without `| None`."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (hint,) = (a for a in typing.get_args(hint) if a is not type(None))
    return hint


@cache
def hints(cls: type) -> dict[str, Any]:
    """Return field name -> annotation (without `| None`) of a record class."""
    annotations = typing.get_type_hints(cls, include_extras=True)
    return {f.name: _bare(annotations[f.name]) for f in dataclasses.fields(cls)}


def arrow_type(hint: Any) -> pa.DataType:
    """Return the Arrow type of an annotation: a scalar, a `Literal` of texts, `tuple[X, ...]`,
    `Mapping[str, X]`, or a record class. Raises TypeError for anything else.
    """
    hint = _bare(hint)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return pa.type_for_alias(args[1])
    if hint in _SCALARS:
        return _SCALARS[hint]
    if origin is typing.Literal:
        return pa.string()
    if origin is tuple and args[1:] == (...,):
        return pa.list_(arrow_type(args[0]))
    if origin is Mapping:
        return pa.list_(pa.struct([("name", arrow_type(args[0])), ("value", arrow_type(args[1]))]))
    if dataclasses.is_dataclass(hint):
        return pa.struct(
            [(name, arrow_type(h)) for name, h in hints(typing.cast(type, hint)).items()]
        )
    raise TypeError(
        f"no Arrow type for {hint!r}: use scalars, tuple[X, ...], Mapping[str, X] or a record class"
    )


@cache
def schema(cls: type) -> pa.Schema:
    """Return the Arrow schema of a record class, one column per field."""
    return pa.schema([(name, arrow_type(hint)) for name, hint in hints(cls).items()])


def dump(value: Any, *, pairs: bool = False) -> Any:
    """Return a record (or a tuple of records, or a scalar) as plain dicts and lists.

    With `pairs` a mapping becomes a list of `name` and `value`, as in a column.
    """
    if value is None or type(value) in _SCALARS:  # first, because most values are
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = _field_names(type(value))
        return {name: dump(getattr(value, name), pairs=pairs) for name in names}
    if isinstance(value, Mapping):
        items = typing.cast(Mapping[Any, Any], value).items()
        if pairs:
            return [{"name": key, "value": dump(item, pairs=True)} for key, item in items]
        return {key: dump(item) for key, item in items}
    if isinstance(value, (tuple, list)):
        return [dump(item, pairs=pairs) for item in typing.cast(Sequence[Any], value)]
    return value


@cache
def _field_names(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


@cache
def _restorer(hint: Any) -> Callable[[Any], Any] | None:
    """Return the function that turns a plain value into the annotation's type; None where none is
    needed.
    """
    hint = _bare(hint)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        inner = _restorer(args[0])
        if inner is None:
            return tuple
        return lambda items: tuple(None if i is None else inner(i) for i in items)
    if origin is Mapping:
        inner = _restorer(args[1])

        def mapping(pairs: Any) -> dict[Any, Any]:
            values = dict(pairs if isinstance(pairs, Mapping) else map(_pair, pairs))
            return {k: inner(v) for k, v in values.items()} if inner else values

        return mapping
    if dataclasses.is_dataclass(hint):
        cls = typing.cast(type, hint)
        return lambda value: load(cls, value)
    return None


def _pair(item: Any) -> tuple[Any, Any]:
    """Return name and value of an entry. Older files hold Arrow maps, whose entries are pairs."""
    return (item["name"], item["value"]) if isinstance(item, Mapping) else item


@cache
def _restorers(cls: type) -> dict[str, Callable[[Any], Any] | None]:
    return {name: _restorer(hint) for name, hint in hints(cls).items()}


def load(cls: type[T], data: Mapping[str, Any]) -> T:
    """Return the record of a plain dict. Unknown keys and nulls are left out.

    Raises TypeError when a field without a default is missing.
    """
    restorers = _restorers(cls)
    return cls(
        **{
            key: value if (restore := restorers[key]) is None else restore(value)
            for key, value in data.items()
            if key in restorers and value is not None
        }
    )


def fault(cls: type, data: Mapping[str, Any]) -> str | None:
    """Return a message on the first value of a plain dict that does not have its field's type;
    None if all have.
    """
    for name, hint in hints(cls).items():
        value = data.get(name)
        if value is not None and not _fits(hint, value):
            text = repr(value) if isinstance(value, str | int | float) else type(value).__name__
            return f"{name}={text[:80]}: expected {_type_in_words(hint)}"
    return None


def _fits(hint: Any, value: Any) -> bool:
    hint = _bare(hint)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _fits(args[0], value)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return type(value) is int and -(2**63) <= value < 2**63
    if origin is tuple:
        listed = isinstance(value, list | tuple)
        return listed and all(x is not None and _fits(args[0], x) for x in value)
    if origin is Mapping:
        pairs: Any = value.items() if isinstance(value, Mapping) else None
        if pairs is None and isinstance(value, list | tuple):
            pairs = [_pair(x) if isinstance(x, Mapping) else x for x in value]
        return pairs is not None and all(
            len(pair) == 2 and isinstance(pair[0], str) and _fits(args[1], pair[1])
            for pair in pairs
        )
    if dataclasses.is_dataclass(hint):
        record = typing.cast(type, hint)
        needed = {f.name for f in dataclasses.fields(record) if _needed(f)}
        return (
            isinstance(value, Mapping)
            and all(value.get(name) is not None for name in needed)
            and fault(record, typing.cast(Mapping[str, Any], value)) is None
        )
    return isinstance(value, hint)


def _needed(field: Any) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def _type_in_words(hint: Any) -> str:
    hint = _bare(hint)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _type_in_words(args[0])
    if origin is tuple:
        return f"a list of {_type_in_words(args[0])}"
    if origin is Mapping or dataclasses.is_dataclass(hint):
        return "an object"
    return {str: "text", int: "a whole number", float: "a number", bool: "true or false"}.get(
        hint, "bytes"
    )


def column(name: str, values: Iterable[Any], cls: type = Video) -> pa.Array:
    """Return values of one field as an Arrow array of the field's type."""
    kind = arrow_type(hints(cls)[name])
    return pa.array([dump(v, pairs=True) for v in values], type=kind)


def table(records: Sequence[Any], cls: type) -> pa.Table:
    """Return records as a table with the class's full schema."""
    names = schema(cls).names
    return pa.table(
        {n: column(n, (getattr(r, n) for r in records), cls) for n in names}, schema=schema(cls)
    )


def questions_table(questions: Sequence[Question]) -> pa.Table:
    """Return the table of `questions.parquet`: one row per question."""
    return table(questions, Question)
