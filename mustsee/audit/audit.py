"""Audits questions with their replies: battery, figures, and which questions fail, and why."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mustsee.audit import battery, doubts, guessers
from mustsee.audit.battery import SHORTCUTS, ConditionResult, ConditionRun, Replies
from mustsee.audit.doubts import SuspectQuestion, Votes
from mustsee.audit.figures import AnswererFigures, Ratio, figures, groups, length_of, ratio
from mustsee.audit.repeats import RepeatedPair, SharedVideo
from mustsee.evaluate.score import clusters_of
from mustsee.questions import balance
from mustsee.records import Question, Video

FAILS: Mapping[str, str] = {  # reason to leave a question out of clean/ -> its explanation
    "blind": "a model names the right option without the video, and does so above chance",
    "transcript": "the same from the transcript alone",
    "one_frame": "the same from one frame",
    "shuffled": "the same from frames out of order",
    "untested": "a model was asked without the video and said nothing, so nothing is known",
    "error": "its key is in doubt",
    "duplicate": "another question of the dataset is the same; the first is kept",
    "overlap": "a benchmark of benchmarks= has it",
    "broken": "it is unusable (see the findings in the file)",
    "balance": "left out until a simple guesser is at chance in its type",
}


@dataclass(frozen=True, kw_only=True)
class AuditedQuestion:
    """The audit of one question.

    `score`: share of its shortcut conditions with every rotation right; null if none was run.
    `shortcuts`: these conditions. `guessers`: that are right and beat chance on the dataset or the
    question's type. `fails`: why it is not in the clean dataset. A shortcut that beats chance on
    neither is a lucky guess, and not a reason.
    """

    question_id: str
    score: float | None
    shortcuts: tuple[str, ...]
    guessers: tuple[str, ...]
    fails: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AuditGroup:
    """The questions of one type, or on videos of one range of length.

    Alarms are adjusted by Holm over all guessers and conditions of all types, or of all ranges.
    """

    name: str
    questions: int
    battery: tuple[ConditionResult, ...]
    shortcuts: Ratio


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The content of `audit.json`.

    `questions`: number of multiple-choice questions with a known answer. `left_out`: reason ->
    number of other questions; `unusable`: ids of those that are not in the clean dataset. `any`:
    the shortcut ratio over all answerers together. `asked`: the runs that were measured;
    `unmeasured`: the others. `voters`: who saw the video and voted on keys.
    """

    questions: int
    videos: int
    left_out: Mapping[str, int]
    unusable: tuple[str, ...]
    asked: tuple[ConditionRun, ...]
    unmeasured: tuple[battery.UnmeasuredCondition, ...]
    battery: tuple[ConditionResult, ...]
    any: Ratio
    figures: tuple[AnswererFigures, ...]
    types: tuple[AuditGroup, ...]
    lengths: tuple[AuditGroup, ...]
    duplicates: tuple[RepeatedPair, ...]
    overlap: tuple[RepeatedPair, ...]
    shared_videos: tuple[SharedVideo, ...]
    voters: tuple[str, ...]
    suspects: tuple[SuspectQuestion, ...]
    items: tuple[AuditedQuestion, ...] = field(repr=False)

    @property
    def all(self) -> int:
        """The number of questions before the audit."""
        return self.questions + sum(self.left_out.values())

    @property
    def clean(self) -> int:
        """The number of audited questions that do not fail."""
        return sum(not item.fails for item in self.items)

    @property
    def kept_count(self) -> int:
        """The number of questions in the clean dataset: `clean`, and usable ones not audited."""
        return self.all - len(self.unusable) - (self.questions - self.clean)

    @property
    def fails(self) -> dict[str, int]:
        """Reason -> the number of questions that fail by it."""
        counts = {name: sum(name in i.fails for i in self.items) for name in FAILS}
        return {**counts, "broken": counts["broken"] + len(self.unusable)}

    @property
    def lucky(self) -> int:
        """The number of questions kept although a shortcut, a lucky guess, is right on them."""
        return sum(bool(i.shortcuts) and not set(i.fails) & set(i.shortcuts) for i in self.items)

    @property
    def keys_tested(self) -> bool:
        """Whether any answerer saw the video, without which no key can be doubted."""
        return bool(self.voters) or any(a.condition in doubts.WATCHED for a in self.asked)

    @property
    def alarms(self) -> list[ConditionResult]:
        return [t for t in self.battery if t.alarm]

    def plain(self) -> dict[str, Any]:
        """Return the audit as JSON, without its questions, which have a table of their own."""
        plain = {k: v for k, v in asdict(self).items() if k != "items"}
        return {
            **plain, "alarms": [f"{t.answerer} {t.name}".strip() for t in self.alarms],
            "all": self.all, "clean": self.clean, "kept": self.kept_count, "lucky": self.lucky,
            "fails": self.fails, "keys_tested": self.keys_tested,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RepeatReport:
    """The repeats that `mustsee.audit.repeats` found."""

    duplicates: Sequence[RepeatedPair] = ()
    overlap: Sequence[RepeatedPair] = ()
    shared_videos: Sequence[SharedVideo] = ()


def audit(
    questions: Sequence[Question],
    videos: Sequence[Video],
    runs: Sequence[ConditionRun],
    repeated: RepeatReport,
    *,
    broken: Mapping[str, str] | None = None,
    drops: Collection[str] = tuple(FAILS),
    predictions: Votes | None = None,
    doubt: float = doubts.MIN_DOUBT,
    confirmed: Collection[str] = (),
    seed: int = 0,
) -> Audit:
    """Audit `questions`, which hold their replies.

    `runs`: the runs that the replies are from. `broken`: question id -> why it is unusable.
    `drops`: the reasons of `FAILS` that leave a question out of the clean dataset. `predictions`:
    votes of replies from files; `doubt`: lowest probability of a wrong key (`find_suspects`);
    `confirmed`: ids of questions whose key a person has confirmed, which are no suspects.
    """
    askable, broken = guessers.askable_questions(questions), broken or {}
    audited = {q.question_id for q in askable}
    others = [q for q in questions if q.drop is None and q.question_id not in audited]
    replies = Replies(askable, clusters_of(videos))
    unmeasured, all_runs = battery.find_unmeasured(askable, replies, runs), runs
    silent = {(each.answerer, each.condition) for each in unmeasured}
    runs = [run for run in runs if (run.answerer, run.condition) not in silent]
    hits = guessers.hits(askable)
    results = battery.battery(askable, replies, runs, hits)
    by_type = groups(askable, lambda q: q.question_type or None)
    by_length = groups(askable, length_of(videos))
    types = _groups(by_type, replies, runs, hits, len(askable))
    lengths = _groups(by_length, replies, runs, hits, len(askable))
    votes = doubts.collect_votes(askable, replies, runs, predictions)
    suspects = [
        suspect
        for suspect in doubts.find_suspects(askable, replies, runs, votes, doubt)
        if suspect.question not in confirmed
    ]
    beating = _beating_chance(results, types)
    right_guessers = _right_guessers(askable, hits, beating)
    ids_by_reason = _ids_by_reason(suspects, repeated, broken)
    ids_by_reason["untested"] = battery.find_untested(askable, replies, all_runs)
    items = _items(askable, replies, runs, right_guessers, beating, ids_by_reason, drops)
    items = _balance(askable, items, right_guessers, seed) if "balance" in drops else items
    return Audit(
        questions=len(askable),
        videos=len({q.video_id for q in askable}),
        left_out=dict(Counter(broken.get(q.question_id) or unusable_reason(q) for q in others)),
        unusable=tuple(q.question_id for q in others if q.question_id in broken)
        if "broken" in drops
        else (),
        asked=tuple(runs),
        unmeasured=tuple(unmeasured),
        battery=tuple(results),
        any=ratio(askable, replies, runs),
        figures=tuple(figures(askable, replies, runs, seed=seed)),
        types=tuple(types),
        lengths=tuple(lengths),
        duplicates=tuple(repeated.duplicates),
        overlap=tuple(repeated.overlap),
        shared_videos=tuple(repeated.shared_videos),
        voters=tuple(votes),
        suspects=tuple(suspects),
        items=tuple(items),
    )


def _groups(
    members: Mapping[str, Sequence[Question]],
    replies: Replies,
    runs: Sequence[ConditionRun],
    hits: Mapping[str, Sequence[float]],
    count: int,
) -> list[AuditGroup]:
    """Audit each group; p-values are adjusted by Holm over all of them. `members`: by name.
    `hits`: of the guessers on all `count` questions, which hold for a group of all.
    """
    results = {
        name: battery.battery(group, replies, runs, hits if len(group) == count else None)
        for name, group in members.items()
    }
    adjusted = iter(battery.adjust([r for group in results.values() for r in group]))
    return [
        AuditGroup(
            name=name,
            questions=len(group),
            battery=tuple(next(adjusted) for _ in results[name]),
            shortcuts=ratio(group, replies, runs),
        )
        for name, group in members.items()
    ]


def unusable_reason(question: Question) -> str:
    """Return why a question that is not broken cannot be audited."""
    return "no options to choose from" if len(question.options) < 2 else "no known answer"


Beating = Callable[[Question], set[tuple[str, str]]]
"""Returns the pairs of answerer (empty for guessers) and name that beat chance, and should not, on
the dataset or on the question's type.
"""


def _beating_chance(results: Sequence[ConditionResult], types: Sequence[AuditGroup]) -> Beating:
    on_all = {(r.answerer, r.name) for r in results if r.alarm}
    by_type = {g.name: {(r.answerer, r.name) for r in g.battery if r.alarm} for g in types}
    return lambda question: on_all | by_type.get(question.question_type, set())


def _right_guessers(
    questions: Sequence[Question], hits: Mapping[str, Sequence[float]], beating: Beating
) -> dict[str, tuple[str, ...]]:
    """Return question id -> the guessers that beat chance and are right on it."""
    by_question: dict[str, tuple[str, ...]] = {}
    for number, q in enumerate(questions):
        good = beating(q)
        right = tuple(name for name in hits if ("", name) in good and hits[name][number] == 1)
        by_question[q.question_id] = right
    return by_question


def _ids_by_reason(
    suspects: Sequence[SuspectQuestion], repeated: RepeatReport, broken: Collection[str]
) -> dict[str, Collection[str]]:
    """Return reason -> ids of the questions that fail by it, for reasons other than shortcuts."""
    duplicates = set[str]()
    for pair in repeated.duplicates:  # the first of several equal questions is kept
        if pair.other not in duplicates:
            duplicates.add(pair.question)
    return {
        "error": {s.question for s in suspects}, "duplicate": duplicates,
        "overlap": {p.question for p in repeated.overlap}, "broken": broken,
    }  # fmt: skip


def _items(
    questions: Sequence[Question],
    replies: Replies,
    runs: Sequence[ConditionRun],
    right_guessers: Mapping[str, tuple[str, ...]],
    beating: Beating,
    ids_by_reason: Mapping[str, Collection[str]],
    drops: Collection[str],
) -> list[AuditedQuestion]:
    items: list[AuditedQuestion] = []
    for q in questions:
        answered = [a for a in runs if a.condition in SHORTCUTS and replies.answered_replies(q, a)]
        right = [a for a in answered if replies.find_steady_option(q, a) == q.answer_index]
        above = {a.condition for a in right if (a.answerer, a.condition) in beating(q)}
        fails = [*above, *(name for name, ids in ids_by_reason.items() if q.question_id in ids)]
        items.append(
            AuditedQuestion(
                question_id=q.question_id,
                score=len(right) / len(answered) if answered else None,
                shortcuts=tuple(c for c in SHORTCUTS if c in {a.condition for a in right}),
                guessers=right_guessers[q.question_id],
                fails=tuple(f for f in FAILS if f in fails and f in drops),
            )
        )
    return items


def _balance(
    questions: Sequence[Question],
    items: Sequence[AuditedQuestion],
    right_guessers: Mapping[str, tuple[str, ...]],
    seed: int,
) -> list[AuditedQuestion]:
    """Mark questions with "balance", in types with a guesser above chance, until every guesser is
    at chance on the rest (`mustsee.questions.balance`).
    """
    kept = {i.question_id for i in items if not i.fails}
    unfair = {q.question_type for q in questions if right_guessers[q.question_id]}
    chosen = [q for q in questions if q.question_id in kept and q.question_type in unfair]
    dropped = {
        q.question_id for q in balance.balance_questions(chosen, seed=seed) if q.drop is not None
    }
    return [
        replace(i, fails=(*i.fails, "balance")) if i.question_id in dropped else i for i in items
    ]


def list_worst(audited: Audit, most: int, seed: int = 0) -> list[AuditedQuestion]:
    """Return the questions with the most shortcuts, a suspected key counting as one. The order of
    equal ones is drawn by seed.
    """

    def rank(item: AuditedQuestion) -> tuple[float, int, float]:
        tie_break = random.Random(f"{seed}/{item.question_id}/worst").random()
        wrong = "error" in item.fails
        return (-(item.score or 0.0) - wrong, -len(item.guessers), tie_break)

    conspicuous = [i for i in audited.items if i.score or i.guessers or i.fails]
    return sorted(conspicuous, key=rank)[:most]
