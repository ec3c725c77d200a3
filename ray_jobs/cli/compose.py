"""From overrides to a job's configuration, with a part of its own for every role that is set.

A key whose value is `${GROUP}`, such as `vet.guesser: ${llm}`, is a role: it takes the run's own
`llm` unless it is set. `vet/guesser=openai` gives it another choice, `vet.guesser.model=X` changes
one key. Hydra cannot do this: it would write through the `${llm}` into what all roles share. So the
job is composed once more with the role's overrides as if they were the group's, and what the group
then is takes the role's place.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import os
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import (
    ConfigCompositionException,
    HydraException,
    MissingConfigException,
    OverrideParseException,
)
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mustsee.errors import UserError, secrets_in
from ray_jobs.cli import presets, renamed

CONF = Path(__file__).resolve().parents[2] / "conf"
HIDDEN = ("hydra", "job")  # keys that nobody sets
VIDEOS = ("videos", "backgrounds", "clips", "benchmark_videos")
INPUTS = (*VIDEOS, "questions", "narrations", "descriptions", "templates", "annotations", "queries",
          "durations", "sentences")  # fmt: skip
RESUMES = "the same command goes on where it stopped, and computes nothing twice"
RESUMING = ("resume", "continue", "restart")  # what a run needs no flag for


def compose(name: str, overrides: Sequence[str] = ()) -> DictConfig:
    """The configuration of a job, resolved. Raises UserError naming the key, the value and the
    choices.
    """
    for text in overrides:  # before any of them is shown
        secrets_in(text)
    config = compose_job(name, overrides)
    empty = [o.split("=")[0] for o in overrides if o.endswith("=")]  # videos=$UNSET
    needed = {"store", *_missing(compose_by_hydra(name))} if empty else set[str]()
    for key in [*_missing(config), *(key for key in empty if key in needed)]:
        about = comments(name).get(key) or "it must be given"
        raise UserError(f"{key}= is not set: {about}")
    _used(name, config, overrides)
    with readable():
        OmegaConf.resolve(config)
    for text in _texts(OmegaConf.to_container(config)):
        secrets_in(text)
    return config


def compose_job(name: str, overrides: Sequence[str] = ()) -> DictConfig:
    """The configuration of a job as it is written: what refers to other keys is not resolved."""
    _check_words(name, overrides)
    renamed.check_overrides(overrides)
    with readable():
        given = presets.expand(CONF, name, overrides)
        parsed = OverridesParser.create().parse_overrides(given)
    own = [o for o in parsed if _text(o) in overrides]  # a preset sets no role
    deep = [o for o in own if o.package is None and set("./") & set(o.key_or_group)]
    plain = tuple(_text(o) for o in parsed if o not in deep)
    found = _roles_with(CONF, name, plain) if deep else {}
    sets = {role: [o for o in deep if _belongs(o, role)] for role in found}
    rest = [_text(o) for o in parsed if not any(o in its for its in sets.values())]
    _known_roles(rest, found)
    config = compose_by_hydra(name, rest)
    for role, its in sets.items():
        if its:
            part = _part(name, role, found[role], its, rest)
            OmegaConf.update(config, role, part, merge=False, force_add=True)
    return config


def _used(name: str, config: DictConfig, overrides: Sequence[str]) -> None:
    """Raises UserError where an endpoint is set and no part asks one."""
    for key in ("base_url", "key_env"):
        given = next((o for o in overrides if o.startswith(f"{key}=")), None)
        if given is None:
            continue
        parts = OmegaConf.masked_copy(config, [str(k) for k in config if k != key])
        written = OmegaConf.to_yaml(parts, resolve=False)
        if "${" + key + "}" not in written and str(config[key]) not in written:
            groups = [g for item in defaults(name) if isinstance(item, dict) for g in item]
            asking = [f"{g}=openai" for g in groups if "openai" in choices(g)]
            raise UserError(
                f"{given} is used by no part of this command: add {' or '.join(asking)}"
                if asking
                else f"{given} is used by no part of this command: leave it out"
            )


def _check_words(name: str, overrides: Sequence[str]) -> None:
    """Raises UserError for a word that is no override, and for a web address as an input, which
    the reader of overrides would only ask to be quoted.
    """
    for word in overrides:
        key, equals, value = word.lstrip("+").partition("=")
        if not equals and not word.startswith("~"):
            raise UserError(f"{word!r} is not key=value{_meant(name, word, overrides)}")
        address = value.strip("'\"")
        if key in INPUTS and address.startswith(("http://", "https://")):
            secrets_in(address)
            page = key in VIDEOS and not re.search(r"/[^/?#]+\.\w{2,4}$", address)
            raise UserError(
                f"{key}={address}: web addresses are not read. Download it first, with "
                f"{'yt-dlp' if page else 'curl -LO'} '{address}', then give its path"
            )


def _meant(name: str, word: str, overrides: Sequence[str]) -> str:
    """The key that a word without one is meant for."""
    if word in known_keys(name):
        return f": write {word}=..."
    given = {o.lstrip("+~").partition("=")[0] for o in overrides}
    texts = "".join(path.read_text() for path in files(name))
    needed = re.findall(r"(?m)^(\w+): \?\?\?", texts)
    inputs = [key for key in (*needed, *INPUTS) if key in (*needed, *comments(name))]
    wanted = [key for key in inputs if key not in given]
    return f"; did you mean {wanted[0]}={word}?" if wanted else "; mustsee --help shows how"


def unknown_flag(name: str, flag: str, value: str) -> str:
    """What to write in the place of a flag that a job does not have. `value`: what followed it."""
    key = flag.lstrip("-").replace("-", "_")
    if key in RESUMING:
        return f"there is no flag {flag!r}, and none is needed: {RESUMES}"
    known = known_keys(name)
    near = difflib.get_close_matches(key, sorted(known), n=1)
    if key.partition(".")[0] not in known and not near:
        return f"there is no flag {flag!r}, and no key of that name; --help lists the keys"
    right = key if key.partition(".")[0] in known else near[0]
    texts = "".join(path.read_text() for path in files(name))
    switch = re.search(rf"(?m)^{re.escape(right)}: (true|false)\b", texts)
    value = value or ("true" if switch else "...")
    return (
        f"there is no flag {flag!r}: write {right}={value} (keys have no dashes before them; "
        "--help lists them)"
    )


def known_keys(name: str) -> set[str]:
    """What may be set of a job: its keys, its groups, and presets."""
    groups, keys = presets.contents(CONF, name)
    return {*groups, *keys, "experiment"} - {*HIDDEN}


@functools.lru_cache
def _roles_with(conf: Path, name: str, overrides: tuple[str, ...]) -> dict[str, str]:
    """The roles of a job of the folder `conf`, as these overrides leave them."""
    return roles(compose_by_hydra(name, overrides))


def roles(config: DictConfig) -> dict[str, str]:
    """Role -> the group whose choice it takes unless it is set: "vet.guesser" -> "llm"."""
    plain = OmegaConf.to_container(config, resolve=False)

    def walk(node: Any, path: str) -> Iterator[tuple[str, str]]:
        for key, value in node.items() if isinstance(node, dict) else ():
            here = f"{path}.{key}".lstrip(".")
            group = value[2:-1] if isinstance(value, str) and value[:2] == "${" else ""
            if path and group.isidentifier() and (CONF / group).is_dir():
                yield here, group
            yield from walk(value, here)

    return dict(walk(plain, ""))


def _belongs(override: Override, role: str) -> bool:
    key = override.key_or_group
    return key == role.replace(".", "/") or key.startswith(f"{role}.")


def _part(
    name: str, role: str, group: str, its: Sequence[Override], rest: Sequence[str]
) -> DictConfig:
    """What `group` is with the overrides of a role; without a choice of its own, the run's choice
    and the run's overrides of that come first.
    """
    own = [_text(o).replace(o.key_or_group, _moved(o.key_or_group, role, group), 1) for o in its]
    if any(o.key_or_group == role.replace(".", "/") for o in its):
        rest = [o for o in rest if o.lstrip("+~").split("=")[0].split(".")[0] != group]
    try:
        return compose_job(name, [*rest, *own])[group]
    except UserError as error:
        told = str(error).replace(f"{group}.", f"{role}.")
        raise UserError(told.replace(f"{group}=", f"{role.replace('.', '/')}=")) from error


def _moved(key: str, role: str, group: str) -> str:
    return group if "/" in key else group + key.removeprefix(role)


def _known_roles(overrides: Sequence[str], found: Mapping[str, str]) -> None:
    """Raises UserError for a choice in a place that is neither a group nor a role."""
    for text in overrides:
        key = text.lstrip("+~").split("=")[0].split("@")[0]
        if "/" in key and not key.startswith("hydra/") and not (CONF / key).is_dir():
            listed = [role.replace(".", "/") for role in found]
            raise UserError(
                f"there is no role {key!r} (in {text!r}){_near(key, listed)} Roles: "
                + (", ".join(listed) or "none")
            )


def _text(override: Override) -> str:
    return str(override.input_line)


def compose_by_hydra(name: str, overrides: Sequence[str] = ()) -> DictConfig:
    """What Hydra composes, where nothing is known of roles."""
    with (
        readable(overrides),
        hydra.initialize_config_dir(version_base="1.3", config_dir=str(CONF)),
    ):
        return hydra.compose(name, overrides=list(overrides))


def comments(name: str) -> dict[str, str]:
    """Top-level key -> the comment behind it, of the job's file and those that it takes in."""
    found: dict[str, str] = {}
    for path in files(name):
        for line in path.read_text().splitlines():
            key, colon, rest = line.partition(":")
            if colon and key.isidentifier() and key not in (*HIDDEN, "defaults"):
                found[key] = rest.partition("#")[2].strip()
    return found


