"""The rules of VLMEvalKit (`ms-vlmeval` 0.0.20) without a judge model: its policy `exact_matching`.

With a judge it asks a model about what it cannot read, and after three unusable replies draws at
random among the options and Z ("none"): `RANDOM_RULES`. A failed call is scored by the text of its
error, which Video-MME's rule reads as the A of "API" and MVBench's table counts as right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from mustsee.evaluate.scorers.official import (
    ReplyReading,
    ScoringRule,
    begins_as_option,
    first_capital,
    score_letter,
)
from mustsee.replies.extract import official
from mustsee.text import LETTERS

FAILED = "Failed to obtain answer via API."
_REFUSALS = (  # phrases that it takes as "none of the options"
    "Sorry, I can't help with images of people yet.",
    "I can't process this file.",
    "I'm sorry, but without the image provided",
    "Cannot determine the answer",
)
_SEPARATORS = re.compile(r"[.()\[\],:;!*#{}]")
_LAST_WORDS = 4  # a lone letter counts if it is one of these
_UNREAD = "nothing found"
# "The best option is", "The correct option is", "Best answer:" and "Best option:" are not among
# them, because commas are missing in its list.
_PREFIXES = ("The best answer is", "The correct answer is", "The answer is", "The answer",
             "The best option isThe correct option is", "Best answer:Best option:", "Answer:",
             "Option:")  # fmt: skip


def infer_option(reply: str, options: Sequence[str]) -> tuple[str | None, str]:
    """Return the option that a reply names, and the step: the only letter if it is among the last
    four words, or the only option whose text the reply contains.
    """
    letters = LETTERS[: len(options)]
    if any(phrase in reply for phrase in _REFUSALS):
        return None, "refusal"
    words = _SEPARATORS.sub(" ", reply).split()
    named = [letter for letter in letters if letter in words]
    if len(named) == 1 and words.index(named[0]) >= len(words) - _LAST_WORDS:
        return named[0], "only letter, in the last words"
    if not named and "Z" in words:
        return None, "letter Z"
    lower = reply.lower()
    if len(lower) <= 2 * sum(map(len, options)):
        contained = [x for x, o in zip(letters, options, strict=True) if o.lower() in lower]
        if len(contained) == 1:
            return contained[0], "option text"
    return None, _UNREAD


def read_choice(reply: str, options: Sequence[str], place: int) -> ReplyReading:
    """Read an option as any of its multiple-choice tables does."""
    if FAILED in reply:
        return ReplyReading(letter=None, step="failed call", points=0.0)
    return score_letter(*infer_option(reply, options), place)


def read_mlvu(reply: str, options: Sequence[str], place: int) -> ReplyReading:
    """Read the character before the first ")", or else as elsewhere. A failed call counts -1."""
    if FAILED in reply:
        return ReplyReading(letter=None, step="failed call", points=-1.0)
    if official.mlvu(reply, place):
        return score_letter(LETTERS[place], "character before ')', or whole reply", place)
    return read_choice(reply, options, place)


def read_mvbench(reply: str, options: Sequence[str], place: int) -> ReplyReading:
    """Compare the first word with the right option's label, or else read as elsewhere. A failed
    call counts as right: its -1 is not 0. An empty reply is part of every label.
    """
    if FAILED in reply:
        return ReplyReading(letter=None, step="failed call", points=1.0)
    stripped = reply.strip()
    if begins_as_option(stripped, place):
        fitting = [n for n in range(len(options)) if begins_as_option(stripped, n)]
        letter = LETTERS[place] if len(fitting) == 1 else None
        step = "first word" if letter else "first word fits several labels"
        return ReplyReading(letter=letter, step=step, points=1.0)
    return read_choice(reply, options, place)


def read_videomme(reply: str, options: Sequence[str], place: int) -> ReplyReading:
    """Read the first capital A to D behind a few removed phrases, also within a word."""
    letter, step = first_capital(reply, _PREFIXES)
    return score_letter(letter, step, place)


def _draw_unread(
    read: Callable[[str, Sequence[str], int], ReplyReading],
) -> Callable[[str, Sequence[str], int], ReplyReading]:
    """Return the reader that draws where `read` would ask a judge."""

    def read_or_draw(reply: str, options: Sequence[str], place: int) -> ReplyReading:
        reading = read(reply, options, place)
        if reading.step != _UNREAD:
            return reading
        outcomes = len(options) + 1
        return replace(reading, step="random option or Z", points=1 / outcomes, guesses=outcomes)

    return read_or_draw


RULES = {
    "": ScoringRule(
        version="VLMEvalKit 0.0.20 utils/matching_util.py", read=read_choice, failed=FAILED
    ),
    "videomme": ScoringRule(
        version="VLMEvalKit 0.0.20 utils/videomme.py", read=read_videomme, failed=FAILED,
        letters="ABCD",
    ),
    "mlvu": ScoringRule(
        version="VLMEvalKit 0.0.20 utils/mlvu.py", read=read_mlvu, failed=FAILED
    ),
    "mvbench": ScoringRule(
        version="VLMEvalKit 0.0.20 utils/mvbench.py", read=read_mvbench, failed=FAILED
    ),
}  # fmt: skip
RANDOM_RULES = {
    name: replace(rule, version=f"{rule.version}, judge without usable replies",
                  read=_draw_unread(rule.read))
    for name, rule in RULES.items()
}  # fmt: skip
