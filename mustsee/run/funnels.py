"""What became of the facts and the questions of a run, by video and by form of question."""

from __future__ import annotations

from collections import Counter

from mustsee.questions.fact_funnel import (
    FactFunnel,
    FormFunnel,
    RunFunnel,
    funnel_of_video,
    sum_missing,
    sum_requests,
)
from mustsee.records import MissingQuestions, RequestCount
from mustsee.run.tables import MAX_NAMED_VIDEOS, Tables


def count_funnels(tables: Tables, subset: str | None, *, by_rules: bool) -> RunFunnel:
    """Count facts and questions. `subset`: of the questions that pass every filter; None: all that
    no filter drops. `by_rules`: whether rules listed the facts.
    """
    passed, passed_by_form, written = Counter[str](), Counter[str](), Counter[str]()
    for question in tables.questions("drop", "subsets", "form", "sibling_of"):
        written[question.video_id] += question.skill is not None
        if question.drop is not None or question.sibling_of is not None:
            continue
        if subset is None or subset in question.subsets:
            passed[question.video_id] += 1
            passed_by_form[question.form or ""] += 1
    total, videos = None, dict[str, FactFunnel]()
    forms = dict[str, Counter[str]]()
    requests, incomplete = list[RequestCount](), 0
    missing = list[MissingQuestions]()
    for video in tables.videos(
        "facts", "listed", "claims", "forms", "missing", "requests", "duration", "start", "end"
    ):
        requests = sum_requests((*requests, *video.requests))
        missing = sum_missing((*missing, *(video.missing or ())))
        incomplete += any(count.unread for count in video.requests)
        if video.forms is None:
            continue
        funnel = funnel_of_video(video, passed[video.video_id], written[video.video_id])
        total = funnel + (total or FactFunnel())
        if len(videos) < MAX_NAMED_VIDEOS:
            videos[video.video_id] = funnel
        for form in video.forms:
            numbers = {name: n for name, n in vars(form).items() if name != "form"}
            forms.setdefault(form.form, Counter()).update(numbers)
    return RunFunnel(
        total=total,
        videos=videos,
        forms={
            name: FormFunnel(**numbers, passed=passed_by_form[name])
            for name, numbers in sorted(forms.items())
        },
        requests=requests,
        incomplete=incomplete,
        by_rules=by_rules,
        missing=missing,
    )
