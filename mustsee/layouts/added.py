"""Questions that people wrote or changed, put beside the questions of a run on the same videos.

A question counts as edited if people changed its words (`words_of`) since filters tried it: by a
tick, by votes, or in a copy of the run's table. What it was before stands in its `repairs`.
"""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mustsee.errors import UserError
from mustsee.layouts.errata import name_ids
from mustsee.layouts.reading import QuestionFile, answer_of
from mustsee.layouts.ticks import BY_HAND, edit_by_hand, words_of
from mustsee.media.video_names import SEVERAL, VideoNames
from mustsee.records import Question, Span, Video, group_pairs
from mustsee.text import printable
from mustsee.verify.reasons import failure_reasons, undecided_reasons

PEOPLE = "people"  # recipe of the questions that people wrote
OWN = "ours"  # layout in which a row with the id of a question of the run is that question
VOTES = "people_"  # begins the names under which raters' votes change and judge questions
LASTING = ("reach_seconds", "apart_seconds")  # metrics of the evidence, whatever the words
NO_VIDEO, NO_KEY = "the run has no such video", "no known answer"
VERDICTS = "added.csv"  # file with the verdicts on questions that were added or edited
PASSED = "passed"  # result of a question that passed every filter
MAX_NAMED = 20  # questions of a kind whose failures are printed
SLACK_S = 0.5  # seconds by which evidence may end after its video, by rounding
NOT_MADE, NOT_WITHIN = "the run has dropped the video", "its evidence is outside the video"
MOVED = "in the run it is on another video"
NO_FILTER = (
    "edited questions are open or ask when: no filter tests these, whose exams were on the "
    "earlier words; they are in the subset full only"
)


