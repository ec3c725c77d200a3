"""Which parameters of a request an endpoint refuses, read from its words, and what to send instead.

    changes = refused_parameters(400, body, sent)   # (Change("temperature"),)
    sent = adapt_request(sent, {"temperature": ""})

The words of OpenAI, Azure, Anthropic, Gemini, Mistral, xAI, Groq, OpenRouter, vLLM, SGLang, Ollama,
TGI, llama.cpp, LiteLLM and others are in `tests/calls/test_refusals.py`. A parameter is refused if
the error names it as the one at fault, in a field or in a sentence that refuses. Nothing is guessed
from the number of a status.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mustsee.calls.endpoint_errors import error_texts, parse_json

REFUSING_STATUS = (400, 403, 404, 405, 422, 501)
LIMITS = ("max_completion_tokens", "max_tokens")  # names of the limit of output tokens
DETAIL = "detail"  # the key of an image's detail within the messages
SCHEMA = "response_format"
# Never left out: without them the request would be another one.
NEEDED = ("model", "messages", "input", "prompt", "file", "dimensions")
# The order in which parameters are given up where an endpoint does not say which one it refuses,
# or takes only one of several: those first whose loss changes least.
ORDER = (
    "seed", "top_k", "min_p", "n", "stop", "frequency_penalty", "presence_penalty", "top_logprobs",
    "logprobs", "detail", "response_format", "max_completion_tokens", "max_tokens", "top_p",
    "reasoning_effort", "temperature",
)  # fmt: skip
_NAMELESS = re.compile(
    r"can handle the requested parameters|support(s|ed)? (all )?(of )?the (requested|provided) "
    r"(parameters|params)|unsupported (request )?param(eter)?s?\W*$",
    re.IGNORECASE,
)
_SAYS_NO = re.compile(
    r"unsupported|not support|n['’]t support|support(ed|s)? only|only support|unknown|unrecogni[sz]"
    r"|unexpected|extra(neous)?\b|extra_forbidden|not permitted|not allowed|disallow|not enabled|"
    r"not available|unavailable|deprecated|no longer|not implemented|unimplemented|not valid|"
    r"invalid|cannot both|can ?not (both )?be|can't be|mutually exclusive|at the same time|"
    r"may only be|must (not )?be|must have|should (not )?be|not one of|range|only one of|"
    r"(^|\W)remove\b|cannot find|not found|incompatible|not compatible|forbidden|"
    r"does not (take|accept)|not accept|too (large|small|high|low)|only .{1,30} allowed",
    re.IGNORECASE,
)
# A limit of tokens is refused by its name only: a number that is too large belongs to one call.
_REFUSES_NAME = re.compile(
    r"unsupported|not support|n['’]t support|unknown|unrecogni[sz]|unexpected|extra|not permitted|"
    r"not allowed|deprecated|no longer|cannot find|at the same time|can ?not (both )?be (set|spec)|"
    r"use .{0,3}max_\w+.{0,3} instead|does not (take|accept)|unavailable|not available|disallow",
    re.IGNORECASE,
)
_BOTH = re.compile(
    r"\bboth\b|at the same time|only one of|mutually exclusive|together|not compatible with|"
    r"incompatible with",
    re.IGNORECASE,
)
# Everything from here on names what is allowed.
_ALLOWED = re.compile(
    r"expected one of|did you mean|\b(supported|allowed|valid|accepted|available|permitted) "
    r"(parameters?|params|fields?|values?|arguments?|properties|options)\b|please use\b|\buse '|"
    r"Received Model Group",
    re.IGNORECASE,
)
_SIZE = re.compile(r"context|too (large|long|many)|exceed|at (most|least)|range|greater|less", re.I)
_END = re.compile(r"(?<=[^.\d])\.\s+|\n+|;\s")
_PYDANTIC = re.compile(r"\n(?:body\.)?(\w+)\n\s+")  # a name, and what is wrong with it below
_ALIASES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("reasoning_effort", re.compile(r"\bthink(ing)?\b|\breasoning\b", re.IGNORECASE)),
    ("frequency_penalty", re.compile(r"\bpenalt(y|ies)\b", re.IGNORECASE)),
    ("presence_penalty", re.compile(r"\bpenalt(y|ies)\b", re.IGNORECASE)),
    ("logprobs", re.compile(r"\blog[ -]?prob(s|abilit)", re.IGNORECASE)),
)
_SCHEMA_WORDS = re.compile(
    r"response.?format|schema|json.?(?:object|mode)|structured.?output|grammar|guided",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Change:
    """A parameter that is refused. `instead`: the name under which its value is sent; "": it is
    left out.
    """

    parameter: str
    instead: str = ""


def refused_parameters(status: int, body: Any, sent: Mapping[str, Any]) -> tuple[Change, ...]:
    """The parameters of `sent` (the JSON body of a request) that a response refuses; () if its
    error is about anything else.
    """
    if status not in REFUSING_STATUS:
        return ()
    names = [name for name in sent if name not in NEEDED]
    names += [DETAIL] if _sends_detail(sent) else []
    texts = list(error_texts(body))
    whole = " ".join(texts)
    fields = list(_fields(body))
    if any(field[:1] == ("messages",) and DETAIL not in field for field in fields):
        return ()
    refused = list(_by_field(fields, names, whole)) or list(_by_words(texts, names))
    if not refused and SCHEMA in names and _SCHEMA_WORDS.search(whole):
        refused = [SCHEMA]
    if not refused and _NAMELESS.search(whole):
        refused = [name for name in ORDER if name in names][:1]
    return tuple(_change(name, sent) for name in dict.fromkeys(refused))


def adapt_request(sent: Mapping[str, Any], learned: Mapping[str, str]) -> dict[str, Any]:
    """A request without the refused parameters. `learned`: parameter -> its name instead, or ""."""
    kept: dict[str, Any] = {}
    for name, value in sent.items():
        while (instead := learned.get(name)) and instead != name:
            name = instead
        if name not in learned and not (name == "top_logprobs" and "logprobs" in learned):
            kept[name] = value
    if DETAIL in learned and "messages" in kept:
        kept["messages"] = [_without_detail(message) for message in kept["messages"]]
    return kept


def values_sent(sent: Mapping[str, Any]) -> frozenset[str]:
    """What an endpoint may refuse in a request: its parameters, with the values of those that are
    refused by their value.
    """
    names: set[str] = set()
    for name, value in sent.items():
        if name in NEEDED:
            continue
        by_value = name in ("temperature", "top_p", "reasoning_effort", "top_logprobs", "n")
        names.add(f"{name}={value}" if by_value else name)
    details = {f"{DETAIL}={each['detail']}" for each in _images(sent) if DETAIL in each}
    return frozenset(names | details)


def _change(name: str, sent: Mapping[str, Any]) -> Change:
    if name in LIMITS:
        other = LIMITS[1 - LIMITS.index(name)]
        return Change(name, "" if other in sent else other)
    return Change(name)


def _by_field(fields: Sequence[tuple[str, ...]], names: Sequence[str], words: str) -> Iterator[str]:
    """The parameters that a field of the error names (`param`, `loc`, `field`)."""
    for field in fields:
        for name in names:
            parts = [_plain(part) for part in field]
            joined = _plain("".join(field))
            named = _plain(name) in (*parts[:2], joined, parts[-1] if parts else "")
            if named and (name not in LIMITS or _refuses_limit(words)):
                yield name
                break


def _by_words(texts: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """The parameters that a sentence names and refuses."""
    joined = (_PYDANTIC.sub(r"\n\1: ", text) for text in texts)
    sentences = [s for text in joined for s in _END.split(text) if s.strip()]
    found: list[str] = []
    for number, sentence in enumerate(sentences):
        head = _ALLOWED.split(sentence)[0] or ""
        near = " ".join(sentences[max(0, number - 1) : number + 2])
        if not _SAYS_NO.search(head):
            continue
        named = [n for n in names if _names(n, head) and (n not in LIMITS or _refuses_limit(near))]
        if not named:
            named = [n for n, alias in _ALIASES if n in names and alias.search(head)]
            if not named and _ALIASES[0][1].search(head):
                named = [n for n in names if "think" in n or "reasoning" in n]
        if len(named) > 1 and _BOTH.search(head):
            rank = {name: n for n, name in enumerate(ORDER)}
            named = [min(named, key=lambda name: rank.get(name, -1))]
        found += named
    yield from found


def _refuses_limit(words: str) -> bool:
    strong = _REFUSES_NAME.search(words)
    return bool(strong) and not (_SIZE.search(words) and "instead" not in words)


def _names(name: str, text: str) -> bool:
    """Whether a text names a parameter, in snake or camel case or in words. Short names, which are
    also words, must be quoted or called a parameter.
    """
    spelled = r"[ _.-]?".join(map(re.escape, name.split("_")))
    if name == DETAIL:
        spelled = r"(?:image|image_url)\W{1,3}detail|(?<=['\"`])detail"
    elif len(name) < 4 or name in ("stop", "user", "tools", "store", "think", "stream"):
        spelled = (
            rf"(?:(?<=['\"`\[]){spelled}(?=['\"`\]])|"
            rf"(?:parameters?|params?|arguments?|field|key|property|name)[ :]+{spelled}\b|"
            rf"^\W*{spelled} (?:is|must|may|should|can)|(?<=[:,] ){spelled}(?=,|\.?\s*$))"
        )
    return re.search(rf"(?<![\w-])(?:{spelled})(?![\w-])", text, re.IGNORECASE) is not None


def _fields(value: Any, depth: int = 0) -> Iterator[tuple[str, ...]]:
    """The paths of the fields at fault, as an error lists them."""
    if depth > 12:
        return
    if isinstance(value, Mapping):
        for name in ("param", "parameter", "field", "loc", "params"):
            path: Any = value.get(name)
            parts = path if isinstance(path, list | tuple) else [path]
            texts = [p for part in parts if isinstance(part, str) for p in _split(part)]
            if texts:
                yield tuple(t for t in texts if t != "body")
        for each in value.values():
            yield from _fields(each, depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _fields(each, depth + 1)
    elif isinstance(value, str) and (nested := parse_json(value)) is not None:
        yield from _fields(nested, depth + 1)


def _split(path: str) -> list[str]:
    return [part for part in re.split(r"[.\[\]/'\"]+", path) if part and not part.isdigit()]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _images(sent: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for message in sent.get("messages") or ():
        content: Any = message.get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, Mapping) and isinstance(part.get("image_url"), Mapping):
                yield part["image_url"]


def _sends_detail(sent: Mapping[str, Any]) -> bool:
    return any(DETAIL in image for image in _images(sent))


def _without_detail(message: Mapping[str, Any]) -> Mapping[str, Any]:
    content: Any = message.get("content")
    if not isinstance(content, list):
        return message
    parts: list[Any] = []
    for part in content:
        image: Any = part.get("image_url") if isinstance(part, Mapping) else None
        if isinstance(image, Mapping):
            kept = {name: value for name, value in image.items() if name != DETAIL}
            part = {**part, "image_url": kept}
        parts.append(part)
    return {**message, "content": parts}
