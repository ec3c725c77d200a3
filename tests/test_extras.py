"""Optional packages are imported only behind `mustsee.errors.need`, which names the missing package
and how to install it in one line.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from mustsee.errors import NotInstalled, need
from tests.test_package import DISTRIBUTION, OURS, plain

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BASE = {plain(requirement) for requirement in PROJECT["dependencies"]}

# Imports guarded by a `need` in another function: (file, package) -> that function, which always
# runs before the import.
BEHIND = {
    ("actors/stages/caption_local.py", "torch"): "mustsee/nn/weights.py:load_checkpoint",
    ("actors/llm/transformers.py", "torch"): "actors/llm/transformers.py:__init__",
    ("actors/judge/gem.py", "torch"): "actors/judge/gem.py:__init__",
    ("actors/judge/gem_fit.py", "torch"): "actors/judge/gem_fit.py:fit",
    ("actors/judge/gem_fit.py", "peft"): "actors/judge/gem_fit.py:fit",
    ("actors/judge/gem_shard.py", "torch"): "actors/judge/gem_fit.py:fit",
    ("actors/hear/whisperx.py", "whisperx"): "actors/hear/whisperx.py:__init__",
    ("actors/hear/whisperx.py", "nltk"): "actors/hear/whisperx.py:__init__",
    ("mustsee/media/litert.py", "ai_edge_litert"): "mustsee/media/litert.py:need_litert",
    ("benchmarks/caption.py", "torch"): "benchmarks/caption.py:__call__",
    **{
        ("benchmarks/gpu.py", package): "benchmarks/gpu.py:find_missing"
        for package in ("torch", "faster_whisper", "ctranslate2")
    },
    ("benchmarks/cuts.py", "scenedetect"): "benchmarks/cuts.py:__call__",
    ("ray_jobs/runtime/experiment.py", "mlflow"): "ray_jobs/runtime/experiment.py:check",
}
# The job skips this import where the package is missing: it calls `has_inspect` first.
OPTIONAL = {("mustsee/evaluate/shared_results.py", "inspect_ai")}
# Installed by other distributions, not by extras of ours.
OTHERS = {
    "jiwer": {"jiwer"},
    "ray[llm]": {"vllm", "ray"},
    "ai-edge-litert==2.1.1": {"ai_edge_litert"},
}


@dataclass(frozen=True)
class Import:
    """An import of `package` in `file` at `line`, within the function node `where`, if any."""

    file: str
    package: str
    line: int
    where: ast.AST | None


def distribution(package: str) -> str:
    """Return the distribution of an importable package."""
    if package in DISTRIBUTION:
        return DISTRIBUTION[package]
    return plain(installed().get(package, [package])[0])


@cache
def installed() -> Mapping[str, list[str]]:
    return packages_distributions()


def imports(path: Path) -> Iterator[Import]:
    """Yield every import of an optional package, except those for type checkers."""
    file = path.relative_to(ROOT).as_posix()

    def walk(node: ast.AST, where: ast.AST | None) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            for name in names(child):
                package = name.split(".")[0]
                known = package in sys.stdlib_module_names or package in OURS
                if not known and distribution(package) not in BASE:
                    yield Import(file, package, child.lineno, where)  # type: ignore[attr-defined]
            yield from walk(child, child if inner else where)

    return walk(ast.parse(path.read_bytes()), None)


def names(node: ast.AST) -> list[str]:
    """Return the modules that a node imports, by statement or by `import_module`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module] if node.module and not node.level else []
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        name = node.args[0]
        first = name.values[0] if isinstance(name, ast.JoinedStr) else name
        return [str(first.value)] if isinstance(first, ast.Constant) else []
    return []


