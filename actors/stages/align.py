"""`align`: finds a clip in its movie's audio description, and takes the narration of its span.

`classifier=` tells narration from dialogue: a logistic head on sentence embeddings, or a fine-tuned
BERT (CinePile, 2.1) in transformers and torch.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any, ClassVar

import numpy as np

from actors.part import Opened, Part, RunContext
from mustsee.align.description import Description
from mustsee.align.place import MatchOptions, align, lines_inside
from mustsee.align.sentences import (
    Floats,
    LogisticHead,
    Probabilities,
    Sentence,
    features,
    fit,
    visual_probability,
)
from mustsee.errors import BadRow, UserError, need
from mustsee.files import schemas
from mustsee.files.folders import files_under, is_text
from mustsee.files.store import (
    address_of,
    digest,
    file_digest,
    identity,
    keyed_by,
    resolve,
    strip_options,
)
from mustsee.files.tables import read_table
from mustsee.media import transcript
from mustsee.media.subtitle_cues import FORMATS
from mustsee.media.subtitles import read
from mustsee.nn.weights import MINILM
from mustsee.recipes.cinepile.ask import format_lines, scene_lines, scene_of
from mustsee.recipes.cinepile.dataset import plain
from mustsee.records import Line, Segment, Video

TABLES = ("csv", "tsv", "jsonl", "parquet")
MAX_DESCRIPTIONS = 16  # descriptions in the memory of a worker, some MB each with their vectors
AUDIO_SUFFIXES = ("mp3", "m4a", "aac", "wav", "flac", "ogg", "opus", "mp4", "mkv", "webm", "mka")


@dataclass(frozen=True, kw_only=True)
class Align:
    """Writes the clip's scene. Drops a clip whose movie has no description, or that the description
    does not match.
    """

    version: ClassVar[str] = "4"
    threaded: ClassVar[bool] = True
    reads: ClassVar[tuple[str, ...]] = ("lines", "movie_name", "duration", "start")
    needs: ClassVar[tuple[str, ...]] = ("video_id",)
    writes: ClassVar[tuple[str, ...]] = ("scene", "segments", "drop")

    descriptions: str = keyed_by(
        lambda part: {movie: _digest(uri) for movie, uri in sorted(part.files.items())}
    )
    """A folder whose files are named after the movies, or a table with `movie_name` and `uri`.
    A description is subtitles (.srt .vtt), a table with start, end and text, or audio, which
    `hear` transcribes once per movie."""
    hear: Part
    """Transcriber of descriptions that are sound, run once per movie."""
    encoder: str = MINILM
    """Sentence encoder: folder, package or Hugging Face id."""
    classifier: str | None = keyed_by(
        lambda part: part.classifier and [_digest(file) for file in _parts(part.classifier)],
        default=None,
    )
    """Folder of ray_jobs.sentences_train, for lines that the clip's words do not decide; null:
    none."""
    options: MatchOptions = field(default_factory=MatchOptions)

    @cached_property
    def files(self) -> dict[str, str]:
        """Movie (lower case, words only) -> address of its description. Raises UserError."""
        return descriptions_in(self.descriptions)

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if the descriptions or the classifier are missing."""
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
                movies = ", ".join(sorted(self.files)[:5])
                return replace(
                    video,
                    drop=f"align: no description of {movie!r} (there are: {movies}); one in "
                    "descriptions= keeps it",
                )
            with lock:
                narration = description(uri)
            clip = transcript.shift_to_zero(video.lines or (), video.start or 0.0)
            match = align(clip, narration, encode, duration=video.duration, options=self.options)
            if match.span is None:
                return replace(video, drop=f"align: {match.refused}")
            end = match.span.end
            if video.duration is not None:
                end = max(end, match.offset + match.rate * video.duration)
            lines = lines_inside(
                narration.lines, min(match.span.start, max(0.0, match.offset)), end
            )
            visual = visual_probability(lines, clip=clip, alignment=match, model=model)
            scene = scene_of(match, lines, visual)
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
        """The lines of a description: read from a file, or transcribed and stored."""
        suffix = _suffix(uri)
        if suffix in FORMATS:
            return read(uri).lines
        if suffix in TABLES:
            return table_lines(uri)
        key = digest(["description", identity(self.hear), _digest(uri)])
        stored = run.store.get_table("description", key)
        if stored is None:
            row = Video(video_id=key, uri=uri, digest=_digest(uri), has_audio=True)
            transcribed = listen()(row)
            if isinstance(transcribed, Awaitable):
                import asyncio

                async def wait(result: Awaitable[Video]) -> Video:
                    return await result

                transcribed = asyncio.run(wait(transcribed))
            stored = schemas.table([transcribed], Video).select(["lines"])
            run.store.put_table("description", key, stored)
            run.count("descriptions heard", 1)
        fields = {"video_id": key, "uri": uri, **stored.to_pylist()[0]}
        return schemas.load(Video, fields).lines or ()


