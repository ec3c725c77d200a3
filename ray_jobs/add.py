"""Add: people's own questions on the videos of a run, and its questions that people have edited,
checked by the filters of that run; several runs become one.

    python -m ray_jobs.add questions=mine.csv made=runs/made out=O [llm=openai llm.model=M]
    python -m ray_jobs.add made=runs/made out=O                    the edited questions alone
    python -m ray_jobs.add made=[runs/a,runs/b] out=O              two runs in one folder
    python -m ray_jobs.add made=runs/made duplicates=drop out=O    without repeated questions

The other questions of the run stay as they are, and none is reworded. See docs/add.md.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

from rich.console import RenderableType
from rich.text import Text

from actors.part import Part
from actors.stages.vet import Vet
from mustsee.audit.guessers import LearnedGuess, record_learned
from mustsee.audit.repeats import RepeatedPair, drop_repeats, open_encoder, repeats_among_kept
from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.files.parquet import RECORD, check_digests
from mustsee.files.store import Store, identity
from mustsee.layouts import read
from mustsee.layouts.added import AddedQuestions, add_questions, describe_verdicts, write_verdicts
from mustsee.layouts.columns import columns_from
from mustsee.layouts.detect import open_streamed
from mustsee.layouts.errata import name_ids
from mustsee.layouts.merged import MergedRuns, RunTables, merge_runs
from mustsee.records import Video
from mustsee.run.inputs import with_videos
from mustsee.run.outputs import store_of_run
from mustsee.run.tables import Tables
from mustsee.text import printable
from mustsee.verify.filters import QuestionFilter
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.compared_runs import NOT_MAKING, read_object
from ray_jobs.runtime.run import JobSettings

FRAMES = "look"  # the stage whose stored results hold the frames of the pages


@dataclass(frozen=True, kw_only=True)
class AddQuestions:
    """`vet`: the models that are asked; its filters are those of the run in `made`."""

    run: JobSettings
    questions: str | None
    format: str | None
    table: Mapping[str, Any] | None
    made: str | Sequence[str]
    videos: str | None
    duplicates: Literal["name", "drop"] | None
    encoder: str | None
    alike: float
    vet: Part

    def __call__(self) -> int:
        if not isinstance(self.vet, Vet):
            raise UserError("vet= must be one of conf/vet: it names the models of the filters")
        merged = merge_runs([read_run(folder) for folder in self.folders])
        filters, faults = self.filters()
        first = next(iter(filters), None)
        added = self.add(merged, first.subset if first else None)
        tested = dict.fromkeys(added.added, "questions by people")
        tested |= dict.fromkeys(added.edited, "edited questions")
        if tested:
            check_one_set_of_filters(filters, faults)
        pairs = self.repeats(added.rows)
        rows = added.rows
        if self.duplicates == "drop":
            rows = [replace(v, questions=drop_repeats(v.questions or (), pairs)) for v in rows]
        lines = merged.lines() if len(self.folders) > 1 else []
        lines += [*added.lines(), *(self.changed_models(first) if first and tested else ())]
        for line in lines:
            print(f"mustsee: {line}", file=sys.stderr, flush=True)
        settings = self.run
        if first is not None:
            settings = replace(settings, config=first.run_config(settings.config))
        with settings.open("add", light=not tested) as run:
            if lost := copy_frames(rows, self.folders, self.run.store):
                print(f"mustsee: {lost}", file=sys.stderr, flush=True)
            run.read(schemas.table(rows, Video))
            if first is not None:
                vet = replace(
                    self.vet, filters=first.filters, order=first.order, subset=first.subset,
                    watch=first.watch, repair=None, spare=1, only=tuple(tested),
                )  # fmt: skip
                run.stage("vet", vet)
                if any(each.learned for each in filters):
                    run.together(LearnedGuess(subset=first.subset))
            record = {**added.plain(), "duplicates": [asdict(pair) for pair in pairs]}
            if len(self.folders) > 1:
                record["merged"] = merged.plain()

            def report(folder: Path, tables: Tables) -> list[RenderableType]:
                questions = list(tables.questions())
                if tested:
                    write_verdicts(folder, questions, tested)
                lines = describe_verdicts(questions, tested)
                # Lines may be long, and words of questions are no markup.
                return [Text("\n".join([*lines, *self.describe_repeats(pairs)]))]

            return run.publish(
                files=report, extra=lambda tables: {"added": record, **record_learned(tables)}
            )

    @property
    def folders(self) -> list[str]:
        """The folders of the runs. Raises UserError for one that is named twice."""
        folders = [self.made] if isinstance(self.made, str) else list(self.made)
        places = [str(Path(folder).resolve()) for folder in folders]
        if not folders or len(set(places)) < len(places):
            raise UserError(f"made={folders}: give the folder of a run, or of several, each once")
        return folders

    def filters(self) -> tuple[list[RunFilters], list[UserError]]:
        """Return the filters of the runs that have any, and why others have none."""
        filters, faults = list[RunFilters](), list[UserError]()
        for folder in self.folders:
            try:
                filters.append(read_filters(Path(folder)))
            except UserError as error:
                faults.append(error)
        return filters, faults

    def add(self, merged: MergedRuns, subset: str | None) -> AddedQuestions:
        """Read the questions and put them beside those of the run. Raises UserError."""
        columns = columns_from(self.table)
        reading = read(self.questions, self.format, columns) if self.questions else None
        videos = with_videos({v.video_id: v for v in merged.videos}, self.videos)
        is_enough = self.questions is None and (len(self.folders) > 1 or self.duplicates == "drop")
        return add_questions(
            reading, list(videos.values()), merged.questions, stored=merged.stored, subset=subset,
            may_be_none=is_enough,
        )  # fmt: skip

    def repeats(self, rows: Iterable[Video]) -> list[RepeatedPair]:
        """Return the questions that repeat another one, if they are wanted."""
        if self.duplicates is None:
            return []
        questions = list(chain.from_iterable(video.questions or () for video in rows))
        return repeats_among_kept(questions, open_encoder(self.encoder), alike=self.alike)

    def describe_repeats(self, pairs: Sequence[RepeatedPair]) -> list[str]:
        """Return a line on the questions that repeat another one."""
        if self.duplicates is None or not pairs:
            return ["no question repeats another one"] if self.duplicates == "drop" else []
        names = name_ids([f"{pair.question} repeats {pair.other}" for pair in pairs])
        apart = sum(not pair.video for pair in pairs)
        end = "left out" if self.duplicates == "drop" else "duplicates=drop leaves them out"
        return [
            printable(
                f"{len(pairs)} questions repeat another one, {apart} of them on another video: "
                f"{names}; {end}"
            )
        ]

    def changed_models(self, filters: RunFilters) -> list[str]:
        """Return a line for each model that is another one than in the run."""
        config: Any = self.run.config.get("vet") or {}
        mine = {role: node.get("model") for role, node in config.items() if isinstance(node, dict)}
        lines: list[str] = []
        for role, name in filters.models.items():
            asked = getattr(self.vet, role, None)
            here = "nobody" if asked is None else str(mine.get(role) or asked.identity)
            if here.split()[0] != name:
                lines.append(f"the run's {role} was {name}, and is {here} here")
        return lines


def read_run(folder: str) -> RunTables:
    """Read the tables of a run, with its ticks. Raises UserError."""
    made = Path(folder)
    for file in ("questions.parquet", "videos.parquet"):
        if not (made / file).exists():
            raise UserError(f"made={folder!r} has no {file}: give the folder of a run")
    check_digests(made, "questions.parquet", "videos.parquet")
    try:
        recipe = str(read_object(made, RECORD).get("recipe"))
    except ValueError as error:
        raise UserError(f"made={folder!r} is not the folder of a run: {error}") from error
    if recipe in NOT_MAKING:
        raise UserError(
            f"made={folder!r} is the output of mustsee {recipe}: give a run that makes questions"
        )
    tables = Tables(made)
    return RunTables(
        name=folder,
        recipe=recipe,
        videos=list(tables.videos()),
        questions=list(open_streamed(folder).questions),
        stored=list(tables.questions()),
    )


def copy_frames(rows: Iterable[Video], folders: Sequence[str], store: str) -> str:
    """Copy the frames that pages show of these videos from the stores of the runs in `folders` to
    `store`. Returns a line on the videos that lack them; empty if there are none.
    """
    sources = [Store(store_of_run(each, read_object(Path(each), RECORD))) for each in folders]
    target, lost = Store(store), list[str]()
    for video in rows:
        key = video.lineage.get(FRAMES)
        if key is None or target.get(FRAMES, key) is not None:
            continue
        copies = (source.get(FRAMES, key) for source in sources)
        if (frames := next((copy for copy in copies if copy is not None), None)) is None:
            lost.append(video.video_id)
        else:
            target.put(FRAMES, key, frames)
    if not lost:
        return ""
    return printable(
        f"the frames of {len(lost)} videos are not in the stores of the runs, so that the report "
        f"shows none of them: {name_ids(lost)}"
    )


def check_one_set_of_filters(filters: Sequence[RunFilters], faults: Sequence[UserError]) -> None:
    """Raise UserError unless all runs have filters, and the same ones."""
    if faults:
        raise faults[0]
    if len({repr(identity((f.filters, f.order, f.subset))) for f in filters}) > 1:
        raise UserError(
            "these runs have different filters, so that questions that were added or edited "
            "cannot be tested in one command: test them with their own run alone "
            "(mustsee add made=RUN), then merge what that wrote"
        )


TARGET = "_target_"  # key that names the class of a node
FILTER_MODULES = "mustsee.verify."  # start of the modules of filters and of their settings
UNREAD = (TARGET, "_convert_")
# Keys of `vet` that a run shares with another one.
SETTINGS = ("filters", "order", "subset", "watch")


@dataclass(frozen=True, kw_only=True)
class RunFilters:
    """The filters of a run by name, None for one that is off, and its settings of `vet`. `models`:
    role -> the model that the run asked, as its configuration names it. `config`: the keys of its
    configuration that say so, for the record of a run that uses its filters.
    """

    filters: Mapping[str, QuestionFilter | None]
    order: tuple[str, ...]
    subset: str | None
    watch: bool
    models: Mapping[str, str]
    learned: bool
    config: Mapping[str, Any]

    def run_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the configuration of a run that uses these filters, in place of its own ones."""
        vet = {**(config.get("vet") or {}), **self.config["vet"]}
        return {**config, **self.config, "vet": vet}


