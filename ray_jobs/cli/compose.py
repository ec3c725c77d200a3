"""Composes a job's configuration from overrides (`key=value`). `compose` takes these steps:

1. `prompt=FILE` chooses the parts that follow it, presets become overrides at the front
   (`ray_jobs.cli.presets`), and values that Hydra cannot read get quotes.
2. Hydra composes `conf/JOB.yaml` with the overrides, and with the keys that a choice leaves to its
   class (`ray_jobs.cli.class_defaults`).
3. Each role that is set gets a part of its own.
4. Keys without a value are named, and references to other keys are resolved.

A mistake in any step is one line that names the key, the value and the choices.

A key whose value is `${GROUP}`, such as `vet.guesser: ${llm}`, is a role: it takes the run's `llm`
unless it is set. `vet/guesser=openai` gives it another choice, and `vet.guesser.model=X` changes
one key. Hydra would write such an override through `${llm}` into the part that all roles share.
Therefore the job is composed a second time with the role's overrides applied to the group, and the
resulting group is put in the role's place. A role whose value is `${off:GROUP}` is null unless it
is set.
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
from ray_jobs.cli import presets
from ray_jobs.cli.class_defaults import (
    add_defaults,
    fill,
    find_keys,
    put_references,
    read_defaults,
    walk,
)

OFF = "off:"  # what stands before the group of a role that is null unless it is set
CONF = Path(__file__).resolve().parents[2] / "conf"
PROMPTED = "whole"  # choice of ask that follows prompt=FILE
HIDDEN = ("hydra", "job")  # keys that users do not set
WORDS = ("true", "false", "null", "nan", "inf")  # words that Hydra reads as values
VIDEOS = ("videos", "backgrounds", "clips", "benchmark_videos")
INPUTS = (*VIDEOS, "questions", "narrations", "descriptions", "templates", "annotations", "queries",
          "durations", "sentences", "evaluations")  # fmt: skip
RESUMES = "the same command continues where it stopped and computes nothing twice"
RESUMING = ("resume", "continue", "restart")  # keys that users try although none is needed


def compose(name: str, overrides: Sequence[str] = ()) -> DictConfig:
    """The resolved configuration of a job.

    Raises UserError naming the key, the value and the choices.
    """
    for text in overrides:  # Secrets are registered before any message can show them.
        secrets_in(text)
    config = compose_job(name, overrides)
    empty = [o.split("=")[0] for o in overrides if o.endswith("=")]  # as videos=$UNSET
    needed = {"store", *_missing(compose_by_hydra(name))} if empty else set[str]()
    for key in [*_missing(config), *(key for key in empty if key in needed)]:
        comment = comments(name).get(key) or "it must be given"
        raise UserError(f"{key}= is not set: {comment}")
    _check_endpoint_used(name, config, overrides)
    with readable():
        OmegaConf.resolve(config)
    for _, value in walk(OmegaConf.to_container(config), lists=True):
        if isinstance(value, str):
            secrets_in(value)
    return config


def compose_job(name: str, overrides: Sequence[str] = ()) -> DictConfig:
    """The configuration of a job with its references to other keys unresolved."""
    _check_words(name, overrides)
    with readable():
        prompted, text = _with_prompt(name, overrides)
        given = presets.expand(CONF, name, [_readable(o) for o in prompted])
        parsed = OverridesParser.create().parse_overrides(given)
    _check_choices(name, parsed)
    # Which roles there are follows from the choices, so the job is composed without the overrides
    # that may belong to a role (`vet/guesser=...`, `vet.guesser.model=...`).
    deep = [o for o in parsed if o.package is None and set("./") & set(o.key_or_group)]
    plain = tuple(_text(o) for o in parsed if o not in deep)
    job_roles = _roles_with(CONF, name, plain) if deep else {}
    by_role = {role: [o for o in deep if _belongs(o, role)] for role in job_roles}
    rest = [_text(o) for o in parsed if not any(o in own for own in by_role.values())]
    _check_roles(rest, job_roles)
    config = compose_by_hydra(name, rest)
    for role, role_overrides in by_role.items():
        if role_overrides:
            part = _role_part(name, role, job_roles[role], role_overrides, rest)
            OmegaConf.update(config, role, part, merge=False, force_add=True)
    if text is not None:
        OmegaConf.update(config, "ask.settings.wish", text, force_add=True)
    put_references(config)
    return config


def _check_choices(name: str, overrides: Sequence[Override]) -> None:
    """Raise UserError for the name of a choice where the job's file has the part itself."""
    own: Any = OmegaConf.to_container(OmegaConf.load(CONF / f"{name}.yaml"), resolve=False)
    for override in overrides:
        key, part = override.key_or_group, own.get(override.key_or_group)
        if isinstance(part, dict) and "_target_" in part and isinstance(override.value(), str):
            raise UserError(
                f"{override.input_line}: mustsee {name} has no choices for {key}; its keys are set "
                f"one by one (mustsee {name} --help {key})"
            )


