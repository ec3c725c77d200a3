"""What the documentation shows can be pasted: every block marked `bash` runs without a key, a GPU
or a network, from a folder that has `examples/`.

A block whose first line is `# needs ...` is shown and not run. A command that stands on several
pages is run once, so that a page may begin with what it builds on.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Each of these shows a job, and begins with a command on the sample films.
BEGIN = ("videos", "neptune", "cinepile", "egoschema", "mlvu", "evaluate", "outputs")
NEEDS = re.compile(r"# needs (a key|a GPU|a network|a cluster|a port|data of your own)\b")


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```bash\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


def lines(block: str) -> list[str]:
    """The commands of a block, one a line."""
    whole = re.sub(r"\\\n\s*", " ", block)
    return [line.partition("  #")[0].strip() for line in whole.splitlines() if line.strip()]


def pasted() -> Iterator[tuple[str, str]]:
    """(page, command) of all that runs, each command once; the page of the first hour comes first,
    for the others build on what it makes.
    """
    seen: set[str] = set()
    for page in sorted(PAGES, key=lambda p: p.stem != "first-hour"):
        for block in blocks(page):
            if not NEEDS.match(block):
                for line in lines(block):
                    if line not in seen:
                        seen.add(line)
                        yield page.stem, line


COMMANDS = list(pasted())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder, with the sample films in it and the command installed."""
    made = tmp_path_factory.mktemp("user")
    (made / "examples").symlink_to(ROOT / "examples")
    (made / "bin").mkdir()
    for name, code in (
        ("python", f'exec {sys.executable} "$@"'),
        ("mustsee", f'exec {sys.executable} -c "from mustsee.command import main; main()" "$@"'),
    ):
        (made / "bin" / name).write_text(f"#!/bin/sh\n{code}\n")
        (made / "bin" / name).chmod(0o755)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[f"{p}: {c}" for p, c in COMMANDS])
def test_a_block_can_be_pasted(page: str, command: str, folder: Path) -> None:
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder, env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_the_notebook_runs(folder: Path) -> None:
    """On what the page of the first hour makes; what it prints last is a table of right guesses."""
    notebook = ROOT / "examples" / "look_at_a_dataset.ipynb"
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    assert not any(c.get("outputs") for c in cells)  # a checkout holds no results
    given = {"OUT": "runs/seasons", "FILMS": ".", "MPLBACKEND": "agg", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder, env={**os.environ, **given}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(r"^sight +\d", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("name", BEGIN)
def test_a_job_s_page_begins_with_a_command_that_can_be_pasted(name: str) -> None:
    page = ROOT / "docs" / f"{name}.md"
    first = re.search(r"^(?:```|    \S).*$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert first is not None
    assert first.group() == "```bash"
    assert not NEEDS.match(blocks(page)[0])
    assert lines(blocks(page)[0])[0].startswith("mustsee ")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_what_is_not_run_says_what_it_needs(page: Path) -> None:
    for block in blocks(page):
        if block.startswith("#"):
            assert NEEDS.match(block), block
