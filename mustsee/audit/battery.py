"""The battery: every guesser and every condition compared with chance, with n, interval and test.

A condition is run with two rotations of the options. An answer counts as known if every rotation
names the same option (`steady`): a model that merely favours a position names different ones.

A condition is measured if a reply under it names an option. A model that says nothing (its limit of
tokens went into thinking, every call was refused) looks like one that cannot guess, so nothing that
only it was asked may count as free of shortcuts.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from mustsee import stats
from mustsee.audit import guessers
from mustsee.evaluate.answers import Answer, answers, grades_of
from mustsee.questions.chance import chance_of
from mustsee.records import Question
from mustsee.stats import Difference, Estimate
from mustsee.text import LETTERS
from mustsee.verify.conditions.seen import order

SHORTCUTS = ("blind", "transcript", "one_frame", "shuffled")
# conditions in which a dataset that needs its videos is at chance
CHANCE_CONDITIONS = (*SHORTCUTS, "without_evidence")
MAX_UNPARSED = 0.1  # share of replies that name no option, above which a condition's line says so
OPEN = "_open"  # ends the name of a condition without the options, which has no chance to be right


@dataclass(frozen=True, kw_only=True)
class ConditionRun:
    """One answerer under one condition.

    `name`: model name of its replies. `frames`: number of frames shown; null where the condition
    decides it.
    """

    name: str
    answerer: str
    condition: str
    frames: int | None = None


@dataclass(frozen=True, kw_only=True)
class Place:
    """The position among the options that replies favour most.

    `share`: of the replies that name it. `over`: `share` minus chance. `turned`: share of the
    questions that get a different answer under another rotation of the options.
    """

    letter: str
    share: float
    over: Difference
    turned: float


@dataclass(frozen=True, kw_only=True)
class ConditionResult:
    """The result of one guesser or condition.

    `right`: share of right answers. `chance`: the same of guessing. `over`: the difference, with
    its test. `known`: `right` corrected for guessing, (right - chance) / (1 - chance). `alarm`:
    whether it is above chance, and should not be (`adjust` says so).
    """

    name: str
    kind: str
    answerer: str
    right: Estimate
    chance: float
    over: Difference
    known: Estimate
    failed: int = 0
    unparsed: float = 0.0
    place: Place | None = None
    alarm: bool = False


class Replies:
    """The replies to a set of questions, by question and run."""

    def __init__(
        self, questions: Sequence[Question], clusters: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._clusters = clusters
        self._replies: dict[tuple[str, str], list[Answer]] = {}
        for question in questions:
            for answer in map(_graded, answers(question)):
                self._replies.setdefault((question.question_id, answer.model), []).append(answer)

    def place(self, question: Question) -> str:
        """Return the cluster in which a question counts: its video, or the video's source."""
        return self._clusters.get(question.video_id, question.video_id)

    def all_replies(self, question: Question, run: ConditionRun) -> list[Answer]:
        """Return the replies of a run to a question, and its failed calls."""
        return self._replies.get((question.question_id, run.name), [])

    def answered_replies(self, question: Question, run: ConditionRun) -> list[Answer]:
        """Return the replies of a run to a question, without failed calls."""
        return [r for r in self.all_replies(question, run) if r.failed is None]

    def was_asked(self, question: Question, run: ConditionRun) -> bool:
        return (question.question_id, run.name) in self._replies

    def right(self, question: Question, run: ConditionRun) -> float | None:
        """Return the share of right replies; None without replies."""
        replies = self.answered_replies(question, run)
        return sum(r.correct is True for r in replies) / len(replies) if replies else None

    def find_steady_option(self, question: Question, run: ConditionRun) -> int | None:
        """Return the option that every reply names, in all rotations; None if they differ."""
        named = {r.letter for r in self.answered_replies(question, run)}
        letter = named.pop() if len(named) == 1 else None
        return None if letter is None else LETTERS.index(letter)


def battery(
    questions: Sequence[Question],
    replies: Replies,
    runs: Sequence[ConditionRun],
    hits: Mapping[str, Sequence[float]] | None = None,
) -> list[ConditionResult]:
    """Compare all guessers and runs on `questions` (from `guessers.askable_questions`) with chance.
    P-values are adjusted by Holm over all of them. `hits`: what `guessers.hits` returns for them.
    """
    places = list(map(replies.place, questions))
    chances = [chance_of(q) for q in questions]
    results = [
        compare_with_chance(name, "guesser", "", of_guesser, chances, places)
        for name, of_guesser in (hits or guessers.hits(questions)).items()
    ]
    for run in runs:
        result = _condition(questions, replies, run)
        results += [result] if result is not None else []
    return adjust(results)


def adjust(results: Sequence[ConditionResult]) -> list[ConditionResult]:
    """Return the results with p-values adjusted by Holm over those that chance can get right, and
    with their alarms.
    """
    adjusted = stats.adjust({n: r.over for n, r in enumerate(results) if r.chance})
    results = [replace(r, over=adjusted.get(n, r.over)) for n, r in enumerate(results)]
    unwanted = [r.kind == "guesser" or r.name in CHANCE_CONDITIONS for r in results]
    return [
        replace(r, alarm=u and r.over.is_above()) for r, u in zip(results, unwanted, strict=True)
    ]