def _parts(path: str) -> list[str]:
    """The files of a trained classifier. Raises UserError."""
    place = Path(path)
    if not place.is_dir():
        return [path]
    names = ("head.npz", "config.json", "model.safetensors", "tokenizer.json", "vocab.txt")
    files = [str(place / name) for name in names if (place / name).exists()]
    if not files:
        raise UserError(
            f"align.classifier={path!r} contains neither head.npz nor a model; make one with "
            "python -m ray_jobs.sentences_train"
        )
    return files


def _classifier(path: str) -> Probabilities:
    first = _parts(path)[0]
    if first.endswith(".npz"):
        from actors.stages.align import HeadClassifier

        return HeadClassifier(first)
    from actors.stages.align import BertClassifier

    return BertClassifier(path)


def _suffix(uri: str) -> str:
    return PurePosixPath(strip_options(uri)).suffix.lower().lstrip(".")


def descriptions_in(source: str) -> dict[str, str]:
    """Movie -> address of its description, from a folder or a table. Raises UserError."""
    if _suffix(source) in TABLES:
        rows: Sequence[Mapping[str, Any]] = read_table(source)
        if rows and not {"movie_name", "uri"} <= set(rows[0]):
            raise UserError(f"descriptions={source!r}: the columns movie_name and uri are needed")
        addresses = {plain(str(r["movie_name"])): str(r["uri"]) for r in rows if r.get("uri")}
    else:
        filesystem, path = resolve(source)
        files = [
            (PurePosixPath(file).stem, address_of(file, source))
            for file in filter(is_text, files_under(filesystem, path))
            if _suffix(file) in (*FORMATS, *TABLES, *AUDIO_SUFFIXES)
        ]
        # "Some Movie.en.vtt" belongs to Some Movie, but "Dr. No.srt" does not belong to "Dr".
        addresses = {plain(re.sub(r"(\.[^.\s]+)+$", "", stem)): uri for stem, uri in files}
        addresses |= {plain(stem): uri for stem, uri in files}
    if not addresses:
        raise UserError(
            f"descriptions={source!r}: no files named after movies (.srt .vtt .csv .mp3 ...), "
            "and no table with the columns movie_name and uri"
        )
    return addresses


@cache
def _digest(uri: str) -> str:
    try:
        return file_digest(*resolve(uri))
    except OSError as error:
        raise UserError(f"cannot read {uri!r}: {error}") from error


