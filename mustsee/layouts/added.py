"""Questions that people wrote, put beside the questions of a run on the same videos."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mustsee.errors import UserError
from mustsee.layouts.errata import name_ids
from mustsee.layouts.reading import QuestionFile, answer_of
from mustsee.records import Question, Video
from mustsee.text import printable

PEOPLE = "people"  # recipe of the questions that people wrote
NO_VIDEO, NO_KEY = "the run has no such video", "no known answer"
SLACK_S = 0.5  # that evidence may end after its video, by rounding
NOT_MADE, NOT_WITHIN = "the run has dropped the video", "its evidence is outside the video"


@dataclass(frozen=True, kw_only=True)
class AddedQuestions:
    """`rows`: the videos of a run with its questions and the added ones. `added`: ids of these;
    `left_out`: id of each other question of the file -> why it was not added.
    """

    rows: tuple[Video, ...]
    added: tuple[str, ...]
    left_out: Mapping[str, str]

    def plain(self) -> dict[str, Any]:
        """Return what was added, as written to `run.json`."""
        return {k: v for k, v in asdict(replace(self, rows=())).items() if k != "rows"}

    def lines(self) -> list[str]:
        """Return how many questions were added, and which were not, by reason."""
        lines = [f"{len(self.added)} questions by people added"]
        for reason, count in Counter(self.left_out.values()).items():
            ids = [name for name, why in self.left_out.items() if why == reason]
            lines.append(f"{count} not added, {reason}: {name_ids(ids)}")
        return [printable(line) for line in lines]


def add_questions(
    reading: QuestionFile, videos: Sequence[Video], questions: Sequence[Question]
) -> AddedQuestions:
    """Put the questions of a file beside those of a run. A video is found by its id, or by its
    file's name without suffix. Raises UserError if none can be added, or if one has the id of a
    question of the run.
    """
    ids = {q.question_id for q in questions}
    if taken := [q.question_id for q in reading if q.question_id in ids]:
        raise UserError(
            f"{len(taken)} of the questions have ids of questions of the run: {name_ids(taken)}; "
            "give them others"
        )
    by_name = {v.uri.rsplit("/", 1)[-1].rsplit(".", 1)[0]: v for v in videos if v.uri}
    by_name |= {v.video_id: v for v in videos}
    added: dict[str, Question] = {}
    left_out: dict[str, str] = {}
    for question in reading:
        video = by_name.get(question.video_id)
        reason = reading.unusable_reasons.get(question.question_id) or _reason(question, video)
        if reason or video is None:
            left_out[question.question_id] = reason
        else:
            added[question.question_id] = replace(
                question,
                video_id=video.video_id,
                recipe=PEOPLE,
                answer=answer_of(question),
                verdicts=(),
                metrics={},
                subsets=(),
            )
    if not added:
        reasons = Counter(left_out.values()).most_common()
        listed = ", ".join(f"{reason} ({n})" for reason, n in reasons)
        known = ", ".join(sorted(v.video_id for v in videos)[:3])
        raise UserError(
            f"none of {len(reading)} questions can be added: {listed or 'there are none'}; the "
            f"run has videos such as {known}"
        )
    by_video: dict[str, list[Question]] = {}
    for question in (*questions, *added.values()):
        by_video.setdefault(question.video_id, []).append(question)
    return AddedQuestions(
        rows=tuple(replace(v, questions=tuple(by_video.get(v.video_id, ()))) for v in videos),
        added=tuple(added),
        left_out=left_out,
    )


def _reason(question: Question, video: Video | None) -> str:
    """Return why a question cannot be added; empty if it can."""
    if video is None:
        return NO_VIDEO
    if video.drop is not None or video.problem is not None:
        return NOT_MADE
    if not answer_of(question):
        return NO_KEY
    begin, end = video.start or 0.0, video.end or video.duration or math.inf
    within = all(begin <= span.start <= span.end <= end + SLACK_S for span in question.evidence)
    return "" if within else NOT_WITHIN


def describe_verdicts(questions: Iterable[Question]) -> list[str]:
    """Return what the filters found of the added questions among these."""
    added = [q for q in questions if q.recipe == PEOPLE]
    passed = [q for q in added if not (q.drop or q.failed_filters or q.unverified_by)]
    failed = Counter(name for q in added for name in q.failed_filters)
    unverified = Counter(name for q in added for name in q.unverified_by)
    dropped = sum(q.drop is not None for q in added)
    text = f"questions by people: {len(passed)} of {len(added)} passed every filter"
    text += f"; {dropped} dropped" if dropped else ""
    for what, counts in (("did not pass", failed), ("unverified by", unverified)):
        if counts:
            text += f"; {what} {', '.join(f'{name} ({n})' for name, n in counts.most_common())}"
    return [text]
