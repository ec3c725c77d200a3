"""The requests and replies of the judge's routes (CONTRACT), as the OpenAPI schema shows them, and
the schema as a page without scripts or files from other servers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from mustsee.judge.judge import JudgeItem

MAX_ITEMS = 512  # items in one request


def _encodable(text: str) -> str:
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise ValueError("the text holds half of a surrogate pair: not a character")
    return text


Text = Annotated[str, AfterValidator(_encodable)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class AskedItem(_Strict):
    """One pair to judge, with `reference` or `references`, of which the best match counts."""

    id: Text | None = Field(None, max_length=200)
    question: Text
    candidate: Text
    reference: Text | None = None
    references: list[Text] | None = None

    def item(self) -> JudgeItem:
        references = [
            *([self.reference] if self.reference is not None else []),
            *(self.references or []),
        ]
        return JudgeItem(
            id=self.id,
            question=self.question,
            candidate=self.candidate,
            references=tuple(references),
        )


class VerdictRequest(_Strict):
    """`threshold` overrides that of the record. A foreign `prompt_version` is refused."""

    items: Annotated[list[AskedItem], Field(min_length=1, max_length=MAX_ITEMS)]
    threshold: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] | None = None
    prompt_version: Text | None = None


class Usage(BaseModel):
    prompt_tokens: int
    total_tokens: int
    completion_tokens: int = 0


class EquivalenceVerdict(BaseModel):
    """`reference`: index of the best matching reference. An item with `error` is not judged."""

    index: int
    id: str | None
    object: Literal["equivalence"]
    score: float | None
    equivalent: bool | None
    logit_diff: float | None
    label_mass: float | None
    candidate_truncated: bool
    prompt_tokens: int
    reference: int | None
    warning: str | None
    error: str | None


class VerdictReply(BaseModel):
    id: str
    object: Literal["list"]
    created: int
    model: str
    prompt_version: str
    threshold: float
    data: list[EquivalenceVerdict]
    usage: Usage


class ScoreRequest(BaseModel):
    """A shim: `text_1` holds one reference or one for each candidate, `text_2` the candidates.

    `question` is the question of all candidates.
    """

    model: Text | None = None
    text_1: Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_ITEMS)]
    text_2: Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_ITEMS)]
    question: Text = "(not given)"

    def items(self) -> list[JudgeItem]:
        candidates = [self.text_2] if isinstance(self.text_2, str) else self.text_2
        is_shared = isinstance(self.text_1, str)
        references = [self.text_1] * len(candidates) if is_shared else list(self.text_1)
        if len(references) == 1:
            references *= len(candidates)
        if len(references) != len(candidates):
            raise HTTPException(
                422,
                f"text_1 has {len(references)} texts, text_2 {len(candidates)}: give as many",
            )
        return [
            JudgeItem(question=self.question, candidate=c, references=(str(r),))
            for c, r in zip(candidates, references, strict=True)
        ]


class ScoreRow(BaseModel):
    index: int
    object: Literal["score"]
    score: float


class ScoreReply(BaseModel):
    id: str
    object: Literal["list"]
    created: int
    model: str
    data: list[ScoreRow]
    usage: Usage


class ChatMessage(BaseModel):
    role: Text
    content: Text


class ChatRequest(BaseModel):
    """A shim: the last message is a JSON object with `question`, `candidate` and `reference` (or
    `references`). Sampling options are accepted and ignored.
    """

    model_config = ConfigDict(extra="ignore")
    model: Text | None = None
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=64)]
    stream: Literal[False] | None = None

    def item(self) -> JudgeItem:
        try:
            return AskedItem.model_validate_json(self.messages[-1].content).item()
        except ValueError:
            raise HTTPException(
                422,
                "messages: this is a judge, not a chat model; the last must be a JSON object "
                "with question, candidate and reference",
            ) from None


class ChatReply(BaseModel):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: Usage


class ErrorDetail(BaseModel):
    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorReply(BaseModel):
    """An error in OpenAI's shape."""

    error: ErrorDetail


class Health(BaseModel):
    status: str


class ModelRecord(BaseModel):
    model_config = ConfigDict(extra="allow")
    id: str
    object: Literal["model"]
    owned_by: str
    prompt_version: str
    threshold: float
    limit: int
    record: dict[str, Any]


class Models(BaseModel):
    object: Literal["list"]
    data: list[ModelRecord]


_DESCRIPTIONS = {
    400: "the body is not JSON",
    401: "missing or wrong key",
    408: "the body did not arrive in time",
    409: "another prompt_version",
    413: "too many items or bytes",
    422: "a field is missing or of a wrong type",
    429: "the judge is overloaded; see Retry-After",
    503: "the judge cannot answer now",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorReply, "description": text} for status, text in _DESCRIPTIONS.items()
}


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
