"""Spans that a model names in a reply: "12.3 to 15 s", "0:12-0:18; 1:04-1:10", or JSON.

    spans = parse_spans("It rings from 12.3 to 15 s.")     # (Span(12.3, 15.0),)
    rest, spans = split_evidence("B\\nEVIDENCE: 0:12-0:18")  # ("B", (Span(12.0, 18.0),))

Nothing is guessed. A reply is unreadable if it names no stretch, one that ends before it begins, or
any number besides its stretches: it may be the time that is meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from mustsee.questions.drafts import TIME, read_time, split_ranges
from mustsee.records import Span
from mustsee.replies.thinking import split_reasoning

STARTS = ("start", "start_time", "begin", "from")
ENDS = ("end", "end_time", "stop", "to")
SPAN_KEYS = ("spans", "span", "answer", "times", "time", "timestamps", "segments", "evidence")
_FENCED = re.compile(r"^\s*```(?:json)?\s*(.*?)\s*```\s*$", re.DOTALL | re.IGNORECASE)
_NAMED = re.compile(  # "start: 12.3 s, end: 15 s", "it begins at 0:12 and ends at 0:18", ...
    rf"\b(?:start|begin)(?:s|ning)?(?:[ _]time)?\W{{0,4}}(?:(?:is|at)\s+)?(?={TIME})"
    rf"(?P<start>{TIME})\s*(?:s|secs?|seconds)?\b\W{{0,4}}(?:(?:and|it)\s+)*"
    rf"(?:end|stop|finish)(?:s|es|ing)?(?:[ _]time)?\W{{0,4}}(?:(?:is|at)\s+)?(?P<end>{TIME})",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    rf"\bbetween\s+(?P<start>{TIME})(?P<unit>\s*(?:s|secs?|seconds)?)\s+and\s+(?={TIME})",
    re.IGNORECASE,
)
_EVIDENCE = re.compile(r"^[\s*_#>-]*EVIDENCE[\s*_]*[:：](.*)$", re.MULTILINE | re.IGNORECASE)


def parse_spans(reply: str) -> tuple[Span, ...] | None:
    """Return the spans that a reply names, in order; None if it is not readable as spans."""
    text = split_reasoning(reply).reply.strip()
    if fenced := _FENCED.match(text):
        text = fenced[1]
    spans = _parse_json(text) if text[:1] in ("{", "[") else _parse_words(text)
    if not spans or any(span.end < span.start for span in spans):
        return None
    return tuple(sorted(set(spans), key=lambda s: (s.start, s.end)))


def split_evidence(reply: str) -> tuple[str, tuple[Span, ...] | None] | None:
    """Return a reply without its line "EVIDENCE: spans", and the spans, null if they are not
    readable; None if it has no such line. Of several lines the last is read.
    """
    found = list(_EVIDENCE.finditer(split_reasoning(reply).reply))
    if not found:
        return None
    return _EVIDENCE.sub("", reply).strip(), parse_spans(found[-1][1])


def _parse_words(text: str) -> list[Span]:
    text = _NAMED.sub(r"\g<start> to \g<end>", text)
    text = _BETWEEN.sub(r"\g<start>\g<unit> to ", text)
    ranges, rest = split_ranges(text)
    if re.search(r"\d", rest) or any(end < start for start, end in ranges):
        return []
    return [Span(start, end) for start, end in ranges]


def _parse_json(text: str) -> list[Span]:
    """Return the spans of a JSON value: {"start": 12.3, "end": 15}, [12.3, 15], a list of such, or
    any of these under one of `SPAN_KEYS`; nothing for another value.
    """
    try:
        value = json.loads(text)
    except ValueError:
        # "[0:12 - 0:18]" is words. An object may be cut off within a number.
        return _parse_words(text) if text[0] == "[" else []
    if isinstance(value, Mapping):
        inner = [value[key] for key in SPAN_KEYS if key in value]
        if len(inner) == 1:
            value = inner[0]
            if isinstance(value, str):
                return _parse_words(value)
    items = value if isinstance(value, list) and not _is_pair(value) else [value]
    spans = [_read_span(item) for item in items]
    return [span for span in spans if span is not None] if None not in spans else []


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and None not in map(_read_seconds, value)


def _read_span(item: Any) -> Span | None:
    start = end = None
    if _is_pair(item):
        start, end = map(_read_seconds, item)
    elif isinstance(item, Mapping):
        starts = [item[key] for key in STARTS if key in item]
        ends = [item[key] for key in ENDS if key in item]
        if len(starts) == len(ends) == 1:
            start, end = _read_seconds(starts[0]), _read_seconds(ends[0])
    if start is None or end is None or end < start:
        return None
    return Span(start, end)


def _read_seconds(value: Any) -> float | None:
    if isinstance(value, str):
        return read_time(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < float("inf") else None
