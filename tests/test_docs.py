"""The documentation is true: links have targets, commands compose, every column of every file is
explained, and the front page stays short.
"""

import contextlib
import dataclasses
import importlib
import importlib.util
import itertools
import json
import re
import shlex
import subprocess
import sys
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from benchmarks.bench import compose_bench
from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.records import Question, Video
from mustsee.run.outputs import HIDDEN
from mustsee.run.tables import ProblemRow
from ray_jobs.cli.build import build
from ray_jobs.cli.compose import CONF, compose, compose_job, files
from ray_jobs.cli.launch import _points

ROOT = CONF.parent
README = ROOT / "README.md"
SKILL = ROOT / "skills" / "mustsee" / "SKILL.md"
PAGES = sorted(
    (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("examples/*.md"), SKILL)
)
IDS = [str(page.relative_to(ROOT)) for page in PAGES]
SCALARS = {str: "string", bool: "bool", int: "int64", float: "double", bytes: "binary"}


def prose(page: Path) -> str:
    """Return a page without its code blocks, which hold no links."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site derive them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", t).strip().lower().replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_have_targets(page: Path) -> None:
    broken: list[str] = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def test_pages_of_the_site_link_within_the_site() -> None:
    """Files outside of docs/ are not on the site, so a link to one would be dead there."""
    for page in (ROOT / "docs").rglob("*.md"):
        for link in re.findall(r"\]\(([^)#\s]+)", prose(page)):
            if "://" not in link:
                assert (page.parent / link).resolve().is_relative_to(ROOT / "docs"), (page, link)


def test_the_front_page_is_short() -> None:
    assert 6_000 <= len(README.read_bytes()) <= 8_000
    assert (ROOT / "docs" / "assets" / "question.png").stat().st_size < 200_000


def test_folders_of_the_tree_exist() -> None:
    tree = (ROOT / "CONTRIBUTING.md").read_text().partition("## The tree")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `([^`]+)/` \|", tree, re.MULTILINE)
    assert len(named) == 14
    assert [name for name in named if not (ROOT / name).is_dir()] == []


def commands(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield every `python -m ray_jobs.X key=value ...` of a page (or `benchmarks.bench`) as
    (X, overrides); `[key=value]` is an override that may be given, `key=a|b` two commands. A sweep
    (`-m`) is one command for each combination.
    """
    text = re.sub(r"\s*\\\n\s*", " ", page.read_text())
    start = r"(?:python -m (?:ray_jobs|benchmarks)\.|^mustsee )(\w+)(?![\w.])"
    for match in re.finditer(rf"(?m){start}((?:[^\n`|]|(?<=\w)\|(?=\w))*)", text):
        line = re.split(r"\s{2,}|\s#|\s--\s|\s<", match.group(2).strip())[0]
        line = re.sub(r"(?<=\s)\[([^\]]*)\]", r"\1", line)
        words = shlex.split(line)
        given = [item for item in words if re.match(r"[+~]*[\w@./]+=", item)]
        if "-m" in words:
            yield from ((match.group(1), point) for point in _points(given).values())
            continue
        choices = [re.split(r"(?<=\w)\|(?=\w)", item.partition("=")[2]) for item in given]
        keys = [item.partition("=")[0] for item in given]
        for values in itertools.product(*choices):
            yield match.group(1), [f"{k}={v}" for k, v in zip(keys, values, strict=True)]


COMMANDS = sorted({(job, tuple(given)) for page in PAGES for job, given in commands(page)})


@pytest.mark.parametrize(("job", "given"), COMMANDS, ids=[" ".join((j, *g)) for j, g in COMMANDS])
def test_a_documented_command_composes(job: str, given: tuple[str, ...]) -> None:
    """The job exists, and so do its keys and their choices."""
    if job == "bench":
        build(fill_in(compose_bench(given)))
        return
    assert (ROOT / "ray_jobs" / f"{job}.py").is_file()
    needed = [f"{key}=x" for key in required_keys(job, given)]
    with contextlib.suppress(UserError):  # A choice may have more keys without a value.
        compose(job, [*given, *needed])
        return
    missing = unset(OmegaConf.to_container(compose_job(job, given)))
    compose(job, [*given, *(f"{key}=x" for key in missing)])


def required_keys(job: str, given: Sequence[str]) -> list[str]:
    """Return the keys without a value at the top of the job's own files. Composing would find all
    such keys, but takes a quarter of a second.
    """
    keys = [item.partition("=")[0] for item in given]
    every = (
        key
        for path in files(job)
        for key in re.findall(r"^(\w+): \?\?\?", path.read_text(), re.MULTILINE)
    )
    return [key for key in every if key not in keys and f"+{key}" not in keys]


def fill_in(config: DictConfig) -> DictConfig:
    """Return a configuration with an x for each key without a value."""
    for key in unset(OmegaConf.to_container(config)):
        OmegaConf.update(config, key, "x")
    return config


def unset(value: Any, path: str = "") -> list[str]:
    """Return the keys without a value."""
    if isinstance(value, dict):
        return [key for k, v in value.items() for key in unset(v, f"{path}.{k}".lstrip("."))]
    return [path] if value == "???" else []


