"""Statements about a span of a video that the rules write and measure: on-screen texts, spoken
words, and states such as colours that fill much of the frame.
"""

from __future__ import annotations

import re

from mustsee.enrich.traces import ASKED
from mustsee.offline.facts_phrases import LINE, STATES, TEXT, sight_of
from mustsee.offline.looking import Evidence
from mustsee.offline.things import bare_phrase
from mustsee.offline.wording import sentence

READ = "The words “{}” can be read on the screen."
SAID = "One hears the words “{}”."
_HEAD = ASKED.partition("{}")[0]
_READ, _SAID = (re.compile(re.escape(form).replace(r"\{\}", "(.+)")) for form in (READ, SAID))


def make_statement(phrase: str) -> str | None:
    """Return a fact's phrase as a statement; null for one that the rules cannot measure."""
    if match := TEXT.fullmatch(phrase):
        return READ.format(match[1])
    if match := LINE.fullmatch(phrase):
        return SAID.format(match[1])
    return f"{sentence(phrase)}." if phrase in STATES or bare_phrase(phrase) else None


def check_statement(question: str, evidence: Evidence) -> tuple[bool, list[float]] | None:
    """Return whether a statement of the rules is true, and when; null for other questions."""
    if not question.startswith(_HEAD):
        return None
    text = question.removeprefix(_HEAD)
    if match := _READ.fullmatch(text):
        times = evidence.read(match[1])
    elif match := _SAID.fullmatch(text):
        times = [span.start for span in evidence.spans_spoken(match[1])]
    elif (phrase := text[:1].lower() + text[1:].rstrip(".")) in STATES or bare_phrase(phrase):
        times = list(sight_of(phrase, evidence).seen)
    else:
        return None
    return bool(times), times
