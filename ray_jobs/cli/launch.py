"""How a job starts: `python -m ray_jobs.NAME key=value ...`, or `mustsee NAME key=value ...` from
any folder, composes `conf/NAME.yaml` and runs it. So does Python, in this process:

    import mustsee

    made = mustsee.make("videos", out="runs/mine", llm="openai", **{"llm.model": "gpt-6-luna"})
    made.questions[0].question
    made.to_hf()                  # a datasets.Dataset
    made.report()                 # the page, to be opened in a browser

`--help` explains the keys that people set, `--help all` every key, `--help KEY` the keys inside
one. `--cfg job` prints the composed configuration (`--package KEY`: one part; `--resolve`: with
references resolved). `-m` sweeps; each combination writes into a folder of its own in `out=`.
`+experiment=NAME` takes a preset.

Exit codes: 0 done; 1 failed; 2 wrong configuration or input, or an output folder in use by another
run, reported before any work; 3 more problems than allowed; 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import errno
import itertools
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from mustsee.errors import MustseeError, UserError, hide_secrets
from mustsee.text import printable
from ray_jobs.cli import explain
from ray_jobs.cli.build import build, check_values
from ray_jobs.cli.class_defaults import fill
from ray_jobs.cli.compose import (
    CONF,
    compose,
    compose_job,
    format_hydra_value,
    readable,
    unknown_flag,
)
from ray_jobs.runtime.heartbeat import heartbeat
from ray_jobs.runtime.local_ray import without_collection

if TYPE_CHECKING:
    from mustsee import Dataset

EVERY = "all"  # the word behind --help that shows all
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)  # errors of a write to a full disk


def launch(name: str) -> NoReturn:
    """Run the job `conf/<name>.yaml` with the overrides of the command line, and exit."""
    try:
        given = _given(name, sys.argv[1:])
        if given.help:
            words = [o for o in given.overrides if "=" not in o and o[:1] != "~"]
            overrides = [o for o in given.overrides if o not in words]
            for key in words:
                if key != EVERY:
                    explain.inside(name, key, overrides)
            if not words or EVERY in words:
                explain.job(name, overrides, every=EVERY in words)
            sys.exit(0)
        if given.cfg:
            _show(compose_job(name, given.overrides), given.package, resolve=given.resolve)
            sys.exit(0)
        with without_collection():
            # Of no use to --help, and slow to import.
            from mustsee.run.outputs import check_writable

            points = _points(given.overrides) if given.multirun else {"": given.overrides}
            configs = {
                which: _named(which, compose, name, point) for which, point in points.items()
            }
            configs = _in_own_folders(name, points, configs)
            for which, config in configs.items():
                _named(which, check_values, config)
                if folder := config.get("out"):
                    check_writable("out", folder)
            if any("cluster" in config for config in configs.values()):  # The imports take seconds.
                print(f"mustsee: {name}: starting", file=sys.stderr, flush=True)
            jobs = {which: _named(which, build, config) for which, config in configs.items()}
    except UserError as error:
        sys.exit(_say(str(error), 2))
    with heartbeat(name):
        codes = {which: _guarded(job, which) for which, job in jobs.items()}
    failed = [which for which, code in codes.items() if code]
    if len(codes) > 1 and failed:
        _say(f"{len(failed)} of {len(codes)} combinations failed: {'; '.join(failed)}", 1)
    sys.exit(max(codes.values()))


def make(videos: str, *, out: str, **settings: Any) -> Dataset:
    """Make questions of videos, as `mustsee make` does, and return them. See `run_job`."""
    return run_job("make", videos=videos, out=out, **settings)


def run_job(job: str, *overrides: str, **settings: Any) -> Dataset:
    """Run a job, such as "make" or "evaluate", and return what it wrote in its folder `out`.

    `settings`: the keys of its command line: strings, numbers, booleans, None, lists and mappings.
    A key with a dot goes into a mapping: `**{"llm.model": "gpt-6-luna"}`. `overrides`: further
    words of the command line, such as "+experiment=gemini". Raises UserError for a wrong key, value
    or input, before any work, and MustseeError if the job fails. A second run computes nothing
    again.
    """
    from mustsee import Dataset

    given = [*overrides, *(f"{key}={format_hydra_value(value)}" for key, value in settings.items())]
    config = compose(job, given)
    check_values(config)
    if code := int(build(config)() or 0):
        raise MustseeError(f"{job} ended with exit code {code}; see {config.out}/problems.parquet")
    return Dataset(str(config.out))


def _given(name: str, arguments: Sequence[str]) -> argparse.Namespace:
    """The flags and overrides of a command line. Raises UserError for an unknown flag."""
    flags = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    flags.add_argument("-h", "--help", action="store_true")
    flags.add_argument("-m", "--multirun", action="store_true")
    flags.add_argument("-c", "--cfg", choices=["job"])
    flags.add_argument("-p", "--package")
    flags.add_argument("--resolve", action="store_true")
    flags.add_argument("overrides", nargs="*")
    given, unknown = flags.parse_known_intermixed_args(arguments)
    if unknown:
        flag, _, value = unknown[0].partition("=")
        following = next(iter(arguments[arguments.index(unknown[0]) + 1 :]), "")
        own_value = "" if "=" in following or following.startswith("-") else following
        raise UserError(unknown_flag(name, flag, value or own_value))
    return given


def _points(overrides: Sequence[str]) -> dict[str, list[str]]:
    """The overrides of each run of a sweep, by the values that differ.

    `seed=1,2 llm=openai,offline` gives four runs.
    """
    with readable():
        parsed = OverridesParser.create().parse_overrides(list(overrides))
    axes = [
        [f"{o.get_key_element()}={value}" for value in o.sweep_string_iterator()]
        if o.is_sweep_override()
        else [str(o.input_line)]
        for o in parsed
    ]
    swept = [number for number, axis in enumerate(axes) if len(axis) > 1]
    return {
        " ".join(point[number] for number in swept): list(point)
        for point in itertools.product(*axes)
    }


def _in_own_folders(
    name: str, points: Mapping[str, Sequence[str]], configs: Mapping[str, DictConfig]
) -> dict[str, DictConfig]:
    """The configurations of a sweep, where several would write into one folder each with a folder
    of its own inside it, named by the values that differ. They keep one store.
    """
    from mustsee.files.store import in_folder

    times = Counter(config.get("out") for config in configs.values())
    apart = dict[str, DictConfig]()
    for which, config in configs.items():
        out = config.get("out")
        apart[which] = config
        if out is not None and times[out] > 1:
            # Names that other keys take without quotes, as in evaluations=[runs/x/frames-8].
            short = re.sub(r"[\w.@/]*?(\w+)=", r"\1-", which).replace(" ", "_")
            own = re.sub(r"[^\w.]+", "-", short).strip("-")
            moved = {"out": in_folder(out, own), "store": config.get("store")}
            given = [o for o in points[which] if o.partition("=")[0] not in moved]
            added = [
                f"{key}={format_hydra_value(value)}"
                for key, value in moved.items()
                if value is not None
            ]
            apart[which] = _named(which, compose, name, [*given, *added])
    folders = [config.out for config in apart.values() if config.get("out") is not None]
    if len(set(folders)) < len(folders):
        raise UserError(
            f"the {len(apart)} combinations would write into the same folder: give each its own, "
            "as in out='runs/${seed}'"
        )
    return apart


def _named(which: str, make: Callable[..., Any], *arguments: Any) -> Any:
    """Call `make`; a UserError is raised with the combination of the sweep in its text."""
    try:
        return make(*arguments)
    except UserError as error:
        raise UserError(f"in the combination {which}: {error}" if which else str(error)) from error


def _show(config: DictConfig, package: str | None, *, resolve: bool) -> None:
    filled = OmegaConf.create(fill(OmegaConf.to_container(config, resolve=False)))
    selected = OmegaConf.select(filled, package) if package else filled
    if OmegaConf.is_config(selected):
        print(hide_secrets(OmegaConf.to_yaml(selected, resolve=resolve)), end="")
    else:
        print(hide_secrets(str(selected)))


def _guarded(job: Any, which: str) -> int:
    """Run the job and return its exit code. Errors become one line, bugs a traceback.

    `which`: the combination of a sweep.
    """
    if which:
        print(f"\nmustsee: {which}", file=sys.stderr, flush=True)
    try:
        return int(job() or 0)
    except KeyboardInterrupt:
        return _say("stopped; finished work is kept: the same command continues from here", 130)
    except Exception as error:
        own = _own_error(error)
        if own is None:
            Console(stderr=True).print_exception(max_frames=12)
            return 1
        return _say(str(own), 2 if isinstance(own, UserError) else 1)


def _say(message: str, code: int) -> int:
    lines = hide_secrets(message).split("\n")
    print("mustsee: " + "\n".join(map(printable, lines)), file=sys.stderr)
    return code


def _own_error(error: BaseException | None) -> MustseeError | None:
    """The MustseeError inside the errors that Ray wraps around it, or that stands for a full disk;
    None if there is none.
    """
    depth = 0
    while error is not None and depth < 20:
        if isinstance(error, MustseeError):
            return error
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            return MustseeError(
                f"cannot write {error.filename or 'a file'}: {os.strerror(error.errno)}; free some "
                "space and run the same command again: what is finished is kept"
            )
        error = getattr(error, "cause", None) or error.__cause__ or error.__context__
        depth += 1
    return None


__all__ = ["CONF", "build", "compose", "launch"]
