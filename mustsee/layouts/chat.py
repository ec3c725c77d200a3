"""Chat records for fine-tuning (`chat.jsonl`) and for preference training (`preference.jsonl`).

A record has `messages` in the trainers' format and the video's name. The answer has its letter, or
is text alone for open-ended questions. A question's trace (steps with times, conclusion) comes
before its answer. Questions without a known answer are left out.

A pair for preference training has `prompt`, `chosen` and `rejected`, each chat messages. Only
multiple-choice questions that passed the filter `sight` are used: a vision model found the right
option, and no other, in the evidence, so that the wrong ones are certainly wrong.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mustsee.files.folders import write_json_lines
from mustsee.layouts import video_files
from mustsee.layouts.reading import Questions, answer_of, by_id, kept_questions
from mustsee.records import Question, Trace, Video
from mustsee.text import LETTERS


def write(
    questions: Questions, path: str | Path, videos: Iterable[Video] = (), *, traces: bool = True
) -> str:
    """Write the kept questions to `path` (a .jsonl) or `path/chat.jsonl`, with or without `traces`.

    Returns a line that says how records name the videos.
    """
    videos_by_id = by_id(videos)
    records = (
        {
            **record_name(question, videos_by_id.get(question.video_id)),
            "messages": list(messages(question, _answer_text(question, traces=traces))),
        }
        for question in kept_questions(questions)
        if answer_of(question)
    )
    write_json_lines(_file(path, "chat.jsonl"), records)
    return video_files.as_read(videos_by_id.values())


def write_preference(
    questions: Questions,
    path: str | Path,
    videos: Iterable[Video] = (),
    *,
    each: int | None = None,
    seed: int = 0,
) -> str:
    """Write pairs of a right and a wrong answer to `path` (a .jsonl) or `path/preference.jsonl`.

    `each` is the number of wrong options per question, drawn by the seed; None uses all. Returns a
    line that says how records name the videos.
    """
    videos_by_id = by_id(videos)
    pairs = (
        pair
        for question in kept_questions(questions)
        for pair in _pairs(question, videos_by_id.get(question.video_id), each, seed)
    )
    write_json_lines(_file(path, "preference.jsonl"), pairs)
    return video_files.as_read(videos_by_id.values())


def _file(path: str | Path, name: str) -> Path:
    """Return the file to write: the path itself, or `name` in its folder."""
    return Path(path) if str(path).endswith(".jsonl") else Path(path) / name


def _answer_text(question: Question, *, traces: bool) -> str:
    answer = answer_of(question)
    if question.options and question.answer_index is not None:
        answer = option_text(question, question.answer_index)
    if traces and question.trace is not None:
        return f"{_trace_text(question.trace)}\n\n{answer}"
    return f"{answer}\n{question.rationale}" if question.rationale else answer


def _trace_text(trace: Trace) -> str:
    steps = [f"{step.start:.1f}-{step.end:.1f} s: {step.text}" for step in trace.steps]
    return "\n".join((*steps, trace.conclusion))


def option_text(question: Question, index: int) -> str:
    """Return an option as it appears in an answer."""
    return f"({LETTERS[index]}) {question.options[index]}"


def record_name(question: Question, video: Video | None) -> dict[str, Any]:
    """Return a record's id, and the video with the span that it is about."""
    return {
        "id": question.question_id,
        "video": video.uri if video is not None and video.uri else question.video_id,
        "start": video.start if video is not None else None,
        "end": video.end if video is not None else None,
    }


def messages(question: Question, answer: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the user's turn (video and question) and the assistant's turn (answer)."""
    options = "".join(f"\n({LETTERS[i]}) {o}" for i, o in enumerate(question.options))
    instruction = "\nAnswer with the letter and the text of the best option." if options else ""
    text = f"{question.question}{options}{instruction}"
    return (
        {"role": "user", "content": [{"type": "video"}, {"type": "text", "text": text}]},
        {"role": "assistant", "content": [{"type": "text", "text": answer}]},
    )


def _pairs(
    question: Question, video: Video | None, each: int | None, seed: int
) -> Iterator[dict[str, Any]]:
    right = question.answer_index
    if right is None or not question.options or not question.filter_results.get("sight"):
        return
    wrong = [n for n in range(len(question.options)) if n != right]
    random.Random(f"{seed}/{question.question_id}/pairs").shuffle(wrong)
    user_turn, _ = messages(question, "")
    for n in wrong[:each]:
        yield {
            **record_name(question, video),
            "prompt": [user_turn],
            "chosen": [messages(question, option_text(question, right))[1]],
            "rejected": [messages(question, option_text(question, n))[1]],
        }
