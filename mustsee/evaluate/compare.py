"""Compares the models of several evaluations of the same questions: scores with intervals, ranks,
and which ranks differ beyond noise.

All models of a table are scored on the questions that each of them has a score of, so that nobody
gains by leaving hard ones out. Questions by options, and open ones by each grader, have tables of
their own. Models are ranked by their mean. Two of them differ beyond noise where the paired
difference on the same questions, with videos as clusters, has a p-value below 0.05 after Holm's
adjustment over all pairs of the table. From these follow the best and the worst rank that a model
may have: 1 + the number of models that are better beyond noise, and so from below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Any

from mustsee import stats
from mustsee.errors import UserError
from mustsee.evaluate import score
from mustsee.evaluate.answers import NOT_IN_FILE, Answer, answers, grades_of, mean_of
from mustsee.evaluate.open_scores import is_by_points
from mustsee.evaluate.span_replies import parse_spans
from mustsee.evaluate.span_scores import measure_iou
from mustsee.questions.chance import chance_level
from mustsee.records import Question, group_pairs
from mustsee.stats import MAX_P, Difference, Estimate

# Kinds of a measure.
CHOICE, POINTS, RUBRIC, JUDGED, IOU = "choice", "points", "rubric", "judged", "iou"
TIE = 1e-9  # difference of means below which two models share a rank
ALL, MACRO = "all questions", "mean of types"
G_AVG = "G-Avg"  # name of the mean of types by rubrics (MLVU, Tab. 2)
AVERAGE, SPLIT, TYPE, SKILL = "average", "split", "type", "skill"  # groups of columns
FRAMES, WORDS, BLIND, GUESS = "frames", "words", "blind", "guess"  # what a model was shown
FAILED, NO_REPLY, UNGRADED, ABSENT = "call failed", "no reply", "not graded", "not evaluated"


@dataclass(frozen=True, order=True)
class Measure:
    """What a score is: its `kind`, and who graded; empty for options."""

    kind: str
    grader: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelScores:
    """One model's scores in one evaluation. `by_measure`: measure -> question id -> score, 0 to 1
    (by rubrics 2 to 10). `without`: question id -> why it has no score.
    """

    model: str
    by_measure: Mapping[Measure, Mapping[str, float]]
    without: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ComparedEvaluation:
    """An evaluation as far as a comparison needs it.

    `dataset`: its `questions=`. `shown`: what its model was shown: `FRAMES`, `WORDS`, `BLIND`,
    `GUESS`, or "" where it is not known. `frames`: number of evenly spread frames; null where
    frames were chosen in another way, or it is not known.
    `questions`: by id, the kept ones that count one by one, without verdicts. `clusters`: question
    id -> video. `no_key`: number of questions without a public answer, which have no score.
    """

    folder: str
    dataset: str
    shown: str = ""
    frames: int | None = None
    questions: Mapping[str, Question]
    clusters: Mapping[str, str]
    models: tuple[ModelScores, ...]
    no_key: int = 0


@dataclass(frozen=True, kw_only=True)
class PeopleScores:
    """People's answers: question id -> share of right ones, in one setting of one form."""

    name: str
    scores: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class ComparedColumn:
    """A column: the questions of one type, skill or split; `chance`: the expected score of guessing
    among their options.
    """

    group: str
    name: str
    questions: tuple[str, ...]
    chance: float | None


