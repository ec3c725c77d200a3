"""How a job starts: `python -m ray_jobs.NAME key=value ...` composes `conf/NAME.yaml` and runs it.

`--help` explains every key; `--cfg job` shows what a command composes to; `-m` sweeps;
`+experiment=NAME` takes a preset. Exit: 0 done; 1 failed; 2 wrong configuration or input, said
before any work; 3 more problems than allowed; 130 Ctrl-C.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import sys
import tempfile
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mustsee.errors import MustseeError, UserError

# Hydra would make folders and log files of its own; a job's output is where `out=` says.
HYDRA = [
    "hydra/job_logging=none",
    "hydra/hydra_logging=none",
    "hydra.output_subdir=null",
    "hydra.run.dir=.",
    f"hydra.sweep.dir={tempfile.gettempdir()}",
    "hydra.sweep.subdir=.",
]
CONF = Path(__file__).resolve().parents[2] / "conf"


def launch(name: str) -> NoReturn:
    """Run the job `conf/<name>.yaml` with the overrides of the command line, and exit."""
    arguments = sys.argv[1:]
    if "--help" in arguments or "-h" in arguments:
        _help(name, [a for a in arguments if not a.startswith("-")])
        sys.exit(0)
    _resolvers()
    codes: list[int] = []

    @hydra.main(version_base="1.3", config_path=str(CONF), config_name=name)
    def main(config: DictConfig) -> None:
        codes.append(_guarded(name, config))

    if not any(a.startswith("-") for a in arguments):
        _compose(name, arguments)
    # Hydra's own flags first, wherever they were given: it takes overrides in one piece only
    overrides = [a for a in arguments if "=" in a and not a.startswith("-")]
    sys.argv[1:] = [a for a in arguments if a not in overrides] + overrides + HYDRA
    main()
    sys.exit(max(codes, default=0))


def compose(name: str, overrides: Sequence[str] = ()) -> DictConfig:
    """The configuration of a job. Raises UserError naming the key, the value and the choices."""
    _resolvers()
    try:
        with hydra.initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
            config = hydra.compose(name, overrides=list(overrides))
            open_keys = [str(k) for k in config if OmegaConf.is_missing(config, k)]
            empty = [o.split("=")[0] for o in overrides if o.endswith("=")]  # videos=$UNSET
            open_keys += [k for k in _needed(name) if k in empty]
            if open_keys:
                about = {k: text for path in _files(name) for k, text in _comments(path)}
                first = open_keys[0]
                raise UserError(f"{first}= is not set: {about.get(first) or 'it must be given'}")
            OmegaConf.resolve(config)
            return config
    except OverrideParseException as error:
        key, equals, value = str(error.override).partition("=")
        quoted = "'" + f'{key}="{value}"' + "'"
        raise UserError(
            f"cannot read {error.override!r}: "
            + (f"a value with such letters needs quotes: {quoted}" if equals else "no key=value")
        ) from error
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_plain(name, str(error), overrides)) from error


def build(config: DictConfig) -> Any:
    """The job object of a composed configuration, its values checked against their types."""
    try:
        job = hydra.utils.instantiate(config.job)
    except (HydraException, OmegaConfBaseException) as error:
        cause = error.__cause__ or error
        if isinstance(cause, UserError):
            raise cause from error
        place = re.search(r"full_key: (\S+)", str(error))
        where = f" (at {place.group(1)})" if place else ""
        reason = str(cause).splitlines()[0]
        raise UserError(f"cannot configure this{where}: {reason}") from error
    _check(job, "")
    return job


def _guarded(name: str, config: DictConfig) -> int:
    """The job's exit code; whatever goes wrong is said in one line, bugs with their traceback."""
    try:
        OmegaConf.resolve(config)
        job = build(config)
        record = OmegaConf.to_container(config)
        kept = {str(k): v for k, v in record.items() if k not in ("job", "run")}  # type: ignore[union-attr]
        if hasattr(job, "run"):
            job = dataclasses.replace(job, run=dataclasses.replace(job.run, config=kept))
        return int(job() or 0)
    except KeyboardInterrupt:
        return _say("stopped; what is finished is kept: the same command goes on from here", 130)
    except Exception as error:
        known = _known(error)
        if known is None:
            Console(stderr=True).print_exception(max_frames=12)
            return 1
        return _say(str(known), 2 if isinstance(known, UserError) else 1)


def _compose(name: str, overrides: Sequence[str]) -> None:
    try:
        build(compose(name, overrides))
    except UserError as error:
        sys.exit(_say(str(error), 2))


def _say(message: str, code: int) -> int:
    print(f"mustsee: {message}", file=sys.stderr)
    return code


def _known(error: BaseException | None) -> MustseeError | None:
    """The error of our own inside what Ray wrapped around it."""
    seen = 0
    while error is not None and seen < 20:
        if isinstance(error, MustseeError):
            return error
        error = getattr(error, "cause", None) or error.__cause__ or error.__context__
        seen += 1
    return None


def _resolvers() -> None:
    import os

    OmegaConf.register_new_resolver(
        "cores", lambda share=1.0: max(1, int((os.cpu_count() or 1) * float(share))), replace=True
    )