def files(name: str) -> list[Path]:
    """The job's own file, and those with the keys that jobs share."""
    shared = [item for item in defaults(name) if isinstance(item, str) and item != "_self_"]
    return [CONF / f"{name}.yaml", *(path for other in shared for path in files(other))]


def defaults(name: str) -> list[Any]:
    """What a file takes in: names of files, and `{group: choice}`."""
    plain: Any = OmegaConf.to_container(OmegaConf.load(CONF / f"{name}.yaml"))
    return plain.get("defaults", [])


def choices(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml")) if group else []


def _choice(group: str, option: str) -> Path:
    return CONF / group / f"{option}.yaml"


@contextlib.contextmanager
def readable(overrides: Sequence[str] = ()) -> Generator[None]:
    """Hydra's errors in one line that names the key, the value and the choices."""
    OmegaConf.register_new_resolver(
        "cores", lambda share=1.0: max(1, int((os.cpu_count() or 1) * float(share))), replace=True
    )
    try:
        yield
    except OverrideParseException as error:
        key, equals, value = str(error.override).partition("=")
        secrets_in(value)
        quoted = "'" + f'{key}="{value}"' + "'"
        raise UserError(
            f"cannot read {error.override!r}: "
            + (f"a value with such letters needs quotes: {quoted}" if equals else "no key=value")
        ) from error
    except MissingConfigException as error:
        group, _, value = str(error.missing_cfg_file).rpartition("/")
        listed = ", ".join(error.options or ())
        raise UserError(
            f"{group}={value!r} is not a choice; choices for {group}: {listed}"
        ) from error
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        cause = error.__cause__
        if isinstance(error, ConfigCompositionException) and isinstance(
            cause, OmegaConfBaseException
        ):
            raise UserError(_wrong_key(cause, overrides)) from error
        raise UserError(" ".join(str(error).split())) from error


def _wrong_key(error: OmegaConfBaseException, overrides: Sequence[str]) -> str:
    """A key that is not there: what is meant, who has it, and what there is in its place."""
    wrong, above = str(error.full_key), error.parent_node
    place, _, last = wrong.rpartition(".")
    given = next((o for o in overrides if o.lstrip("+~").startswith(wrong)), wrong)
    having = [f"{place}={c}" for c in choices(place) if last in OmegaConf.load(_choice(place, c))]
    if having:
        others = f" (or {', '.join(having[1:])})" if having[1:] else ""
        return f"there is no key {wrong!r} (in {given!r}) in this {place}: add {having[0]}{others}"
    if wrong in RESUMING:
        return f"there is no key {wrong!r}, and none is needed: {RESUMES}"
    keys = sorted(str(k) for k in above or () if str(k) not in HIDDEN and str(k)[0] != "_")
    dot, where = (f"{place}.", f"Keys in {place}, to which + adds one") if place else ("", "Keys")
    listed = ", ".join(keys if place else sorted({*keys, "experiment"})) or "none"
    near = _near(last, keys, dot)
    if near == "." and not place:
        near = _deep(last, above)
    return f"there is no key {wrong!r} (in {given!r}){near} {where}: {listed}"


def _deep(wrong: str, config: Any) -> str:
    """The keys inside of others that are like this one, as far as any are."""

    def walk(node: Any, path: str) -> Iterator[str]:
        for key, value in node.items() if isinstance(node, dict) else ():
            yield f"{path}{key}"
            yield from walk(value, f"{path}{key}.")

    paths = list(walk(OmegaConf.to_container(config, resolve=False), ""))
    names = {path.rpartition(".")[2] for path in paths if path.partition(".")[0] not in HIDDEN}
    near = difflib.get_close_matches(wrong, sorted(names), n=1, cutoff=0.7)
    found = [path for path in paths if path.rpartition(".")[2] in near]
    return f"; did you mean {' or '.join(map(repr, found[:3]))}?" if found else "."


def _near(wrong: str, known: Sequence[str], before: str = "") -> str:
    near = difflib.get_close_matches(wrong, known, n=1)
    return f"; did you mean {before + near[0]!r}?" if near else "."


def _texts(node: Any) -> Iterator[str]:
    """Every text value of a plain configuration."""
    if isinstance(node, str):
        yield node
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for value in inner:
        yield from _texts(value)


def _missing(config: DictConfig) -> list[str]:
    """The keys that are still `???`, whatever refers to them left alone."""

    def walk(node: Any, path: str) -> Iterator[str]:
        if node == "???":
            yield path
        for key, value in node.items() if isinstance(node, dict) else ():
            yield from walk(value, f"{path}.{key}".lstrip("."))

    return list(walk(OmegaConf.to_container(config, resolve=False), ""))