@dataclass(frozen=True, kw_only=True)
class AddedQuestions:
    """`rows`: the videos of a run with its questions and the added ones. `added`: ids of these;
    `edited`: ids of the run's questions with other words, to be tested again; `untested`: of those
    that no filter tests. `left_out`: id of each other question of the file -> why it is not used;
    `unmatched`: of those whose video was not found, what the file calls this video;
    `not_taken`: ids whose row of the file differs from the run in `drop` alone.
    """

    rows: tuple[Video, ...]
    added: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    unmatched: Mapping[str, str] = field(default_factory=dict[str, str])
    not_taken: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return what was added and edited, as written to `run.json`."""
        return {k: v for k, v in asdict(replace(self, rows=())).items() if k != "rows"}

    def lines(self) -> list[str]:
        """Return how many questions were added and edited, and which were not, by reason."""
        lines = [f"{len(self.added)} questions by people added"] if self.added else []
        if self.edited:
            lines.append(f"{len(self.edited)} edited, tested again: {name_ids(self.edited)}")
        if self.untested:
            lines.append(f"{len(self.untested)} {NO_FILTER}: {name_ids(self.untested)}")
        for reason, count in Counter(self.left_out.values()).items():
            ids = [
                f"{name} ({self.unmatched[name]})" if name in self.unmatched else name
                for name, why in self.left_out.items()
                if why == reason
            ]
            lines.append(f"{count} not added, {reason}: {name_ids(ids)}")
        if self.not_taken:
            lines.append(
                f"{len(self.not_taken)} differ from the run in drop alone, which is not read from "
                f"a table (Keep and Drop of the served report set it): {name_ids(self.not_taken)}"
            )
        return [printable(line) for line in lines]


def add_questions(
    reading: QuestionFile | None,
    videos: Sequence[Video],
    questions: Sequence[Question],
    *,
    stored: Sequence[Question] = (),
    subset: str | None = None,
    may_be_none: bool = False,
) -> AddedQuestions:
    """Put the questions of a file beside those of a run, and prepare the edited ones for its
    filters. A video is found by its id, its file's name or a path (`mustsee.media.video_names`).

    `questions`: of the run, with its ticks; `stored`: without them. `subset`: of the questions that
    passed every filter, which edited ones leave. Raises UserError if nothing is added or edited
    (unless it `may_be_none`), if a question has the id of one of the run (but in a table in our own
    layout, where it is that question), and if a question was edited in two ways.
    """
    file = _FileQuestions(reading, videos, {q.question_id: q for q in questions})
    before = {q.question_id: q for q in stored or questions}
    present = [file.changed.get(q.question_id, q) for q in questions]
    changed = [q for q in present if q.drop is None and is_edited(q)]
    made = {v.video_id for v in videos if v.drop is None and v.problem is None}
    file.left_out |= {q.question_id: NOT_MADE for q in changed if q.video_id not in made}
    changed = [q for q in changed if q.video_id in made]
    untested = {q.question_id for q in changed if q.points or q.asks_when}
    edited = {q.question_id for q in changed} - untested
    if not (file.added or changed or may_be_none):
        raise UserError(_describe_nothing(reading, file.left_out, videos))
    present = [
        _forget_results(q, before[q.question_id], subset) if q.question_id in edited else q
        for q in present
    ]
    by_video = group_pairs((q.video_id, q) for q in (*present, *file.added.values()))
    return AddedQuestions(
        rows=tuple(replace(v, questions=tuple(by_video.get(v.video_id, ()))) for v in videos),
        added=tuple(file.added),
        edited=tuple(q.question_id for q in present if q.question_id in edited),
        untested=tuple(q.question_id for q in present if q.question_id in untested),
        left_out=file.left_out,
        unmatched=file.unmatched,
        not_taken=tuple(file.not_taken),
    )


class _FileQuestions:
    """The questions of a file: `added` to the run (by id), `changed` ones of the run, and those
    that are `left_out` (id -> reason).
    """

    def __init__(
        self,
        reading: QuestionFile | None,
        videos: Sequence[Video],
        questions: Mapping[str, Question],
    ) -> None:
        self.added: dict[str, Question] = {}
        self.changed: dict[str, Question] = {}
        self.left_out: dict[str, str] = {}
        self.not_taken: list[str] = []
        self.unmatched: dict[str, str] = {}
        if reading is None:
            return
        taken = [q.question_id for q in reading if q.question_id in questions]
        if taken and reading.layout != OWN:
            raise UserError(
                f"{len(taken)} of the questions have ids of questions of the run: "
                f"{name_ids(taken)}; give them others (a copy of the run's table, with its "
                "columns question_id and answer_index, may hold its questions with other words)"
            )
        names = VideoNames(videos)
        for question in reading:
            written = reading.video_paths.get(question.video_id, "")
            video = names.find(question.video_id, written)
            own = questions.get(question.question_id)
            if own is not None and not _is_changed(own, question):
                if (own.drop is None) != (question.drop is None):
                    self.not_taken.append(own.question_id)
                continue
            reason = reading.unusable_reasons.get(question.question_id) or _reason(question, video)
            if reason == NO_VIDEO:
                self.unmatched[question.question_id] = written or question.video_id
                if names.reason(question.video_id, written) == SEVERAL:
                    reason = SEVERAL
            if own is not None and own.video_id != question.video_id:
                reason = MOVED
            if reason or video is None:
                self.left_out[question.question_id] = reason
            elif own is not None:
                self.changed[own.question_id] = _edit_in_table(own, question)
            else:
                self.added[question.question_id] = replace(
                    question,
                    video_id=video.video_id,
                    recipe=PEOPLE,
                    answer=answer_of(question),
                    verdicts=(),
                    metrics={},
                    subsets=(),
                )


def is_edited(question: Question) -> bool:
    """Whether people changed the words of a question since filters tried it."""
    earlier = _words_before(question)
    return earlier is not None and earlier != _compared_words(question)


def _words_before(question: Question) -> tuple[object, ...] | None:
    """Return the words that people first changed after the last verdict of a filter; None if they
    changed none.
    """
    tried = [n for n, v in enumerate(question.verdicts, 1) if not v.filter.startswith(VOTES)]
    for repair in question.repairs:
        if repair.kind != "wording" or not (repair.by == BY_HAND or repair.by.startswith(VOTES)):
            continue
        before: dict[str, Any] = json.loads(repair.before)
        if before["verdicts"] >= max(tried, default=0):
            spans = tuple(Span(*span) for span in before["evidence"])
            return _compared_words(
                replace(
                    question, question=before["question"], options=tuple(before["options"]),
                    answer=before["answer"], answer_index=None, evidence=spans,
                )
            )  # fmt: skip
    return None


def _compared_words(question: Question) -> tuple[object, ...]:
    """Return the words and the evidence of a question; its answer says which option is right."""
    return (*words_of(replace(question, answer=answer_of(question), answer_index=None)),
            _rounded(question))  # fmt: skip


def _rounded(question: Question) -> tuple[tuple[float, float], ...]:
    """Return the evidence in milliseconds, to which other programs write it."""
    return tuple((round(s.start, 3), round(s.end, 3)) for s in question.evidence)


def _is_changed(own: Question, row: Question) -> bool:
    """Whether a row of a table has other words or evidence than the question of the run, as it is
    with its ticks, and as it was before them.
    """
    return _compared_words(_completed(own, row)) not in (_compared_words(own), _words_before(own))


def _completed(own: Question, row: Question) -> Question:
    """Return a row of a table with the text of its right option as its answer, and with the
    evidence of the run's question if it has none.
    """
    row = replace(row, evidence=row.evidence or own.evidence)
    if row.options and row.answer_index is not None:
        return replace(row, answer=row.options[row.answer_index])
    return row


def _edit_in_table(own: Question, row: Question) -> Question:
    """Return a question of the run as people changed it in a table. Raises UserError if they
    changed it in another way before.
    """
    if is_edited(own):
        raise UserError(
            f"{own.question_id} was edited twice, in the table and before (ticks.jsonl, or votes): "
            "take one of these edits back"
        )
    row = _completed(own, row)
    edited = edit_by_hand(own, row, "edited by hand in a table")
    if _rounded(own) == _rounded(row):
        return replace(edited, evidence=own.evidence)
    return replace(edited, metrics={k: v for k, v in edited.metrics.items() if k not in LASTING})


def _forget_results(question: Question, stored: Question, subset: str | None) -> Question:
    """Return an edited question without what filters and exams found of its earlier words. Their
    verdicts stay, counted in its `repairs`.
    """
    subsets = ("full", *(s for s in stored.subsets if s != subset))
    return replace(
        question,
        metrics={
            name: value
            for name, value in question.metrics.items()
            if name in LASTING or name.startswith(VOTES)
        },
        faults={},
        subsets=tuple(dict.fromkeys(subsets)),
    )


def _describe_nothing(
    reading: QuestionFile | None, left_out: Mapping[str, str], videos: Sequence[Video]
) -> str:
    if reading is None:
        return (
            "nothing to test: no question of the run was edited since its filters tried it (in "
            "the served report, by votes, or in a copy of its table as questions=), and "
            "questions= names no further ones"
        )
    reasons = Counter(left_out.values()).most_common()
    listed = ", ".join(f"{reason} ({n})" for reason, n in reasons)
    known = ", ".join(sorted(v.video_id for v in videos)[:3])
    return (
        f"none of {len(reading)} questions can be added: "
        f"{listed or 'none is new or has other words than in the run'}; the run has videos such "
        f"as {known}"
    )


def _reason(question: Question, video: Video | None) -> str:
    """Return why a question cannot be used; empty if it can."""
    if video is None:
        return NO_VIDEO
    if video.drop is not None or video.problem is not None:
        return NOT_MADE
    if not answer_of(question):
        return NO_KEY
    begin, end = video.start or 0.0, video.end or video.duration or math.inf
    within = all(begin <= span.start <= span.end <= end + SLACK_S for span in question.evidence)
    return "" if within else NOT_WITHIN


def describe_verdicts(questions: Iterable[Question], tested: Mapping[str, str]) -> list[str]:
    """Return what the filters found of some of these questions: for each kind its counts, then for
    each question that did not pass (the first `MAX_NAMED`) the filters and why. `tested`: id -> the
    kind of questions that it belongs to, such as "questions by people".
    """
    kinds: dict[str, list[Question]] = {kind: [] for kind in tested.values()}
    for question in questions:
        if question.question_id in tested:
            kinds[tested[question.question_id]].append(question)
    lines = list[str]()
    for kind, of_kind in kinds.items():
        lines.append(_describe_kind(kind, of_kind))
        failed = [q for q in of_kind if _result(q) != PASSED]
        for question in failed[:MAX_NAMED]:
            lines.append(f"  {question.question_id}: {question.question}")
            lines += [f"    {what}: {why}" for _, what, why in _findings(question)]
        if len(failed) > MAX_NAMED:
            lines.append(f"  and {len(failed) - MAX_NAMED} more, in {VERDICTS}")
    return [printable(line) for line in lines]


def write_verdicts(folder: Path, questions: Iterable[Question], tested: Mapping[str, str]) -> None:
    """Write `VERDICTS` into `folder`: a row for each tested question and filter that it did not
    pass or that could not decide, and one row for a question that passed. `tested`: as in
    `describe_verdicts`.
    """
    with (folder / VERDICTS).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("question_id", "kind", "question", "result", "filter", "why"))
        for question in questions:
            if (kind := tested.get(question.question_id)) is not None:
                head = (question.question_id, kind, question.question, _result(question))
                findings = [(name, why) for name, _, why in _findings(question)]
                writer.writerows((*head, *each) for each in findings or [("", "")])


def _result(question: Question) -> str:
    """Return what became of a question in the filters; dropped ones may have failed others too."""
    if question.drop is not None:
        return "dropped"
    if question.failed_filters:
        return "did not pass"
    return "unverified" if question.unverified_by else PASSED


def _findings(question: Question) -> list[tuple[str, str, str]]:
    """Return each filter that a question did not pass, or that could not decide, with this in
    words, and why.
    """
    failed = [
        (name, f"{'dropped by' if name == question.dropped_by else 'did not pass'} {name}", why)
        for name, why in failure_reasons(question).items()
    ]
    undecided = undecided_reasons(question).items()
    return [*failed, *((name, f"{name} could not decide", why) for name, why in undecided)]


def _describe_kind(kind: str, tested: Sequence[Question]) -> str:
    passed = sum(_result(q) == PASSED for q in tested)
    failed = Counter(name for q in tested for name in q.failed_filters)
    unverified = Counter(name for q in tested for name in q.unverified_by)
    dropped = sum(q.drop is not None for q in tested)
    text = f"{kind}: {passed} of {len(tested)} passed every filter"
    text += f"; {dropped} dropped" if dropped else ""
    for what, counts in (("did not pass", failed), ("unverified by", unverified)):
        if counts:
            text += f"; {what} {', '.join(f'{name} ({n})' for name, n in counts.most_common())}"
    return text
