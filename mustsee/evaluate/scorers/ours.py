"""Our own rule: `mustsee.replies.extract`, as `mustsee evaluate` applies it. It never guesses."""

from __future__ import annotations

from collections.abc import Sequence

from mustsee.evaluate.scorers.reading import ReplyReading, ScoringRule, score_letter
from mustsee.replies.extract import extract


def read_ours(reply: str, options: Sequence[str], place: int) -> ReplyReading:
    """Read what the reply declares; the step is the rule of `mustsee.replies.extract.choice`."""
    extraction = extract(reply, options)
    return score_letter(extraction.letter, extraction.rule, place)


RULES = {"": ScoringRule(version="mustsee.replies.extract", read=read_ours)}
