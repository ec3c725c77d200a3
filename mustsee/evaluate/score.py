"""Scores replies: every number has its n, its interval, and the count of what was left out.

A reply that names no option is a wrong answer, and counts in the unparsed rate. A failed call is
not an answer, and is counted separately. Several replies to one question (rotations) are averaged
first. Intervals take the questions of one video as one cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from types import MappingProxyType
from typing import Any

from mustsee import stats
from mustsee.evaluate import open_scores
from mustsee.evaluate.answers import NOT_IN_FILE, Answer, ModelAnswers, answers, mean_of, order
from mustsee.evaluate.open_metrics import DEFAULT_METRICS, OpenMetric, reference_hash
from mustsee.evaluate.open_scores import SCALES, PointScores, Rubric
from mustsee.evaluate.scorers.official import MLVU_7, MLVU_9, RULES
from mustsee.evaluate.siblings import GroupScores, Twins, groups_by_kind, score_groups, twins
from mustsee.evaluate.span_scores import EvidenceScores, SpanScores, score_evidence, score_when
from mustsee.questions.chance import chance_level
from mustsee.records import OPEN, PAIR, SET, Question, Video, group_pairs
from mustsee.stats import Estimate
from mustsee.text import LETTERS

UNTYPED = "(no type)"
COUNTED = (None, OPEN, SET, PAIR)  # relations of questions that count one by one
NAMED = {"M-Avg (7 tasks)": MLVU_7, "M-Avg (9 tasks)": MLVU_9}  # means of types


@dataclass(frozen=True, kw_only=True)
class QuestionScore:
    """One model's replies to one question.

    `right`: the mean over the replies, 0 to 1; null where every call failed. `unparsed`: the share
    of replies that named no option. `chosen`: the share of rotations in which the option of
    highest log-probability is right; null without log-probabilities.
    """

    question: Question
    cluster: Hashable
    right: float | None
    unparsed: float = 0.0
    chosen: float | None = None


@dataclass(frozen=True, kw_only=True)
class ScoreGroup:
    """Accuracy within a group of questions (a type, a split). `chance`: the expected accuracy of
    guessing on the same questions; null where none was answered.
    """

    accuracy: Estimate | None
    chance: float | None
    asked: int
    failed: int
    unparsed: float


@dataclass(frozen=True, kw_only=True)
class OpenEndedScore:
    """The scores of one model's open-ended answers.

    `judged`: the share that the judge holds equivalent to the reference. `corrected`: the same,
    corrected for the judge's known errors; `note` says why where it is null. `metrics`: by name,
    the mean of each metric; null where it has no value. `references`: hash of the references,
    without which a metric of the whole corpus (CIDEr-D) cannot be compared.
    """

    judged: Estimate | None
    corrected: Estimate | None
    judge: str
    note: str
    metrics: Mapping[str, Estimate | None]
    references: str
    asked: int
    failed: int
    ungraded: int


@dataclass(frozen=True, kw_only=True)
class EvaluationResults:
    """One model on one set of questions.

    `weighted`: accuracy over all questions. `macro`: the mean of the types. `chance`,
    `macro_chance`: the same of guessing; null where no question has options. `named`,
    `named_chance`: the papers' averages under their names, and the same of guessing. `released`:
    accuracy by the papers' own scorers. `no_key`: questions without a public answer, answered but
    not scored. `choice`: accuracy by option log-probability, never mixed with the replies.
    `sets`: scores of sets that share their options. `pairs`: of pairs with opposite answers.
    `twins`: scores of questions that are also asked without their options. `groups`: scores of
    groups of siblings, which count nowhere else. `choice_metrics`: by name, the mean of each metric
    of the raw replies to multiple choice, against the text of the right option (CinePile, 5).
    `by_points`: of answers to open questions with points. `when`: of the spans that answer when
    something is seen. `with_evidence`: of answers that name their evidence.
    `not_in_file`: those of `failed` that a file of replies does not have.
    """

    model: str
    weighted: Estimate | None
    chance: float | None
    macro: Estimate | None
    macro_chance: float | None
    named: Mapping[str, float]
    named_chance: Mapping[str, float]
    types: Mapping[str, ScoreGroup]
    splits: Mapping[str, ScoreGroup]
    asked: int
    failed: int
    no_key: int
    unparsed: float
    rules: Mapping[str, int]
    released: Mapping[str, float]
    choice: Estimate | None = None
    written: OpenEndedScore | None = None
    rubric: Rubric | None = None
    by_points: PointScores | None = None
    when: SpanScores | None = None
    with_evidence: EvidenceScores | None = None
    sets: GroupScores | None = None
    pairs: GroupScores | None = None
    twins: Twins | None = None
    groups: GroupScores | None = None
    choice_metrics: Mapping[str, Estimate | None] = field(default_factory=dict[str, Any])
    not_in_file: int = 0

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def clusters_of(videos: Iterable[Video]) -> dict[str, str]:
    """Video id -> cluster: the video that a clip was cut from, else the video itself."""
    return {v.video_id: v.source or v.video_id for v in videos}


def score(
    questions: Sequence[Question],
    videos: Iterable[Video] = (),
    *,
    models: Sequence[str] = (),
    seed: int = 0,
    draws: int = 2000,
    open_metrics: Mapping[str, OpenMetric] = DEFAULT_METRICS,
    choice_metrics: Mapping[str, OpenMetric] = MappingProxyType({}),
) -> list[EvaluationResults]:
    """Return the results of every model that answered any of the questions, and of each in
    `models` even if all its calls failed. Dropped questions are left out.

    A question that one model answered and another did not (its video failed) counts as failed for
    the other. `open_metrics`: by name, the metrics of open-ended answers;
    `choice_metrics`: those of the raw replies to multiple choice.
    """
    kept = [q for q in questions if q.drop is None]
    cluster = clusters_of(videos)
    replies = {q.question_id: answers(q) for q in kept}
    answerers = dict.fromkeys(a.model for given in replies.values() for a in given)
    answerers |= dict.fromkeys(models)
    return [
        _results(
            kept,
            ModelAnswers(
                model=model, clusters=cluster, seed=seed, draws=draws,
                by_question={n: [a for a in r if a.model == model] for n, r in replies.items()},
            ),
            open_metrics,
            choice_metrics,
        )
        for model in answerers
    ]  # fmt: skip


def _results(
    questions: Sequence[Question],
    mine: ModelAnswers,
    open_metrics: Mapping[str, OpenMetric],
    choice_metrics: Mapping[str, OpenMetric],
) -> EvaluationResults:
    # Where options are withheld from the answerer, a failed call is a failed open-ended answer.
    withheld = any(_is_open(a) for q in questions if q.options for a in mine.answers_to(q))
    first = [q for q in questions if q.relation in COUNTED]
    closed = [q for q in first if q.options and not withheld]
    keyed = [q for q in closed if q.answer_index is not None]
    rows = [score_question(q, mine.answers_to(q), mine.clusters) for q in keyed]
    good = [r for r in rows if r.right is not None]
    parsed = [a for q in questions for a in mine.answers_to(q) if a.rule]
    chosen = [r for r in good if r.chosen is not None]
    kinds = [r.question.question_type or UNTYPED for r in good]
    macro = None
    if len(set(kinds)) > 1:
        macro = stats.macro(
            [r.right or 0.0 for r in good], kinds, [r.cluster for r in good],
            draws=mine.draws, seed=mine.seed,
        )  # fmt: skip
    types = _groups(rows, lambda r: [r.question.question_type or UNTYPED])
    open_ended = [q for q in first if (withheld or not q.options) and not q.asks_when]
    together = {
        kind: score_groups(groups, mine)
        for kind, groups in groups_by_kind(questions).items()
        if not withheld
    }
    with_reference = [q for q in open_ended if q.answer]
    return EvaluationResults(
        model=mine.model,
        weighted=accuracy(good),
        chance=_chance(good),
        macro=macro,
        macro_chance=None if macro is None else fmean(c for _, c in _chances(types)),
        named=average_tasks(
            {t: g.accuracy.value for t, g in types.items() if g.accuracy is not None}
        ),
        named_chance=average_tasks(dict(_chances(types))),
        types=types,
        splits=_groups(rows, splits),
        asked=len(rows),
        failed=len(rows) - len(good),
        not_in_file=sum(
            r.right is None and any(a.failed == NOT_IN_FILE for a in mine.answers_to(r.question))
            for r in rows
        ),
        no_key=len(closed) - len(keyed) + len(open_ended) - len(with_reference),
        unparsed=mean_of([r.unparsed for r in good]),
        rules=dict(Counter(a.rule.split(",")[-1].strip() for a in parsed).most_common()),
        released=released_scores(parsed),
        choice=stats.mean([r.chosen or 0.0 for r in chosen], [r.cluster for r in chosen])
        if chosen
        else None,
        written=_open_ended_score(
            [q for q in with_reference if not open_scores.is_by_points(q, mine.model)],
            mine,
            open_metrics,
        ),
        rubric=open_scores.rubric(open_ended, mine),
        by_points=open_scores.score_points(open_ended, mine),
        when=score_when(first, mine),
        with_evidence=score_evidence(closed, mine),
        twins=twins({r.question.question_id: r.right or 0.0 for r in good}, questions, mine),
        sets=together.get(SET),
        pairs=together.get(PAIR),
        groups=together.get(None),
        choice_metrics=_choice_metrics(keyed, mine, choice_metrics),
    )


def _choice_metrics(
    questions: Sequence[Question], mine: ModelAnswers, choice_metrics: Mapping[str, OpenMetric]
) -> dict[str, Estimate | None]:
    """The mean of each metric of the replies, against the text of the right option."""
    replies = [(a, q.options[q.answer_index or 0]) for q in questions for a in mine.replies(q)]
    return _mean_metrics(replies, mine, choice_metrics) if replies else {}


def _mean_metrics(
    replies: Sequence[tuple[Answer, str]], mine: ModelAnswers, metrics: Mapping[str, OpenMetric]
) -> dict[str, Estimate | None]:
    """The mean of each metric of replies, each with its reference; None where it has no value."""
    texts, references = [a.reply for a, _ in replies], [reference for _, reference in replies]
    means: dict[str, Estimate | None] = {}
    for name, metric in metrics.items():
        try:
            means[name] = mine.mean(metric(texts, references), [a.question for a, _ in replies])
        except ValueError:  # the metric has no value for these answers
            means[name] = None
    return means


def _is_open(answer: Answer) -> bool:
    """Whether it is an answer to an open-ended question: it was read by no rule for options."""
    return answer.failed is None and not answer.rule


def score_question(
    question: Question, given: Sequence[Answer], cluster: Mapping[str, str]
) -> QuestionScore:
    """Return the score of one model's replies to one question."""
    replies = [a for a in given if a.failed is None]
    chosen = [a for a in replies if a.choice is not None]
    key = None if question.answer_index is None else LETTERS[question.answer_index]
    return QuestionScore(
        question=question,
        cluster=cluster.get(question.video_id, question.video_id),
        right=mean_of([float(a.correct is True) for a in replies]) if replies else None,
        unparsed=mean_of([float(a.letter is None) for a in replies]),
        chosen=mean_of([float(a.choice == key) for a in chosen]) if chosen else None,
    )


