"""Pairs for preference training: `preference.jsonl`, one pair of a right and a wrong answer per
line.

Only multiple-choice questions that passed the filter `sight` are used: a vision model found the
right option, and no other, in the evidence, so that the wrong ones are certainly wrong. `prompt`,
`chosen` and `rejected` are chat messages in the trainers' format, with the video's name.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mustsee.layouts import video_files
from mustsee.layouts.chat import messages, option_text, record_name
from mustsee.layouts.reading import Questions, by_id, kept_questions
from mustsee.records import Question, Video


def write(
    questions: Questions,
    path: str | Path,
    videos: Iterable[Video] = (),
    *,
    each: int | None = None,
    seed: int = 0,
) -> str:
    """Write the pairs to `path` (a .jsonl) or `path/preference.jsonl`.

    `each` is the number of wrong options per question, drawn by the seed; None uses all. Returns a
    line that says how records name the videos.
    """
    path, videos_by_id = Path(path), by_id(videos)
    file = path if path.suffix == ".jsonl" else path / "preference.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as lines:
        for question in kept_questions(questions):
            for pair in _pairs(question, videos_by_id.get(question.video_id), each, seed):
                lines.write(json.dumps(pair, ensure_ascii=False) + "\n")
    return video_files.as_read(videos_by_id.values())


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
