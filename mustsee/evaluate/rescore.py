"""Reads stored replies by the rules of several scorers, and says why two count one differently.

Nothing is asked of a model. `mustsee.evaluate.scorer_results` sums up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mustsee.errors import UserError
from mustsee.evaluate.answers import Answer, answers
from mustsee.evaluate.scorers import BENCHMARKS, SCORERS
from mustsee.evaluate.scorers.official import ReplyReading, ScoringRule
from mustsee.records import Question
from mustsee.text import LETTERS
from mustsee.verify.conditions.seen import order

FAILED_CALL = "failed call"
AVERAGE = "mean over types"
CAUSES = {  # why two scorers count a reply differently
    FAILED_CALL: "a failed call counts differently",
    "left out": "one of them leaves the reply out",
    "random": "one of them draws at random",
    "counting": "both read the same, and only one of them counts it as right",
    "letters": "one of them never reads this letter",
    "case": "one of them does not read a lower-case letter",
    "unreadable": "one of them reads no option",
    "extraction": "they read different options",
    AVERAGE: "one of them averages over the types of questions",
}


def choose_scorers(names: Sequence[str], benchmark: str | None) -> None:
    """Raise UserError for unknown scorers, for one named twice, and for an unknown benchmark."""
    if not names or len(set(names)) < len(names) or not {*names} <= SCORERS.keys():
        raise UserError(f"scorers={[*names]}: name each once, of {', '.join(SCORERS)}")
    if benchmark is not None and benchmark not in BENCHMARKS:
        raise UserError(f"benchmark={benchmark!r}: one of {', '.join(BENCHMARKS)}")


@dataclass(frozen=True, kw_only=True)
class RescoredReply:
    """A reply with what each scorer reads in it. `place`: of the right option, as shown. `rules`,
    `readings`: by scorer; a scorer without a rule for the benchmark is not in them.
    """

    answer: Answer
    place: int
    rules: Mapping[str, ScoringRule]
    readings: Mapping[str, ReplyReading]

    @property
    def row(self) -> dict[str, Any]:
        """The reply as a row of `rescored.parquet`."""
        question = self.answer.question
        row: dict[str, Any] = {
            "question_id": question.question_id, "video_id": question.video_id,
            "model": self.answer.model, "rotation": self.answer.rotation,
            "reply": self.answer.reply, "failed": self.answer.failed,
            "right_letter": LETTERS[self.place],
        }  # fmt: skip
        for scorer, reading in self.readings.items():
            row |= {f"{scorer}_letter": reading.letter, f"{scorer}_step": reading.step,
                    f"{scorer}_points": reading.points}  # fmt: skip
        return row


def rescore(
    questions: Iterable[Question],
    scorers: Sequence[str],
    benchmark: str | None,
    skipped: Counter[str],
) -> Iterator[RescoredReply]:
    """Yield every reply to a kept question with options and a key, read by each scorer.

    `benchmark`: whose rules are taken; None: those of each question's recipe. `skipped`: receives
    the number of other replies by the reason.
    """
    for question in questions:
        rules = {
            scorer: rule
            for scorer in scorers
            if (rule := _find_rule(scorer, benchmark or question.recipe))
        }
        for answer in answers(question):
            if (reason := _reason_to_skip(answer)) is not None:
                skipped[reason] += 1
                continue
            key = question.answer_index or 0
            place = order(len(question.options), answer.rotation).index(key)
            yield RescoredReply(
                answer=answer,
                place=place,
                rules=rules,
                readings={s: read_answer(rule, answer, place) for s, rule in rules.items()},
            )


def _find_rule(scorer: str, benchmark: str) -> ScoringRule | None:
    return SCORERS[scorer].get(benchmark) or SCORERS[scorer].get("")


def _reason_to_skip(answer: Answer) -> str | None:
    question = answer.question
    if question.drop is not None:
        return "question dropped"
    if not question.options or (answer.failed is None and not answer.rule):
        return "written answer"
    if question.answer_index is None:
        return "no public answer"
    return "chosen by the probability of Yes" if answer.by_option else None


def read_answer(rule: ScoringRule, answer: Answer, place: int) -> ReplyReading:
    """Return what a rule reads in a stored answer, or makes of its failed call."""
    if answer.failed is None:
        return rule.read(answer.reply, answer.options, place)
    if rule.failed is None:
        return ReplyReading(letter=None, step=FAILED_CALL, points=None)
    return rule.read(rule.failed, answer.options, place)


def find_cause(reply: RescoredReply, a: str, b: str) -> str:
    """Return the key of `CAUSES` for a reply to which scorers `a` and `b` give other points."""
    one, other = reply.readings[a], reply.readings[b]
    if reply.answer.failed is not None:
        return FAILED_CALL
    if one.points is None or other.points is None:
        return "left out"
    if one.guesses or other.guesses:
        return "random"
    if one.letter == other.letter:
        return "counting"
    for missing, found in ((a, b), (b, a)):
        rule, letter = reply.rules[missing], reply.readings[found].letter
        if letter is None:
            continue
        if rule.letters and letter not in rule.letters:
            return "letters"
        if reply.readings[missing].letter is None and _is_read_in_upper_case(rule, reply, letter):
            return "case"
    return "unreadable" if None in (one.letter, other.letter) else "extraction"


def _is_read_in_upper_case(rule: ScoringRule, reply: RescoredReply, letter: str) -> bool:
    """Whether the rule would read the letter if the reply wrote it as a capital."""
    text = reply.answer.reply
    capital = re.sub(rf"\b{letter.lower()}\b", letter, text)
    options = reply.answer.options
    return capital != text and rule.read(capital, options, reply.place).letter == letter
