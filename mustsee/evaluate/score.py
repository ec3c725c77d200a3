"""From replies to results: every number with its n, its interval, and what was not counted.

A reply that names no option is a wrong answer, and the unparsed rate stands beside; a call that
failed is no answer, and is counted apart. Several replies to one question (rotations) are averaged
first. Intervals take the questions of one video as one cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Any

from mustsee import stats
from mustsee.evaluate import metrics
from mustsee.evaluate.answers import Answer, answers, grades_of, mean_of
from mustsee.evaluate.released import released_scores
from mustsee.evaluate.rubric_scores import Rubric, rubric
from mustsee.evaluate.siblings import GroupScores, Twins, groups, twins
from mustsee.questions.chance import chance_level
from mustsee.records import OPEN, Question, Video
from mustsee.replies.squad import squad_f1
from mustsee.stats import Difference, Estimate
from mustsee.text import LETTERS

UNTYPED = "(no type)"


@dataclass(frozen=True, kw_only=True)
class QuestionScore:
    """One question as one model answered it. `right` is the mean over its replies, 0 to 1; null
    where every call failed. `unparsed`: the share of replies that named no option.
    """

    question: Question
    cluster: Hashable
    right: float | None
    unparsed: float = 0.0
    chosen: float | None = None


@dataclass(frozen=True, kw_only=True)
class ScoreGroup:
    """Accuracy within a group of questions (a type, a split). `chance`: what guessing gets of the
    same questions, null where none was answered.
    """

    accuracy: Estimate | None
    chance: float | None
    asked: int
    failed: int
    unparsed: float


@dataclass(frozen=True, kw_only=True)
class OpenEndedScore:
    """Open-ended answers: the share that the judge holds equivalent, as it stands and corrected
    for the judge's known errors (`note` says why where it is not), and word-overlap measures.
    """

    judged: Estimate | None
    corrected: Estimate | None
    judge: str
    note: str
    f1: Estimate
    rouge_l: Estimate
    cider_d: float | None
    references: str
    asked: int
    failed: int
    ungraded: int


@dataclass(frozen=True, kw_only=True)
class EvaluationResults:
    """One model on one set of questions.

    `weighted`: over all questions; `macro`: the mean of the types. `chance`, `macro_chance`: what
    guessing gets of the same questions, null where none has options. `named`: the papers' averages
    under their names, `named_chance` what guessing gets of them. `released`: accuracy by the
    papers' own scorers. `no_key`: questions without a public answer, answered but not scored.
    `choice`: accuracy by option log-probability, never mixed with the replies. `twins`: of the
    questions that have one. `groups`: of those that have siblings, which count nowhere else.
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
    twins: Twins | None = None
    groups: GroupScores | None = None

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
) -> list[EvaluationResults]:
    """The results of every model that answered any of the questions, and of those in `models` even
    if all their calls failed; dropped questions are left out.

    A question that one model answered and another did not (its video failed) counts as failed for
    the other.
    """
    kept = [q for q in questions if q.drop is None]
    cluster = clusters_of(videos)
    found = {q.question_id: answers(q) for q in kept}
    answerers = dict.fromkeys(a.model for given in found.values() for a in given)
    answerers |= dict.fromkeys(models)
    return [_results(model, kept, found, cluster, seed=seed, draws=draws) for model in answerers]


