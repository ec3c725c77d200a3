"""The exported lmms-eval task, by a substitute of its loader, and in lmms-eval if installed."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

import mustsee
from mustsee.errors import UserError
from mustsee.evaluate import answers
from mustsee.evaluate.score import EvaluationResults, score
from mustsee.files.folders import SUFFIXES
from mustsee.layouts import task_scoring, tasks
from mustsee.records import Question, Span, Video
from mustsee.replies import extract

REPLIES = (
    "<think>Is it B?\n\nNo.</think>The answer is ({right}).",
    "{wrong}",
    "I cannot say.",
    "<think>maybe {right}",
    "{text}",
)


def made(count: int = 10) -> list[Question]:
    options = ("C picks it up", "two", "three", "four", "five", "six")
    return [
        Question(
            question_id=f"q{i}", video_id=f"v{i // 2}", recipe="neptune", question=f"What, {i}?",
            question_type="Counting" if i % 3 else "Summarization", options=options,
            answer_index=i % 6, answer=options[i % 6], evidence=(Span(1.0, 2.0),),
            subsets=("train",) if i < 4 else (), drop="blind: guessed" if i == 9 else None,
        )
        for i in range(count)
    ]  # fmt: skip


def replies(rows: list[dict[str, Any]]) -> dict[str, str]:
    return {
        row["question_id"]: REPLIES[i % len(REPLIES)].format(
            right="ABCDEF"[row["answer_index"]], wrong="ABCDEF"[(row["answer_index"] + 1) % 6],
            text=row["answer"],
        )
        for i, row in enumerate(rows)
    }  # fmt: skip


def evaluated(folder: Path, replies: Mapping[str, str]) -> EvaluationResults:
    """Return the results of `ray_jobs.evaluate` for these replies."""
    reading = mustsee.read(folder)
    answered = [
        answers.with_answers(q, [answers.verdict_on_reply(q, replies[q.question_id], model="m")])
        for q in reading
    ]
    (results,) = score(answered, reading.videos)
    return results


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a task with its videos, and move it."""
    videos = [
        Video(video_id="v0", uri="/somewhere/first.webm"),
        Video(video_id="v1", uri="/somewhere/video.mp4", source="long", start=3.0, end=9.5),
    ]
    tasks.write_lmms_eval(made(), tmp_path / "a", videos, name="our_task")
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "videos").mkdir()
    for name in ("first.webm", "v1.en.vtt", "v1.MP4", *(f"v{i}.mp4" for i in range(2, 5))):
        (tmp_path / "videos" / name).touch()
    return tmp_path / "b"


def loaded(folder: Path, name: str = "our_task") -> Mapping[str, Any]:
    """Return the task as lmms-eval loads it: the module is loaded again for each function."""

    def load_function(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
        module, name = node.value.split(".")
        spec = importlib.util.spec_from_file_location(module, folder / f"{module}.py")
        assert spec is not None
        assert spec.loader is not None
        loaded_module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded_module)
        return getattr(loaded_module, name)

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", load_function)
    return yaml.load((folder / f"{name}.yaml").read_text(), Loader)


