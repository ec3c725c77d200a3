"""Statements about a span of a video that the rules write and measure: on-screen texts, spoken
words, and states such as colours that fill much of the frame.
"""

from __future__ import annotations

import re

from mustsee.enrich.traces import ASKED
from mustsee.offline.facts_phrases import LINE, STATES, TEXT, VIEWS, sight_of
from mustsee.offline.looking import Evidence
from mustsee.offline.things import find_thing
from mustsee.offline.wording import sentence

READ = "The words “{}” can be read on the screen."
SAID = "One hears the words “{}”."
SEEN = "{} can be seen."
_HEAD = ASKED.partition("{}")[0]
_READ, _SAID = (re.compile(re.escape(form).replace(r"\{\}", "(.+)")) for form in (READ, SAID))


def make_statement(phrase: str) -> str | None:
    """Return a fact's phrase as a statement; null for one that the rules cannot measure."""
    if match := TEXT.fullmatch(phrase):
        return READ.format(match[1])
    if match := LINE.fullmatch(phrase):
        return SAID.format(match[1])
    if phrase in VIEWS or find_thing(phrase):
        return SEEN.format(sentence(phrase))
    return f"{sentence(phrase)}." if phrase in STATES else None


def check_statement(question: str, evidence: Evidence) -> tuple[bool, list[float]] | None:
    """Return whether a statement of the rules is true, and when; null for other questions."""
    if not question.startswith(_HEAD):
        return None
    text = question.removeprefix(_HEAD)
    if match := _READ.fullmatch(text):
        times = evidence.read(match[1])
    elif match := _SAID.fullmatch(text):
        times = [span.start for span in evidence.spans_spoken(match[1])]
    elif (phrase := _view_of(text)) is not None:
        times = list(sight_of(phrase, evidence).seen)
    else:
        return None
    return bool(times), times


def _view_of(statement: str) -> str | None:
    """Return the phrase of a statement on what is seen or so; null for another statement."""
    phrase = statement[:1].lower() + statement[1:].rstrip(".")
    bare = phrase.removesuffix(" can be seen")
    if bare in VIEWS or find_thing(bare):
        return bare
    return phrase if phrase in STATES else None
