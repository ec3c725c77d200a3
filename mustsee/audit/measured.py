"""Which conditions of an audit were measured: those under which a reply names an option.

A model that says nothing (its limit of tokens went into thinking, every call was refused) looks
like one that cannot guess, so nothing that only it was asked may count as free of shortcuts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mustsee.audit.battery import OPEN, SHORTCUTS, ConditionResult, ConditionRun, Replies
from mustsee.evaluate.answers import Answer
from mustsee.records import Question

MAX_UNPARSED = 0.1  # share of replies that name no option, above which a condition's line says so


@dataclass(frozen=True, kw_only=True)
class UnmeasuredCondition:
    """A condition under which no reply of an answerer names an option.

    `replies`: number of calls; of these `failed` have no reply, `cut` were cut off by the limit of
    tokens, and `empty` are blank. `reason`: of the first failed call.
    """

    answerer: str
    condition: str
    replies: int
    failed: int = 0
    cut: int = 0
    empty: int = 0
    reason: str = ""

    @property
    def sentence(self) -> str:
        """What was not measured, and what to do."""
        name = self.condition.replace("_", " ")
        start = f"{name} was not measured for {self.answerer}: "
        if self.failed == self.replies:
            return f"{start}all {self.replies} calls failed ({self.reason})"
        counts = (
            (self.cut, "cut off at the limit of tokens"),
            (self.empty, "empty"),
            (self.failed, f"failed: {self.reason}"),
        )
        said = ", ".join(f"{n} {what}" for n, what in counts if n)
        advice = "; a model that thinks needs llm.thought_tokens=, such as 16000" * bool(self.cut)
        none = f"none of {self.replies} replies names an option"
        return f"{start}{none}{f' ({said})' if said else ''}{advice}"


def find_unmeasured(
    questions: Sequence[Question], replies: Replies, runs: Sequence[ConditionRun]
) -> list[UnmeasuredCondition]:
    """Return the runs that were asked, and of which no reply names an option. A condition that
    withholds the options is none of them.
    """
    found: list[UnmeasuredCondition] = []
    for run in runs:
        given = [a for q in questions for a in replies.all_replies(q, run)]
        if not given or run.condition.endswith(OPEN) or any(a.letter for a in given):
            continue
        failed = [a.failed for a in given if a.failed is not None]
        answered = [a for a in given if a.failed is None]
        found.append(
            UnmeasuredCondition(
                answerer=run.answerer,
                condition=run.condition,
                replies=len(given),
                failed=len(failed),
                cut=sum(a.cut for a in answered),
                empty=sum(not a.cut and not a.reply.strip() for a in answered),
                reason=failed[0] if failed else "",
            )
        )
    return found


def find_untested(
    questions: Sequence[Question], replies: Replies, runs: Sequence[ConditionRun]
) -> set[str]:
    """Return the ids of the questions that were asked under a shortcut condition to which nobody
    replied: under which no reply to any question names an option, or where all replies to this one
    are blank, cut off or missing.
    """
    untested: set[str] = set()
    for condition in SHORTCUTS:
        asked = [run for run in runs if run.condition == condition]
        given = {q.question_id: [a for run in asked for a in replies.all_replies(q, run)]
                 for q in questions}  # fmt: skip
        nobody = not any(a.letter for each in given.values() for a in each)
        untested |= {name for name, each in given.items()
                     if each and (nobody or all(map(_says_nothing, each)))}  # fmt: skip
    return untested


def _says_nothing(answer: Answer) -> bool:
    silent = answer.cut or not answer.reply.strip()
    return answer.letter is None and (answer.failed is not None or silent)


def doubtful_sentences(results: Sequence[ConditionResult]) -> list[str]:
    """Return a sentence for each measured condition with many replies that name no option, or with
    failed calls.
    """
    sentences: list[str] = []
    for one in results:
        said = []
        if one.unparsed > MAX_UNPARSED:
            said.append(f"{one.unparsed:.0%} of the replies name no option")
        if one.failed:
            said.append(f"every call of {one.failed} questions failed")
        if said:
            name = one.name.replace("_", " ")
            sentences.append(f"{name} of {one.answerer}: {', '.join(said)}")
    return sentences
