"""MLVU's release: nine JSON lists (dev, four candidates), and `test_mcq_gt.json` (six).

`answer` is the text of one of the `candidates`. Two released needle questions have an answer that
is not among their candidates: they are reported, kept, and have no `answer_index`. Sub-scene
captions have `scoring_points`. The mirror (`video_name`, `task_type`, a letter as answer, options
within the question) is read too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mustsee.errors import UserError
from mustsee.files.folders import JsonItems, without_media_suffix, write_json
from mustsee.layouts import reading, video_files
from mustsee.layouts.columns import NAMES, known_columns
from mustsee.layouts.options import parse_cell
from mustsee.layouts.reading import (
    Notes,
    QuestionFile,
    Questions,
    Row,
)
from mustsee.records import Question, Video, group_pairs

FILES = {  # question_type -> file of the dev release
    "plotQA": "1_plotQA",
    "findNeedle": "2_needle",
    "ego": "3_ego",
    "count": "4_count",
    "order": "5_order",
    "anomaly_reco": "6_anomaly_reco",
    "topic_reasoning": "7_topic_reasoning",
    "subPlot": "8_sub_scene",
    "summary": "9_summary",
}
TEST = "test_mcq_gt"  # file of the test release
# Those of its tasks without options.
OPEN_TEST = {"subPlot": "test_ssc_gt", "summary": "test_vs_gt"}
_EMBEDDED = re.compile(r"^\(?([A-Z])[).]\s*(.+)$", re.MULTILINE)


def read(path: Path) -> QuestionFile:
    """Read one list, or a folder with the lists of the dev or the test release."""
    lists = [path] if path.is_file() else sorted(path.rglob("*.json"))
    parts = [_read_file(p) for p in lists if p == path or is_list(p.stem)]
    return QuestionFile(
        layout="mlvu",
        questions=tuple(q for part in parts for q in part),
        videos=tuple({v.video_id: v for part in parts for v in part.videos}.values()),
        findings=tuple(f for part in parts for f in part.findings),
    )


def is_folder(path: Path) -> bool:
    """Whether a folder holds one of the lists, at any depth."""
    return any(is_list(p.stem) for p in path.rglob("*.json"))


def is_table(columns: Collection[str]) -> bool:
    """Whether a file with these columns is one of the lists. A file with options in columns of
    their own is a plain table: read as a list of MLVU, it would have open questions.
    """
    if not {"video", "video_name"} & set(columns) or "question" not in columns:
        return False
    plain = known_columns(columns)
    return plain is None or plain.options == ("candidates",)


def is_list(stem: str) -> bool:
    """Whether a file of this name is a released list, or one of another type by `write`."""
    number, _, kind = stem.partition("_")
    own = number.isdecimal() and int(number) > len(FILES) and kind != ""
    return own or stem in {*FILES.values(), TEST, *OPEN_TEST.values()}


def _read_file(path: Path) -> QuestionFile:
    notes = Notes(path)
    questions, videos = list[Question](), list[Video]()
    for number, row in enumerate(reading.rows_of(path)):
        file = str(row.get("video") or row.get("video_name") or "")
        question = _question(number, row, notes, path.stem, file)
        questions.append(question)
        duration = row.get("duration")
        beside = path.parent / "video" / file
        videos.append(
            Video(
                video_id=question.video_id,
                uri=str(beside) if file and beside.exists() else file,
                duration=float(duration) if isinstance(duration, int | float) else None,
            )
        )
    return QuestionFile(
        layout="mlvu",
        questions=notes.unique(questions),
        videos=tuple({v.video_id: v for v in videos}.values()),
        findings=notes.findings,
    )


def _question(number: int, row: Row, notes: Notes, stem: str, file: str) -> Question:
    kind = str(row.get("question_type") or row.get("task_type") or stem.partition("_")[2])
    ids = (row.get(column) for column in NAMES["question_id"])
    name = next((str(one) for one in ids if one not in (None, "")), f"{kind}_{number}")
    if not file:
        notes.add(number, name, "no video", broken=True)
    text = notes.text(number, name, row, "question")
    listed = _candidates(row.get("candidates"))
    options = tuple(str(c) for c in listed or ())
    answer: str = str(row.get("answer") or "")
    if listed is None and (inside := _EMBEDDED.findall(text)):
        options = tuple(option.strip() for _, option in inside)
        text = text[: next(_EMBEDDED.finditer(text)).start()].strip()
        letters = [letter for letter, _ in inside]
        answer = options[letters.index(answer)] if answer in letters else answer
    index = None
    if options and answer:
        index = notes.index(number, name, options, answer=answer)
    elif not answer:
        notes.add(number, name, "no answer")
    points: Any = row.get("scoring_points") or ()
    return Question(
        question_id=name,
        video_id=without_media_suffix(file),
        recipe="mlvu",
        question=text,
        question_type=kind,
        options=options,
        answer_index=index,
        answer=answer,
        scoring_points=tuple(str(p) for p in points),
    )


def _candidates(value: Any) -> Any:
    """Parse a list, which the cell of a .csv has in JSON's or Python's spelling."""
    if not isinstance(value, str):
        return value
    if value.strip() in ("", "None"):
        return None
    parsed = parse_cell(value)
    if not isinstance(parsed, list | tuple):
        raise UserError(f'candidates={value!r}: expected a list of texts, as ["a", "b"]')
    return parsed


def write(questions: Questions, path: str | Path, videos: Iterable[Video] = ()) -> str:
    """Write the kept questions as the dev release into the folder `path`: one list for each
    question type, numbered as released; other types are numbered from 10. Returns a line on where
    to put the video files.
    """
    path, chosen, video_of = Path(path), reading.first(questions), reading.by_id(videos)
    other_types = sorted({q.question_type for q in chosen} - set(FILES))
    names = {**FILES, **{kind: f"{10 + i}_{_safe(kind)}" for i, kind in enumerate(other_types)}}
    with ExitStack() as files:
        lists: dict[str, JsonItems] = {}
        for question in chosen:
            name = names[question.question_type]
            if name not in lists:
                lists[name] = files.enter_context(JsonItems(path / f"{name}.json"))
            lists[name].add(_row(question, video_of))
    return video_files.where_to_put(video_files.names_of(video_of.values(), chosen), "video")


def write_test(questions: Questions, path: str | Path, videos: Iterable[Video] = ()) -> str:
    """Write the kept multiple-choice questions as `test_mcq_gt.json` (with `question_id`) into
    `path`, and those of the two tasks without options into files of their own. Returns a line on
    where to put the video files.
    """
    path, video_of, chosen = Path(path), reading.by_id(videos), reading.first(questions)
    with ExitStack() as files:
        lists = {"": files.enter_context(JsonItems(path / f"{TEST}.json"))}
        for question in chosen:
            kind = "" if question.options else question.question_type
            if kind and kind not in OPEN_TEST:
                continue
            if kind not in lists:
                lists[kind] = files.enter_context(JsonItems(path / f"{OPEN_TEST[kind]}.json"))
            lists[kind].add({**_row(question, video_of), "question_id": question.question_id})
    return video_files.where_to_put(video_files.names_of(video_of.values(), chosen), "video")


def write_divided(
    questions: Questions,
    path: str | Path,
    videos: Iterable[Video] = (),
    *,
    test_shares: Mapping[str, float],
) -> str:
    """Divide the kept questions into `dev/` (`write`) and `test/` (`write_test`).

    `test_shares`: by question type, the share in test (appendix E, table 1); of others it is 0. The
    questions of the videos with the lowest hashes are in test. Returns a line on the video files.
    """
    by_type = group_pairs(
        (q.question_type, (hashlib.sha256(q.video_id.encode()).hexdigest(), q.question_id))
        for q in reading.first(questions)
    )
    test = {
        question_id
        for kind, placed in by_type.items()
        for _, question_id in sorted(placed)[: round(len(placed) * test_shares.get(kind, 0))]
    }
    path, chosen, known = Path(path), reading.first(questions), list(videos)
    write([q for q in chosen if q.question_id not in test], path / "dev", known)
    write_test([q for q in chosen if q.question_id in test], path / "test", known)
    names = video_files.names_of(reading.by_id(known).values(), chosen)
    return video_files.where_to_put(names, "dev/video and test/video")


def write_clean(questions: Questions, path: Path, videos: Iterable[Video], source: Path) -> None:
    """Write the kept questions of the file or folder `source` as it was: a test list or the dev
    release.
    """
    if source.stem == TEST:
        write_test(questions, path, videos)
    else:
        write(questions, path, videos)


def submission(letters: Mapping[str, str], questions: Sequence[Question], path: str | Path) -> None:
    """Write a test submission: `question_id`, `question_type` and `option` (a letter)."""
    rows = [
        {"question_id": q.question_id, "question_type": q.question_type, "option": option}
        for q in questions
        if (option := letters.get(q.question_id)) is not None
    ]
    write_json(Path(path), rows, indent=4)


def _safe(kind: str) -> str:
    return re.sub(r"\W+", "_", kind).strip("_")[:60] or "other"


def _row(question: Question, video_of: Mapping[str, Video]) -> dict[str, Any]:
    video = video_of.get(question.video_id)
    file = video_files.file_name(video) if video is not None else None
    row: dict[str, Any] = {
        "video": file or f"{question.video_id}.mp4",
        "duration": video.duration if video is not None else None,
        "question": question.question,
    }
    if question.options:
        row["candidates"] = list(question.options)
    row["answer"] = reading.answer_of(question)
    row["question_type"] = question.question_type
    if question.scoring_points:
        row["scoring_points"] = list(question.scoring_points)
    return row