def quote(text: str) -> str:
    """Return a text in quotes, as Hydra's command line writes it."""
    return "'" + re.sub(r"(\\*)'", r"\1\1\\'", text) + "'"


def format_hydra_value(value: Any) -> str:
    """Return a value as Hydra's command line writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{k}:{format_hydra_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ",".join(map(format_hydra_value, value)) + "]"
    text = str(value)
    plain = re.fullmatch(r"[A-Za-z_][\w./-]*", text, re.ASCII) and text.lower() not in WORDS
    if plain or not isinstance(value, str):
        return text
    return quote(text)


def _readable(override: str) -> str:
    """The override with its value in quotes if Hydra cannot read it without: a path with brackets
    or umlauts. A value that begins with a quote or a bracket stays as it is.
    """
    key, equals, value = override.partition("=")
    if not equals or value[:1] in ("'", '"', "[", "{"):
        return override
    try:
        OverridesParser.create().parse_override(override)
    except HydraException:
        return f"{key}={quote(value)}"
    return override


def _with_prompt(name: str, overrides: Sequence[str]) -> tuple[Sequence[str], str | None]:
    """The overrides with the choices that `prompt=FILE` needs, and the text of the file; None
    without one. Raises UserError for a file that cannot be read, and for another choice of ask.
    """
    given = {key: value for key, _, value in (o.lstrip("+").partition("=") for o in overrides)}
    path = given.get("prompt", "null").strip("'\"")
    if path == "null" or "prompt" not in presets.contents(CONF, name)[1]:
        return overrides, None
    if given.get("ask", PROMPTED) != PROMPTED:
        raise UserError(f"ask={given['ask']} asks its own questions: leave out it or prompt={path}")
    try:
        text = Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        from mustsee.files.tables import one_line_error

        raise UserError(f"prompt={path}: {one_line_error(error)}") from error
    if not text:
        raise UserError(f"prompt={path} is empty: write what to ask, in your words")
    if "${" in text:  # OmegaConf would take it for a reference.
        raise UserError(f"prompt={path} has the characters '${{': leave a space between them")
    choices = {"ask": PROMPTED, "vet": "neptune", "++ask.settings.apart_share": "0"}
    chosen = [f"{key}={choice}" for key, choice in choices.items() if key not in given]
    return [*chosen, *overrides], text


def _check_endpoint_used(name: str, config: DictConfig, overrides: Sequence[str]) -> None:
    """Raise UserError where an endpoint is set but no part calls one."""
    for key in ("base_url", "key_env"):
        given = next((o for o in overrides if o.startswith(f"{key}=")), None)
        if given is None:
            continue
        parts = OmegaConf.masked_copy(config, [str(k) for k in config if k != key])
        written = OmegaConf.to_yaml(parts, resolve=False)
        if "${" + key + "}" not in written and str(config[key]) not in written:
            groups = [g for item in defaults(name) if isinstance(item, dict) for g in item]
            callers = [f"{g}=openai" for g in groups if "openai" in choices(g)]
            raise UserError(
                f"no part of this command uses {given}: add {' or '.join(callers)}"
                if callers
                else f"no part of this command uses {given}: leave it out"
            )


def _check_words(name: str, overrides: Sequence[str]) -> None:
    """Raise UserError for a word that is not an override, and for a web address as an input.

    Hydra's parser would only ask for quotes around the address.
    """
    for word in overrides:
        key, equals, value = word.lstrip("+").partition("=")
        if not equals and not word.startswith("~"):
            raise UserError(f"{word!r} is not key=value{_key_hint(name, word, overrides)}")
        address = value.strip("'\"")
        if key in INPUTS and address.startswith(("http://", "https://")):
            secrets_in(address)
            is_page = key in VIDEOS and not re.search(r"/[^/?#]+\.\w{2,4}$", address)
            raise UserError(
                f"{key}={address}: web addresses are not supported. Download it first with "
                f"{'yt-dlp' if is_page else 'curl -LO'} '{address}', then give its path"
            )


def _key_hint(name: str, word: str, overrides: Sequence[str]) -> str:
    """A suggestion of the key for a word without one."""
    if word in known_keys(name):
        return f": write {word}=..."
    given = {o.lstrip("+~").partition("=")[0] for o in overrides}
    texts = "".join(path.read_text() for path in files(name))
    needed = re.findall(r"(?m)^(\w+): \?\?\?", texts)
    inputs = [key for key in (*needed, *INPUTS) if key in (*needed, *comments(name))]
    wanted = [key for key in inputs if key not in given]
    return f"; did you mean {wanted[0]}={word}?" if wanted else "; mustsee --help shows how"


def unknown_flag(name: str, flag: str, value: str) -> str:
    """The message for a flag that a job does not have. `value`: the word after the flag."""
    key = flag.lstrip("-").replace("-", "_")
    if key in RESUMING:
        return f"there is no flag {flag!r}, and none is needed: {RESUMES}"
    all_keys = known_keys(name)
    near = difflib.get_close_matches(key, sorted(all_keys), n=1)
    if key.partition(".")[0] not in all_keys and not near:
        return f"there is no flag {flag!r}, and no key of that name; --help lists the keys"
    right = key if key.partition(".")[0] in all_keys else near[0]
    texts = "".join(path.read_text() for path in files(name))
    switch = re.search(rf"(?m)^{re.escape(right)}: (true|false)\b", texts)
    value = value or ("true" if switch else "...")
    return (
        f"there is no flag {flag!r}: write {right}={value} (keys have no dashes before them; "
        "--help lists them)"
    )


def known_keys(name: str) -> set[str]:
    """The names that can be set for a job: its keys, its groups, and `experiment`."""
    groups, keys = presets.contents(CONF, name)
    return {*groups, *keys, "experiment"} - {*HIDDEN}


@functools.lru_cache
def _roles_with(conf: Path, name: str, overrides: tuple[str, ...]) -> dict[str, str]:
    """The roles of a job under these overrides. `conf` is part of the cache's key."""
    return roles(compose_by_hydra(name, overrides))


