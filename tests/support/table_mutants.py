"""Damaged and hostile tables of videos and files of questions, read in a child process.

    python -m tests.support.table_mutants 300 [first seed]      a table; what went wrong, by name

As in `mutants`, a mutant is named `source/change/seed`. What was read is held to
what a strict reader would believe.
"""

from __future__ import annotations

import json
import math
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from mustsee.layouts import detect, ours, shards
from mustsee.recipes.cinepile import layout as cinepile
from mustsee.recipes.egoschema import layout as egoschema
from mustsee.recipes.mlvu import layout as mlvu
from mustsee.recipes.neptune import layout as neptune
from mustsee.records import Question, Span, Video
from mustsee.run.inputs import first_rows, read_videos
from tests.support import mutants

ROWS: tuple[dict[str, Any], ...] = (
    {"uri": "a.mp4", "video_id": "a", "title": "One", "views": 12, "tags": ["x", "y"], "start": 0.5,
     "end": 2.0, "year": 1999, "mine": {"k": [1, 2]}},
    {"uri": "sub/b.mkv", "video_id": "b", "title": "Two", "views": 3, "tags": ["z"], "start": 1.0,
     "end": 9.5, "year": 2001, "mine": {"k": [3]}},
    {"uri": "/elsewhere/c.webm", "video_id": "c", "title": "Three", "views": 0, "tags": [],
     "start": 0.0, "end": 1.0, "year": 2020, "mine": {"k": []}},
)  # fmt: skip
DEEP = json.loads("[" * 400 + "]" * 400)
HOSTILE: tuple[Any, ...] = (
    None, "", True, -1, 0, 1e308, 2**70, -(2**63), [], {}, [[]], {"": ""}, DEEP, "\0", "\ud800",
    "../../x", "/", "x" * 100_000, "\x1b[31m", "\u202e", "NaN", "inf", "-inf", "1e999", "null",
    float("nan"), float("inf"), float("-inf"), "=1+1", "[1, 2", "{'a': 1}", "a\nb", [None], 10**400,
)  # fmt: skip


def questions() -> list[Question]:
    return [
        Question(
            question_id=f"v{n}/{n}", video_id=f"v{n}", recipe="neptune", question=f"What is {n}?",
            question_type="Counting" if n % 2 else "Summarization",
            options=("red", "green", "blue", "grey", "none"), answer_index=n % 5,
            answer=("red", "green", "blue", "grey", "none")[n % 5],
            evidence=(Span(1.0, 2.5),), subsets=("test",),
        )
        for n in range(6)
    ]  # fmt: skip


def sources(folder: Path) -> dict[str, bytes]:
    """Return the undamaged files, by a name with the file's ending."""
    rows = questions()
    video = folder / "video.mp4"
    video.write_bytes(b"video")
    videos = [Video(video_id=q.video_id, uri=str(video), duration=9.0) for q in rows]
    neptune.write(rows, folder / "neptune.json", videos)
    cinepile.write(rows, folder / "cinepile.parquet", videos)
    ours.write(rows, folder / "made" / "ours", videos)
    egoschema.write(rows, folder / "ego", videos)
    mlvu.write(rows, folder / "made" / "mlvu", videos)
    shards.write(rows, folder / "tar", videos)
    lists = next(iter(sorted((folder / "made" / "mlvu").rglob("*.json"))))
    head = "uri,video_id,title,views,start,end\n"
    cells = "".join(",".join(str(r[k]) for k in head.strip().split(",")) + "\n" for r in ROWS)
    plain = "question,option_a,option_b,answer,video\nWhat?,red,blue,A,a.mp4\nWho?,Jo,Bo,B,b.mp4\n"
    jsonl = "".join(json.dumps(row) + "\n" for row in ROWS)
    (folder / "t.jsonl").write_text(jsonl)
    pq.write_table(read_videos(str(folder / "t.jsonl")), folder / "t.parquet")
    table = ours.table_of(folder / "made" / "ours")
    lines = [json.dumps(row) for row in pq.read_table(table).to_pylist()]
    return {
        "videos.csv": (head + cells).encode(),
        "videos.tsv": (head + cells).replace(",", "\t").encode(),
        "videos.jsonl": jsonl.encode(),
        "videos.parquet": (folder / "t.parquet").read_bytes(),
        "videos.txt": "".join(f"{row['uri']}\n" for row in ROWS).encode(),
        "neptune.json": (folder / "neptune.json").read_bytes(),
        "cinepile.parquet": (folder / "cinepile.parquet").read_bytes(),
        "ours.parquet": table.read_bytes(),
        "ours.jsonl": "".join(f"{row}\n" for row in lines).encode(),
        "egoschema.json": (folder / "ego" / "questions.json").read_bytes(),
        "mlvu.json": lists.read_bytes(),
        "shard.tar": next((folder / "tar").rglob("*.tar")).read_bytes(),
        "plain.csv": plain.encode(),
    }


