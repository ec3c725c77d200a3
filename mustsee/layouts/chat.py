"""Chat records for supervised fine-tuning: `chat.jsonl`, one question a line.

`messages` in the form that trainers take, the video named beside them, the answer with its letter
(or alone, for open-ended questions). Where a question has a trace, its steps with their times and
its conclusion come before the answer. Questions without a known answer are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mustsee.layouts import video_files
from mustsee.layouts.reading import Questions, answer_of, by_id, kept_questions
from mustsee.records import Question, Trace, Video
from mustsee.text import LETTERS


def write(
    questions: Questions,
    path: str | Path,
    videos: Iterable[Video] = (),
    *,
    traces: bool = True,
) -> str:
    """The kept questions as `path` (a .jsonl), or `path/chat.jsonl`. `traces`: with those there
    are.
    """
    path, known = Path(path), by_id(videos)
    file = path if path.suffix == ".jsonl" else path / "chat.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as lines:
        for question in kept_questions(questions):
            if answer_of(question):
                video = known.get(question.video_id)
                said = messages(question, _answered(question, traces=traces))
                record = {**record_name(question, video), "messages": list(said)}
                lines.write(json.dumps(record, ensure_ascii=False) + "\n")
    return video_files.as_read(known.values())


def _answered(question: Question, *, traces: bool) -> str:
    answer = answer_of(question)
    if question.options and question.answer_index is not None:
        answer = option_text(question, question.answer_index)
    if traces and question.trace is not None:
        return f"{_told(question.trace)}\n\n{answer}"
    return f"{answer}\n{question.rationale}" if question.rationale else answer


def _told(trace: Trace) -> str:
    steps = [f"{step.start:.1f}-{step.end:.1f} s: {step.text}" for step in trace.steps]
    return "\n".join((*steps, trace.conclusion))


def option_text(question: Question, index: int) -> str:
    """An option as it is answered with."""
    return f"({LETTERS[index]}) {question.options[index]}"


def record_name(question: Question, video: Video | None) -> dict[str, Any]:
    """What a record is called, and the stretch of video that it is about."""
    return {
        "id": question.question_id,
        "video": video.uri if video is not None and video.uri else question.video_id,
        "start": video.start if video is not None else None,
        "end": video.end if video is not None else None,
    }


def messages(question: Question, answer: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The question as a user asks it, with its video, and an answer."""
    listed = "".join(f"\n({LETTERS[i]}) {o}" for i, o in enumerate(question.options))
    told = "\nAnswer with the letter and the text of the best option." if listed else ""
    text = f"{question.question}{listed}{told}"
    return (
        {"role": "user", "content": [{"type": "video"}, {"type": "text", "text": text}]},
        {"role": "assistant", "content": [{"type": "text", "text": answer}]},
    )
