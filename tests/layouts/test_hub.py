"""A dataset is pushed to a hub (on loopback), and loaded from it by the usual libraries."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import mustsee
from mustsee.layouts import hugging_face, ours
from mustsee.records import Video
from tests.layouts.test_exports import made
from tests.support.hub import Hub, hub

ROOT = Path(__file__).parents[2]
KEY = "hf_of_the_test"
VIDEOS = [
    Video(video_id=f"v{i}", uri=f"/somewhere/v{i}.mp4", license="CC BY 4.0") for i in range(6)
]


def run(
    served: Hub, folder: Path, *command: str, key: str = KEY
) -> subprocess.CompletedProcess[str]:
    environment = {"HF_ENDPOINT": served.address, "HF_TOKEN": key, "HF_HOME": str(folder / "home"),
             "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0",
             "HF_DATASETS_OFFLINE": "0", "HOME": str(folder)}  # fmt: skip
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, **environment},
    )  # fmt: skip


def pushed(
    served: Hub, folder: Path, *more: str, key: str = KEY
) -> subprocess.CompletedProcess[str]:
    ours.write(made(), folder / "run", VIDEOS)
    command = ("-m", "ray_jobs.export", f"questions={folder / 'run'}", f"out={folder / 'set'}")
    return run(served, folder, *command, "push=org/videos", *more, key=key)


READ_BACK = """
import json, sys
import datasets
from huggingface_hub import snapshot_download
loaded = datasets.load_dataset("org/videos")
videos = datasets.load_dataset("org/videos", "videos")
folder = snapshot_download("org/videos", repo_type="dataset")
parts = {name: loaded[name]["question_id"][:] for name in ("train", "test")}
print(json.dumps({**parts, "videos": videos["videos"]["video_id"][:], "folder": folder}))
"""


@pytest.mark.slow
def test_a_pushed_folder_is_a_dataset_that_its_libraries_load(tmp_path: Path) -> None:
    with hub(KEY) as served:
        first = pushed(served, tmp_path)
        assert first.returncode == 0, first.stderr
        assert f"pushed to {served.address}/datasets/org/videos" in first.stdout
        assert served.private == {"org/videos": True}
        written = {p.relative_to(tmp_path / "set").as_posix(): p.read_bytes()
                   for p in (tmp_path / "set").rglob("[!.]*") if p.is_file()}  # fmt: skip
        assert served.files["org/videos"] == written
        assert {"README.md", "croissant.json", "eval.yaml", "data/train.parquet"} <= set(written)
        second = pushed(served, tmp_path)  # the dataset exists now
        assert second.returncode == 0, second.stderr
        back = run(served, tmp_path, "-c", READ_BACK)
        assert back.returncode == 0, back.stderr[-2000:]
        loaded = json.loads(back.stdout.splitlines()[-1])
        kept = [q for q in made() if q.drop is None]
        assert loaded["train"] + loaded["test"] == [q.question_id for q in kept]
        assert loaded["videos"] == [v.video_id for v in VIDEOS]
        assert sorted(mustsee.read(loaded["folder"]), key=lambda q: q.question_id) == sorted(
            kept, key=lambda q: q.question_id
        )


@pytest.mark.slow
def test_a_refused_or_failed_push_gives_one_line(tmp_path: Path) -> None:
    with hub(KEY) as served:
        process = pushed(served, tmp_path, key="hf_another")
        assert process.returncode == 2
        assert "push='org/videos' failed: " in process.stderr
        assert "Traceback" not in process.stderr
        assert (tmp_path / "set" / "README.md").exists()
        process = pushed(served, tmp_path, "push=videos")
        assert process.returncode == 2
        assert "ORG/NAME" in process.stderr
    process = pushed(served, tmp_path)  # the hub is closed
    assert process.returncode == 2
    assert f"Does {served.address} answer" in process.stderr
    assert "Traceback" not in process.stderr


def test_eval_yaml_has_a_task_per_multiple_choice_split(tmp_path: Path) -> None:
    hugging_face.write(made(), tmp_path, VIDEOS)
    content = yaml.safe_load((tmp_path / "eval.yaml").read_text())
    assert content["evaluation_framework"] == "inspect-ai"
    assert [t["split"] for t in content["tasks"]] == ["train", "test"]
    assert {t["id"] for t in content["tasks"]} == {"train_without_video", "test_without_video"}


INSPECT = """
import json
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
output = ModelOutput.from_content("mockllm/model", "ANSWER: A")
output.usage = ModelUsage()  # else tokens are counted by a table from the network
model = get_model("mockllm/model", custom_outputs=lambda *_: output)
logs = eval("hf/org/videos", model=model, display="none", log_dir="LOGS")
rows = [(log.status, log.results.scores[0].metrics["accuracy"], log.samples) for log in logs]
print(json.dumps([[status, metric.value, len(samples)] for status, metric, samples in rows]))
"""


@pytest.mark.slow
def test_inspect_runs_eval_yaml_from_the_hub(tmp_path: Path) -> None:
    if importlib.util.find_spec("inspect_ai") is None:
        pytest.skip("inspect_ai is not installed")
    with hub(KEY) as served:
        assert pushed(served, tmp_path).returncode == 0
        process = run(served, tmp_path, "-c", INSPECT.replace("LOGS", str(tmp_path / "logs")))
        assert process.returncode == 0, process.stderr[-3000:]
        results = json.loads(process.stdout.splitlines()[-1])
    kept = [q for q in made() if q.drop is None]
    splits = [[q for q in kept if name in q.subsets] for name in ("train", "test")]
    expected = [
        ["success", sum(q.answer_index == 0 for q in questions) / len(questions), len(questions)]
        for questions in splits
    ]
    assert results == [[s, pytest.approx(a), n] for s, a, n in expected]