def roles(config: DictConfig) -> dict[str, str]:
    """The group that each role takes its choice from: "vet.guesser" -> "llm"."""
    groups = {
        path: value[2:-1].removeprefix(OFF)
        for path, value in walk(OmegaConf.to_container(config, resolve=False))
        if "." in path and isinstance(value, str) and value[:2] == "${"
    }
    return {p: g for p, g in groups.items() if g.isidentifier() and (CONF / g).is_dir()}


def _belongs(override: Override, role: str) -> bool:
    key = override.key_or_group
    return key == role.replace(".", "/") or key.startswith(f"{role}.")


def _role_part(
    name: str, role: str, group: str, overrides: Sequence[Override], rest: Sequence[str]
) -> DictConfig:
    """The configuration of `group` under the overrides of a role.

    A role without its own choice starts from the run's choice and the overrides of that.
    """
    own = [
        _text(o).replace(o.key_or_group, _moved(o.key_or_group, role, group), 1) for o in overrides
    ]
    if any(o.key_or_group == role.replace(".", "/") for o in overrides):
        rest = [o for o in rest if o.lstrip("+~").split("=")[0].split(".")[0] != group]
    try:
        return compose_job(name, [*rest, *own])[group]
    except UserError as error:
        message = str(error).replace(f"{group}.", f"{role}.")
        raise UserError(message.replace(f"{group}=", f"{role.replace('.', '/')}=")) from error