def test_a_moved_task_scores_as_evaluate_does(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = loaded(folder)
    rows = pq.read_table(task["dataset_kwargs"]["data_files"]["test"]).to_pylist()
    assert [r["question_id"] for r in rows] == [f"q{i}" for i in range(9)]
    given_replies = replies(rows)
    scored = [task["process_results"](r, [given_replies[r["question_id"]]]) for r in rows]
    ours = [extract.extract(given_replies[r["question_id"]], r["options"]).letter for r in rows]
    assert [s["accuracy"]["letter"] for s in scored] == ours
    right = [float(o == "ABCDEF"[r["answer_index"]]) for o, r in zip(ours, rows, strict=True)]
    expected = evaluated(folder, given_replies)
    assert expected.weighted is not None
    assert expected.macro is not None
    means = {m["metric"]: m["aggregation"]([s[m["metric"]] for s in scored])
             for m in task["metric_list"]}  # fmt: skip
    assert 0 < means["accuracy"] == expected.weighted.value == sum(right) / 9 < 1
    assert means["mean_of_types"] == pytest.approx(expected.macro.value)
    assert means["unparsed"] == expected.unparsed == pytest.approx(4 / 9)
    assert expected.weighted.clusters == 5
    assert [s["accuracy"][task["score_key"]] for s in scored] == right
    clusters = [s["accuracy"][task["cluster_key"]] for s in scored]
    assert clusters == ["v0", "v0", "long", "long", "v2", "v2", "v3", "v3", "v4"]
    assert {s["accuracy"]["type"] for s in scored} == {"Counting", "Summarization"}
    wording = task["lmms_eval_specific_kwargs"]["default"]
    assert "A. C picks it up\nB. two" in task["doc_to_text"](rows[0], wording)
    videos = folder.parent / "videos"
    monkeypatch.setenv("MUSTSEE_VIDEOS", str(videos))
    video_paths = [task["doc_to_visual"](r) for r in rows]
    assert video_paths[0] == [str(videos / "first.webm")]
    assert video_paths[2] == [str(videos / "v1.MP4")]
    assert video_paths[4] == [str(videos / "v2.mp4")]


def test_the_error_for_a_missing_video_says_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MUSTSEE_VIDEOS", raising=False)
    task = loaded(folder)
    row = pq.read_table(folder / "data" / "test.parquet").to_pylist()[2]
    with pytest.raises(FileNotFoundError, match=r"MUSTSEE_VIDEOS.* -ss 3.0 -to 9.5 -i video.mp4"):
        task["doc_to_visual"](row)
    (folder / "videos").mkdir()
    (folder / "videos" / "video.mp4").touch()  # the whole video is not the clip
    with pytest.raises(FileNotFoundError):
        task["doc_to_visual"](row)


def test_the_folder_has_no_outside_paths_and_no_imports_of_mustsee(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.suffix in (".py", ".yaml"):
            text = file.read_text()
            assert "/somewhere" not in text
            assert str(folder.parent) not in text
            assert not [line for line in text.splitlines()
                        if line.startswith(("import mustsee", "from mustsee"))]  # fmt: skip
    assert set(task_scoring.ENDINGS) == SUFFIXES
    code = (
        "import sys; sys.path.insert(0, '.'); import utils; "
        "doc = {'question_id': 'q', 'video_id': 'v', 'question_type': 't', "
        "'options': ['x', 'y'], 'answer_index': 1}; "
        "print(utils.process_results(doc, ['(B)'])['accuracy']['score'], 'mustsee' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["1.0", "False"]


def test_an_exported_task_is_read_back(folder: Path) -> None:
    read_back = mustsee.read(folder)
    expected = [replace(q, subsets=()) for q in made() if q.drop is None]
    assert list(read_back) == expected
    assert read_back.videos[1].uri == f"{folder}/videos/video.mp4"


def test_a_published_dataset_is_named_by_its_id(tmp_path: Path) -> None:
    tasks.write_lmms_eval(made(), tmp_path, name="our_task", dataset="org/videos", split="train")
    task = loaded(tmp_path)
    assert task["dataset_path"] == "org/videos"
    assert task["test_split"] == "train"
    assert "dataset_kwargs" not in task
    assert not (tmp_path / "data").exists()
    assert not (tmp_path / "our_task_open.yaml").exists()
    with pytest.raises(UserError, match="lower-case letters"):
        tasks.write_lmms_eval(made(), tmp_path, name="Our task")


INSIDE = """
import json, os, sys
from lmms_eval.api.model import lmms
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.tasks import TaskManager
folder, replies = sys.argv[1], json.load(open(sys.argv[2]))
class FromFile(lmms):
    def generate_until(self, requests):
        texts = []
        for request in requests:
            _, _, visual, number, task, split = request.args
            doc = self.task_dict[task][split][number]
            assert os.path.isfile(visual(doc)[0])
            texts.append(replies[doc["question_id"]])
        return texts
    loglikelihood = generate_until_multi_round = generate_until
manager = TaskManager("ERROR", include_path=folder, include_defaults=False)
found = simple_evaluate(
    model=FromFile(), tasks=[sys.argv[3]], task_manager=manager, bootstrap_iters=0, batch_size=1
)
assert "mustsee" not in sys.modules
print(json.dumps(found["results"][sys.argv[3]], default=str))
"""


def outside(
    script: str,
    folder: Path,
    tmp_path: Path,
    replies: Mapping[str, str],
    *more: str,
    **environment: str,
) -> Any:
    """Return the last line of a script's output as JSON; the script cannot import this project."""
    (tmp_path / "replies.json").write_text(json.dumps(replies))
    (tmp_path / "inside.py").write_text(script)
    path = [p for p in sys.path if p and not (Path(p) / "mustsee").is_dir()]
    run = subprocess.run(
        [sys.executable, tmp_path / "inside.py", folder, tmp_path / "replies.json", *more],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(path), "HOME": str(tmp_path),
             "HF_HUB_OFFLINE": "1", "MUSTSEE_VIDEOS": str(tmp_path / "videos"), **environment},
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-3000:]
    return json.loads(run.stdout.strip().splitlines()[-1])


@pytest.mark.slow
def test_lmms_eval_itself_scores_as_evaluate_does(folder: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("lmms_eval") is None:
        pytest.skip("lmms-eval is not installed")
    given_replies = replies(pq.read_table(folder / "data" / "test.parquet").to_pylist())
    results = outside(INSIDE, folder, tmp_path, given_replies, "our_task")
    expected = evaluated(folder, given_replies)
    assert expected.weighted is not None
    assert expected.macro is not None
    assert results["accuracy,none"] == pytest.approx(expected.weighted.value)
    assert results["mean_of_types,none"] == pytest.approx(expected.macro.value)
    assert results["unparsed,none"] == pytest.approx(expected.unparsed)
    assert results["accuracy_stderr_clustered,none"] > 0
    assert results["mean_of_types_stderr_clt,none"] == "N/A"
