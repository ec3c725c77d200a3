"""`log=`: reports a finished run to an experiment tracker, through the tracker's own client.

It sends only what the output folder holds: the configuration, the figures of `run.json` and
`results.json`, and these two files and the report page as artefacts.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from pyarrow import fs

from mustsee.errors import UserError, hide_secrets, need, secret
from mustsee.files.store import resolve

FILES = ("run.json", "results.json", "report/index.html")
_NOT_IN_NAMES = re.compile(r"[^\w./ -]")  # characters that MLflow refuses in a metric's name
SECRETS = ("MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_PASSWORD")
MAX_PARAMETERS = 100  # parameters, at most, in one request to an MLflow server


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """A run as a tracker stores it.

    `settings`: value by dotted key. `files` lie in a temporary folder.
    """

    recipe: str
    settings: Mapping[str, Any]
    figures: Mapping[str, float]
    files: tuple[Path, ...]


class Tracker(Protocol):
    def check(self) -> None:
        """Raise UserError for a missing client or key. Called before any work."""
        ...

    def keep(self, run: FinishedRun) -> str:
        """Send the run and return where it can be seen. May raise any exception."""
        ...


@dataclass(frozen=True, kw_only=True)
class NoTracker:
    """No tracker: `log=` is not given."""

    def check(self) -> None:
        pass

    def keep(self, run: FinishedRun) -> str:
        return ""


@dataclass(frozen=True, kw_only=True)
class Mlflow:
    """MLflow."""

    experiment: str
    uri: str | None = None
    """Address of the tracking server or database; null: MLFLOW_TRACKING_URI."""
    name: str | None = None
    """Name of the run; null: chosen by the tracker."""

    def check(self) -> None:
        need("log=mlflow", "mustsee[mlflow]", "mlflow")
        if "@" in urlsplit(self.uri or "").netloc:
            raise UserError(
                "log.uri= holds a name or password, which run.json would store: set "
                "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD instead"
            )

    def keep(self, run: FinishedRun) -> str:
        import mlflow  # pyright: ignore[reportMissingImports]

        mlflow.set_tracking_uri(self.uri)
        mlflow.set_experiment(self.experiment)
        with mlflow.start_run(run_name=self.name, tags={"recipe": run.recipe}) as tracked:
            settings = list(run.settings.items())
            for start in range(0, len(settings), MAX_PARAMETERS):
                mlflow.log_params(dict(settings[start : start + MAX_PARAMETERS]))
            mlflow.log_metrics({_NOT_IN_NAMES.sub("_", k): v for k, v in run.figures.items()})
            for path in run.files:
                mlflow.log_artifact(str(path))
            place = mlflow.get_tracking_uri()
            return f"run {tracked.info.run_id} of experiment {self.experiment!r} at {place}"


def report_to_tracker(tracker: Tracker, out: str) -> str | None:
    """Send the run in `out` to the tracker and return a line on it; None without a tracker.

    An error only changes the line, because the run is finished and its files are written.
    """
    if isinstance(tracker, NoTracker):
        return None
    for name in SECRETS:
        secret(os.environ.get(name, ""))
    with tempfile.TemporaryDirectory(prefix="mustsee-log-") as folder:
        try:
            return f"log:    {tracker.keep(copy_run(out, Path(folder)))}"
        except Exception as error:
            first, *_ = hide_secrets(str(error)).splitlines() or [type(error).__name__]
            return f"log:    {type(tracker).__name__} failed: {first}; the run itself is complete"


def copy_run(out: str, folder: Path) -> FinishedRun:
    """The run in `out`, with its files copied to `folder`."""
    filesystem, path = resolve(out)
    found = filesystem.get_file_info([f"{path}/{name}" for name in FILES])
    existing = [n for n, info in zip(FILES, found, strict=True) if info.type == fs.FileType.File]
    for name in existing:
        target = folder / Path(name).name
        with filesystem.open_input_stream(f"{path}/{name}") as source:
            target.write_bytes(source.read())
    record = json.loads((folder / "run.json").read_bytes())
    results = folder / "results.json"
    scores = json.loads(results.read_bytes())["results"] if results.is_file() else []
    return FinishedRun(
        recipe=record["recipe"],
        settings=dict(_leaves(record["config"], ".")),
        figures=figures(record, scores),
        files=tuple(folder / Path(name).name for name in existing),
    )


def figures(record: Mapping[str, Any], scores: list[Mapping[str, Any]]) -> dict[str, float]:
    """The figures to plot: questions, funnel, calls, tokens, money, seconds and scores.

    Scores of several models are under the models' names.
    """
    questions, llm = record["questions"], record["llm"]
    calls = ("calls", "cached", "tokens_in", "tokens_out", "usd", "usd_per_kept_question")
    tree: dict[str, Any] = {
        "questions": {k: questions[k] for k in ("made", "kept", "dropped", "subsets", "types")},
        "funnel": {
            s["stage"]: {k: s[k] for k in ("in", "out", "problems")} for s in record["funnel"]
        },
        "llm": {k: llm.get(k) for k in calls},
        "seconds": record["seconds"],
    }
    keys = ("weighted", "macro", "named", "unparsed", "asked", "failed")
    for entry in scores:
        name = "scores" if len(scores) == 1 else f"scores {entry['model']}"
        tree[name] = {key: entry[key] for key in keys}
    return {
        key: float(value)
        for key, value in _leaves(tree, "/")
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _leaves(tree: Any, mark: str, path: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(tree, Mapping):
        yield path, tree
        return
    for key, value in tree.items():
        yield from _leaves(value, mark, f"{path}{mark}{key}" if path else str(key))
