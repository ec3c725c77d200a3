"""The command `mustsee`: jobs from any folder, completion, and the cost of help."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mustsee.errors import UserError
from ray_jobs.cli.command import FOLDERS, SECTIONS, complete_words, jobs, run
from ray_jobs.cli.compose import CONF, INPUTS, choices, compose, compose_job, known_keys
from ray_jobs.cli.launch import launch
from ray_jobs.cli.presets import contents

ROOT = CONF.parent
VIDEOS = ROOT / "examples" / "videos"
# As in an installed script, neither the caller's folder nor the checkout is on the path.
SCRIPT = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from ray_jobs.cli.command import main
del sys.path[0]
try:
    main()
finally:
    if "--loaded" in sys.argv[-1:]:
        print(*sorted({name.split(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def run_command(*given: str, here: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-c", SCRIPT, str(ROOT), *given]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        command, cwd=here, env=environment, capture_output=True, text=True, check=False
    )


def test_every_listed_job_has_a_description_and_a_file() -> None:
    listed = jobs(ROOT)
    assert {"neptune", "evaluate", "export", "doctor"} <= set(listed)
    assert all((ROOT / "ray_jobs" / f"{name}.py").is_file() for name in listed)
    assert all(about and not about.startswith("#") for about in listed.values())


def test_help_begins_with_first_commands_and_lists_every_job_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["--help"], tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [x for x in lines if " mustsee " not in x]
    listed = [name for name in jobs(ROOT) for x in rows if x.startswith(f"  {name} ")]
    assert sorted(listed) == sorted(jobs(ROOT))
    begin = [
        x.partition(" mustsee ")[2].split() for x in lines if x[0:1] == " " and " mustsee " in x
    ]
    assert [words[0] for words in begin] == ["make", "report", "evaluate"]
    for name, *given in begin:
        overrides = [word for word in given if "=" in word]
        assert compose_job(name, overrides)["out"] in ("runs/mine", "runs/test")
    assert {name for names in SECTIONS.values() for name in names} < set(jobs(ROOT))


def test_help_loads_neither_ray_nor_other_slow_packages(tmp_path: Path) -> None:
    done = run_command("--help", "--loaded", here=tmp_path)
    assert done.returncode == 0
    assert "neptune " in done.stdout
    heavy = {"ray", "hydra", "omegaconf", "pyarrow", "numpy", "rich", "pydantic"}
    assert heavy & set(done.stderr.split()) == set()


def test_the_help_of_a_job_does_not_load_ray(tmp_path: Path) -> None:
    done = run_command("neptune", "--help", here=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "videos=???" in done.stdout


def test_a_misspelt_job_is_refused_with_the_nearest(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["neptun", "videos=x"], tmp_path) == 2
    assert "did you mean 'neptune'?" in capsys.readouterr().err


@pytest.mark.parametrize("name", FOLDERS)
def test_a_package_of_the_same_name_in_the_callers_folder_is_an_error(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    assert run(["neptune"], tmp_path) == 2
    assert repr(name) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["nep"], ["neptune"]),
        (["neptune", "llm=op"], ["llm=openai"]),
        (["neptune", "vid"], ["videos="]),
        (["neptune", "videos=a", "budg"], ["budget_usd="]),
        (["neptune", "+experiment=gp"], ["+experiment=gpu"]),
        (["completion", "z"], ["zsh"]),
        (["neptune", "videos=./fi"], []),
        (["nothing", "x"], []),
    ],
)
def test_completion_offers_jobs_keys_and_choices(typed: list[str], offered: list[str]) -> None:
    assert complete_words(typed) == offered


def test_bash_completes_the_value_after_an_equals_sign(tmp_path: Path) -> None:
    """Run the completion script in a real shell, with the `mustsee` under test."""
    ours = f"""
mustsee() {{ {sys.executable} -c 'from ray_jobs.cli.command import main; main()' "$@"; }}
eval "$(mustsee completion bash)"
compopt() {{ :; }}
COMP_LINE="mustsee neptune llm=op"; COMP_POINT=${{#COMP_LINE}}
_mustsee; printf '%s\\n' "${{COMPREPLY[@]}}"
COMP_LINE="mustsee neptune videos=x bud"; COMP_POINT=${{#COMP_LINE}}
_mustsee; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    shell = ["bash", "--norc", "-c", ours]
    done = subprocess.run(
        shell, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["openai", "budget_usd="], done.stderr


@pytest.mark.slow
def test_a_job_runs_from_any_folder_with_paths_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "teaser.mp4").symlink_to(VIDEOS / "teaser.mp4")
    rules = ("ask=facts", "vet=facts")
    done = run_command("neptune", "videos=videos", "out=runs/first", *rules, here=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(tmp_path / "runs" / "first" / "videos.parquet").to_pylist()
    assert [(r["video_id"], r["drop"].split(":")[0]) for r in rows] == [("teaser", "too short")]
    assert (tmp_path / "runs" / "first" / "store").is_dir()
    first = done.stderr.splitlines()[0]
    assert first == "mustsee: neptune: starting"


def test_a_job_offers_only_the_choices_that_it_can_run(tmp_path: Path) -> None:
    for job in ("make", "neptune", "cinepile", "egoschema", "mlvu"):
        inputs = [f"{key}=x" for key in known_keys(job) if key in ("out", *INPUTS)]
        for group in ("ask", "vet"):
            for option in choices(group) if group in contents(CONF, job)[0] else ():
                compose(job, [*inputs, f"{group}={option}"])
    assert complete_words(["make", "vet=f"]) == ["vet=facts"]
    assert complete_words(["egoschema", "vet=f"]) == []
    with pytest.raises(UserError, match="vet=facts: mustsee egoschema has no choices for vet"):
        compose("egoschema", ["narrations=x", "out=y", "vet=facts"])
    with pytest.raises(UserError, match="neptune has no choices for diversity"):
        compose("neptune", ["videos=x", "out=y", "diversity=sample"])


def test_help_of_a_key_explains_the_keys_inside(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def help_of(*given: str) -> tuple[object, str, str]:
        monkeypatch.setattr("sys.argv", ["make", "--help", *given])
        with pytest.raises(SystemExit) as ended:
            launch("make")
        return ended.value.code, *capsys.readouterr()

    code, ask, errors = help_of("ask")
    assert (code, errors) == (0, "")
    assert re.search(r"ask\.settings\.texts=2 +texts on the screen that begin", ask)
    _, select, _ = help_of("ask.settings.select")
    assert re.search(r"ask\.settings\.select\.questions=60 +questions of a video", select)
    assert "ask.settings.select.matched=1 " in select
    _, inside, _ = help_of("caption", "caption=openai")
    assert re.search(r"caption\.endpoint\.timeout=\d+ +seconds for one whole call", inside)
    code, _, errors = help_of("asks")
    assert code == 2
    assert "--help asks: no key of that name holds others" in errors