def _graded(answer: Answer) -> Answer:
    """Return a reply, one without options with its grade; ungraded, it counts as failed."""
    if answer.rule or answer.letter or answer.failed is not None:
        return answer
    for given in grades_of(answer.question, answer.model):
        if given["rotation"] == answer.rotation and given["correct"] is not None:
            return replace(answer, correct=given["correct"])
    return replace(answer, failed="not graded")


def compare_with_chance(
    name: str,
    kind: str,
    answerer: str,
    right: Sequence[float],
    chances: Sequence[float],
    where: Sequence[Hashable],
) -> ConditionResult:
    """Compare scores with chance. `right`, `chances`, `where`: by question, the score, the
    probability that a guess is right, and the cluster.
    """
    corrected = [(r - c) / (1 - c) for r, c in zip(right, chances, strict=True)]
    return ConditionResult(
        name=name,
        kind=kind,
        answerer=answerer,
        right=_share(right, where),
        chance=sum(chances) / len(chances),
        over=_exact(stats.paired_difference(right, chances, where), right, chances, where),
        known=stats.mean(corrected, where),
    )


def _exact(
    difference: Difference,
    right: Sequence[float],
    chances: Sequence[float],
    where: Sequence[Hashable],
) -> Difference:
    """Return the difference with an exact p-value where possible.

    The distribution of guesses is known if each cluster has one question. If all answers are right,
    or all wrong, each cluster counts as one question, because no spread can be estimated.
    """
    single = dict(zip(where, chances, strict=True))
    alone, alike = len(single) == len(right), len(set(right)) == 1
    if set(right) - {0.0, 1.0} or not (alone or alike):
        return difference
    hits = int(sum(right)) if alone else len(single) * int(right[0])
    guessed = stats.poisson_binomial(list(single.values()))
    p = 2 * min(guessed[: hits + 1].sum(), guessed[hits:].sum())
    return replace(difference, p=min(1.0, float(p)))


def _share(right: Sequence[float], where: Sequence[Hashable]) -> Estimate:
    """Return the mean of shares, with its interval limited to 0..1.

    If all shares are equal (a guesser to which all options are equal), the interval is Wilson's
    with one question per cluster.
    """
    mean = stats.mean(right, where)
    if mean.low is None and mean.clusters > 1:
        low, high = stats.wilson(mean.value * mean.clusters, mean.clusters)
        return replace(mean, low=low, high=high, method="wilson on clusters")
    if mean.low is None or mean.high is None:
        return mean
    return replace(mean, low=max(0.0, mean.low), high=min(1.0, mean.high))


def _condition(
    questions: Sequence[Question], replies: Replies, run: ConditionRun
) -> ConditionResult | None:
    """Return the result of a run; None if it has no replies to these questions."""
    given = [q for q in questions if replies.was_asked(q, run)]
    answered = [q for q in given if replies.answered_replies(q, run)]
    if not answered:
        return None
    places = list(map(replies.place, answered))
    withheld = run.condition.endswith(OPEN)
    chances = [0.0 if withheld else chance_of(q) for q in answered]
    of_run = [r for q in answered for r in replies.answered_replies(q, run)]
    result = compare_with_chance(
        run.condition, "condition", run.answerer,
        [replies.right(q, run) or 0.0 for q in answered], chances, places,
    )  # fmt: skip
    return replace(
        result,
        failed=len(given) - len(answered),
        unparsed=0.0 if withheld else sum(r.letter is None for r in of_run) / len(of_run),
        place=None if withheld else place(answered, replies, run),
    )


def place(questions: Sequence[Question], replies: Replies, run: ConditionRun) -> Place | None:
    """Return the position that is named most above chance, over all rotations; None if no reply was
    parsed. The p-value is adjusted by Holm over the positions.
    """
    named: list[tuple[int, int, str]] = []  # position, number of options, cluster
    changed: list[bool] = []
    for question in questions:
        parsed = [r for r in replies.answered_replies(question, run) if r.letter is not None]
        for reply in parsed:
            index, count = LETTERS.index(reply.letter or "A"), len(question.options)
            position = order(count, reply.rotation).index(index)
            named.append((position, count, replies.place(question)))
        if len(parsed) > 1:
            changed.append(len({r.letter for r in parsed}) > 1)
    if not named:
        return None
    places = [cluster for _, _, cluster in named]
    gaps = {
        position: stats.paired_difference(
            [float(p == position) for p, _, _ in named],
            [1 / count if position < count else 0.0 for _, count, _ in named],
            places,
        )
        for position in range(max(count for _, count, _ in named))
    }
    over = stats.adjust(gaps)
    best = max(over, key=lambda n: (over[n].value, -n))
    return Place(
        letter=LETTERS[best],
        share=sum(p == best for p, _, _ in named) / len(named),
        over=over[best],
        turned=sum(changed) / len(changed) if changed else 0.0,
    )


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
