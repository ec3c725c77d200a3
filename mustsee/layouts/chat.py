"""Chat records for supervised fine-tuning: `chat.jsonl`, one question a line.

`messages` in the form that trainers take, the video named beside them, the answer with its letter
(or alone, for open-ended questions). Questions without a known answer are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mustsee.layouts.reading import answer_of, by_id, kept
from mustsee.records import Question, Video
from mustsee.text import LETTERS


def write(questions: Sequence[Question], path: str | Path, videos: Iterable[Video] = ()) -> None:
    """The kept questions as `path` (a .jsonl), or `path/chat.jsonl`."""
    path, known = Path(path), by_id(videos)
    file = path if path.suffix == ".jsonl" else path / "chat.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as lines:
        for question in kept(questions):
            if answer_of(question):
                record = _record(question, known.get(question.video_id))
                lines.write(json.dumps(record, ensure_ascii=False) + "\n")


def _record(question: Question, video: Video | None) -> dict[str, Any]:
    listed = "".join(f"\n({LETTERS[i]}) {o}" for i, o in enumerate(question.options))
    answer = answer_of(question)
    if question.options and question.answer_index is not None:
        answer = f"({LETTERS[question.answer_index]}) {answer}"
    if question.rationale:
        answer = f"{answer}\n{question.rationale}"
    told = "\nAnswer with the letter and the text of the best option." if listed else ""
    return {
        "id": question.question_id,
        "video": video.uri if video is not None and video.uri else question.video_id,
        "start": video.start if video is not None else None,
        "end": video.end if video is not None else None,
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "video"},
                    {"type": "text", "text": f"{question.question}{listed}{told}"},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": answer}]},
        ],
    }
