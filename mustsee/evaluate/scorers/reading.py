"""What a scorer reads in one reply, and the rule by which it does.

rule.read("The answer is (B).", ("red", "blue"), 1)  # letter B, step "answer phrase", 1 point
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mustsee.replies.extract import extract
from mustsee.text import LETTERS


@dataclass(frozen=True, kw_only=True)
class ReplyReading:
    """What a scorer reads in a reply.

    `letter`: the option, in the order in which options were shown; None where the reply is
    unreadable to the scorer. `step`: the step that decided. `points`: what the scorer counts, the
    expected value where it guesses; None where it leaves the reply out. `guesses`: number of
    outcomes among which it draws at random; 0: it does not.
    """

    letter: str | None
    step: str
    points: float | None
    guesses: int = 0


@dataclass(frozen=True, kw_only=True)
class ScoringRule:
    """How one version of a scorer scores the replies to a benchmark.

    `version`: what the rule follows. `read`: of a reply, the options as shown, and the place of the
    right one. `failed`: the reply that the scorer gets for a failed call; None: it leaves the call
    out. `letters`: the only letters that it reads; "": those of the question's options. `averages`:
    lists of question types; it averages over the first that has all types of the questions, and a
    type without questions counts as 0; (): it takes the mean over the replies.
    """

    version: str
    read: Callable[[str, Sequence[str], int], ReplyReading]
    failed: str | None = None
    letters: str = ""
    averages: tuple[tuple[str, ...], ...] = ()


def score_letter(letter: str | None, step: str, place: int) -> ReplyReading:
    """Return the reading of a letter that scores if it is that of the right option, at `place`."""
    return ReplyReading(letter=letter, step=step, points=float(letter == LETTERS[place]))


def read_ours(reply: str, options: Sequence[str], place: int) -> ReplyReading:
    """Read what the reply declares; the step is the rule of `mustsee.replies.extract.choice`."""
    extraction = extract(reply, options)
    return score_letter(extraction.letter, extraction.rule, place)


OUR_RULES = {"": ScoringRule(version="mustsee.replies.extract", read=read_ours)}