def read_filters(folder: Path) -> RunFilters:
    """Read the filters of the run in `folder`. Raises UserError for a run without filters, and for
    one whose filters are not of this version.
    """
    path = folder / RECORD
    try:
        record: Any = json.loads(path.read_text(encoding="utf-8"))
        config: Mapping[str, Any] = record["config"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UserError(f"{str(path)!r} is not the record of a run: {error}") from error
    vet: Any = config.get("vet")
    if not isinstance(vet, dict) or not isinstance(vet.get("filters"), dict):
        raise UserError(
            f"made={str(folder)!r}: this run of {record.get('recipe')!r} has no filters: give a "
            "run that makes questions"
        )
    nodes = cast(dict[str, Any], vet)
    filters = {
        name: None if node is None else _build(node, f"{path}: vet.filters.{name}")
        for name, node in nodes["filters"].items()
    }
    return RunFilters(
        filters=filters,
        order=tuple(nodes.get("order") or ()),
        subset=nodes.get("subset"),
        watch=nodes.get("watch", True),
        models={role: _model_name(node) for role, node in nodes.items() if _is_model(node)},
        learned=isinstance(config.get("learned"), dict),
        config={
            "vet": {key: nodes[key] for key in SETTINGS if key in nodes},
            **({"learned": config["learned"]} if config.get("learned") else {}),
        },
    )


def _build(node: Any, where: str) -> Any:
    """Build a value of a configuration. Only dataclasses of `FILTER_MODULES` are built, since a run
    may come from somebody else.
    """
    if isinstance(node, list):
        return [_build(item, where) for item in cast(list[Any], node)]
    if not isinstance(node, dict):
        return node
    keys = cast(dict[str, Any], node)
    if TARGET not in keys:
        return {name: _build(item, where) for name, item in keys.items()}
    module, _, name = str(keys[TARGET]).rpartition(".")
    kind: Any = None
    if keys[TARGET].startswith(FILTER_MODULES):
        try:
            kind = getattr(importlib.import_module(module), name, None)
        except ImportError:
            kind = None
    if not isinstance(kind, type) or not is_dataclass(kind):
        raise UserError(f"{where}: {keys[TARGET]!r} is not a filter of this version")
    values = {key: _build(item, where) for key, item in keys.items() if key not in UNREAD}
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: not a filter of this version: {error}") from error


def _is_model(node: Any) -> bool:
    return isinstance(node, dict) and str(cast(Any, node).get(TARGET, "")).startswith("actors.llm")


def _model_name(node: Mapping[str, Any]) -> str:
    return str(node.get("model") or str(node[TARGET]).rpartition(".")[2].lower())


if __name__ == "__main__":
    launch("add")
