"""From questions with their replies to an audit: the battery, the figures, what failed and why."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mustsee import stats
from mustsee.audit import guessers
from mustsee.audit.battery import SHORTCUTS, ConditionResult, ConditionRun, Replies, battery
from mustsee.audit.figures import AnswererFigures, Ratio, figures, groups, length_of, ratio
from mustsee.audit.repeats import RepeatedPair, SharedVideo
from mustsee.evaluate.score import clusters_of
from mustsee.questions import balance
from mustsee.records import Question, Video

FAILS: Mapping[str, str] = {  # reason to leave the clean dataset -> what it says
    "blind": "a model names the right option without the video, and does so above chance",
    "transcript": "the same from what is said alone",
    "one_frame": "the same from one picture",
    "shuffled": "the same from pictures out of order",
    "error": "its key is in doubt",
    "duplicate": "another question of the dataset says the same; the first stays",
    "overlap": "a benchmark of benchmarks= has it",
    "broken": "it cannot be used as it stands (see what is wrong in the file)",
    "balance": "left out until a simple guesser is at chance in its type",
}
WATCHED = ("evidence", "whole", "frames")  # where a model that is right must agree with the key


@dataclass(frozen=True, kw_only=True)
class SuspectQuestion:
    """A question whose key looks wrong: `models` of the answerers name one other option in every
    turn, wherever they saw what decides it; none names the key.
    """

    question: str
    key: str
    named: str
    models: int
    conditions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AuditedQuestion:
    """One question. `score`: the share of its shortcut conditions in which every turn is right,
    null where none was asked; `shortcuts`: which; `guessers`: those that are right and beat chance
    on the dataset or its type; `fails`: why it is not in the clean dataset. A shortcut that does
    not beat chance on either is a lucky guess, and no reason.
    """

    question_id: str
    score: float | None
    shortcuts: tuple[str, ...]
    guessers: tuple[str, ...]
    fails: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AuditGroup:
    """A type of questions, or those on videos of some length. Alarms are adjusted by Holm over all
    guessers and conditions of all groups of its kind.
    """

    name: str
    questions: int
    battery: tuple[ConditionResult, ...]
    shortcuts: Ratio


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What `audit.json` holds. `questions`: multiple choice with a known answer; `left_out`: the
    others, by why; `unusable`: those of them that are not in the clean dataset. `any`: the shortcut
    ratio over all answerers together.
    """

    questions: int
    videos: int
    left_out: Mapping[str, int]
    unusable: tuple[str, ...]
    asked: tuple[ConditionRun, ...]
    battery: tuple[ConditionResult, ...]
    any: Ratio
    figures: tuple[AnswererFigures, ...]
    types: tuple[AuditGroup, ...]
    lengths: tuple[AuditGroup, ...]
    duplicates: tuple[RepeatedPair, ...]
    overlap: tuple[RepeatedPair, ...]
    shared_videos: tuple[SharedVideo, ...]
    suspects: tuple[SuspectQuestion, ...]
    items: tuple[AuditedQuestion, ...] = field(repr=False)

    @property
    def all(self) -> int:
        """Questions that stood before the audit."""
        return self.questions + sum(self.left_out.values())

    @property
    def clean(self) -> int:
        """Audited questions without a reason to leave."""
        return sum(not item.fails for item in self.items)

    @property
    def kept_count(self) -> int:
        """Questions in the clean dataset: those, and the ones that could not be audited."""
        return self.all - len(self.unusable) - (self.questions - self.clean)

    @property
    def fails(self) -> dict[str, int]:
        """By reason to leave, the questions that have it."""
        counts = {name: sum(name in i.fails for i in self.items) for name in FAILS}
        return {**counts, "broken": counts["broken"] + len(self.unusable)}

    @property
    def lucky(self) -> int:
        """Questions with a shortcut that is a lucky guess, which stay for all that."""
        return sum(bool(i.shortcuts) and not set(i.fails) & set(i.shortcuts) for i in self.items)

    @property
    def keys_tested(self) -> bool:
        """Whether somebody saw what decides a question: without that no key can be doubted."""
        return any(a.condition in WATCHED for a in self.asked)

    @property
    def alarms(self) -> list[ConditionResult]:
        return [t for t in self.battery if t.alarm]

    def plain(self) -> dict[str, Any]:
        """As JSON; the questions are in a table of their own."""
        told = {k: v for k, v in asdict(self).items() if k != "items"}
        for tried, plain in _paired(self, told):
            plain["alarm"] = tried.alarm
        named = {"alarms": [f"{t.answerer} {t.name}".strip() for t in self.alarms]}
        counts = {
            "all": self.all,
            "clean": self.clean,
            "kept": self.kept_count,
            "lucky": self.lucky,
        }
        return {
            **told, **named, **counts, "fails": self.fails, "keys_tested": self.keys_tested,
        }  # fmt: skip