def type_name(hint: Any) -> str:
    """Return the type of a field as docs/outputs.md writes it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return "float"
    if origin is tuple:
        return f"list of {type_name(arguments[0])}"
    if origin is Mapping:
        return f"list of name ({type_name(arguments[0])}), value ({type_name(arguments[1])})"
    return SCALARS.get(hint) or hint.__name__


def records(*classes: type) -> Iterator[type]:
    """Yield record classes, and the record classes in their published fields."""
    for cls in classes:
        yield cls
        for name, hint in schemas.hints(cls).items():
            inner = typing.get_args(hint)[0] if typing.get_origin(hint) is tuple else hint
            if not (cls is Video and name in (*HIDDEN, "questions")) and isinstance(inner, type):
                yield from records(inner) if dataclasses.is_dataclass(inner) else ()


@pytest.mark.parametrize(
    "cls", dict.fromkeys(records(Question, Video, ProblemRow)), ids=lambda c: c.__name__
)
def test_every_column_is_explained(cls: type) -> None:
    page = (ROOT / "docs" / "outputs.md").read_text()
    table = page.partition(f"\n### {cls.__name__}\n")[2].partition("\n#")[0]
    listed = re.findall(r"^\| `(\w+)` \| ([^|]+?) \| \S", table, re.MULTILINE)
    hidden = (*HIDDEN, "questions") if cls is Video else ()
    assert listed == [(n, type_name(h)) for n, h in schemas.hints(cls).items() if n not in hidden]


@pytest.mark.slow
def test_every_key_of_the_run_record_is_explained(tmp_path: Path) -> None:
    (tmp_path / "calls").mkdir()
    job = [sys.executable, "-m", "tests.support.toy_job"]
    run = subprocess.run(
        [*job, str(tmp_path / "out"), str(tmp_path / "calls"), "1"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (tmp_path / "out" / "run.json").is_file(), run.stderr
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    page = (ROOT / "docs" / "outputs.md").read_text().partition("\n## run.json\n")[2]
    keys = {*record, *record["questions"], *record["funnel"][0], *record["llm"]}
    assert {key for key in keys if f"`{key}`" not in page} == set()


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_files_and_modules_named_on_a_page_exist(page: Path) -> None:
    """Files and modules in backticks, except old names and those that the page shows how to add."""
    text = prose(page)
    if page.name == "CHANGELOG.md":  # The first cell of a row is an old name.
        text = re.sub(r"^\| [^|\n]* \|", "|", text, flags=re.MULTILINE)
    named = set(re.findall(r"`([\w./{}-]+)`", text))
    paths = {n for n in named if re.match(r"(mustsee|actors|serve|ray_jobs|conf|tests|deploy)/", n)}
    created = set(re.findall(r"^Create `([^`]+)`", page.read_text(), re.MULTILINE))
    pattern = re.compile(r"NAME|/X\.|[{}]")
    absent = {p for p in paths - created if not (ROOT / p).exists()}
    assert {p for p in absent if not pattern.search(p)} == set()
    modules = {n for n in named if re.fullmatch(r"mustsee(\.\w+)+", n)}
    assert {m for m in modules if not name_exists(m)} == set()


def name_exists(name: str) -> bool:
    """Whether a dotted name is a module or a member of one."""
    module, _, last = name.rpartition(".")
    if (ROOT / name.replace(".", "/")).exists() or (ROOT / f"{name.replace('.', '/')}.py").exists():
        return True
    return bool(module) and hasattr(importlib.import_module(module), last)


def test_every_decision_is_listed() -> None:
    index = (ROOT / "docs" / "decisions" / "index.md").read_text()
    assert re.findall(r"\]\((\d{4}-[^)]+)\)", index) == sorted(
        path.name for path in (ROOT / "docs" / "decisions").glob("0*.md")
    )


def test_the_index_for_language_models_is_that_of_the_pages() -> None:
    """docs/llms.txt lists each page of the site; `python deploy/write_llms.py` writes it anew."""
    spec = importlib.util.spec_from_file_location("write_llms", ROOT / "deploy" / "write_llms.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = (ROOT / "docs" / "llms.txt").read_text()
    assert text == script.render(), "python deploy/write_llms.py"
    linked = re.findall(r"\]\(([^)]+)\): (.+)$", text, re.MULTILINE)
    listed = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").glob("*.md")}
    assert {file for file, _ in linked} - {"decisions/index.md"} == listed - UNLISTED
    assert all(len(says) > 10 for _, says in linked)


UNLISTED: set[str] = set()  # pages that the site's navigation leaves out


def test_the_skill_for_agents_has_its_head_and_only_commands_that_exist() -> None:
    text = SKILL.read_text()
    head = re.match(r"---\nname: ([a-z-]+)\ndescription: (.+)\n---\n", text)
    assert head is not None
    assert head[1] == SKILL.parent.name
    assert 50 < len(head[2]) < 1024
    assert len([*commands(SKILL)]) >= 5