def _plain(name: str, message: str, overrides: Sequence[str]) -> str:
    """Hydra's message in one line that names the key, the value and the choices."""
    wrong = re.search(r"Could not override '([^']+)'", message)
    if wrong:
        key = wrong.group(1)
        given = next((o for o in overrides if o.lstrip("+~").split("=")[0] == key), key)
        above, keys = _siblings(name, key, overrides)
        near = difflib.get_close_matches(key.removeprefix(above), keys, n=1)
        hint = f"; did you mean {above + near[0]!r}?" if near else "."
        where = f"Keys in {above[:-1]}, to which + adds one" if above else "Keys"
        listed = ", ".join(keys) or "none"
        return f"there is no key {key!r} (in {given!r}){hint} {where}: {listed}"
    option = re.search(r"Could not find '([^']+)'", message)
    if option:
        group, _, value = option.group(1).rpartition("/")
        near = ", ".join(_choices(group))
        return f"{group}={value!r} is not a choice; choices for {group}: {near}"
    missing = re.search(
        r"(?:to|Missing mandatory value:?) (?:missing value )?'?([\w.]+)'?", message
    )
    if "InterpolationToMissingValue" in message and missing:
        return f"{missing.group(1)}= is not set"
    return " ".join(line.strip() for line in message.splitlines() if line.strip())


def _siblings(name: str, key: str, overrides: Sequence[str]) -> tuple[str, list[str]]:
    """The longest part of a wrong key that is right, with its dot, and the keys that it has."""
    if "." not in key:
        return "", _keys(name)
    groups = [o for o in overrides if o.lstrip("+").split("=")[0].split("@")[0] in _keys(name)]
    with hydra.initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        config = hydra.compose(name, overrides=groups)
    above = key
    while above := above.rpartition(".")[0]:
        node = OmegaConf.select(config, above, throw_on_missing=False)
        if isinstance(node, DictConfig):
            return f"{above}.", sorted(str(k) for k in node if not str(k).startswith("_"))
    return "", _keys(name)


def _keys(name: str) -> list[str]:
    text = "\n".join(path.read_text() for path in _files(name))
    own = re.findall(r"^(\w+):", text, flags=re.MULTILINE)
    groups = re.findall(r"^ +- (?:override )?/?(\w+)(?:@\w+)?:", text, flags=re.MULTILINE)
    hidden = {"defaults", "hydra", "job", "run"}
    return sorted({*own, *groups, "experiment"} - hidden)


def _needed(name: str) -> list[str]:
    """The keys that have no default, and the place of the store."""
    text = "\n".join(path.read_text() for path in _files(name))
    return [*re.findall(r"^(\w+): \?\?\?", text, flags=re.MULTILINE), "store"]


def _files(name: str) -> list[Path]:
    """The job's own file, and the one with the keys that jobs share where it takes them in."""
    own = CONF / f"{name}.yaml"
    shares = re.search(r"^ +- job$", own.read_text(), re.MULTILINE)
    return [own, CONF / "job.yaml"] if shares else [own]


def _choices(group: str) -> list[str]:
    return sorted(p.stem for p in (CONF / group).glob("*.yaml"))


def _comments(path: Path) -> Iterator[tuple[str, str]]:
    """Key -> the comment behind it, of the top level of a YAML file."""
    if path.exists():
        for line in path.read_text().splitlines():
            found = re.match(r"^(\w+):[^#]*(?:#\s*(.*))?$", line)
            if found and found.group(1) not in ("defaults", "job", "run", "hydra"):
                yield found.group(1), found.group(2) or ""


def _help(name: str, overrides: Sequence[str]) -> None:
    """What the job is, its keys with their values, and the choices of each group."""
    text = (CONF / f"{name}.yaml").read_text()
    console = Console()
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith("# @package"):
            console.print(Text(line.lstrip("# ")))
    keys = Table(title="keys", title_justify="left", box=None, title_style="bold")
    for path in _files(name):
        values = OmegaConf.load(path)
        for key, comment in _comments(path):
            value = OmegaConf.to_container(values).get(key)  # type: ignore[union-attr]
            short = "" if isinstance(value, dict) else f"{key}={'' if value is None else value}"
            keys.add_row(Text(short or key), Text(comment))
    console.print(keys)
    table = Table(title="choices", title_justify="left", box=None, title_style="bold")
    for group, chosen in _defaults(text):
        for option in _choices(group):
            head = (CONF / group / f"{option}.yaml").read_text().splitlines()[0]
            mark = "*" if option == chosen else " "
            about = head.lstrip("# ").removeprefix("@package _global_") if head[:1] == "#" else ""
            table.add_row(Text(f"{mark} {group}={option}"), Text(about))
    for option in _choices("experiment"):
        lines = (CONF / "experiment" / f"{option}.yaml").read_text().splitlines()
        about = next((x.lstrip("# ") for x in lines if x[:1] == "#" and "@package" not in x), "")
        table.add_row(Text(f"  +experiment={option}"), Text(about))
    console.print(table)
    console.print(Text("* = the default. Any key inside a choice can be set too: hear.model=..."))


def _defaults(text: str) -> Iterator[tuple[str, str]]:
    for group, chosen in re.findall(r"^ +- /?(\w+)(?:@\w+)?: (\w+)", text, flags=re.MULTILINE):
        if (CONF / group).is_dir():
            yield group, chosen


def _check(value: Any, path: str) -> None:
    """Raise UserError where a field of a configured dataclass holds a value of another type."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return
    hints = typing.get_type_hints(type(value))
    for field in dataclasses.fields(value):
        here = f"{path}.{field.name}".lstrip(".")
        item = getattr(value, field.name)
        if not _fits(item, hints[field.name]):
            kind = getattr(hints[field.name], "__name__", None) or str(hints[field.name])
            raise UserError(f"{here}={item!r}: expected {kind}")
        for inner in item.values() if isinstance(item, Mapping) else [item]:
            _check(inner, here)


def _fits(value: Any, hint: Any) -> bool:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, arg) for arg in args)
    if origin in (tuple, list, Sequence):  # text would be taken letter by letter
        return isinstance(value, list | tuple)
    if origin is typing.Literal:
        return value in args
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint in (str, bool):
        return isinstance(value, hint)
    return value is None if hint is type(None) else True


__all__ = ["build", "compose", "launch"]