def _paired(
    audit: Audit, told: Mapping[str, Any]
) -> Iterator[tuple[ConditionResult, dict[str, Any]]]:
    """Everything that was tried, and what was made of it."""
    yield from zip(audit.battery, told["battery"], strict=True)
    for key, every in (("types", audit.types), ("lengths", audit.lengths)):
        for group, plain in zip(every, told[key], strict=True):
            yield from zip(group.battery, plain["battery"], strict=True)


@dataclass(frozen=True, kw_only=True)
class RepeatReport:
    """What occurs twice (`mustsee.audit.repeats`)."""

    duplicates: Sequence[RepeatedPair] = ()
    overlap: Sequence[RepeatedPair] = ()
    shared_videos: Sequence[SharedVideo] = ()


def audit(
    questions: Sequence[Question],
    videos: Sequence[Video],
    asked: Sequence[ConditionRun],
    repeated: RepeatReport,
    *,
    broken: Mapping[str, str] | None = None,
    drops: Collection[str] = tuple(FAILS),
    seed: int = 0,
) -> Audit:
    """The audit of `questions` (replies inside). `broken`: by id, those that cannot be used as they
    stand, and why. `drops`: for which of `FAILS` a question is left out of the clean dataset.
    """
    put, broken = guessers.askable_questions(questions), broken or {}
    audited = {q.question_id for q in put}
    others = [q for q in questions if q.drop is None and q.question_id not in audited]
    replies, clusters = Replies(put), clusters_of(videos)
    tried = battery(put, replies, asked, clusters)
    types = _groups(groups(put, lambda q: q.question_type or None), replies, asked, clusters)
    lengths = _groups(groups(put, length_of(videos)), replies, asked, clusters)
    suspects = [s for q in put if (s := suspect(q, replies, asked)) is not None]
    beating = _beating(tried, types)
    telling = _telling(put, beating)
    items = _items(put, replies, asked, telling, beating, _marks(suspects, repeated, broken), drops)
    items = _balanced(put, items, telling, seed) if "balance" in drops else items
    return Audit(
        questions=len(put),
        videos=len({q.video_id for q in put}),
        left_out=dict(Counter(broken.get(q.question_id) or unusable_because(q) for q in others)),
        unusable=tuple(q.question_id for q in others if q.question_id in broken)
        if "broken" in drops
        else (),
        asked=tuple(asked),
        battery=tuple(tried),
        any=ratio(put, replies, asked, clusters),
        figures=tuple(figures(put, replies, asked, clusters, seed=seed)),
        types=tuple(types),
        lengths=tuple(lengths),
        duplicates=tuple(repeated.duplicates),
        overlap=tuple(repeated.overlap),
        shared_videos=tuple(repeated.shared_videos),
        suspects=tuple(suspects),
        items=tuple(items),
    )


def _groups(
    found: Mapping[str, Sequence[Question]],
    replies: Replies,
    asked: Sequence[ConditionRun],
    clusters: Mapping[str, str],
) -> list[AuditGroup]:
    tried = {name: battery(some, replies, asked, clusters) for name, some in found.items()}
    every = [t for some in tried.values() for t in some]
    adjusted = iter(stats.holm([t.over.p for t in every]))
    return [
        AuditGroup(
            name=name,
            questions=len(some),
            battery=tuple(
                replace(t, over=replace(t.over, p_holm=next(adjusted))) for t in tried[name]
            ),
            shortcuts=ratio(some, replies, asked, clusters),
        )
        for name, some in found.items()
    ]


def suspect(
    question: Question, replies: Replies, asked: Sequence[ConditionRun]
) -> SuspectQuestion | None:
    """Whether those who saw what decides it agree against the key."""
    seen = [a for a in asked if a.condition in WATCHED and replies.answered_replies(question, a)]
    best = min((WATCHED.index(a.condition) for a in seen), default=None)
    if best is None:
        return None
    named = {a: replies.steady(question, a) for a in seen}
    nearest = {o for a, o in named.items() if WATCHED.index(a.condition) == best}
    options = {o for o in named.values() if o is not None}
    if len(nearest) != 1 or len(options) != 1 or None in nearest:
        return None
    (option,) = options
    if option == question.answer_index:
        return None
    agreeing = [a for a, o in named.items() if o == option]
    return SuspectQuestion(
        question=question.question_id,
        key=question.options[question.answer_index or 0],
        named=question.options[option],
        models=len({a.answerer for a in agreeing}),
        conditions=tuple(dict.fromkeys(a.condition for a in agreeing)),
    )