def _moved(key: str, role: str, group: str) -> str:
    return group if "/" in key else group + key.removeprefix(role)


def _check_roles(overrides: Sequence[str], job_roles: Mapping[str, str]) -> None:
    """Raise UserError for a choice of a name that is neither a group nor a role."""
    for text in overrides:
        key = text.lstrip("+~").split("=")[0].split("@")[0]
        if "/" in key and not key.startswith("hydra/") and not (CONF / key).is_dir():
            listed = [role.replace(".", "/") for role in job_roles]
            raise UserError(
                f"there is no role {key!r} (in {text!r}){_near(key, listed)} Roles: "
                + (", ".join(listed) or "none")
            )


def _text(override: Override) -> str:
    return str(override.input_line)


def compose_by_hydra(
    name: str, overrides: Sequence[str] = (), conf: Path | None = None
) -> DictConfig:
    """The configuration as Hydra composes it, without the handling of roles. Keys that an override
    sets and that a choice leaves to its class are added first: Hydra would not know them.
    """
    inner = [o for o in overrides if _is_inner(o)]
    with (
        readable(overrides),
        hydra.initialize_config_dir(version_base="1.3", config_dir=str(conf or CONF)),
    ):
        if not inner:
            return hydra.compose(name, overrides=list(overrides))
        chosen = hydra.compose(name, overrides=[o for o in overrides if o not in inner])
        keys = [_needed_key(o.partition("=")[0]) for o in inner]
        return hydra.compose(name, overrides=[*add_defaults(chosen, keys), *overrides])


def _is_inner(override: str) -> bool:
    """Whether an override sets a key inside a key of the job, and neither its class nor the package
    of a choice.
    """
    key = override.partition("=")[0].partition("@")[0]
    return "." in key and not key.startswith("hydra.") and not key.endswith("._target_")


def _needed_key(key: str) -> str:
    """The key that must exist for an override: for `+a.b`, which adds b, it is a."""
    adds = key.startswith("+") and not key.startswith("++")
    return key.lstrip("+~").rpartition(".")[0] if adds else key.lstrip("+~")


def comments(name: str) -> dict[str, str]:
    """The comment of each top-level key in the job's file and in the files that it includes."""
    by_key: dict[str, str] = {}
    for path in files(name):
        for line in path.read_text().splitlines():
            key, colon, rest = line.partition(":")
            if colon and key.isidentifier() and key not in (*HIDDEN, "defaults"):
                by_key[key] = rest.partition("#")[2].strip()
    return by_key


def files(name: str) -> list[Path]:
    """The job's own file, and the files with the keys that jobs share."""
    shared = [item for item in defaults(name) if isinstance(item, str) and item != "_self_"]
    return [CONF / f"{name}.yaml", *(path for other in shared for path in files(other))]


def defaults(name: str) -> list[Any]:
    """The defaults list of a file: names of files, and `{group: choice}`."""
    plain: Any = OmegaConf.to_container(OmegaConf.load(CONF / f"{name}.yaml"))
    return plain.get("defaults", [])


def choices(group: str) -> list[str]:
    """The choices of a group, sorted."""
    return sorted(path.stem for path in (CONF / group).glob("*.yaml")) if group else []


def _choice(group: str, option: str) -> Path:
    return CONF / group / f"{option}.yaml"


def _in_folder(folder: str, name: str) -> str:
    from mustsee.files.store import in_folder  # imports pyarrow, which --help does not need

    return in_folder(folder, name)