def needs(node: ast.AST) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the calls of `need` below a node, also prepared ones (`partial`): line, requirement,
    packages.
    """
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        said = [call.func, *call.args]
        if ast.unparse(said[0]) == "partial":
            said = said[1:]
        if said and ast.unparse(said[0]) == "need":
            _, install, *modules = (
                ast.literal_eval(a) if isinstance(a, ast.Constant) else "" for a in said[1:]
            )
            yield call.lineno, install, [m.split(".")[0] for m in modules]


def functions(file: str, name: str) -> list[ast.AST]:
    tree = ast.parse((ROOT / file).read_bytes())
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name]


@cache
def all_imports() -> list[Import]:
    """The imports of optional packages in all rooms."""
    rooms = ("mustsee", "actors", "serve", "ray_jobs", "benchmarks")
    paths = [path for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]
    # Peer programs run in environments of their own.
    return [one for path in paths if path.parent.name != "peer_programs" for one in imports(path)]


def is_guarded(one: Import) -> bool:
    """Whether `need` checks for the package, earlier in the function or in the listed one."""
    if (one.file, one.package) in OPTIONAL:
        return True
    here = [] if one.where is None else list(needs(one.where))
    if any(line < one.line and one.package in packages for line, _, packages in here):
        return True
    file, _, name = BEHIND.get((one.file, one.package), ":").partition(":")
    return any(
        one.package in packages
        for function in (functions(file, name) if file else [])
        for _, _, packages in needs(function)
    )


def test_imports_of_optional_packages_are_detected() -> None:
    packages = {one.package for one in all_imports()}
    assert {"torch", "faster_whisper", "mlflow", "inspect_ai", "rapidocr"} <= packages
    assert not packages & {"ray", "jax", "matplotlib", "cv2", "PIL", "yaml", "numpy"}


def test_every_import_of_an_optional_package_is_guarded() -> None:
    bare = [f"{o.file}:{o.line}: {o.package}" for o in all_imports() if not is_guarded(o)]
    assert bare == []


def test_listed_exceptions_still_exist() -> None:
    assert {*BEHIND, *OPTIONAL} <= {(o.file, o.package) for o in all_imports()}


def test_a_guard_names_the_extra_with_the_package() -> None:
    extras = {n: {plain(r) for r in rs} for n, rs in PROJECT["optional-dependencies"].items()}
    for folder in ("mustsee", "actors", "serve", "ray_jobs", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for line, install, packages in needs(ast.parse(text)) if "need(" in text else ():
                if install in OTHERS:
                    assert set(packages) <= OTHERS[install]
                    continue
                named = re.fullmatch(r"mustsee\[([\w,]+)\]", install)
                assert named is not None, f"{path}:{line}: {install!r}"
                installed_packages = set[str]().union(
                    *(extras[e] for e in named.group(1).split(","))
                )
                assert {plain(distribution(p)) for p in packages} <= installed_packages, (
                    f"{path}:{line}"
                )


def test_need_names_the_package_to_install_in_one_line() -> None:
    need("this", "mustsee[torch]", "json")
    with pytest.raises(NotInstalled) as caught:
        need("hear=x", "mustsee[x]", "json", "no_such_package.part")
    assert str(caught.value) == (
        "hear=x needs no_such_package (No module named 'no_such_package'): pip install "
        "'mustsee[x]' on every machine that runs it"
    )


CHOICES = {
    "torch": "from actors.judge.gem import Gem; Gem(path='x').open()",
    "whisperx": (
        "from actors.hear.whisperx import WhisperX, WhisperXModels; "
        "WhisperXModels(WhisperX(model='x'))"
    ),
    "torch, whatever transformers says": (
        "from actors.llm.transformers import Transformers; Transformers(model='x').open()"
    ),
    "peft": (
        "from actors.judge.gem_fit import GemFit; from ray_jobs.judge_train import"
        " GemTrainer; GemTrainer(fit=GemFit(base='x'))(None, 'x')"
    ),
    "rapidocr": "from mustsee.media.ocr import RapidReader; RapidReader()",
    "faster_whisper": (
        "import numpy; from mustsee.media.speech import VoiceDetection, _speech; "
        "_speech(numpy.zeros(9, 'float32'), VoiceDetection())"
    ),
}


CHILD = """
import json, sys

ends = {}
for package, code in json.load(sys.stdin).items():
    sys.modules[missing := package.split(",")[0]] = None
    try:
        exec(code, {})
    except Exception as error:
        ends[package] = f"{type(error).__name__}: {error}"
    del sys.modules[missing]
print(json.dumps(ends))
"""


@pytest.fixture(scope="module")
def ends() -> Mapping[str, str]:
    """What each choice ends with: in a process of its own, where nothing of them is loaded."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD], cwd=ROOT, capture_output=True, text=True, check=False,
        input=json.dumps(CHOICES),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("package", CHOICES)
def test_a_choice_without_its_package_ends_with_that_line(
    package: str, ends: Mapping[str, str]
) -> None:
    assert ends[package].startswith("NotInstalled: ")
    assert f"needs {package.split(',')[0]} (" in ends[package]
    assert "pip install 'mustsee[" in ends[package]
