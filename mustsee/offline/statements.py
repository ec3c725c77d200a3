"""Statements about a span of a video that the rules write and measure: on-screen texts, spoken
words, and colours that fill much of the frame, or do not.
"""

from __future__ import annotations

import re

from mustsee.enrich.traces import ASKED
from mustsee.offline.looking import Evidence

READ = "The words “{}” can be read on the screen."
SAID = "One hears the words “{}”."
LARGE = "A large part of the picture is clearly {}."
SMALL = "No large part of the picture is {}."
_HEAD = ASKED.partition("{}")[0]


def check_statement(question: str, evidence: Evidence) -> tuple[bool, list[float]] | None:
    """Return whether a statement of the rules is true, and when; null for other questions."""
    if not question.startswith(_HEAD):
        return None
    text = question.removeprefix(_HEAD)
    for form, rule in ((READ, _read), (SAID, _said), (LARGE, _large), (SMALL, _small)):
        before, after = form.split("{}")
        if match := re.fullmatch(f"{re.escape(before)}(.+){re.escape(after)}", text):
            return rule(match[1], evidence)
    return None


def _read(words: str, evidence: Evidence) -> tuple[bool, list[float]]:
    times = evidence.read(words)
    return bool(times), times


def _said(words: str, evidence: Evidence) -> tuple[bool, list[float]]:
    times = evidence.times_spoken(words)
    return bool(times), times


def _large(colour: str, evidence: Evidence) -> tuple[bool, list[float]]:
    times = [p.time for p in evidence.frames if p.colours.get(colour, 0.0) >= 0.2]
    return bool(times), times


def _small(colour: str, evidence: Evidence) -> tuple[bool, list[float]]:
    times = [p.time for p in evidence.frames if p.colours.get(colour, 0.0) < 0.06]
    return bool(times) and len(times) == len(evidence.frames), times
