"""Why a question did not pass a filter, in the words of the filter's replies, and what the names of
filters, subsets and stages mean.

failure_reasons(question) -> {"blind": "answered right without the video, in 2 of 2 runs: ..."}
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from mustsee.records import Question, Verdict
from mustsee.verify.guess.counts import RIGHT_IN_SET, SEES
from mustsee.verify.repair import SOLVED, explanations, mark_reason

LEARNED = "learned"  # the filter whose finding is a metric of this name, without a verdict
NO_REPLY = "no readable reply"
FILTERS = {
    **{name: f"answered right {sees}" for name, sees in SEES.items()},
    "giveaways": "guessed by form: the longest option, the one most like the others, an echo",
    "match": "answers of its set matched to the questions without the video",
    "match_asr": "answers of its set matched to the questions from the transcript alone",
    "sight": "a look at the video finds another answer, or none",
    "course": "words of a recipe or a tutorial, whose order many know",
    "learned": "answered right by a text model fitted on the other videos",
    "check": "malformed: leaks, repeats, times",
    "duplicate": "repeats another question, on its video or on another one",
    "video": "the video was dropped, or failed after its questions were written",
}
SUBSETS = {"mma": "answered only with the video"}
STAGES = {
    "read": "the list of videos",
    "probe": "length, size and sound",
    "look": "shots, words on the screen, objects",
    "hear": "transcript",
    "caption": "captions of frames",
    "embed": "vectors",
    "ask": "questions",
    "vet": "filters test the questions",
    "decide": "compares all videos",
}


def failure_reasons(question: Question) -> dict[str, str]:
    """Return why the present wording did not pass, by filter, and why it was dropped."""
    reasons = {question.dropped_by: question.drop_reason} if question.drop else {}
    names = (name for name in question.failed_filters if name not in reasons)
    return reasons | {name: _failure_reason(question, name) for name in names}


def undecided_reasons(question: Question) -> dict[str, str]:
    """Return why filters reached no verdict on the present wording, by filter."""
    return {
        name: next(filter(None, map(_unread, _verdicts_by(question, name)[::-1])), NO_REPLY)
        for name in question.unverified_by
    }


def _failure_reason(question: Question, name: str) -> str:
    about = _verdicts_by(question, name)
    if not about:
        reason = FILTERS.get(name, "it does not pass")
        share = question.metrics.get(LEARNED) if name == LEARNED else None
        return reason if share is None else f"{reason}, which is {share:.0%} sure of it"
    if f"{name}{RIGHT_IN_SET}" in question.metrics:
        return f"{FILTERS.get(name, name)}: {about[-1].detail}"
    reason = mark_reason(about)
    if name in SEES and any(verdict.correct is not None for verdict in about):
        reason = f"answered right {SEES[name]}, {reason.removeprefix('right ')}"
    solved = question.faults.get(name, "") in SOLVED
    replies = explanations(about, solved=solved, options=question.options)
    said = next((reply for reply in replies if reply not in reason), "")
    return f"{reason}: {said}" if said else reason


def _verdicts_by(question: Question, name: str) -> Sequence[Verdict]:
    """Return a filter's verdicts on the present wording."""
    return [v for v in question.verdicts[question.earlier_verdicts :] if v.filter == name]


def _unread(verdict: Verdict) -> str:
    """Return why a verdict holds no readable reply; empty if it does not say so."""
    try:
        detail = json.loads(verdict.detail)
    except ValueError:
        return verdict.detail
    return str(detail.get("unread") or "") if isinstance(detail, dict) else verdict.detail


def name_with_meaning(name: str, meanings: dict[str, str]) -> str:
    """Return a name with its meaning in brackets, if it has one."""
    return f"{name} ({meanings[name]})" if name in meanings else name
