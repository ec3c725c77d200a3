"""The exported tasks for Inspect and VLMEvalKit, and their scores in these tools if installed.

pip install --target X inspect_ai; PYTHONPATH=X python -m pytest tests/layouts/test_portable.py
"""

import csv
import importlib.util
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import mustsee
from mustsee.errors import UserError
from mustsee.evaluate.score import EvaluationResults
from mustsee.layouts import portable, tasks
from mustsee.records import Video
from tests.layouts.test_lmms_eval import evaluated, made, outside, replies

VIDEOS = [
    Video(video_id="v0", uri="/somewhere/first.webm"),
    Video(video_id="v1", uri="/somewhere/video.mp4", source="long", start=3.0, end=9.5),
]
WRITERS = {"inspect": tasks.write_inspect, "vlmevalkit": tasks.write_vlmevalkit}


def exported(tmp_path: Path, write: Callable[..., None], **options: Any) -> Path:
    """Write a task with its videos, move it, and return its folder."""
    write(made(), tmp_path / "a", VIDEOS, name="our_task", **options)
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "videos").mkdir()
    for name in ("first.webm", "v1.mp4", *(f"v{i}.mp4" for i in range(2, 5))):
        (tmp_path / "videos" / name).touch()
    return tmp_path / "b"


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_moved_task_is_read_back(tmp_path: Path, write: Callable[..., None]) -> None:
    folder = exported(tmp_path, write)
    read_back = mustsee.read(folder)
    assert read_back.findings == ()
    columns = ("question_id", "video_id", "recipe", "question", "question_type", "options",
             "answer_index", "answer", "evidence")  # fmt: skip
    kept = [q for q in made() if q.drop is None]
    assert [[getattr(q, a) for a in columns] for q in read_back] == [
        [getattr(q, a) for a in columns] for q in kept
    ]
    (clip,) = [v for v in read_back.videos if v.source is not None]
    assert (clip.video_id, clip.source, clip.start, clip.end) == ("v1", "long", 3.0, 9.5)
    assert clip.uri == f"{folder}/videos/video.mp4"


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_task_has_no_outside_paths_and_no_imports_of_mustsee(
    tmp_path: Path, write: Callable[..., None]
) -> None:
    folder = exported(tmp_path, write)
    for file in folder.rglob("*"):
        if file.is_file():
            text = file.read_text()
            assert "/somewhere" not in text
            assert str(tmp_path) not in text
            assert "@name@" not in text
            assert not [line for line in text.splitlines()
                        if line.startswith(("import mustsee", "from mustsee"))]  # fmt: skip
        if file.suffix == ".py":
            compile(file.read_text(), file.name, "exec")
    with pytest.raises(UserError, match="lower-case letters"):
        write(made(), tmp_path, name="Our task")


def test_the_table_and_configuration_have_the_kit_s_format(tmp_path: Path) -> None:
    folder = exported(tmp_path, tasks.write_vlmevalkit, model="M")
    with (folder / "our_task.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, dialect="excel-tab"))
    assert [row["index"] for row in rows] == [str(i) for i in range(9)]
    assert json.loads(rows[0]["options"])[0] == "C picks it up"
    config = json.loads((folder / "our_task.json").read_text())
    assert config["data"]["our_task_8frame"] == {
        "class": "OurTask",
        "dataset": "our_task",
        "nframe": 8,
    }
    assert config["model"] == {"M": {}}


def test_a_table_with_a_torn_list_is_refused(tmp_path: Path) -> None:
    folder = exported(tmp_path, tasks.write_vlmevalkit)
    text = (folder / "our_task.tsv").read_text().replace('""two"", ', '""two, ')
    (folder / "our_task.tsv").write_text(text)
    with pytest.raises(UserError, match="'q0': a list is not JSON"):
        mustsee.read(folder)


def replies_to_rows() -> Mapping[str, str]:
    return replies(list(portable.rows(portable.multiple_choice_questions(made()), VIDEOS)))


def same(results: Mapping[str, float], expected: EvaluationResults) -> None:
    assert expected.weighted is not None
    assert expected.macro is not None
    assert 0 < results["accuracy"] < 1
    assert results["accuracy"] == pytest.approx(expected.weighted.value)
    assert results["mean_of_types"] == pytest.approx(expected.macro.value)
    assert results["unparsed"] == pytest.approx(expected.unparsed)


INSPECT = """
import json, sys
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
folder, replies = sys.argv[1], json.load(open(sys.argv[2]))
sys.path.insert(0, folder)
import our_task
def answer(input, *_):
    *media, text = input[0].content
    assert [m.type for m in media] == ["video"], media
    (name,) = [n for n, question in questions.items() if text.text.startswith(question)]
    output = ModelOutput.from_content("mockllm/model", replies[name])
    output.usage = ModelUsage()  # else tokens are counted by a table from the network
    return output
rows = [json.loads(l) for l in open(folder + "/our_task.jsonl")]
questions = {r["question_id"]: r["question"] for r in rows}
model = get_model("mockllm/model", custom_outputs=answer)
(log,) = eval(our_task.our_task(), model=model, display="none", log_dir=folder + "/logs")
assert log.status == "success", log.error
assert "mustsee" not in sys.modules
figures = {k: m.value for k, m in log.results.scores[0].metrics.items()}
print(json.dumps({**figures, "videos": len({s.metadata["source"] for s in log.samples})}))
"""


@pytest.mark.slow
def test_inspect_itself_scores_as_evaluate_does(tmp_path: Path) -> None:
    if importlib.util.find_spec("inspect_ai") is None:
        pytest.skip("inspect_ai is not installed")
    folder = exported(tmp_path, tasks.write_inspect)
    given_replies = replies_to_rows()
    results = outside(INSPECT, folder, tmp_path, given_replies)
    same(results, evaluated(folder, given_replies))
    assert results["stderr"] > 0
    assert results["videos"] == 5


KIT = """
import json, sys
folder, given = sys.argv[1], json.load(open(sys.argv[2]))
sys.path.insert(0, folder)
from our_task_video import OurTask
data = OurTask(nframe=8)
assert len(data) == 9 and data.MODALITY == "VIDEO" and data.nframe == 8
prompt = data.build_prompt(2, video_llm=True)
assert [p["type"] for p in prompt] == ["video", "text"], prompt
assert prompt[0]["value"].endswith("videos/v1.mp4"), prompt
assert "A. C picks it up" in prompt[1]["value"]
from vlmeval.smp import dump
data.data["prediction"] = [given[n] for n in data.data["question_id"]]
dump(data.data, "replies.xlsx")
assert "mustsee" not in sys.modules
print(json.dumps(data.evaluate("replies.xlsx")))
"""


@pytest.mark.slow
def test_vlmevalkit_itself_scores_as_evaluate_does(tmp_path: Path) -> None:
    if importlib.util.find_spec("vlmeval") is None:
        pytest.skip("VLMEvalKit is not installed")
    folder = exported(tmp_path, tasks.write_vlmevalkit)
    given_replies = replies_to_rows()
    (tmp_path / "kit").mkdir()
    results = outside(KIT, folder, tmp_path, given_replies, LMUData=str(tmp_path / "kit"))
    same(results, evaluated(folder, given_replies))