def _results(
    model: str,
    questions: Sequence[Question],
    found: Mapping[str, Sequence[Answer]],
    cluster: Mapping[str, str],
    *,
    seed: int,
    draws: int,
) -> EvaluationResults:
    mine = {n: [a for a in given if a.model == model] for n, given in found.items()}
    # of an answerer from which options are withheld, failed calls are no failed choices
    withheld = any(_written(a) for q in questions if q.options for a in mine[q.question_id])
    first = [q for q in questions if q.relation in (None, OPEN)]
    closed = [q for q in first if q.options and not withheld]
    keyed = [q for q in closed if q.answer_index is not None]
    rows = [score_question(q, mine[q.question_id], cluster) for q in keyed]
    good = [r for r in rows if r.right is not None]
    replies = [a for given in mine.values() for a in given if a.rule]
    chosen = [r for r in good if r.chosen is not None]
    kinds = [r.question.question_type or UNTYPED for r in good]
    macro = None
    if len(set(kinds)) > 1:
        macro = stats.macro(
            [r.right or 0.0 for r in good], kinds, [r.cluster for r in good],
            draws=draws, seed=seed,
        )  # fmt: skip
    types = _groups(rows, lambda r: [r.question.question_type or UNTYPED])
    free = [q for q in first if withheld or not q.options]
    told = [q for q in free if q.answer]
    return EvaluationResults(
        model=model,
        weighted=_accuracy(good),
        chance=_chance(good),
        macro=macro,
        macro_chance=None if macro is None else fmean(c for _, c in _chances(types)),
        named=_named({t: g.accuracy.value for t, g in types.items() if g.accuracy is not None}),
        named_chance=_named(dict(_chances(types))),
        types=types,
        splits=_groups(rows, splits),
        asked=len(rows),
        failed=len(rows) - len(good),
        no_key=len(closed) - len(keyed) + len(free) - len(told),
        unparsed=mean_of([r.unparsed for r in good]),
        rules=dict(Counter(a.rule.split(",")[-1].strip() for a in replies).most_common()),
        released=released_scores(replies),
        choice=stats.mean([r.chosen or 0.0 for r in chosen], [r.cluster for r in chosen])
        if chosen
        else None,
        written=_written_results(model, told, mine, cluster, seed=seed, draws=draws),
        rubric=rubric(model, free, mine, cluster),
        twins=twins(
            model, {r.question.question_id: r.right or 0.0 for r in good}, questions, cluster
        ),
        groups=None if withheld else groups(_by_turn(mine), questions, cluster),
    )


def _by_turn(mine: Mapping[str, Sequence[Answer]]) -> dict[str, dict[int, bool]]:
    """Question id -> rotation -> whether the reply is right; failed calls are none."""
    return {
        name: {a.rotation: a.correct is True for a in given if a.failed is None}
        for name, given in mine.items()
    }


def _written(answer: Answer) -> bool:
    return answer.failed is None and not answer.rule


def score_question(
    question: Question, given: Sequence[Answer], cluster: Mapping[str, str]
) -> QuestionScore:
    """One question's replies as one number."""
    came = [a for a in given if a.failed is None]
    chosen = [a for a in came if a.choice is not None]
    key = None if question.answer_index is None else LETTERS[question.answer_index]
    return QuestionScore(
        question=question,
        cluster=cluster.get(question.video_id, question.video_id),
        right=mean_of([float(a.correct is True) for a in came]) if came else None,
        unparsed=mean_of([float(a.letter is None) for a in came]),
        chosen=mean_of([float(a.choice == key) for a in chosen]) if chosen else None,
    )


def splits(row: QuestionScore) -> list[str]:
    """The splits that a question is in: the hard one, and whether it relies on vision."""
    known, found = row.question.metrics, list[str]()
    hard = known.get("hardness", 1.0 if "hard" in row.question.subsets else None)
    if hard is not None:
        found.append("hard" if hard >= 0.5 else "not hard")
    if (relies := known.get("vision_reliance")) is not None:
        found.append("vision-reliant" if relies >= 0.5 else "not vision-reliant")
    return [*found, *(f"subset {s}" for s in row.question.subsets if s != "hard")]


def _groups(
    rows: Sequence[QuestionScore], names: Callable[[QuestionScore], list[str]]
) -> dict[str, ScoreGroup]:
    members: dict[str, list[QuestionScore]] = {}
    for row in rows:
        for name in names(row):
            members.setdefault(name, []).append(row)
    found: dict[str, ScoreGroup] = {}
    for name, group in sorted(members.items()):
        good = [r for r in group if r.right is not None]
        found[name] = ScoreGroup(
            accuracy=_accuracy(good),
            chance=_chance(good),
            asked=len(group),
            failed=len(group) - len(good),
            unparsed=mean_of([r.unparsed for r in good]),
        )
    return found


def _accuracy(rows: Sequence[QuestionScore]) -> Estimate | None:
    if not rows:
        return None
    return stats.mean([r.right or 0.0 for r in rows], [r.cluster for r in rows])


def _chance(rows: Sequence[QuestionScore]) -> float | None:
    return chance_level(row.question for row in rows)


def _chances(types: Mapping[str, ScoreGroup]) -> list[tuple[str, float]]:
    return [(name, group.chance) for name, group in types.items() if group.chance is not None]


def _named(means: Mapping[str, float]) -> dict[str, float]:
    """M-Avg over 7 and 9 tasks (MLVU), where all of their tasks are there. `means`: by type."""
    wanted = {"M-Avg (7 tasks)": metrics.MLVU_7, "M-Avg (9 tasks)": metrics.MLVU_9}
    return {n: metrics.macro(means, t) for n, t in wanted.items() if set(t) <= set(means)}