def splits(row: QuestionScore) -> list[str]:
    """Return the splits of a question: hard or not, vision-reliant or not, its subsets and form."""
    values, names = row.question.metrics, list[str]()
    hard = values.get("hardness", 1.0 if "hard" in row.question.subsets else None)
    if hard is not None:
        names.append("hard" if hard >= 0.5 else "not hard")
    if (relies := values.get("vision_reliance")) is not None:
        names.append("vision-reliant" if relies >= 0.5 else "not vision-reliant")
    names += [f"subset {s}" for s in row.question.subsets if s != "hard"]
    return [*names, *([f"form {row.question.form}"] if row.question.form else [])]


def _groups(
    rows: Sequence[QuestionScore], names: Callable[[QuestionScore], list[str]]
) -> dict[str, ScoreGroup]:
    members = group_pairs((name, row) for row in rows for name in names(row))
    by_name: dict[str, ScoreGroup] = {}
    for name, group in sorted(members.items()):
        good = [r for r in group if r.right is not None]
        by_name[name] = ScoreGroup(
            accuracy=accuracy(good),
            chance=_chance(good),
            asked=len(group),
            failed=len(group) - len(good),
            unparsed=mean_of([r.unparsed for r in good]),
        )
    return by_name


def accuracy(rows: Sequence[QuestionScore]) -> Estimate | None:
    """Return the mean of questions with replies; None without any."""
    if not rows:
        return None
    return stats.mean([r.right or 0.0 for r in rows], [r.cluster for r in rows])


