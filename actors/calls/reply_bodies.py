"""What the JSON of an endpoint's reply says. A part of another form than the documented one is not
believed: it counts as missing, and a reply without its text is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from mustsee.errors import hide_secrets
from mustsee.replies.forms import whole_characters
from mustsee.replies.thinking import SplitReply, split_reasoning

MOST_TOKENS = 1_000_000_000  # of one call; what says more counts something else
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


def parse_message(message: Mapping[str, Any], *, opened: bool = False) -> SplitReply:
    """What an answer says and thinks, wherever the endpoint puts the thoughts: a field of the
    message (DeepSeek, vLLM, SGLang, OpenRouter), parts of the content (Mistral), or, where it marks
    none, tags at the beginning of the text. `opened`: the text begins in the midst of thoughts.

    Raises one of UNREADABLE where the content is neither a text nor a list of parts.
    """
    field_of_its_own = message.get("reasoning_content") or message.get("reasoning") or ""
    content: Any = message.get("content") or ""
    thoughts = [field_of_its_own] if isinstance(field_of_its_own, str) else []
    if isinstance(content, list):
        parts = cast(list[Mapping[str, Any]], content)
        thoughts += [json.dumps(p["thinking"]) for p in parts if p.get("type") == "thinking"]
        content = "".join(p["text"] for p in parts if p.get("type") == "text")
    if not isinstance(content, str):
        raise TypeError("the content is no text")
    said = hide_secrets(whole_characters(content))
    spoken = SplitReply(reply=said) if any(thoughts) else split_reasoning(said, opened=opened)
    told = "\n".join(t for t in (*thoughts, spoken.thoughts) if t)
    return SplitReply(
        reply=spoken.reply,
        thoughts=hide_secrets(whole_characters(told)),
        unfinished=spoken.unfinished,
    )


def parse_model(body: Mapping[str, Any], asked: str) -> str:
    """The model that answered, as the endpoint names it; the one `asked` where it names none."""
    model = body.get("model")
    return whole_characters(model) if isinstance(model, str) and model else asked


def parse_tokens(value: Any) -> int | None:
    """A number of tokens, or None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value <= MOST_TOKENS else None


def parse_object(value: Any) -> Mapping[str, Any]:
    """A JSON object; an empty one in place of anything else."""
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}


def parse_logprobs(choice: Mapping[str, Any]) -> tuple[Mapping[str, float], ...] | None:
    """For each output token its alternatives, the chosen one among them; None where any of them is
    no log-probability.
    """
    try:
        tokens: Sequence[Mapping[str, Any]] = choice["logprobs"]["content"]
        return tuple(
            dict(_alternative(a) for a in (*(token.get("top_logprobs") or ()), token))
            for token in tokens
        )
    except UNREADABLE:
        return None


def _alternative(told: Mapping[str, Any]) -> tuple[str, float]:
    token, logprob = told["token"], told["logprob"]
    if not isinstance(token, str) or isinstance(logprob, bool) or math.isnan(logprob):
        raise ValueError(f"{token!r} has no log-probability")
    return whole_characters(token), min(0.0, float(logprob))


def parse_transcription(told: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """The verbose JSON of a transcription of a sound of so many `seconds`: `text`, `language`, and
    `words` and `segments`, none of them outside of the sound. Raises one of UNREADABLE.
    """
    return {
        "text": _text(told["text"]),
        "language": _text(told.get("language") or ""),
        "words": [
            {**_times(word, seconds), "word": _text(word["word"])}
            for word in told.get("words") or ()
        ],
        "segments": [
            {**_times(part, seconds), **_doubts(part), "text": _text(part["text"])}
            for part in told.get("segments") or ()
            if not part["start"] > seconds
        ],
    }


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return whole_characters(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no finite number")
    return float(value)


def _times(told: Mapping[str, Any], seconds: float) -> dict[str, float]:
    start, end = (min(max(0.0, _number(told[name])), seconds) for name in ("start", "end"))
    return {"start": start, "end": max(start, end)}


def _doubts(told: Mapping[str, Any]) -> dict[str, float]:
    names = ("avg_logprob", "no_speech_prob")
    return {name: _number(told[name]) for name in names if told.get(name) is not None}
