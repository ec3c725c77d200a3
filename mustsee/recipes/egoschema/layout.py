"""EgoSchema's release: `questions.json`, `subset_answers.json`, `uid_to_ego4d.json`.

Questions hold `q_uid`, `google_drive_id`, `question` and `option 0` to `option 4` (with a space),
and no answer; the answers of a public subset are a mapping of `q_uid` to 0-4 (its datasheet says
1-5). Clips are `videos/{q_uid}.mp4`, one file per question. Submissions are `q_uid,answer`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mustsee.errors import UserError
from mustsee.files.folders import JsonItems
from mustsee.files.tables import parse_json
from mustsee.layouts.reading import Notes, QuestionFile, Questions, Row, by_id, first, rows_of
from mustsee.records import Question, Video

PUBLIC = "subset"
_OPTION = re.compile(r"option (\d+)")


def read(path: Path, answers: Path | None = None) -> QuestionFile:
    """Read a questions file or its folder, with answers and clip times from the files beside it. A
    question without a public answer has no `answer_index`.
    """
    file = path if path.is_file() else path / "questions.json"
    if not file.exists():  # The mirror has a folder of parquet files.
        file = next(iter(sorted(path.rglob("*.parquet"))), file)
    folder = file.parent
    notes = Notes(file)
    answer_of = _answers(answers or folder / "subset_answers.json", notes)
    times = _mapping(folder / "uid_to_ego4d.json")
    questions, videos = list[Question](), list[Video]()
    for number, row in enumerate(rows_of(file)):
        question = _question(number, row, notes, answer_of)
        questions.append(question)
        clip: Any = times.get(question.question_id, {})
        clip_file = folder / "videos" / f"{question.video_id}.mp4"
        videos.append(
            Video(
                video_id=question.video_id,
                uri=str(clip_file) if clip_file.exists() else "",
                source=clip.get("video_uid"),
                start=_seconds(clip.get("starting_sec")),
                end=_seconds(clip.get("ending_sec")),
            )
        )
    for missing in sorted(set(answer_of) - {q.question_id for q in questions}):
        notes.add(-1, missing, "an answer without its question", answer_of[missing])
    return QuestionFile(
        layout="egoschema",
        questions=notes.unique(questions),
        videos=tuple({v.video_id: v for v in videos}.values()),
        findings=notes.findings,
    )


def is_folder(path: Path) -> bool:
    """Whether a folder holds the release's file of questions."""
    return (path / "questions.json").exists()


def is_table(columns: Collection[str]) -> bool:
    """Whether a file with these columns is the release's or its mirror's."""
    return "q_uid" in columns or "video_idx" in columns


def _seconds(value: Any) -> float | None:
    return None if value is None else float(value)


def _mapping(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        value: Any = parse_json(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise UserError(f"cannot read {str(path)!r}: {error}") from error
    if not isinstance(value, dict):
        raise UserError(f"{str(path)!r} holds a {type(value).__name__}: expected q_uid -> value")
    return value


def _answers(path: Path, notes: Notes) -> dict[str, Any]:
    """Read q_uid -> answer. Answers count from 1 if a 5 occurs and no 0 does."""
    answer_of = _mapping(path)
    numbers = {v for v in answer_of.values() if isinstance(v, int)}
    if 5 in numbers and 0 not in numbers:
        notes.add(-1, "", "answers are counted from 1", path.name)
        return {k: v - 1 if isinstance(v, int) else v for k, v in answer_of.items()}
    return answer_of


def _question(number: int, row: Row, notes: Notes, answer_of: Mapping[str, Any]) -> Question:
    if "video_idx" in row:  # The mirror has the options as one list of "A. ...".
        uid = str(row["video_idx"])
        listed: Sequence[Any] = row.get("option") or ()
        options = tuple(re.sub(r"^[A-Z][.)]\s*", "", str(o)) for o in listed)
        answer: Any = row.get("answer")
    else:
        uid = notes.text(number, str(row.get("q_uid")), row, "q_uid") or f"row-{number}"
        keys = sorted((int(m[1]), k) for k in row if (m := _OPTION.fullmatch(k)))
        options = tuple(str(row[k]) for _, k in keys)
        answer = answer_of.get(uid)
    if len(options) != 5:
        notes.add(number, uid, "not five options", len(options))
    index = notes.index(number, uid, options, given=answer)
    return Question(
        question_id=uid,
        video_id=uid,
        recipe="egoschema",
        question=notes.text(number, uid, row, "question"),
        question_type="",
        options=options,
        answer_index=index,
        answer=options[index] if index is not None else "",
        subsets=(PUBLIC,) if answer is not None else (),
    )


def write(questions: Questions, path: str | Path, videos: Iterable[Video] = ()) -> str:
    """Write the kept questions into the folder `path`. Answers of the subset "subset" are public,
    or all answers if no question is in it. Returns a line on where to put the clips.
    """
    path, chosen, video_of = Path(path), first(questions), by_id(videos)
    has_public = any(PUBLIC in q.subsets for q in chosen)
    with (
        JsonItems(path / "questions.json") as question_file,
        JsonItems(path / "subset_answers.json", keyed=True) as answers,
        JsonItems(path / "uid_to_ego4d.json", keyed=True) as clips,
    ):
        for question in chosen:
            uid, video = question.question_id, video_of.get(question.video_id)
            question_file.add(_row(question))
            if question.answer_index is not None and (PUBLIC in question.subsets or not has_public):
                answers.add(question.answer_index, uid)
            if video is not None:
                clips.add(_clip(video), uid)
    return "the clips are not copied: put each into its videos/ as QUESTION_ID.mp4"


def _row(question: Question) -> dict[str, Any]:
    return {
        "q_uid": question.question_id,
        "google_drive_id": "",
        "question": question.question,
        **{f"option {i}": option for i, option in enumerate(question.options)},
    }


def _clip(video: Video) -> dict[str, Any]:
    return {
        "video_uid": video.source or video.video_id,
        "starting_sec": video.start or 0.0,
        "ending_sec": video.until,
    }


def submission(answers: Mapping[str, int], path: str | Path) -> None:
    """Write `q_uid,answer` (0 to 4), as the public leaderboard takes it."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["q_uid", "answer"])
        table.writerows(sorted(answers.items()))
