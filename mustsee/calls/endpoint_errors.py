"""What an endpoint says in an error: its words, its status, and whether the prompt was moderated.

Endpoints put errors into `error` (an object, a text, or a list), `detail`, `message`, `errors`, a
text of JSON within a text, or a reply of status 200 in place of its choices. One reading serves
all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mustsee.errors import hide_secrets

MAX_MESSAGE_CHARACTERS = 300  # characters of an endpoint's message that are passed on
MAX_DEPTH = 12  # objects within objects that are read
MAX_STRING = 20_000  # characters of one string that are read
UNKNOWN_STATUS = 502  # status of an error that names none: worth a retry
_ECHOES = ("input", "flagged_input", "ctx", "request_id", "id")  # keys of what was sent, and of ids
_WRAPPERS = ("error", "errors", "detail", "message", "msg", "error_msg", "raw", "reason", "body",
             "base_resp", "status_msg", "metadata", "data", "response")  # fmt: skip
_CODES = ("code", "status", "status_code", "statusCode", "http_code", "http_status", "error_code",
          "type", "error_type")  # fmt: skip
_STATUS_OF_NAME = (  # parts of codes and types, without case and marks -> status
    ("invalidapikey", 401), ("authentication", 401), ("unauthenticated", 401),
    ("unauthorized", 401), ("permission", 403), ("forbidden", 403),
    ("insufficientquota", 429), ("ratelimit", 429), ("toomanyrequests", 429),
    ("resourceexhausted", 429), ("overloaded", 529), ("timeout", 408),
    ("unavailable", 503), ("internal", 500), ("servererror", 500), ("apierror", 500),
    ("modelnotfound", 404), ("notfound", 404), ("unprocessable", 422),
    ("contextlength", 400), ("invalid", 400), ("badrequest", 400), ("unsupported", 400),
    ("contentfilter", 400), ("contentpolicy", 400), ("datainspection", 400),
    ("moderation", 400),
)  # fmt: skip
_STATUS_IN_TEXT = re.compile(
    r"(?:\bHTTP(?: status)?|\bstatus(?: code)?|\b(?:error )?code)\W{0,4}([45]\d\d)\b|"
    r"<([45]\d\d)>",
    re.IGNORECASE,
)
_STATUS_OF_WORDS = (
    (re.compile(r"(incorrect|invalid|wrong|no|missing)\W+(api.?)?key|unauthori[sz]ed", re.I), 401),
    (re.compile(r"rate.?limit|too many requests", re.I), 429),
    (re.compile(r"overloaded|no capacity|at capacity|try again later", re.I), 503),
    (re.compile(r"context (length|window)|too (long|many tokens)|maximum context", re.I), 400),
)
_MODERATED_CODES = (
    "contentfilter", "contentpolicy", "datainspection", "responsibleaipolicy", "prohibitedcontent",
    "moderation", "contentmoderation", "sensitive", "safety", "policyviolation", "unsafe",
)  # fmt: skip
_MODERATED = re.compile(
    r"\bflagged\b|\bmoderation\b|content.?(filter|management policy|policy|policies|moderation)|"
    r"usage polic|inappropriate content|DataInspection|prohibited.?content|sensitive (content|word)"
    r"|(prompt|input|request|content|output) (was |is )?(blocked|rejected)[^.]{0,40}(safety|polic)|"
    r"safety (system|filter|reason|setting)",
    re.IGNORECASE,
)
_ACCOUNT = re.compile(
    r"\b(account|organi[sz]ation|access|user)\b[^.]{0,40}"
    r"\b(terminated|suspended|deactivated|banned|disabled|flagged|blocked)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class EndpointError:
    """An endpoint's error. `message`: its own words, on one line, without secrets, shortened.
    `status`: the HTTP status that it carries itself; None if it names none. `codes`: its codes and
    types. `moderated`: the prompt or the reply was stopped for its content.
    """

    message: str
    status: int | None = None
    codes: tuple[str, ...] = ()
    moderated: bool = False


def read_error(body: Any) -> EndpointError:
    """Read an error from the body of a response: parsed JSON, or a text."""
    words = list(dict.fromkeys(filter(None, map(str.strip, error_texts(body)))))
    codes = tuple(dict.fromkeys(_codes(body)))
    said = " ".join(_shorten(words) or codes or [str(body)])
    whole = " ".join(words)
    flat = [_flat(code) for code in codes]
    moderated = any(m in code for code in flat for m in _MODERATED_CODES) or _reasons(body)
    moderated = moderated or bool(_MODERATED.search(whole))
    return EndpointError(
        message=" ".join(hide_secrets(said).split())[:MAX_MESSAGE_CHARACTERS],
        status=_status(codes, whole),
        codes=codes,
        moderated=moderated and not _ACCOUNT.search(whole),
    )


def error_in_reply(body: Any) -> Any:
    """The error within a reply of status 200, or None: an `error` beside no usable choice, an
    `error` of the choice itself, or an error object in place of a reply.
    """
    if isinstance(body, list):
        found = [each for each in body if isinstance(each, Mapping) and _is_error(each)]
        return found[0] if found else None
    if isinstance(body, str):
        return body.strip() or None
    if not isinstance(body, Mapping):
        return None
    choices = body.get("choices")
    if isinstance(choices, list) and choices:
        first = choices[0]
        given: Any = first.get("message") if isinstance(first, Mapping) else None
        content = given.get("content") if isinstance(given, Mapping) else None
        own = first.get("error") if isinstance(first, Mapping) else None
        return None if content else own or body.get("error") or None
    return body if _is_error(body) else None


def _is_error(body: Mapping[str, Any]) -> bool:
    """Whether an object without choices is an error. A batch has `errors`, and an id."""
    if body.get("error"):
        return True
    base: Any = body.get("base_resp")  # MiniMax: status_code 0 is no error
    if isinstance(base, Mapping) and base.get("status_code"):
        return True
    for name in ("response", "body", "data"):
        nested: Any = body.get(name)
        if isinstance(nested, Mapping) and "choices" not in nested and _is_error(nested):
            return True
    if body.get("object") == "error" or body.get("type") == "error":
        return True
    if body.get("success") is False:
        return True
    is_reply = any(name in body for name in ("id", "data", "text", "segments", "object"))
    said = any(body.get(name) for name in ("errors", "detail", "message", "msg", "error_msg"))
    return said and not is_reply


def error_texts(value: Any, depth: int = 0) -> Iterator[str]:
    """The texts of an error that a person would read, also within texts of JSON, without what was
    sent and is repeated.
    """
    if depth > MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        for name, each in value.items():
            if name not in (*_ECHOES, *_CODES, "param", "object", "provider_name"):
                yield from error_texts(each, depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from error_texts(each, depth + 1)
    elif isinstance(value, str):
        nested = parse_json(value)
        if nested is not None:
            yield from error_texts(nested, depth + 1)
        else:
            yield value[:MAX_STRING]


def parse_json(text: str) -> Any:
    """The object or list of a text of JSON; None for any other text."""
    start = text.lstrip()[:1]
    if start not in ("{", "[") or len(text) > MAX_STRING:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _shorten(words: list[str]) -> list[str]:
    """The texts without those that another contains."""
    return [w for w in words if not any(w != other and w in other for other in words)]


def _codes(value: Any, depth: int = 0) -> Iterator[str]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        for name in _CODES:
            code: Any = value.get(name)
            if isinstance(code, str | int) and not isinstance(code, bool) and str(code):
                yield str(code)[:100]
        for name in (*_WRAPPERS, "innererror"):
            yield from _codes(value.get(name), depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _codes(each, depth + 1)
    elif isinstance(value, str) and (nested := parse_json(value)) is not None:
        yield from _codes(nested, depth + 1)


def _flat(code: str) -> str:
    return re.sub(r"[^a-z0-9]", "", code.lower())


def _reasons(body: Any) -> bool:
    """Whether OpenRouter names what was flagged."""
    if isinstance(body, list):
        return any(map(_reasons, body))
    if not isinstance(body, Mapping):
        return False
    metadata: Any = body.get("metadata")
    if isinstance(metadata, Mapping) and ("reasons" in metadata or "flagged_input" in metadata):
        return True
    return _reasons(body.get("error"))


def _status(codes: tuple[str, ...], words: str) -> int | None:
    """The status that an error carries: a number, a name, or words."""
    for code in codes:
        if code.isascii() and code.isdigit() and 400 <= int(code) < 600:
            return int(code)
    flat = [_flat(code) for code in codes]
    for name, status in _STATUS_OF_NAME:
        if any(name in code for code in flat):
            return status
    if found := _STATUS_IN_TEXT.search(words):
        return int(found[1] or found[2])
    return next((status for pattern, status in _STATUS_OF_WORDS if pattern.search(words)), None)
