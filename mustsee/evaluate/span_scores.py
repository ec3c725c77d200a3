"""Scores of spans that models name: when something is seen, and where the evidence of an answer is.

IoU: the seconds that the named spans and the right ones share, as a share of those of either. R@T:
the share of questions with an IoU of T or more; mIoU: its mean. An unreadable reply has an IoU of
0, and is counted; a failed call is no answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mustsee.evaluate.answers import ModelAnswers, mean_of
from mustsee.evaluate.span_replies import parse_spans, split_evidence
from mustsee.questions.drafts import needed_seconds
from mustsee.records import Question, Span
from mustsee.stats import Estimate
from mustsee.verify.conditions.seen import common, merge_spans

THRESHOLDS = (0.3, 0.5, 0.7)
EVIDENCE_IOU = 0.3  # an answer with at least this overlap counts as given with its evidence
_ANY_TIME = Span(0.0, 1e9)  # longer than any video, so that no span is clipped


@dataclass(frozen=True, kw_only=True)
class SpanScores:
    """The scores of one model's spans, 0 to 1.

    `recall`: by threshold ("0.3"), the share of questions with such an IoU. `mean_iou`: over the
    questions. `asked`: questions; `failed`: of these, without a reply. `replies`; `unread`: of
    these, not readable as spans.
    """

    recall: Mapping[str, Estimate]
    mean_iou: Estimate | None
    asked: int
    failed: int
    replies: int
    unread: int


@dataclass(frozen=True, kw_only=True)
class EvidenceScores:
    """Answers that name their evidence, to questions with options and known evidence.

    `right`: the share that chooses the right option; `with_evidence`: the share that also names
    spans with an IoU of `EVIDENCE_IOU` or more. `spans`: the spans alone.
    """

    right: Estimate
    with_evidence: Estimate
    spans: SpanScores


def measure_iou(named: Sequence[Span], right: Sequence[Span]) -> float:
    """Return how well spans agree, 0 to 1; what overlaps within one of them counts once."""
    one, other = merge_spans(named, _ANY_TIME), merge_spans(right, _ANY_TIME)
    shared = sum(span.seconds for span in common(one, other))
    either = needed_seconds((*one, *other))
    return shared / either if either else 0.0


def score_when(questions: Sequence[Question], mine: ModelAnswers) -> SpanScores | None:
    """Return the scores of a model's answers to questions that ask when; None if it was asked
    none.
    """
    asked = [q for q in questions if q.asks_when]
    named = {q.question_id: [parse_spans(a.reply) for a in mine.replies(q)] for q in asked}
    return _score_spans(asked, named, mine) if any(map(mine.answers_to, asked)) else None


def score_evidence(questions: Sequence[Question], mine: ModelAnswers) -> EvidenceScores | None:
    """Return the scores of answers with evidence; None if no reply names any. A reply without the
    line has no evidence, which counts as unreadable.
    """
    asked = [q for q in questions if q.options and q.evidence and q.answer_index is not None]
    given = {
        q.question_id: [(a.correct is True, split_evidence(a.reply)) for a in mine.replies(q)]
        for q in asked
    }
    if not any(found for replies in given.values() for _, found in replies):
        return None
    named = {name: [found and found[1] for _, found in each] for name, each in given.items()}
    good = [q for q in asked if given[q.question_id]]
    right, both = list[float](), list[float]()
    for q in good:
        hits = [float(is_right) for is_right, _ in given[q.question_id]]
        near = [measure_iou(s or (), q.evidence) >= EVIDENCE_IOU for s in named[q.question_id]]
        right.append(mean_of(hits))
        both.append(mean_of([hit * is_near for hit, is_near in zip(hits, near, strict=True)]))
    return EvidenceScores(
        right=mine.mean(right, good),
        with_evidence=mine.mean(both, good),
        spans=_score_spans(asked, named, mine),
    )


def _score_spans(
    asked: Sequence[Question],
    named: Mapping[str, Sequence[Sequence[Span] | None]],
    mine: ModelAnswers,
) -> SpanScores:
    good = [q for q in asked if named[q.question_id]]
    ious = [[measure_iou(spans or (), q.evidence) for spans in named[q.question_id]] for q in good]
    replies = [spans for each in named.values() for spans in each]
    return SpanScores(
        recall={
            str(t): mine.mean([mean_of([float(i >= t) for i in each]) for each in ious], good)
            for t in (THRESHOLDS if good else ())
        },
        mean_iou=mine.mean([mean_of(each) for each in ious], good) if good else None,
        asked=len(asked),
        failed=len(asked) - len(good),
        replies=len(replies),
        unread=sum(spans is None for spans in replies),
    )
