"""The values that a rater's page shows of an item at a step, and nothing that the step hides."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mustsee.raters.assignment import Training
from mustsee.raters.ballots import TRAINING, CastVote, RatedItem, UnfinishedVote
from mustsee.raters.form import FormField, FormStep, RatingForm, Round, part
from mustsee.records import Line, Question, Span, Video
from serve.rater_video import STEP_S, ServedVideo, ServedVideos, visible_span

TRANSCRIPT_MARGIN_S = 60.0  # seconds of transcript before and after the evidence


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """The items to rate, with everything that pages show of them. `doubts`: what speaks against the
    key, by question id.
    """

    form: RatingForm
    items: Mapping[str, RatedItem]
    questions: Mapping[str, Question]
    videos: Mapping[str, Video]
    served: ServedVideos
    training: Mapping[str, Training] = field(default_factory=dict[str, Training])
    doubts: Mapping[str, str] = field(default_factory=dict[str, str])

    def question(self, item: str) -> Question:
        return self.questions[self.items[item].question_id]

    def round(self, item: str) -> Round:
        """The round of an item; a training item is asked as in the first round."""
        name = self.items[item].round
        return self.form.rounds[0] if name == TRAINING else self.form.round(name)

    def step(self, item: str, number: int) -> FormStep:
        return self.round(item).steps[number]

    def last(self, item: str, number: int) -> bool:
        return number >= len(self.round(item).steps) - 1

    def video(self, item: str) -> Video | None:
        return self.videos.get(self.question(item).video_id)

    def visible_span(self, item: str) -> Span | None:
        """The span of the file that the item's video covers."""
        return visible_span(self.video(item), self.served.find_video(self.question(item).video_id))

    def served_video(self, item: str, number: int) -> ServedVideo | None:
        """The video, or None if the step does not show it."""
        if "video" not in self.step(item, number).shows:
            return None
        return self.served.find_video(self.question(item).video_id)

    def template_values(
        self, item: str, draft: UnfinishedVote, given: Mapping[str, str], votes: Sequence[CastVote]
    ) -> dict[str, Any]:
        """The values of the template.

        `given`: answers so far. `votes`: votes of the round before; only a step that shows them
        passes them on.
        """
        question, step = self.question(item), self.step(item, draft.step)
        video = self.video(item)
        fields = [f.asked_of(question) for f in step.fields if f.applies_to(question)]
        evidence = question.evidence if "evidence" in step.shows else ()
        has_transcript = "transcript" in step.shows
        served_video = self.served_video(item, draft.step)
        asks_option = any(f.kind == "option" for f in fields)
        return {
            "item": item, "step": draft.step, "steps": len(self.round(item).steps),
            "training": self.items[item].round == TRAINING,
            "round": self.round(item), "note": step.note,
            "kind": question.question_type if "question" in step.shows else "",
            "asked": question.question if "question" in step.shows else "",
            "options": self._options(item) if "options" in step.shows and not asks_option else [],
            "right": question.answer_index if "answer" in step.shows else None,
            "answer": _answer(question, asks_option) if "answer" in step.shows else None,
            "doubt": self.doubts.get(question.question_id) if "doubt" in step.shows else None,
            "reply": question.rationale or "" if "reply" in step.shows else None,
            "fields": [(f, given.get(f.name, f.initial_text(question))) for f in fields],
            "choices": self._options(item),
            "evidence": evidence,
            "served": served_video, "every": STEP_S,
            "visible": self.visible_span(item) if served_video is not None else None,
            "lines": nearby(video, evidence) if has_transcript else [],
            "map": self._map(video, has_transcript) if served_video is not None else {},
            "votes": self._votes(question, votes) if "votes" in step.shows else [],
        }  # fmt: skip

    def _options(self, item: str) -> list[tuple[int, str]]:
        """The options with their places, in a random order of the item if people choose one."""
        options = list(enumerate(self.question(item).options))
        if any(f.kind == "option" for f in self.round(item).fields):
            random.Random(f"{item}/options").shuffle(options)
        return options

    def _map(self, video: Video | None, has_transcript: bool) -> dict[str, Any]:
        """The times of shots, segments and speech, for the timeline."""
        if video is None:
            return {}
        lines = video.lines or () if has_transcript else ()
        return {
            "shots": [round(s.start, 2) for s in video.shots or ()],
            "segments": [round(s.start, 2) for s in video.segments or ()],
            "speech": [[round(x.start, 2), round(x.end, 2)] for x in lines],
        }

    def _votes(self, question: Question, votes: Sequence[CastVote]) -> list[dict[str, Any]]:
        """The answers of all votes by field, without the raters' names."""
        fields = {f.name: f for r in self.form.rounds for f in r.fields}
        names = [n for n in fields if any(n in v.answers for v in votes)]
        return [
            {
                "field": fields[name],
                "answers": [
                    answer_text(fields[name], v.answers.get(name), question) for v in votes
                ],
                "raw": [v.answers.get(name) for v in votes],
            }
            for name in names
        ]


def answer_text(of: FormField, value: Any, question: Question) -> str:
    """An answer in words; a dash where there is none."""
    if value is None or value == []:
        return "–"
    if of.kind == "ticks":
        return "; ".join(of.labels.get(tick, tick) for tick in value)
    if of.kind == "option":
        return question.options[value]
    if of.kind == "spans":
        return ", ".join(f"{clock(start)} – {clock(end)}" for start, end in value)
    return " / ".join(value) if of.kind == "lines" else of.labels.get(value, value)


def nearby(video: Video | None, evidence: Sequence[Span]) -> list[Line]:
    """The transcript around the evidence; without evidence the whole transcript."""
    lines = video.lines if video is not None and video.lines else ()
    if not evidence:
        return list(lines[:2000])
    begin = min(s.start for s in evidence) - TRANSCRIPT_MARGIN_S
    end = max(s.end for s in evidence) + TRANSCRIPT_MARGIN_S
    return [line for line in lines if line.end >= begin and line.start <= end]


def clock(seconds: float) -> str:
    """The time as 1:02:03.4."""
    minutes, rest = divmod(round(seconds, 1), 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02d}:{rest:04.1f}" if hours else f"{minutes}:{rest:04.1f}"


def _answer(question: Question, asks_option: bool) -> str | None:
    """The answer as text; None if an option is marked as the answer, which is not the case where
    people choose one.
    """
    if question.answer_index is not None and question.options and not asks_option:
        return None
    return part(question, "answer")