def _chance(rows: Sequence[QuestionScore]) -> float | None:
    return chance_level(row.question for row in rows)


def _chances(types: Mapping[str, ScoreGroup]) -> list[tuple[str, float]]:
    return [(name, group.chance) for name, group in types.items() if group.chance is not None]


def average_tasks(means: Mapping[str, float]) -> dict[str, float]:
    """Return MLVU's M-Avg over 7 and over 9 tasks, each if all its tasks are there, from the means
    of the types.
    """
    return {n: fmean(means[task] for task in t) for n, t in NAMED.items() if set(t) <= set(means)}


def _open_ended_score(
    questions: Sequence[Question], mine: ModelAnswers, open_metrics: Mapping[str, OpenMetric]
) -> OpenEndedScore | None:
    graded = [q for q in questions if q.question_type not in SCALES or q.options]
    replies = [(a, q.answer) for q in graded for a in mine.answers_to(q) if _is_open(a)]
    if not replies:
        return None
    judged = [(q, g) for q in graded for g in mine.grades(q, "correct")]
    verdicts, places = [bool(g["correct"]) for _, g in judged], mine.places(q for q, _ in judged)
    corrected, note = None, "no verdicts" if not judged else ""
    if judged:
        corrected, note = _corrected(verdicts, judged[0][1], places, mine)
    return OpenEndedScore(
        judged=stats.mean([float(v) for v in verdicts], places) if judged else None,
        corrected=corrected,
        judge=judged[0][1]["by"] if judged else "",
        note=note,
        metrics=_mean_metrics(replies, mine, open_metrics),
        references=reference_hash([[reference] for _, reference in replies]),
        asked=len(graded),
        failed=len(graded) - len({a.question.question_id for a, _ in replies}),
        ungraded=len(replies) - len(judged),
    )