def _written_results(
    model: str,
    questions: Sequence[Question],
    mine: Mapping[str, Sequence[Answer]],
    cluster: Mapping[str, str],
    *,
    seed: int,
    draws: int,
) -> OpenEndedScore | None:
    graded = [q for q in questions if q.question_type not in metrics.MLVU_WRITTEN or q.options]
    came = [(q, a) for q in graded for a in mine[q.question_id] if _written(a)]
    if not came:
        return None
    where = [cluster.get(q.video_id, q.video_id) for q, _ in came]
    judged = [(q, g) for q in graded for g in grades_of(q, model) if g["correct"] is not None]
    places = [cluster.get(q.video_id, q.video_id) for q, _ in judged]
    verdicts = [bool(g["correct"]) for _, g in judged]
    corrected, note = None, "no verdicts" if not judged else ""
    if judged:
        corrected, note = _corrected(verdicts, judged[0][1], places, seed=seed, draws=draws)
    pairs = [(a.reply, q.answer) for q, a in came]
    cider = (
        metrics.cider_d([c for c, _ in pairs], [[r] for _, r in pairs]) if len(came) > 1 else None
    )
    return OpenEndedScore(
        judged=stats.mean([float(v) for v in verdicts], places) if judged else None,
        corrected=corrected,
        judge=judged[0][1]["by"] if judged else "",
        note=note,
        f1=stats.mean([squad_f1(c, r) for c, r in pairs], where),
        rouge_l=stats.mean([metrics.rouge_l(c, r) for c, r in pairs], where),
        cider_d=cider.score if cider else None,
        references=cider.references if cider else "",
        asked=len(graded),
        failed=len(graded) - len({q.question_id for q, _ in came}),
        ungraded=len(came) - len(judged),
    )


def _corrected(
    verdicts: Sequence[bool],
    grade: Mapping[str, Any],
    clusters: Sequence[str],
    *,
    seed: int,
    draws: int,
) -> tuple[Estimate | None, str]:
    """Rogan-Gladen from the judge's record (sensitivity, specificity, how many of each class)."""
    known: Sequence[Any] = grade.get("judge") or ()
    if len(known) != 4 or None in known or not known[2]:
        return None, "the judge's sensitivity and specificity are not known"
    sens, spec, positive, negative = (float(k) for k in known)
    hits, passes = round(sens * positive), round((1 - spec) * negative)
    sample = stats.JudgeSample(
        labels=[True] * int(positive) + [False] * int(negative),
        verdicts=[i < hits for i in range(int(positive))]
        + [i < passes for i in range(int(negative))],
    )
    try:
        return stats.rogan_gladen(verdicts, sample, clusters, draws=draws, seed=seed), ""
    except ValueError as error:
        return None, str(error)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two models on the questions that both answered. `permutation`: p by signs of clusters;
    `mcnemar`: exact, where each question is its own cluster.
    """

    a: str
    b: str
    difference: Difference
    permutation: float
    mcnemar: float | None


def compare(
    questions: Sequence[Question], videos: Iterable[Video] = (), *, seed: int = 0
) -> list[Comparison]:
    """Every pair of models, paired by question, with p-values adjusted by Holm over all pairs."""
    cluster = clusters_of(videos)
    kept = [q for q in questions if q.drop is None and q.options and q.answer_index is not None
            and q.sibling_of is None]  # fmt: skip
    table: dict[str, dict[str, QuestionScore]] = {}
    for question in kept:
        given = answers(question)
        for model in dict.fromkeys(a.model for a in given):
            row = score_question(question, [a for a in given if a.model == model], cluster)
            if row.right is not None and any(a.rule for a in given if a.model == model):
                table.setdefault(model, {})[question.question_id] = row
    found: list[Comparison] = []
    for a, b in combinations(table, 2):
        both = [n for n in table[a] if n in table[b]]
        if not both:
            continue
        left = [table[a][n].right or 0.0 for n in both]
        right = [table[b][n].right or 0.0 for n in both]
        where = [table[a][n].cluster for n in both]
        single = len(set(where)) == len(where) and {*left, *right} <= {0.0, 1.0}
        found.append(
            Comparison(
                a=a,
                b=b,
                difference=stats.paired_difference(left, right, where),
                permutation=stats.sign_permutation(left, right, where, seed=seed),
                mcnemar=stats.mcnemar(left, right) if single else None,
            )
        )
    adjusted = stats.holm([c.difference.p for c in found])
    return [
        replace(c, difference=replace(c.difference, p_holm=p))
        for c, p in zip(found, adjusted, strict=True)
    ]
