"""Documented commands work when pasted: every block marked `bash` runs without a key, a GPU or a
network, from a folder with `examples/`, in the environment that `make demo` installs.

A block whose first line is `# needs ...` is not run. A command on several pages runs once, so a
page may begin with a command that it builds on.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
USER_ENV = ROOT / ".cache" / "user-env"  # created by `make .cache/user-env/made`
SKILL = ROOT / "skills" / "mustsee" / "SKILL.md"  # for coding agents
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), SKILL]
# The pages of jobs, each of which begins with a command on the sample videos.
BEGIN = ("videos", "facts", "neptune", "cinepile", "egoschema", "mlvu", "evaluate", "outputs")
NEEDS = re.compile(
    r"# needs (a key|a GPU|a network|a cluster|a port|data of your own|the extra [a-z]+)\b"
)
# Prints the installed distributions that the given requirements do not bring.
INSTALLED = """
import json, sys
from importlib.metadata import distribution, distributions
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name as plain
reached, queue = set(), [(plain(r.name), extra) for r in map(Requirement, sys.argv[1:])
                         for extra in ("", *r.extras)]
while queue:
    name, extra = one = queue.pop()
    if one not in reached:
        reached.add(one)
        for r in map(Requirement, distribution(name).requires or ()):
            if r.marker is None or r.marker.evaluate({"extra": extra}):
                queue += [(plain(r.name), more) for more in ("", *r.extras)]
there = {plain(d.metadata["Name"]) for d in distributions()}
print(json.dumps(sorted(there - {name for name, _ in reached})))
"""


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```bash\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


def lines(block: str) -> list[str]:
    """Return the commands of a block, one per line."""
    whole = re.sub(r"\\\n\s*", " ", block)
    return [line.partition("  #")[0].strip() for line in whole.splitlines() if line.strip()]


def pasted_commands() -> Iterator[tuple[str, str]]:
    """Yield (page, command) of all that runs, each command once, those of the first hour before
    the others, which build on its results.
    """
    seen: set[str] = set()
    for page in sorted(PAGES, key=lambda p: p.stem != "first-hour"):
        for block in blocks(page):
            if not NEEDS.match(block):
                for line in lines(block):
                    if line not in seen:
                        seen.add(line)
                        yield page.stem, line


COMMANDS = list(pasted_commands())


@pytest.fixture(scope="session")
def user_env() -> Path:
    """Return a user's environment; fail where it is not set up."""
    if not (USER_ENV / "made").exists():
        pytest.fail(
            "no environment of a user: run `make .cache/user-env/made` (as `make test` does)"
        )
    return USER_ENV


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a user's folder with the sample videos."""
    made = tmp_path_factory.mktemp("user")
    (made / "examples").symlink_to(ROOT / "examples")
    return made


def run_as_user(user_env: Path, folder: Path, *command: str, **more: str) -> tuple[int, str, str]:
    """Run a command in `folder`, in the user's activated environment. Modules of the checkout are
    found as from its root, for `python -m ray_jobs...`. Returns the exit code and what it printed.
    """
    path = os.pathsep.join([str(user_env / "bin"), os.environ["PATH"]])
    given = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(user_env), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env={**given, **more}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_the_user_environment_holds_only_what_make_demo_installs(
    user_env: Path, tmp_path: Path
) -> None:
    makefile = (ROOT / "Makefile").read_text()
    wheels = re.findall(r"^(?:WEIGHTS|OBJECTS) := (.+)$", makefile, re.MULTILINE)
    assert len(wheels) == 2
    bare = [w.partition("==")[0] for line in wheels for w in line.split()]
    asked = ["python", "-c", INSTALLED, "mustsee[offline]"]
    code, printed, errors = run_as_user(user_env, tmp_path, *asked)
    assert code == 0, errors
    assert set(json.loads(printed)) <= {*bare, "pip", "setuptools", "wheel"}


@pytest.mark.slow
@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[f"{p}: {c}" for p, c in COMMANDS])
def test_a_bash_block_runs_when_pasted(
    page: str, command: str, folder: Path, user_env: Path
) -> None:
    shell = ["bash", "-euo", "pipefail", "-c", command]
    code, printed, errors = run_as_user(user_env, folder, *shell)
    assert code == 0, printed[-2000:] + errors[-2000:]


@pytest.mark.slow
def test_the_notebook_runs(folder: Path, user_env: Path) -> None:
    """The notebook runs on the first hour's results and ends with a table of right guesses."""
    notebook = ROOT / "examples" / "look_at_a_dataset.ipynb"
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    assert not any(c.get("outputs") for c in cells)  # a checkout holds no results
    given = {"OUT": "runs/made", "VIDEOS": ".", "MPLBACKEND": "agg"}
    ended, printed, errors = run_as_user(user_env, folder, "python", "-c", code, **given)
    assert ended == 0, errors[-2000:]
    assert re.search(r"^sight +\d", printed, re.MULTILINE)


@pytest.mark.parametrize("name", BEGIN)
def test_a_page_of_a_job_begins_with_a_runnable_command(name: str) -> None:
    page = ROOT / "docs" / f"{name}.md"
    first = re.search(r"^(?:```|    \S).*$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert first is not None
    assert first.group() == "```bash"
    assert not NEEDS.match(blocks(page)[0])
    assert lines(blocks(page)[0])[0].startswith("mustsee ")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_blocks_that_do_not_run_state_their_needs(page: Path) -> None:
    for block in blocks(page):
        if block.startswith("#"):
            assert NEEDS.match(block), block