@dataclass(frozen=True, kw_only=True)
class RankedModel:
    """A row of a table.

    `rank`: 1 + the number of models with a higher mean. `best`, `worst`: the ranks that noise
    leaves open. `apart`: whether the difference from the next row is beyond noise; null for the
    last. `estimates`: of each column. `without`: reason -> ids of the questions that are left out
    of the table because this model has no score of them.
    """

    name: str
    folder: str
    shown: str
    frames: int | None
    rank: int
    best: int
    worst: int
    apart: bool | None
    estimates: tuple[Estimate | None, ...]
    without: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two models on the questions of a table, A minus B."""

    a: str
    b: str
    difference: Difference

    @property
    def beyond_noise(self) -> bool:
        """Whether they differ by more than noise (`MAX_P`)."""
        return self.difference.adjusted_p < MAX_P


@dataclass(frozen=True, kw_only=True)
class ComparisonTable:
    """The models on one benchmark by one measure, best first.

    `asked`: number of questions that any of them has a score of; the first of `columns` holds those
    that all have. `people`: name -> estimates; null where they answered none. `absent`: models
    of the benchmark without any score by this measure.
    """

    dataset: str
    measure: Measure
    asked: int
    columns: tuple[ComparedColumn, ...]
    rows: tuple[RankedModel, ...]
    pairs: tuple[Comparison, ...]
    people: Mapping[str, tuple[Estimate | None, ...]]
    absent: tuple[str, ...]
    videos: int
    notes: tuple[str, ...] = ()

    @property
    def common(self) -> int:
        """The number of questions that all models have a score of."""
        return len(self.columns[0].questions)


@dataclass(frozen=True, kw_only=True)
class _Entrant:
    name: str
    evaluation: ComparedEvaluation
    scores: ModelScores


def score_evaluation(
    questions: Iterable[Question], cluster: Mapping[str, str], names: Sequence[str] = ()
) -> dict[str, Any]:
    """Return `questions`, `clusters`, `models` and `no_key` of a `ComparedEvaluation`.

    `cluster`: video id -> cluster. `names`: models that are listed even if all their calls failed.
    """
    kept, clusters, no_key = dict[str, Question](), dict[str, str](), 0
    scores: dict[str, dict[Measure, dict[str, float]]] = {name: {} for name in names}
    without: dict[str, dict[str, str]] = {name: {} for name in names}
    for question in questions:
        if question.drop is not None or question.relation not in score.COUNTED:
            continue
        name = question.question_id
        if question.answer_index is None if question.options else not question.answer:
            no_key += 1
            continue
        kept[name] = replace(question, verdicts=(), repairs=(), trace=None)
        clusters[name] = cluster.get(question.video_id, question.video_id)
        for model, replies in group_pairs((a.model, a) for a in answers(question)).items():
            result = _score_replies(question, model, replies, cluster)
            if isinstance(result, str):
                without.setdefault(model, {})[name] = result
                scores.setdefault(model, {})
            else:
                measure, value = result
                scores.setdefault(model, {}).setdefault(measure, {})[name] = value
    models = [
        ModelScores(model=model, by_measure=by_measure, without=without.get(model, {}))
        for model, by_measure in scores.items()
    ]
    return {"questions": kept, "clusters": clusters, "models": tuple(models), "no_key": no_key}


def _score_replies(
    question: Question, model: str, given: Sequence[Answer], cluster: Mapping[str, str]
) -> tuple[Measure, float] | str:
    """Return the measure and the score of a model's replies to a question, or why there is none."""
    written = [a for a in given if a.failed is None and not a.rule]
    if question.options and not written:
        right = score.score_question(question, given, cluster).right
        return _missing(given) if right is None else (Measure(CHOICE), right)
    if not written:
        return _missing(given)
    if question.asks_when:
        named = [parse_spans(a.reply) for a in written]
        return Measure(IOU), mean_of(
            [measure_iou(spans or (), question.evidence) for spans in named]
        )
    grades = grades_of(question, model)
    if by_points := [g for g in grades if "missed" in g]:
        return _graded(POINTS, by_points, [g["score"] for g in by_points])
    if by_rubric := [g for g in grades if "first" in g]:
        return _graded(RUBRIC, by_rubric, [g["first"] + g["second"] for g in by_rubric])
    judged = [g for g in grades if g["correct"] is not None]
    if not judged or is_by_points(question, model):
        return UNGRADED
    return _graded(JUDGED, judged, [float(g["correct"]) for g in judged])


def _missing(given: Sequence[Answer]) -> str:
    """Return why a model has no reply that counts."""
    return NOT_IN_FILE if any(a.failed == NOT_IN_FILE for a in given) else FAILED


def _graded(
    kind: str, grades: Sequence[Mapping[str, Any]], values: Sequence[float]
) -> tuple[Measure, float]:
    return Measure(kind, ", ".join(dict.fromkeys(g["by"] for g in grades))), mean_of(values)