@contextlib.contextmanager
def readable(overrides: Sequence[str] = ()) -> Generator[None]:
    """Turn Hydra's errors into one line that names the key, the value and the choices."""
    OmegaConf.register_new_resolver(
        "cores", lambda share=1.0: max(1, int((os.cpu_count() or 1) * float(share))), replace=True
    )
    OmegaConf.register_new_resolver(OFF.rstrip(":"), lambda group: None, replace=True)
    OmegaConf.register_new_resolver("in_folder", _in_folder, replace=True)
    try:
        yield
    except OverrideParseException as error:
        key, equals, value = str(error.override).partition("=")
        secrets_in(value)
        raise UserError(
            f"cannot read {error.override!r}: "
            + (
                "check its quotes and brackets; a text between them that has spaces or umlauts "
                f"needs quotes of its own: '{key}=[\"a b\"]'"
                if equals
                else "not key=value"
            )
        ) from error
    except MissingConfigException as error:
        group, _, value = str(error.missing_cfg_file).rpartition("/")
        listed = ", ".join(error.options or ())
        hint = next((f": write {text}" for text in _keys_that_take(group, value)), "")
        raise UserError(
            f"{group}={value!r} is not a choice{hint}; choices for {group}: {listed}"
        ) from error
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        cause = error.__cause__
        if isinstance(error, ConfigCompositionException) and isinstance(
            cause, OmegaConfBaseException
        ):
            raise UserError(_wrong_key(cause, overrides)) from error
        raise UserError(" ".join(str(error).split())) from error


def _wrong_key(error: OmegaConfBaseException, overrides: Sequence[str]) -> str:
    """The message for an unknown key: similar keys, choices that have it, and all keys."""
    wrong, above = str(error.full_key), error.parent_node
    place, _, last = wrong.rpartition(".")
    given = next((o for o in overrides if o.lstrip("+~").startswith(wrong)), wrong)
    having = [f"{place}={c}" for c in choices(place) if last in _keys_of_choice(place, c)]
    if having:
        others = f" (or {', '.join(having[1:])})" if having[1:] else ""
        return f"there is no key {wrong!r} (in {given!r}) in this {place}: add {having[0]}{others}"
    if wrong in RESUMING:
        return f"there is no key {wrong!r}, and none is needed: {RESUMES}"
    inside: Any = (
        OmegaConf.to_container(above, resolve=False) if isinstance(above, DictConfig) else {}
    )
    names = map(str, {**inside, **read_defaults(inside)})
    keys = sorted(name for name in names if name not in HIDDEN and name[0] != "_")
    dot, where = (f"{place}.", f"Keys in {place}, to which + adds one") if place else ("", "Keys")
    listed = ", ".join(keys if place else sorted({*keys, "experiment"})) or "none"
    near = _near(last, keys, dot)
    if near == "." and not place:
        near = _nested_hint(last, above)
    return f"there is no key {wrong!r} (in {given!r}){near} {where}: {listed}"


def _keys_of_choice(group: str, option: str) -> set[str]:
    """The keys of a choice: those in its file, and those of its class."""
    keys: Any = OmegaConf.to_container(OmegaConf.load(_choice(group, option)), resolve=False)
    return {*keys, *read_defaults(keys)}


def _keys_that_take(group: str, value: str) -> Iterator[str]:
    """Yield the overrides with which a choice of a group takes a value as one of its own, such as
    `answer=guess answer.by=longest`.
    """
    for option in choices(group):
        node: Any = OmegaConf.to_container(OmegaConf.load(_choice(group, option)), resolve=False)
        for key in find_keys(node, value):
            yield f"{group}={option} {group}.{key}={value}"


def _nested_hint(wrong: str, config: Any) -> str:
    """A suggestion of nested keys that are similar to `wrong`; "." if there are none."""
    paths = [path for path, _ in walk(fill(OmegaConf.to_container(config, resolve=False)))]
    names = {path.rpartition(".")[2] for path in paths if path.partition(".")[0] not in HIDDEN}
    near = difflib.get_close_matches(wrong, sorted(names), n=1, cutoff=0.7)
    similar = [path for path in paths if path.rpartition(".")[2] in near]
    return f"; did you mean {' or '.join(map(repr, similar[:3]))}?" if similar else "."


def _near(wrong: str, names: Sequence[str], before: str = "") -> str:
    near = difflib.get_close_matches(wrong, names, n=1)
    return f"; did you mean {before + near[0]!r}?" if near else "."


def _missing(config: DictConfig) -> list[str]:
    """The keys that are still `???`, without the keys that refer to them."""
    plain = OmegaConf.to_container(config, resolve=False)
    return [path for path, value in walk(plain) if value == "???"]
