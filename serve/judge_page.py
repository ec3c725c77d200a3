"""The judge's OpenAPI schema as a page without scripts or files from other servers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

Schema = Mapping[str, Any]
STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:54em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #ddd;padding:.2em "
    ".6em .2em 0;text-align:left;vertical-align:top}code{background:#f3f3f3}h2{margin-top:2em}"
)


def page(schema: Schema) -> str:
    """The page: the routes with their requests and replies, then the schemas by name."""
    title = escape(schema["info"]["title"])
    routes = [
        _route(path, method, route)
        for path, methods in schema["paths"].items()
        for method, route in methods.items()
    ]
    forms = [_form(name, form) for name, form in schema["components"]["schemas"].items()]
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        "<meta name=viewport content='width=device-width'>"
        f"<style>{STYLE}</style><h1>{title}</h1>"
        "<p>Send <code>Authorization: Bearer KEY</code> with every request except "
        "<code>/health</code>, this page and <a href=openapi.json>openapi.json</a>.</p>"
        f"{''.join(routes)}<h2>Schemas</h2>{''.join(forms)}</html>"
    )


def _route(path: str, method: str, route: Schema) -> str:
    content = route.get("requestBody", {}).get("content", {})
    request = "".join(f"<p>Takes {_kind(c.get('schema', {}))}.</p>" for c in content.values())
    rows = (
        (escape(status), escape(reply["description"]), _content(reply))
        for status, reply in route["responses"].items()
    )
    return (
        f"<h2><code>{method.upper()} {escape(path)}</code></h2>"
        f"<p>{escape(route.get('description', ''))}</p>{request}"
        f"{_table(('status', 'when', 'reply'), rows)}"
    )


def _content(reply: Schema) -> str:
    kinds = (_kind(c.get("schema", {})) for c in reply.get("content", {}).values())
    return ", ".join(kinds)


def _form(name: str, form: Schema) -> str:
    required = form.get("required", ())
    rows = (
        (f"<code>{escape(key)}</code>", _kind(value), "yes" if key in required else "")
        for key, value in form.get("properties", {}).items()
    )
    return (
        f"<h3 id={escape(name)}>{escape(name)}</h3><p>{escape(form.get('description', ''))}</p>"
        f"{_table(('field', 'type', 'required'), rows)}"
    )


def _kind(value: Schema) -> str:
    """A type in words, with a link to its schema."""
    if "$ref" in value:
        name = escape(value["$ref"].rsplit("/", 1)[-1])
        return f"<a href=#{name}>{name}</a>"
    if "anyOf" in value:
        return " or ".join(map(_kind, value["anyOf"]))
    if value.get("type") == "array":
        return f"list of {_kind(value.get('items', {}))}{_bounds(value)}"
    if "const" in value:
        return f"<code>{escape(repr(value['const']))}</code>"
    return escape(value.get("type", "anything")) + _bounds(value)


def _bounds(value: Schema) -> str:
    names = {
        "minItems": "at least", "maxItems": "at most", "maxLength": "at most",
        "exclusiveMinimum": "above", "exclusiveMaximum": "below",
    }  # fmt: skip
    bounds = ", ".join(f"{word} {value[name]}" for name, word in names.items() if name in value)
    return f" ({bounds})" if bounds else ""


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    top = "".join(f"<th>{cell}" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}" for cell in row) for row in rows)
    return f"<table><tr>{top}{body}</table>"
