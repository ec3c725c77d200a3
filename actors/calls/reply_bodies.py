"""Parsing of the JSON of endpoints' replies. A field that is not as documented counts as missing; a
reply without its text is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from mustsee.calls.usage import Price
from mustsee.errors import BilledTokens, hide_secrets
from mustsee.replies.forms import whole_characters
from mustsee.replies.thinking import SplitReply, split_reasoning

MAX_TOKENS = 1_000_000_000  # tokens of one call; a greater number counts something else
# Beginnings of the reasons for which a filter stops a reply: of OpenAI, Gemini, Zhipu.
FILTERED = ("content_filter", "content-filter", "safety", "prohibited", "blocklist", "recitation",
            "spii", "sensitive")  # fmt: skip
# Errors of parsing that mean an invalid body.
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


def parse_message(message: Mapping[str, Any], *, opened: bool = False) -> SplitReply:
    """Split a message into reply and reasoning, wherever the endpoint puts the reasoning: a field
    of the message (DeepSeek, vLLM, SGLang, OpenRouter), items of the content (Mistral), or tags at
    the beginning of the text. `opened`: the text begins within the reasoning.

    Raises one of UNREADABLE if the content is neither a text nor a list.
    """
    own_field = message.get("reasoning_content") or message.get("reasoning") or ""
    content: Any = message.get("content") or ""
    thoughts = [own_field] if isinstance(own_field, str) else []
    if isinstance(content, list):
        parts = cast(list[Mapping[str, Any]], content)
        thoughts += [json.dumps(p["thinking"]) for p in parts if p.get("type") == "thinking"]
        content = "".join(p["text"] for p in parts if p.get("type") == "text")
    if not isinstance(content, str):
        raise TypeError("the content is not a text")
    text = hide_secrets(whole_characters(content))
    split = SplitReply(reply=text) if any(thoughts) else split_reasoning(text, opened=opened)
    reasoning = "\n".join(t for t in (*thoughts, split.thoughts) if t)
    return SplitReply(
        reply=split.reply,
        thoughts=hide_secrets(whole_characters(reasoning)),
        unfinished=split.unfinished,
    )


def is_filtered(finish: Any) -> bool:
    """Whether a reply's `finish_reason` says that a filter stopped it."""
    return isinstance(finish, str) and finish.lower().startswith(FILTERED)


def parse_model(body: Mapping[str, Any], requested: str) -> str:
    """The model that the endpoint says has answered, or else `requested`."""
    model = body.get("model")
    return whole_characters(model) if isinstance(model, str) and model else requested


def parse_tokens(value: Any) -> int | None:
    """A number of tokens; None for any other value."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value <= MAX_TOKENS else None


def parse_bill(body: Mapping[str, Any], price: Price) -> BilledTokens | None:
    """What the body of any reply says it cost, also of an error or a reply that is refused; None if
    it does not say how many tokens went in.
    """
    usage = parse_object(body.get("usage"))
    tokens_in, tokens_out = parse_counts(usage)
    if tokens_in is None:
        return None
    cached, written = parse_cache(usage, tokens_in)
    return BilledTokens(
        tokens_in=tokens_in,
        tokens_out=tokens_out or 0,
        tokens_cached=cached,
        usd=price.usd(tokens_in, tokens_out or 0, cached, written),
    )


def parse_counts(usage: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The tokens in and out of a `usage`, where it says them; no tokens in is not a count, because
    every prompt has some. Gemini counts reasoning only in the total.
    """
    tokens_in = parse_tokens(usage.get("prompt_tokens"))
    if not tokens_in:
        return None, None
    tokens_out = parse_tokens(usage.get("completion_tokens"))
    beyond = (parse_tokens(usage.get("total_tokens")) or 0) - tokens_in
    return tokens_in, max(tokens_out or 0, beyond) or tokens_out


def parse_cache(usage: Mapping[str, Any], tokens_in: int) -> tuple[int, int]:
    """The tokens of `tokens_in` that came from the endpoint's cache, and those written to it."""
    details = parse_object(usage.get("prompt_tokens_details"))
    cached = min(parse_tokens(details.get("cached_tokens")) or 0, tokens_in)
    written = parse_tokens(details.get("cache_write_tokens")) or 0
    return cached, min(written, tokens_in - cached)


def parse_object(value: Any) -> Mapping[str, Any]:
    """A JSON object; an empty one for any other value."""
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}


def parse_logprobs(choice: Mapping[str, Any]) -> tuple[Mapping[str, float], ...] | None:
    """The alternatives of each output token, the chosen token included, with their
    log-probabilities. None if any of them is not a log-probability.
    """
    try:
        tokens: Sequence[Mapping[str, Any]] = choice["logprobs"]["content"]
        return tuple(
            dict(_alternative(a) for a in (*(token.get("top_logprobs") or ()), token))
            for token in tokens
        )
    except UNREADABLE:
        return None


def _alternative(entry: Mapping[str, Any]) -> tuple[str, float]:
    token, logprob = entry["token"], entry["logprob"]
    if not isinstance(token, str) or isinstance(logprob, bool) or math.isnan(logprob):
        raise ValueError(f"{token!r} has no log-probability")
    return whole_characters(token), min(0.0, float(logprob))


def parse_transcription(body: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Parse the verbose JSON of a transcription of `seconds` of audio: `text`, `language`, `words`
    and `segments`, whose times are limited to the audio. Raises one of UNREADABLE.
    """
    return {
        "text": _text(body["text"]),
        "language": _text(body.get("language") or ""),
        "words": [
            {**_times(word, seconds), "word": _text(word["word"])}
            for word in body.get("words") or ()
        ],
        "segments": [
            {**_times(segment, seconds), **_doubts(segment), "text": _text(segment["text"])}
            for segment in body.get("segments") or ()
            if not segment["start"] > seconds
        ],
    }


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return whole_characters(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    return float(value)


def _times(entry: Mapping[str, Any], seconds: float) -> dict[str, float]:
    start, end = (min(max(0.0, _number(entry[name])), seconds) for name in ("start", "end"))
    return {"start": start, "end": max(start, end)}


def _doubts(entry: Mapping[str, Any]) -> dict[str, float]:
    names = ("avg_logprob", "no_speech_prob")
    return {name: _number(entry[name]) for name in names if entry.get(name) is not None}
