"""A Hugging Face dataset folder: `data/<split>.parquet`, `videos.parquet`, a README card,
`croissant.json` and `eval.yaml`.

`datasets.load_dataset(folder)` reads it without a network. The video files belong into `videos/`,
where `write` can put them. No path in the folder is absolute.

`eval.yaml` holds the tasks for a hub's benchmark pages and `inspect eval hf/ORG/NAME`. Its format
has no videos: a model sees the question and its options only. Its tasks are therefore
named `<split>_without_video` and measure what the questions reveal. The tasks that show the video
are `layout=inspect`, `lmms_eval` and `vlmevalkit`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from mustsee.files import schemas
from mustsee.files.folders import write_json
from mustsee.files.parquet import Parquet, write_parquet
from mustsee.layouts import card as cards
from mustsee.layouts import video_files
from mustsee.layouts.card import Card, CardCounts, card_text
from mustsee.layouts.reading import Questions, by_id
from mustsee.layouts.video_files import file_name
from mustsee.records import Question, Video

SPLITS = ("train", "validation", "test")
VIDEO = (
    "video_id", "uri", "title", "license", "source_url", "movie_name", "source", "start", "end",
    "digest", "duration", "has_audio", "language", "transcribed_by",
)  # fmt: skip


def write(
    questions: Questions,
    path: str | Path,
    rows: Iterable[Video] = (),
    card: Card | None = None,
    *,
    videos: str = "none",
) -> str:
    """Write the kept questions into the folder `path`.

    Splits are the subsets "train", "validation" and "test"; without any, all questions are "test".
    `rows` are the videos; `videos`, one of `video_files.WAYS`, says whether to include their
    files. Returns a line that says where the files are.
    """

    path, card = Path(path), card or Card()
    tally = CardCounts(compared=card.compared)
    videos_by_id, split = by_id(rows), splits(questions)
    tables = dict[str, Parquet[Question]]()
    with ExitStack() as files:

        def of(name: str) -> Parquet[Question]:
            file = f"data/{name}.parquet"
            if file not in tables:
                writer = Parquet(path / file, partial(with_videos, videos_by_id=videos_by_id))
                tables[file] = files.enter_context(writer)
            return tables[file]

        for question in questions:
            tally.count_made(question)
            if question.drop is None:
                name = split(question)
                tally.keep(question, name)
                of(name).add(question)
        if not tally.kept_count:
            tally.by_split["test"] = 0
            of("test")
    known_videos = [v for i, v in videos_by_id.items() if i in tally.videos]
    columns = {name: file.schema for name, file in tables.items()}
    if known_videos:
        table = _videos(known_videos)
        write_parquet(table, path / "videos.parquet")
        columns["videos.parquet"] = table.schema
    names = video_files.include(known_videos, path, videos)
    without_file = len(tally.videos) - sum(file_name(v) is not None for v in known_videos)
    included = bool(names) and videos != "none"
    where = video_files.describe_video_files(names, included=included)
    text = card_text(card, tally, known_videos, files="data/{}.parquet", where=where)
    (path / "README.md").write_text(text, encoding="utf-8")
    if (tasks := eval_tasks(card.title, tally)) is not None:
        (path / EVAL_FILE).write_text(tasks, encoding="utf-8")
    _write_croissant(path, columns, card, tally, known_videos)
    if included:
        return video_files.describe_included(len(names), videos, without_file=without_file)
    line = video_files.where_to_put(names)
    return f"{line}, or export with layout.videos=copy or link" if line else ""


def with_videos(questions: Sequence[Question], videos_by_id: Mapping[str, Video]) -> pa.Table:
    """Return the table of questions with `video` (the file's name), `start` and `end` of a clip,
    and `source`, the clip's video (whose questions are one cluster in confidence intervals).
    """
    table = schemas.questions_table(questions)
    rows = [videos_by_id.get(q.video_id) or Video(video_id=q.video_id, uri="") for q in questions]
    columns = {
        "video": pa.array([file_name(v) for v in rows], pa.string()),
        "start": schemas.column("start", [v.start for v in rows]),
        "end": schemas.column("end", [v.end for v in rows]),
        "source": pa.array([v.source or v.video_id for v in rows], pa.string()),
    }
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def _videos(videos: Sequence[Video]) -> pa.Table:
    """Return the table of videos, with `uri` relative to the folder, as in `videos=`."""
    folder = video_files.FOLDER
    rows = [replace(v, uri=f"{folder}/{name}" if (name := file_name(v)) else "") for v in videos]
    return schemas.table(rows, Video).select(VIDEO)


def _responsible(card: Card, tally: CardCounts, videos: Iterable[Video]) -> dict[str, Any]:
    """Return Croissant's fields on the making, use and limits of the data."""
    sources = sorted({v.source_url for v in videos if v.source_url})
    return {
        "rai:dataCollection": cards.funnel(card.run, tally),
        "rai:dataCollectionType": "Others",
        "rai:dataAnnotationProtocol": cards.provenance(card.run, tally),
        "rai:machineAnnotationTools": tally.models or ["Not recorded."],
        "rai:dataBiases": cards.biases(tally),
        "rai:dataLimitations": card.limits or cards.describe_limits(tally),
        "rai:dataUseCases": card.uses,
        "rai:dataSocialImpact": card.impact,
        "rai:personalSensitiveInformation": card.sensitive,
        **({"rai:hasSyntheticData": True} if tally.writers else {}),
        **({"prov:wasDerivedFrom": sources} if sources else {}),
    }


def splits(questions: Questions) -> Callable[[Question], str]:
    """Return a function question -> split; questions in none go to "train" if there is one, else
    to "test".
    """
    train = any("train" in q.subsets for q in questions if q.drop is None)
    rest = "train" if train else "test"
    return lambda question: next((s for s in SPLITS if s in question.subsets), rest)


EVAL_FILE = "eval.yaml"
EVAL_ABOUT = (
    "Questions on videos, asked without the videos: on a good set, models score at chance. "
    "The card names the tasks that show the video."
)
_TASK = """\
  - id: {split}_without_video
    config: default
    split: {split}
    field_spec:
      input: question
      target: answer_index
      choices: options
      metadata: [question_id, video_id, question_type, group, relation, form]
    solvers:
      - name: multiple_choice
    scorers:
      - name: choice
"""


def eval_tasks(title: str, tally: CardCounts) -> str | None:
    """Return the tasks of the splits with multiple-choice questions only, or None without any.

    Other splits get no task, because the format cannot leave rows out.
    """
    complete = [n for n, count in tally.by_split.items() if count and not tally.open_ended[n]]
    if not complete:
        return None
    head = (
        f"name: {json.dumps(title, ensure_ascii=False)}\ndescription: {json.dumps(EVAL_ABOUT)}\n"
        "evaluation_framework: inspect-ai\ntasks:\n"
    )
    return head + "".join(_TASK.format(split=name) for name in complete)


CROISSANT_FILE = "croissant.json"
RAI = "http://mlcommons.org/croissant/RAI/"
CONTEXT = Path(__file__).parents[1] / "assets" / "croissant_context.json"


def _write_croissant(
    folder: Path, columns_by_table: Mapping[str, pa.Schema], card: Card, tally: CardCounts,
    videos: Iterable[Video],
) -> None:  # fmt: skip
    """Write `croissant.json`, Croissant 1.0 with its responsible-AI fields, for a folder of
    parquet files. They are named relative to the folder, with their SHA-256, so that it can be
    moved and published.
    """
    about = cards.describe_contents(tally)
    value: dict[str, Any] = {
        "@context": json.loads(CONTEXT.read_text("utf-8")),
        "@type": "sc:Dataset",
        "name": card.title,
        "description": f"Questions on videos. {about} README.md describes them.",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", RAI + "1.0"],
        "license": card.licence,
        **_responsible(card, tally, videos),
        "distribution": [_file(folder, name) for name in columns_by_table],
        "recordSet": [_records(name, columns) for name, columns in columns_by_table.items()],
    }
    write_json(folder / CROISSANT_FILE, value)


def _file(folder: Path, name: str) -> dict[str, Any]:
    with (folder / name).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{(folder / name).stat().st_size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": digest,
    }


def _records(name: str, columns: pa.Schema) -> dict[str, Any]:
    key = Path(name).stem
    return {
        "@type": "cr:RecordSet",
        "@id": key,
        "name": key,
        "field": [_field(name, key, item.name, item.type) for item in columns],
    }


def _field(file: str, parent: str, name: str, kind: pa.DataType, path: str = "") -> dict[str, Any]:
    """Return a column, or with `path` (`column.subfield`) a subfield."""
    repeated = pa.types.is_list(kind)
    inner = kind.value_type if repeated else kind
    column, _, rest = (path or name).partition(".")
    source: dict[str, Any] = {"fileObject": {"@id": file}, "extract": {"column": column}}
    if rest:
        source["transform"] = {"jsonPath": rest}
    field: dict[str, Any] = {"@type": "cr:Field", "@id": f"{parent}/{name}", "name": name}
    if repeated:
        field["repeated"] = True
    if pa.types.is_struct(inner):
        subfields = [(subfield.name, subfield.type) for subfield in inner]
        field["source"] = source
        field["subField"] = [
            _field(file, field["@id"], n, t, f"{path or name}.{n}") for n, t in subfields
        ]
        return field
    return {**field, "dataType": _type(inner), "source": source}


def _type(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "sc:Boolean"
    if pa.types.is_integer(kind):
        return "sc:Integer"
    return "sc:Float" if pa.types.is_floating(kind) else "sc:Text"
