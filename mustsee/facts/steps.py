"""Videos that explain how something is done step by step, as recipes and tutorials do.

Their on-screen words and their lines follow a course that can be told without the video. Of the
questions that rules made of words and lines alone of two such videos, a strong reader who had not
seen them answered all 11 right, and 3 of the 6 about what is seen. So none of the former is asked.
The words of a step are English: in other languages no video explains steps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mustsee.facts.stem import Stem
from mustsee.questions.orders import SEPARATOR
from mustsee.records import Fact

MIN_STEPS = 3  # lines with words of a step, at least
MIN_SHARE = 0.15  # share of all lines, at least
_STEP = re.compile(
    r"“(?:and |so |but |okay,? )?(?:first|second|third|next|now|then|after that|finally|lastly)\b"
    r"|.*\b(?:step|(?:first|next|last) (?:job|thing))\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?:the words )?“.*”", re.DOTALL)


def explains_steps(facts: Sequence[Fact]) -> bool:
    """Whether the lines among the facts of a video have words of a step often enough."""
    lines = [fact.phrase for fact in facts if fact.kind == "line"]
    steps = sum(_STEP.match(line) is not None for line in lines)
    return steps >= max(MIN_STEPS, MIN_SHARE * len(lines))


def is_of_words_alone(stem: Stem) -> bool:
    """Whether a question asks for quoted words, and states no more than quoted words; or for an
    order with two of them, which tell the most of it.
    """
    if stem.traits.lists_order:
        things = stem.answer.split(SEPARATOR)
        return sum(_QUOTED.fullmatch(thing) is not None for thing in things) > 1
    names_none = "“" in stem.question or not stem.traits.names_moment
    return names_none and _QUOTED.fullmatch(stem.answer) is not None
