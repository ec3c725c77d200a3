"""Rows of a training set and held-out questions, with the frames of their videos, as tensors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mustsee
from deploy.train_vlm.settings import TrainSettings
from mustsee.errors import UserError
from mustsee.evaluate.rag import times
from mustsee.files.folders import without_media_suffix
from mustsee.layouts import chat
from mustsee.media.video import facts, frames_at
from mustsee.records import Question, Span
from ray_jobs.runtime.question_rows import locate_videos


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A row as the model reads it. `video`: file; `start`, `end`: its part in seconds, null: all.
    `messages`: the user's turn, and the assistant's where there is an answer.
    """

    id: str
    video: str
    start: float | None = None
    end: float | None = None
    messages: Sequence[Mapping[str, Any]]
    weight: float = 1.0


def read_rows(path: str, videos: str | None) -> tuple[list[Shown], int]:
    """Return the rows of a file of chat records whose videos are found, and the number of others.
    Rows of weight 0 are left out. Raises UserError for a file that holds none, or no video.
    """
    records: list[dict[str, Any]] = []
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                record = json.loads(line)
                if [turn["role"] for turn in record["messages"]] != ["user", "assistant"]:
                    raise UserError(f"data={path!r}, line {number}: expected one turn of each side")
                records.append(record)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"data={path!r}: {type(error).__name__}: {error}; expected chat records, as chat.jsonl "
            "of mustsee clean, or mustsee export layout=sft"
        ) from error
    records = [record for record in records if record.get("weight", 1.0) > 0]
    if not records:
        raise UserError(f"data={path!r} holds no rows")
    files = find_files({str(record["video"]) for record in records}, videos)
    rows = [
        Shown(
            id=str(record["id"]), video=files[str(record["video"])], start=record.get("start"),
            end=record.get("end"), messages=record["messages"], weight=record.get("weight", 1.0),
        )
        for record in records if str(record["video"]) in files
    ]  # fmt: skip
    if not rows:
        raise UserError(f"data={path!r}: none of its videos is found; videos= says where they are")
    return rows, len(records) - len(rows)


def find_files(names: set[str], videos: str | None) -> dict[str, str]:
    """Return the files of videos by the names that rows give them: paths, or names without ending.
    Missing ones are left out.
    """
    files = {name: name for name in names if Path(name).is_file()}
    stems = {name: video_stem(name) for name in names - files.keys()}
    if not stems or videos is None:
        return files
    wanted = {stem: name for name, stem in stems.items()}
    found, _ = locate_videos((), videos, sorted(wanted), wanted)
    located = {v.video_id: v.uri for v in found}
    return files | {name: located[stem] for name, stem in stems.items() if located[stem]}


def video_stem(name: str) -> str:
    """Return a video's name without folders and ending."""
    return without_media_suffix(name.rsplit("/", 1)[-1])


def read_questions(path: str, videos: str | None) -> list[Shown]:
    """Return the held-out questions, without their answers; those without a video are named by
    `mustsee evaluate`, as not in the file.
    """
    source = mustsee.read(path)
    asked = [q for q in source.questions if q.drop is None]
    wanted = {q.video_id for q in asked}
    found, _ = locate_videos(source.videos, videos, wanted, source.video_paths)
    located = {v.video_id: v for v in found}

    def show(question: Question) -> Shown:
        video = located[question.video_id]
        return Shown(
            id=question.question_id, video=video.uri, start=video.start, end=video.end,
            messages=chat.messages(question, "")[:1],
        )  # fmt: skip

    shown = [show(q) for q in asked if located[q.video_id].uri]
    if not shown:
        raise UserError(f"questions={path!r}: none has a video; held_out= says where they are")
    return shown


def refuse_shared(rows: Sequence[Shown], questions: Sequence[Shown]) -> None:
    """Raise UserError where questions are asked on videos that are trained on."""
    names = {video_stem(row.video) for row in rows}
    if shared := sorted({video_stem(q.video) for q in questions} & names):
        raise UserError(
            f"{len(shared)} videos are trained on and asked about, such as {shared[0]!r}: hold out "
            "others, or set shared_videos=true"
        )


def row_frames(row: Shown, count: int, longest: int) -> list[Any]:
    """Return frames of a row's video as Pillow images in RGB. Raises BadRow and Transient."""
    from PIL import Image

    end = facts(row.video).duration if row.end is None else row.end
    span = Span(row.start or 0.0, end)
    frames = frames_at(row.video, times(span, count))
    return [Image.fromarray(np.ascontiguousarray(f.image(longest)[:, :, ::-1])) for f in frames]


class RowReader:
    """Turns rows into tensors. `inputs` end where the answer begins."""

    def __init__(self, processor: Any, settings: TrainSettings) -> None:
        if not getattr(processor, "chat_template", None):
            raise UserError(f"model={settings.model!r} has no chat template")
        self._processor, self._settings = processor, settings
        self.tokenizer: Any = getattr(processor, "tokenizer", processor)

    def read(self, row: Shown) -> dict[str, Any]:
        """Return the tensors of a row's prompt, and as `answer`, where it has one, the ids of its
        answer with the end of the turn. Raises BadRow and Transient.
        """
        images = row_frames(row, self._settings.frames, self._settings.longest)
        content = [
            part
            for given in row.messages[0]["content"]
            for part in ([{"type": "image"}] * len(images) if given["type"] == "video" else [given])
        ]
        asked = {"role": "user", "content": content}
        prompt = self._processor.apply_chat_template([asked], add_generation_prompt=True)
        inputs = dict(self._processor(text=[prompt], images=[images], return_tensors="pt"))
        if len(row.messages) > 1:
            answer = self._after(prompt, [asked, row.messages[1]])
            inputs["answer"] = self.tokenizer(answer, add_special_tokens=False)["input_ids"]
        return inputs

    def _after(self, prompt: str, turns: Sequence[Mapping[str, Any]]) -> str:
        """Return what turns add to the prompt: an answer, and what ends it."""
        whole: str = self._processor.apply_chat_template(turns)
        if not whole.startswith(prompt):
            raise UserError(
                f"model={self._settings.model!r}: its chat template writes the question in another "
                "way when an answer follows, so the answer's tokens cannot be told"
            )
        return whole[len(prompt) :].rstrip()

    def turn_end(self) -> list[int]:
        """Return the token that ends an answer by the chat template; none where it writes none."""
        text = "x"
        asked = {"role": "user", "content": [{"type": "text", "text": text}]}
        given = {"role": "assistant", "content": [{"type": "text", "text": text}]}
        prompt = self._processor.apply_chat_template([asked], add_generation_prompt=True)
        end = self._after(prompt, [asked, given]).partition(text)[2]
        ids = self.tokenizer(end, add_special_tokens=False)["input_ids"]
        return ids[:1] if len(ids) == 1 else []


def join_answer(inputs: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """Return the tensors of a prompt with its answer behind it, and the answer's ids [tokens]."""
    import torch

    answer = torch.tensor(inputs["answer"])
    shape, joined = inputs["input_ids"].shape, dict[str, Any]()
    for name, value in inputs.items():
        if name == "answer":
            continue
        if getattr(value, "shape", None) == shape:
            fill = {"input_ids": answer, "attention_mask": torch.ones_like(answer)}
            tail = fill.get(name, torch.zeros_like(answer)).to(value.dtype)
            value = torch.cat([value, tail[None]], dim=1)
        joined[name] = value
    return joined, answer
