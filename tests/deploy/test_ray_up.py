"""`ray up cluster.yaml` with stand-ins for ssh, rsync, pip and `ray start` that record their
arguments. The commands run here, in a scratch home folder, as they would on the head.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow  # Ray's command takes seconds to load.

RECORD = f"""#!{sys.executable} -I
import json, os, sys
called = dict(tool=os.path.basename(sys.argv[0]), given=sys.argv[1:], cwd=os.getcwd(),
              auth=os.environ.get("RAY_AUTH_MODE"), path=os.environ["PATH"])
with open("LOG", "a") as log:
    log.write(json.dumps(called) + "\\n")
"""
SSH = """
at = next(i for i, word in enumerate(sys.argv) if "@" in word)
os.environ["HOME"] = "THERE"
os.chdir("THERE")
os.execvp("sh", ["sh", "-c", " ".join(sys.argv[at + 1 :])])
"""
RSYNC = """
import shutil
source, target = sys.argv[-2], sys.argv[-1].partition(":")[2].replace("~", "THERE", 1)
if source.endswith("/"):
    shutil.copytree(source, target, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns(sys.argv[sys.argv.index("--exclude") + 1]))
else:
    shutil.copy2(source, target)
"""
PYTHON = """
if sys.argv[1:] == ["-m", "venv", ".venv"]:
    os.makedirs(".venv/bin", exist_ok=True)
    for name, stub in (("python", "python3"), ("ray", "uptime")):
        if not os.path.lexists(f".venv/bin/{name}"):
            os.symlink(f"HERE/{stub}", f".venv/bin/{name}")
    with open(".venv/bin/activate", "w") as script:
        script.write(f'PATH="{os.getcwd()}/.venv/bin:$PATH"')
elif "-c" in sys.argv and not os.path.isfile(sys.argv[sys.argv.index("-c") + 1]):
    sys.exit("no constraints here")
elif "-e" in sys.argv and not os.path.isfile("pyproject.toml"):
    sys.exit("no project here")
"""
STUBS = {
    "ssh": SSH, "rsync": RSYNC, "python3": PYTHON, "uptime": "", "pkill": "sys.exit(1)",
}  # fmt: skip


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The home folder of the user on the head, whose shell finds the stand-ins first."""
    here, home = tmp_path / "bin", tmp_path / "there"
    for folder in (here, home, tmp_path / "here/.ray", tmp_path / "tmp"):
        folder.mkdir(parents=True)
    for name, text in STUBS.items():
        text = (RECORD + text).replace("LOG", str(tmp_path / "log"))
        (here / name).write_text(text.replace("THERE", str(home)).replace("HERE", str(here)))
        (here / name).chmod(0o755)
    (home / ".bashrc").write_text(f'export PATH="{here}:$PATH"\n')
    (tmp_path / "here/.ray/auth_token").write_text("token")
    return home


def ray_up(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "HOME": str(folder / "here"),
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "RAY_TMPDIR": str(folder / "tmp"),
        "TMPDIR": str(folder / "tmp"),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    command = [sys.executable, "-m", "ray.scripts.scripts", "up", "-y", "cluster.yaml"]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


def test_ray_up_runs_the_commands_of_cluster_yaml(there: Path, tmp_path: Path) -> None:
    config = yaml.safe_load((ROOT / "cluster.yaml").read_text())
    done = ray_up(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    calls: list[dict[str, Any]] = [
        json.loads(line) for line in (tmp_path / "log").read_text().splitlines()
    ]
    user = f"{config['auth']['ssh_user']}@{config['provider']['head_ip']}"
    remote = [call for call in calls if call["tool"] in ("ssh", "rsync")]
    assert remote[0]["tool"] == "ssh"
    assert any("uptime" in word for word in remote[0]["given"])
    assert all(any(word.startswith(user) for word in call["given"]) for call in remote)

    copied = [call["given"][-1].partition(":")[2].rstrip("/") for call in calls_of(calls, "rsync")]
    assert copied == [*config["file_mounts"], "~/ray_bootstrap_config.yaml"]
    assert stat.S_IMODE((there / ".ray/auth_token").stat().st_mode) == 0o600
    assert not list((there / "mustsee").rglob("__pycache__"))

    project = str(there / "mustsee")
    venv, *pip = (call for call in calls if call["tool"] in ("python3", "python"))
    assert (venv["given"], venv["cwd"]) == (["-m", "venv", ".venv"], project)
    assert all(call["cwd"] == project for call in pip)
    assert pip[0]["given"][:3] == ["-m", "pip", "install"]
    assert {"-c", "constraints.txt", "-e", ".[offline]"} <= set(pip[0]["given"])

    assert [call["given"][-1] for call in calls_of(calls, "pkill")] == [
        "[/]tmp/ray-mustsee/ray/session_"
    ]
    (start,) = calls_of(calls, "ray")
    assert start is calls[-1]
    assert (start["given"][:2], start["cwd"]) == (["start", "--head"], project)
    assert start["auth"] == "token"
    assert start["path"].startswith(f"{project}/.venv/bin:")  # Jobs use the Python of the head.

    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [sys.executable, "-m", "ray_jobs.neptune", "--help", "all"]
    job = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert job.returncode == 0, job.stderr  # The copied files are all that a job needs.
    assert "+experiment=api" in job.stdout


def calls_of(calls: list[dict[str, Any]], tool: str) -> list[dict[str, Any]]:
    return [call for call in calls if call["tool"] == tool]