def compare_models(
    evaluations: Sequence[ComparedEvaluation],
    people: Sequence[PeopleScores] = (),
    *,
    seed: int = 0,
    notes: Sequence[str] = (),
) -> list[ComparisonTable]:
    """Return a table for each measure of one benchmark; none if no model has a score.

    Raises UserError if no question has a score of all models.
    """
    entrants = _name_entrants(evaluations)
    questions: dict[str, Question] = {}
    clusters: dict[str, str] = {}
    for evaluation in reversed(evaluations):  # the labels of the first one count
        questions = {**evaluation.questions, **questions, **evaluation.questions}
        clusters |= evaluation.clusters
    measures = dict.fromkeys(m for e in entrants for m in e.scores.by_measure)
    return [
        _compare_by(measure, entrants, questions, clusters, people, seed=seed, notes=notes)
        for measure in sorted(measures)
    ]


def _name_entrants(evaluations: Sequence[ComparedEvaluation]) -> list[_Entrant]:
    """Return the models, each with the name of its evaluation's folder if several have its name."""
    pairs = [(evaluation, one) for evaluation in evaluations for one in evaluation.models]
    names = [one.model for _, one in pairs]
    return [
        _Entrant(
            name=f"{one.model} ({evaluation.folder})" if names.count(one.model) > 1 else one.model,
            evaluation=evaluation,
            scores=one,
        )
        for evaluation, one in pairs
    ]


def _compare_by(
    measure: Measure,
    everybody: Sequence[_Entrant],
    questions: Mapping[str, Question],
    clusters: Mapping[str, str],
    people: Sequence[PeopleScores],
    *,
    seed: int,
    notes: Sequence[str],
) -> ComparisonTable:
    scores = {e.name: e.scores.by_measure.get(measure, {}) for e in everybody}
    entrants = [e for e in everybody if scores[e.name]]
    asked = [name for name in questions if any(name in scores[e.name] for e in entrants)]
    common = [name for name in asked if all(name in scores[e.name] for e in entrants)]
    if not common:
        counts = ", ".join(f"{e.name} ({len(scores[e.name])})" for e in entrants)
        raise UserError(
            f"no question of {entrants[0].evaluation.dataset!r} has a score of every model: of "
            f"{len(asked)} questions have {counts}; leave one of them out of evaluations="
        )
    columns = _columns([questions[n] for n in common], measure)
    estimates = {
        e.name: _estimates(scores[e.name], columns, questions, clusters, seed) for e in entrants
    }
    means = {name: of[0].value for name, of in estimates.items() if of[0] is not None}
    entrants.sort(key=lambda e: (-means[e.name], e.name))
    pairs = _compare_pairs({e.name: scores[e.name] for e in entrants}, common, clusters)
    return ComparisonTable(
        dataset=entrants[0].evaluation.dataset,
        measure=measure,
        asked=len(asked),
        columns=tuple(columns),
        rows=tuple(_rank(entrants, means, estimates, pairs, asked, scores)),
        pairs=tuple(pairs),
        people={
            p.name: _estimates(p.scores, columns, questions, clusters, seed)
            for p in people
            if measure.kind == CHOICE and not p.scores.keys().isdisjoint(common)
        },
        absent=tuple(e.name for e in everybody if not scores[e.name]),
        videos=len({clusters[n] for n in common}),
        notes=tuple(notes),
    )


def _columns(common: Sequence[Question], measure: Measure) -> list[ComparedColumn]:
    """Return the columns: all questions, averages, splits, types, skills. A group with a single
    value has none, nor has a split that holds all questions.
    """
    members: dict[tuple[str, str], list[Question]] = {}
    for question in common:
        row = score.QuestionScore(question=question, cluster=question.video_id, right=None)
        names = [(SPLIT, name) for name in score.splits(row)]
        names.append((TYPE, question.question_type or score.UNTYPED))
        names += [(SKILL, question.skill)] if question.skill else []
        for key in names:
            members.setdefault(key, []).append(question)

    def column(group: str, name: str, of: Sequence[Question]) -> ComparedColumn:
        chance = chance_level(of) if measure.kind == CHOICE else None
        return ComparedColumn(
            group=group, name=name, questions=tuple(q.question_id for q in of), chance=chance
        )

    parts = [
        column(group, name, of)
        for (group, name), of in sorted(members.items(), key=_place)
        if len(of) < len(common)
    ]
    types = [c for c in parts if c.group == TYPE]
    macro = G_AVG if measure.kind == RUBRIC else MACRO
    averages = [column(AVERAGE, macro, common)] if len(types) > 1 else []
    averages += [
        column(AVERAGE, name, [q for q in common if q.question_type in tasks])
        for name, tasks in score.NAMED.items()
        if set(tasks) <= {c.name for c in types}
    ]
    for n, average in enumerate(averages):
        chances = [c.chance for c in _averaged(average, types) if c.chance is not None]
        averages[n] = replace(average, chance=fmean(chances) if chances else None)
    return [column("", ALL, common), *averages, *parts]


