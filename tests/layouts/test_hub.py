"""A dataset pushed to a hub (on loopback), and read back from it by the libraries for that."""

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
    given = {"HF_ENDPOINT": served.address, "HF_TOKEN": key, "HF_HOME": str(folder / "home"),
             "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0",
             "HF_DATASETS_OFFLINE": "0", "HOME": str(folder)}  # fmt: skip
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, **given},
    )  # fmt: skip


def pushed(
    served: Hub, folder: Path, *more: str, key: str = KEY
) -> subprocess.CompletedProcess[str]:
    ours.write(made(), folder / "run", VIDEOS)
    command = ("-m", "ray_jobs.export", f"questions={folder / 'run'}", f"out={folder / 'set'}")
    return run(served, folder, *command, "push=org/videos", *more, key=key)


BACK = """
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
        done = pushed(served, tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"pushed to {served.address}/datasets/org/videos" in done.stdout
        assert served.private == {"org/videos": True}
        written = {p.relative_to(tmp_path / "set").as_posix(): p.read_bytes()
                   for p in (tmp_path / "set").rglob("*") if p.is_file()}  # fmt: skip
        assert served.files["org/videos"] == written
        assert {"README.md", "croissant.json", "eval.yaml", "data/train.parquet"} <= set(written)
        again = pushed(served, tmp_path)  # the dataset is there by now
        assert again.returncode == 0, again.stderr
        back = run(served, tmp_path, "-c", BACK)
        assert back.returncode == 0, back.stderr[-2000:]
        told = json.loads(back.stdout.splitlines()[-1])
        kept = [q for q in made() if q.drop is None]
        assert told["train"] + told["test"] == [q.question_id for q in kept]
        assert told["videos"] == [v.video_id for v in VIDEOS]
        assert sorted(mustsee.read(told["folder"]), key=lambda q: q.question_id) == sorted(
            kept, key=lambda q: q.question_id
        )


@pytest.mark.slow
def test_a_refusal_is_one_line(tmp_path: Path) -> None:
    with hub(KEY) as served:
        done = pushed(served, tmp_path, key="hf_another")
        assert done.returncode == 2
        assert "push='org/videos' failed: " in done.stderr
        assert "Traceback" not in done.stderr
        assert (tmp_path / "set" / "README.md").exists()
        done = pushed(served, tmp_path, "push=videos")
        assert done.returncode == 2
        assert "ORG/NAME" in done.stderr
    done = pushed(served, tmp_path)  # nobody is there any more
    assert done.returncode == 2
    assert f"Does {served.address} answer" in done.stderr
    assert "Traceback" not in done.stderr


def test_eval_yaml_names_splits_that_the_form_can_ask(tmp_path: Path) -> None:
    hugging_face.write(made(), tmp_path, VIDEOS)
    told = yaml.safe_load((tmp_path / "eval.yaml").read_text())
    assert told["evaluation_framework"] == "inspect-ai"
    assert [t["split"] for t in told["tasks"]] == ["train", "test"]
    assert {t["id"] for t in told["tasks"]} == {"train_without_video", "test_without_video"}


INSPECT = """
import json
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
said = ModelOutput.from_content("mockllm/model", "ANSWER: A")
said.usage = ModelUsage()  # without it tokens are counted, by a table from the network
model = get_model("mockllm/model", custom_outputs=lambda *_: said)
logs = eval("hf/org/videos", model=model, display="none", log_dir="LOGS")
told = [(log.status, log.results.scores[0].metrics["accuracy"], log.samples) for log in logs]
print(json.dumps([[status, metric.value, len(samples)] for status, metric, samples in told]))
"""


@pytest.mark.slow
def test_inspect_runs_eval_yaml_from_the_hub(tmp_path: Path) -> None:
    if importlib.util.find_spec("inspect_ai") is None:
        pytest.skip("inspect_ai is not installed")
    with hub(KEY) as served:
        assert pushed(served, tmp_path).returncode == 0
        done = run(served, tmp_path, "-c", INSPECT.replace("LOGS", str(tmp_path / "logs")))
        assert done.returncode == 0, done.stderr[-3000:]
        found = json.loads(done.stdout.splitlines()[-1])
    kept = [q for q in made() if q.drop is None]
    parts = [[q for q in kept if name in q.subsets] for name in ("train", "test")]
    ours = [
        ["success", sum(q.answer_index == 0 for q in part) / len(part), len(part)] for part in parts
    ]
    assert found == [[s, pytest.approx(a), n] for s, a, n in ours]