def _corrected(
    verdicts: Sequence[bool], grade: Mapping[str, Any], places: Sequence[str], mine: ModelAnswers
) -> tuple[Estimate | None, str]:
    """Rogan-Gladen's estimate from the judge's record: sensitivity, specificity, and the number of
    items of each class that these were measured on. Returns it, or None and the reason.
    """
    judge_record: Sequence[Any] = grade.get("judge") or ()
    if len(judge_record) != 4 or None in judge_record or not judge_record[2]:
        return None, "the judge's sensitivity and specificity are not known"
    sens, spec, positive, negative = (float(k) for k in judge_record)
    hits, passes = round(sens * positive), round((1 - spec) * negative)
    sample = stats.JudgeSample(
        labels=[True] * int(positive) + [False] * int(negative),
        verdicts=[i < hits for i in range(int(positive))]
        + [i < passes for i in range(int(negative))],
    )
    try:
        estimate = stats.rogan_gladen(verdicts, sample, places, draws=mine.draws, seed=mine.seed)
        return estimate, ""
    except ValueError as error:
        return None, str(error)


RELEASED_SCORERS = {"cinepile": "CinePile", "mlvu": "MLVU"}  # names of papers by recipe


def released_scores(replies: Iterable[Answer]) -> dict[str, float]:
    """Return scorer -> the share of the replies to its recipe's questions that it counts as right.

    `replies`: to multiple-choice questions; questions without a public answer are left out.
    """
    points: dict[str, list[float]] = {}
    for answer in replies:
        question = answer.question
        if question.answer_index is None or question.recipe not in RELEASED_SCORERS:
            continue
        place = order(len(question.options), answer.rotation).index(question.answer_index)
        reading = RULES[question.recipe].read(answer.reply, answer.options, place)
        points.setdefault(RELEASED_SCORERS[question.recipe], []).append(reading.points or 0.0)
    return {name: sum(values) / len(values) for name, values in points.items()}
