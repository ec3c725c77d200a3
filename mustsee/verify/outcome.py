"""What a filter finds of a question, and how it is written into the question.

    question = add_outcome(question, FilterOutcome(filter="blind", passed=False, fault=GUESSED))

`metrics["<filter>_passed"]` is 1 or 0, `faults[filter]` says in one word what is wrong, and `drop`
says it in a sentence where the filter drops questions. Repair goes by the fault
(`mustsee.verify.repair`); a filter may bring a fault of its own, which the writer is then told in
the words of the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mustsee.records import Question, passed_metric, unverified_metric

GUESSED = "guessed"  # the right answer is picked out without the video
HEARD = "heard"  # it is picked out of what is said alone
WORDED = "worded"  # a sign in the wording points to one option
AMBIGUOUS = "ambiguous"  # more than one option fits
DISPUTED = "disputed"  # those who looked chose another answer
UNTRUE = "untrue"  # what the question takes for granted is not so
UNSHOWN = "unshown"  # the evidence does not show the answer
UNTOLD = "untold"  # it cannot be told from the video
UNNEEDED = "unneeded"  # it is answered without its evidence, or from a moment of it
FAULTS = (
    GUESSED, HEARD, WORDED, AMBIGUOUS, DISPUTED, UNTRUE, UNSHOWN, UNTOLD, UNNEEDED,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FilterOutcome:
    """What a filter found of the present wording of a question.

    `fault`: what is wrong, in one word; empty if it passed. `reason`: the same in words. `drops`:
    whether a question that does not pass is dropped. `metrics`: further figures.
    """

    filter: str
    passed: bool
    fault: str = ""
    reason: str = ""
    drops: bool = True
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])


def add_outcome(question: Question, outcome: FilterOutcome) -> Question:
    """Return the question with an outcome. An earlier drop reason stays."""
    name = outcome.filter
    faults = {key: fault for key, fault in question.faults.items() if key != name}
    if not outcome.passed:
        faults[name] = outcome.fault
    is_dropped = outcome.drops and not outcome.passed
    return replace(
        question,
        metrics={
            **question.metrics, **outcome.metrics, passed_metric(name): float(outcome.passed)
        },
        faults=faults,
        drop=question.drop or (f"{name}: {outcome.reason}" if is_dropped else None),
    )  # fmt: skip


def mark_unverified(question: Question, name: str) -> Question:
    """Return the question marked as unverified by a filter that reached no verdict: neither dropped
    nor passed, and not in the subset.
    """
    return replace(question, metrics={**question.metrics, unverified_metric(name): 1.0})
