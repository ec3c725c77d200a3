"""The steps of docs/add-a-part.md work on a copy of the project: they add a captioner, a video
filter, a question filter, a form of question, a recipe, a metric and an extraction rule.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    "mustsee", "actors", "serve", "ray_jobs", "loopback", "benchmarks", "deploy", "conf",
    "prompts", "tests",
)  # fmt: skip
STEP = re.compile(
    r"(?P<how>Create|Add to|In) `(?P<path>[^`]+)`"
    r"(?:, (?P<side>below|above) (?P<ticks>`+)(?P<anchor>.+?)(?P=ticks), add)?[^`\n]*"
    r"(?:`[^`\n]+`[^`\n]*)*:\n\n```\w+\n(?P<text>.*?)^```",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Step:
    """A step of the page. Without `anchor` the text is a whole file, or is appended to one."""

    how: str
    path: str
    side: str | None
    anchor: str | None
    text: str

    def apply(self, project: Path) -> None:
        file = project / self.path
        if self.how == "Create":
            assert not file.exists(), self.path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.text)
            return
        old = file.read_text()
        if self.anchor is None:
            file.write_text(old.rstrip("\n") + "\n" + self.text)
            return
        lines = old.splitlines(keepends=True)
        places = [n for n, line in enumerate(lines) if line.strip() == self.anchor]
        assert places, f"{self.path} has no line {self.anchor!r}"
        lines.insert(places[0] + (self.side == "below"), self.text)
        file.write_text("".join(lines))


def steps() -> Iterator[Step]:
    for match in STEP.finditer((ROOT / "docs" / "add-a-part.md").read_text()):
        how, path, text = match["how"], match["path"], match["text"]
        yield Step(how, path, match["side"], match["anchor"], text)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project after every step of the page."""
    copy = tmp_path_factory.mktemp("project")
    for folder in COPIED:
        unneeded = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, copy / folder, ignore=unneeded)
    shutil.copy(ROOT / "pyproject.toml", copy)
    (copy / "examples").symlink_to(ROOT / "examples")
    for step in steps():
        step.apply(copy)
    return copy


def run(project: Path, *command: str) -> None:
    """Run `python ...` in the copy; a failure shows its output."""
    env = {**os.environ, "PYTHONPATH": str(project)}
    done = subprocess.run(
        [sys.executable, *command], cwd=project, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def test_every_block_that_names_a_file_is_a_step() -> None:
    page = (ROOT / "docs" / "add-a-part.md").read_text()
    assert len(list(steps())) == len(re.findall(r"^(?:Create|Add to|In) `", page, re.MULTILINE))


def test_the_code_of_the_steps_is_formatted_and_free_of_lint(project: Path) -> None:
    changed = [step.path for step in steps() if step.path.endswith(".py")]
    run(project, "-m", "ruff", "check", *changed)
    run(project, "-m", "ruff", "format", "--check", *changed)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_steps_leave_the_checks_green(project: Path) -> None:
    """What `make check` runs on code and configuration; the pages are not in the copy."""
    changed = sorted({step.path for step in steps() if step.path.endswith(".py")})
    python = ["--pythonpath", sys.executable]
    run(project, "-m", "basedpyright", *python, *(p for p in changed if p[:6] != "tests/"))
    run(project, "-c", "from importlinter.cli import lint_imports_command as run; run()")
    run(
        project, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not slow",
        "tests/test_names.py", "tests/ray_jobs/cli/test_conf_comments.py",
    )  # fmt: skip


def test_every_module_of_a_step_is_imported_and_its_metric_is_one_of_the_evaluation(
    project: Path,
) -> None:
    created = [s.path for s in steps() if s.how == "Create" and s.path.endswith(".py")]
    names = [path.removesuffix(".py").replace("/", ".") for path in created]
    run(
        project, "-c",
        "".join(f"import {name}\n" for name in names)
        + "from mustsee.evaluate.open_metrics import resolve_metrics\n"
        "from ray_jobs.cli.launch import build, compose\n"
        "job = build(compose('evaluate', ['questions=questions.json', 'out=out']))\n"
        "names = list(resolve_metrics(job.metrics))\n"
        "assert names == ['token_f1', 'exact_match', 'rouge_l', 'cider_d'], names",
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_parts_keep_their_contracts(project: Path) -> None:
    run(
        project, "-m", "pytest", "-p", "no:cacheprovider",
        "tests/actors/stages/test_light.py",
        "tests/actors/llm/test_llm_offline.py::test_every_prompt_has_a_rule_but_those_that_only_models_are_asked",
        "tests/test_prompts.py::test_every_prompt_is_used_with_a_parser",
        "tests/evaluate/test_exact_match.py",
        "tests/evaluate/test_score.py",
        "tests/replies/test_extract.py::test_replies_that_explain_themselves",
        "tests/facts/test_middle.py",
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_captioner_and_two_filters_work_in_a_job(project: Path, tmp_path: Path) -> None:
    out, videos = tmp_path / "out", tmp_path / "videos.txt"
    names = ("lighthouse.mkv", "pancakes.mp4")
    videos.write_text("".join(f"{ROOT}/examples/videos/{name}\n" for name in names))
    run(
        project, "-m", "ray_jobs.make", f"videos={videos}", f"out={out}",
        "caption=light", "caption.dark=0.4", "filters=video", "filters.static=null",
        "filters.talking_head=null", "filters.dark.below=0.6", "vet.filters.wordy.max_letters=50",
    )  # fmt: skip
    rows = {v["video_id"]: v for v in pq.read_table(out / "videos.parquet").to_pylist()}
    assert rows["lighthouse"]["drop"].startswith("dark: ")
    texts = {c["text"] for c in rows["pancakes"]["captions"]}
    assert texts <= {"A dark frame.", "A light frame."} != set()
    questions = pq.read_table(out / "questions.parquet").to_pylist()
    wordy = [q for q in questions if (q["drop"] or "").startswith("wordy: ")]
    assert wordy
    assert all(len(q["question"]) > 50 for q in wordy)
    assert all(len(q["question"]) <= 50 for q in questions if q["drop"] is None)
    funnel = json.loads((out / "run.json").read_text())["funnel"]
    assert next(s for s in funnel if s["stage"] == "look")["dropped"] == {"dark": 1}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_recipe_works_as_a_job(project: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    overrides = ["videos=examples/videos/pancakes.mp4", f"out={out}"]
    run(project, "-m", "ray_jobs.opening", *overrides)
    (question,) = pq.read_table(out / "questions.parquet").to_pylist()
    (video,) = pq.read_table(out / "videos.parquet").to_pylist()
    assert question["question"] == "What is said first?"
    assert question["answer"].rstrip(".") == video["lines"][0]["text"].rstrip(".")
    assert len(question["options"]) == 5