def table_lines(uri: str) -> tuple[Line, ...]:
    """Read a description from a table with columns start, end (seconds), text. Raises BadRow."""
    lines: list[Line] = []
    for number, row in enumerate(read_table(uri), 1):
        try:
            lines.append(
                Line(start=float(row["start"]), end=float(row["end"]), text=str(row["text"] or ""))
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadRow(
                f"{uri!r}, row {number}: start, end and text are needed: {error}"
            ) from error
    return tuple(lines)


@dataclass(frozen=True, kw_only=True)
class HeadTrainer:
    """Fits a head on vectors of `encoder`, writes `head.npz`."""

    encoder: str = MINILM
    """Folder, package or Hugging Face id of a BERT-type encoder."""
    strength: float = 1.0
    """Weight of the L2 penalty."""

    def __call__(self, train: Sequence[Sentence], folder: str, seed: int) -> HeadClassifier:
        from mustsee.nn.bert import Encoder

        texts = [s.text for s in train]
        vectors = features(texts, Encoder.load(self.encoder).encode(texts))
        head = fit(vectors, [s.visual for s in train], strength=self.strength, encoder=self.encoder)
        head.save(Path(folder) / "head.npz")
        return HeadClassifier(str(Path(folder) / "head.npz"))


class HeadClassifier:
    """A head file with its encoder loaded."""

    def __init__(self, path: str) -> None:
        from mustsee.nn.bert import Encoder

        self._head = LogisticHead.load(path)
        self._encoder = Encoder.load(self._head.encoder)

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Probability that each text is visual, [n]."""
        return self._head.probabilities(features(texts, self._encoder.encode(list(texts))))


def _torch() -> tuple[Any, Any]:
    need("the BERT of classifier=", "mustsee[torch]", "torch")
    import torch
    import transformers

    return torch, transformers


@dataclass(frozen=True, kw_only=True)
class BertTrainer:
    """Fine-tunes `base` with a binary head for 3 epochs, as in the paper. Writes a model folder
    (safetensors).
    """

    base: str = "google-bert/bert-base-uncased"
    """Folder, or Hugging Face id in the cache."""
    epochs: int = 3
    """Passes over the training set (the paper: 3)."""
    rate: float = 5e-5
    """Highest learning rate."""
    batch: int = 32
    """Sentences per step."""
    longest: int = 64
    """Tokens of a sentence that are read, at most."""
    device: str = "cpu"
    """Device: cpu or cuda."""

    def __call__(self, train: Sequence[Sentence], folder: str, seed: int) -> BertClassifier:
        torch, transformers = _torch()
        from mustsee.nn import weights

        base = str(weights.find(self.base))
        torch.manual_seed(seed)
        tokenizer = transformers.AutoTokenizer.from_pretrained(base)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(base, num_labels=2)
        model.to(self.device).train()
        steps = max(1, self.epochs * -(-len(train) // self.batch))
        optimiser = torch.optim.AdamW(model.parameters(), lr=self.rate, weight_decay=0.01)
        schedule = transformers.get_linear_schedule_with_warmup(optimiser, steps // 10, steps)
        order = np.random.default_rng(seed)
        for _ in range(self.epochs):
            places = order.permutation(len(train))
            for at in range(0, len(train), self.batch):
                chosen = [train[i] for i in places[at : at + self.batch]]
                encoded = tokenizer([s.text for s in chosen], padding=True, truncation=True,
                                 max_length=self.longest, return_tensors="pt")  # fmt: skip
                labels = torch.tensor([int(s.visual) for s in chosen])
                inputs = {k: v.to(self.device) for k, v in encoded.items()}
                loss = model(**inputs, labels=labels.to(self.device)).loss
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()
                schedule.step()
                optimiser.zero_grad()
        model.eval().save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return BertClassifier(folder, longest=self.longest, device=self.device)


class BertClassifier:
    """A fine-tuned model, loaded from its folder."""

    def __init__(self, folder: str, *, longest: int = 64, device: str = "cpu") -> None:
        self._torch, transformers = _torch()
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self._model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
        self._model.to(device).eval()
        self._longest, self._device = longest, device

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Probability that each text is visual, [n]."""
        batches: list[Floats] = []
        with self._torch.no_grad():
            for at in range(0, len(texts), 64):
                encoded = self._tokenizer(list(texts[at : at + 64]), padding=True, truncation=True,
                                       max_length=self._longest, return_tensors="pt")  # fmt: skip
                inputs = {k: v.to(self._device) for k, v in encoded.items()}
                batches.append(self._model(**inputs).logits.softmax(-1)[:, 1].cpu().numpy())
        return np.concatenate(batches).astype(np.float64) if batches else np.zeros(0)