def unusable_because(question: Question) -> str:
    """Why a question that is not broken cannot be audited."""
    return "no options to choose from" if len(question.options) < 2 else "no known answer"


Beating = Callable[[Question], set[tuple[str, str]]]
"""The answerers (empty for guessers) and names that beat chance on the dataset or on the question's
type, and should not.
"""


def _beating(tried: Sequence[ConditionResult], types: Sequence[AuditGroup]) -> Beating:
    every = {(t.answerer, t.name) for t in tried if t.alarm}
    by_type = {g.name: {(t.answerer, t.name) for t in g.battery if t.alarm} for g in types}
    return lambda question: every | by_type.get(question.question_type, set())


def _telling(questions: Sequence[Question], beating: Beating) -> dict[str, tuple[str, ...]]:
    """Question id -> the guessers that are surely right on it, of those that beat chance."""
    hits = guessers.hits(questions)
    found: dict[str, tuple[str, ...]] = {}
    for number, q in enumerate(questions):
        good = beating(q)
        found[q.question_id] = tuple(n for n in hits if ("", n) in good and hits[n][number] == 1)
    return found


def _marks(
    suspects: Sequence[SuspectQuestion], repeated: RepeatReport, broken: Collection[str]
) -> dict[str, Collection[str]]:
    """Reason -> the ids of the questions that have it, of the reasons that ask no model."""
    twice = set[str]()
    for pair in repeated.duplicates:  # the first of a family stays
        if pair.other not in twice:
            twice.add(pair.question)
    return {
        "error": {s.question for s in suspects}, "duplicate": twice,
        "overlap": {p.question for p in repeated.overlap}, "broken": broken,
    }  # fmt: skip


def _items(
    questions: Sequence[Question],
    replies: Replies,
    asked: Sequence[ConditionRun],
    telling: Mapping[str, tuple[str, ...]],
    beating: Beating,
    marks: Mapping[str, Collection[str]],
    drops: Collection[str],
) -> list[AuditedQuestion]:
    found: list[AuditedQuestion] = []
    for q in questions:
        put = [a for a in asked if a.condition in SHORTCUTS and replies.answered_replies(q, a)]
        right = [a for a in put if replies.steady(q, a) == q.answer_index]
        above = {a.condition for a in right if (a.answerer, a.condition) in beating(q)}
        fails = [*above, *(name for name, ids in marks.items() if q.question_id in ids)]
        found.append(
            AuditedQuestion(
                question_id=q.question_id,
                score=len(right) / len(put) if put else None,
                shortcuts=tuple(c for c in SHORTCUTS if c in {a.condition for a in right}),
                guessers=telling[q.question_id],
                fails=tuple(f for f in FAILS if f in fails and f in drops),
            )
        )
    return found


def _balanced(
    questions: Sequence[Question],
    items: Sequence[AuditedQuestion],
    telling: Mapping[str, tuple[str, ...]],
    seed: int,
) -> list[AuditedQuestion]:
    """Of what is left, some for which a guesser speaks are left out until it is at chance
    (`mustsee.questions.balance`), of the types in which one is not.
    """
    left = {i.question_id for i in items if not i.fails}
    unfair = {q.question_type for q in questions if telling[q.question_id]}
    chosen = [q for q in questions if q.question_id in left and q.question_type in unfair]
    fallen = {
        q.question_id for q in balance.balance_questions(chosen, seed=seed) if q.drop is not None
    }
    return [
        replace(i, fails=(*i.fails, "balance")) if i.question_id in fallen else i for i in items
    ]


def worst(found: Audit, most: int, seed: int = 0) -> list[AuditedQuestion]:
    """The questions with the most shortcuts, a suspected key counting as one; equals by seed."""

    def rank(item: AuditedQuestion) -> tuple[float, int, float]:
        dice = random.Random(f"{seed}/{item.question_id}/worst").random()
        wrong = "error" in item.fails
        return (-(item.score or 0.0) - wrong, -len(item.guessers), dice)

    telling = [i for i in found.items if i.score or i.guessers or i.fails]
    return sorted(telling, key=rank)[:most]