def odd_value(data: bytearray, rng: random.Random) -> None:
    """Replace a value of a JSON text, or a cell of another file, by one of any type."""
    text = data.decode()
    try:
        lines = [json.loads(text)] if text[0] == "[" else [json.loads(x) for x in text.splitlines()]
    except ValueError:
        cells = [at for at, c in enumerate(text) if c in ",\t\n"]
        at = rng.choice(cells) + 1
        end = next((n for n in cells if n >= at), len(text))
        value = rng.choice([v for v in HOSTILE if isinstance(v, str | int | float)])
        data[:] = (text[:at] + _utf8(str(value)[:4000]) + text[end:]).encode()
        return
    for _ in range(rng.choice((1, 1, 3))):
        places = list(_places_in(lines))
        holder, key = rng.choice(places)
        value = rng.choice(HOSTILE)
        holder[key] = value if value is not DEEP else json.loads(json.dumps(DEEP))
    written = (json.dumps(lines[0]),) if text[0] == "[" else map(json.dumps, lines)
    data[:] = "\n".join(written).encode()


def other_key(data: bytearray, rng: random.Random) -> None:
    """Replace a word of the text by another of its words, so that columns are double or missing."""
    words = [w for w in data.replace(b'"', b" ").replace(b",", b" ").split() if len(w) > 2]
    one, two = rng.choice(words), rng.choice(words)
    data[:] = data.replace(one, two, rng.choice((1, -1)))


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _places_in(value: Any) -> Any:
    pairs = enumerate(value) if isinstance(value, list) else value.items()
    for key, inner in list(pairs):
        yield value, key
        if isinstance(inner, list | dict) and inner is not DEEP:
            yield from _places_in(inner)


CHANGES: dict[str, Callable[[bytearray, random.Random], None]] = {
    **{name: mutants.MEDIA[name] for name in ("flipped", "truncated", "holed", "swapped")},
    "repeated": mutants.repeated, "odd_value": odd_value, "other_key": other_key,
}  # fmt: skip
TEXT = ("odd_value", "other_key")  # changes of text files only


def names(count: int, first: int = 0) -> list[str]:
    """Return the names of `count` mutants, twice as many with hostile values as damaged bytes."""
    kinds = [
        f"{source}/{change}"
        for source in SOURCES
        for change in (*CHANGES, *["odd_value"] * 6)
        if change not in TEXT or source.rsplit(".", 1)[1] not in ("parquet", "tar")
    ]
    random.Random("table_mutants").shuffle(kinds)
    return [f"{kinds[n % len(kinds)]}/{n}" for n in range(first, first + count)]


SOURCES = ("videos.csv", "videos.tsv", "videos.jsonl", "videos.parquet", "videos.txt",
           "neptune.json", "cinepile.parquet", "ours.parquet", "ours.jsonl", "egoschema.json",
           "mlvu.json", "shard.tar", "plain.csv")  # fmt: skip


def mutant(name: str, made: dict[str, bytes]) -> bytes:
    source, change, _ = name.split("/")
    data = bytearray(made[source])
    CHANGES[change](data, random.Random(name))
    return bytes(data)


def through(path: Path) -> None:
    """Read a file as its job does. Raises UserError and unforeseen errors: also where something
    was believed that no strict reader would believe.
    """
    if path.name.startswith("videos"):
        _strict_videos(path)
    else:
        _strict_questions(path)


def _strict_videos(path: Path) -> None:
    rows = first_rows(read_videos(str(path)))
    again = path.with_name("again.parquet")
    pq.write_table(rows, again)
    read = pq.read_table(again).to_pylist()
    ids = [row["video_id"] for row in read]
    assert all(ids), "an empty id"
    assert len({*ids}) == len(ids), "an id twice"
    for row in read:
        assert row["uri"], "no address"
        begin, end = row.get("start"), row.get("end")
        assert all(x is None or 0 <= x < math.inf for x in (begin, end)), f"times {begin}, {end}"
        assert begin is None or end is None or begin < end, f"times {begin}, {end}"


def _strict_questions(path: Path) -> None:
    reading = detect.read(path)
    ids = [q.question_id for q in reading.questions]
    assert len({*ids}) == len(ids), "an id twice"
    for q in reading.questions:
        for text in (q.question_id, q.video_id, q.question, q.answer, *q.options, *q.subsets):
            assert isinstance(text, str), f"{text!r} is not text"
        assert q.question_id, "an empty id"
        assert q.answer_index is None or (
            type(q.answer_index) is int and 0 <= q.answer_index < len(q.options)
        ), f"answer {q.answer_index!r} of {len(q.options)}"
        for span in q.evidence:
            assert 0 <= span.start <= span.end < math.inf, f"evidence {span}"
    out = path.with_name("again")
    ours.write(reading.questions, out, reading.videos)
    assert [q.question_id for q in ours.read(out).questions] == ids


def read_all(wanted: Sequence[str], folder: Path) -> list[mutants.Read]:
    """Read mutants and return their outcomes in order."""
    made, reader = sources(folder), mutants.Reader(work=through)
    sound = folder / "videos.csv"
    sound.write_bytes(made["videos.csv"])
    reader.read("imports", sound, seconds=60)

    def written(name: str) -> Path:
        path = folder / name.split(".")[0] / name.split("/")[0]
        path.parent.mkdir(
            exist_ok=True
        )  # A folder of its own, because tables of videos are read with their neighbours.
        path.write_bytes(mutant(name, made))
        return path

    return mutants.read_each(wanted, reader, written)


def main(count: int, first: int = 0) -> int:
    with tempfile.TemporaryDirectory() as folder:
        return mutants.show(read_all(names(count, first), Path(folder)), SOURCES, part=0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