def _place(item: tuple[tuple[str, str], Any]) -> tuple[int, int, str]:
    """Return the place of a column: splits first, among these hard ones."""
    group, name = item[0]
    first = name not in ("hard", "not hard") if group == SPLIT else 0
    return (SPLIT, TYPE, SKILL).index(group), int(first), name


def _averaged(average: ComparedColumn, columns: Sequence[ComparedColumn]) -> list[ComparedColumn]:
    """Return the columns of types that an average is the mean of."""
    tasks = score.NAMED.get(average.name)
    return [c for c in columns if c.group == TYPE and (tasks is None or c.name in tasks)]


def _estimates(
    scores: Mapping[str, float],
    columns: Sequence[ComparedColumn],
    questions: Mapping[str, Question],
    clusters: Mapping[str, str],
    seed: int,
) -> tuple[Estimate | None, ...]:
    """Return the mean of each column; of an average, the mean of its types' means."""

    def estimate(column: ComparedColumn) -> Estimate | None:
        names = [n for n in column.questions if n in scores]
        values, videos = [scores[n] for n in names], [clusters[n] for n in names]
        if not names:
            return None
        if column.group != AVERAGE:
            return stats.mean(values, videos)
        kinds = [questions[n].question_type or score.UNTYPED for n in names]
        if len(set(kinds)) < len(_averaged(column, columns)):  # people answered no such question
            return None
        return stats.macro(values, kinds, videos, seed=seed)

    return tuple(estimate(column) for column in columns)


def _compare_pairs(
    scores: Mapping[str, Mapping[str, float]], common: Sequence[str], clusters: Mapping[str, str]
) -> list[Comparison]:
    """Compare every pair of models on the same questions, with p-values adjusted by Holm."""
    videos = [clusters[n] for n in common]
    values = {name: [of[n] for n in common] for name, of in scores.items()}
    gaps = {
        (a, b): stats.paired_difference(values[a], values[b], videos)
        for a, b in combinations(values, 2)
    }
    return [Comparison(a=a, b=b, difference=gap) for (a, b), gap in stats.adjust(gaps).items()]


def _rank(
    entrants: Sequence[_Entrant],
    means: Mapping[str, float],
    estimates: Mapping[str, tuple[Estimate | None, ...]],
    pairs: Sequence[Comparison],
    asked: Sequence[str],
    scores: Mapping[str, Mapping[str, float]],
) -> Iterable[RankedModel]:
    """Yield the rows of models that are in the order of their means."""
    better: dict[str, set[str]] = {name: set() for name in means}  # those beyond noise
    for pair in (p for p in pairs if p.beyond_noise):
        low, high = (pair.b, pair.a) if pair.difference.value > 0 else (pair.a, pair.b)
        better[low].add(high)
    for place, one in enumerate(entrants):
        following = entrants[place + 1].name if place + 1 < len(entrants) else None
        lacking = group_pairs(
            (_reason(one, name), name) for name in asked if name not in scores[one.name]
        )
        yield RankedModel(
            name=one.name,
            folder=one.evaluation.folder,
            shown=one.evaluation.shown,
            frames=one.evaluation.frames,
            rank=1 + sum(value > means[one.name] + TIE for value in means.values()),
            best=1 + len(better[one.name]),
            worst=len(means) - sum(one.name in others for others in better.values()),
            apart=None if following is None else one.name in better[following],
            estimates=estimates[one.name],
            without={reason: tuple(names) for reason, names in lacking.items()},
        )


def _reason(one: _Entrant, name: str) -> str:
    if name not in one.evaluation.questions:
        return ABSENT
    return one.scores.without.get(name, NO_REPLY)
