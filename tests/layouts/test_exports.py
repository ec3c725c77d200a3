"""What others load: a dataset folder with its card, chat records, an lmms-eval task."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import mustsee
from mustsee import schemas
from mustsee.errors import UserError
from mustsee.layouts import chat, hugging_face, lmms_eval
from mustsee.records import Provenance, Question, Span, Verdict, Video


def made(count: int = 12) -> list[Question]:
    return [
        Question(
            question_id=f"q{i}", video_id=f"v{i // 2}", recipe="neptune", question=f"What, {i}?",
            question_type="Counting" if i % 3 else "Summarization",
            options=("a longer text", "two", "three"), answer_index=i % 3,
            answer=("a longer text", "two", "three")[i % 3], metrics={"blind_failures": 2.0},
            verdicts=(Verdict(filter="blind", model="m", reply="B", correct=False),),
            provenance=Provenance(llm="some model", prompts="abc", git="def"),
            subsets=("train",) if i < 8 else ("test",), drop="blind: guessed" if i == 11 else None,
        )
        for i in range(count)
    ]  # fmt: skip


def test_a_dataset_folder_loads_offline_and_its_card_tells(tmp_path: Path) -> None:
    import datasets

    questions = made()
    run = {"funnel": [{"stage": "read", "in": 9, "out": 6, "dropped": {}, "problems": 0}],
           "prompts": {"neptune/questions": "p1", "egoschema/x": "p2"}}  # fmt: skip
    folder = tmp_path / "set"
    hugging_face.write(questions, folder, card=hugging_face.Card(run=run, licence="cc-by-4.0"))
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert {k: len(v) for k, v in loaded.items()} == {"train": 8, "test": 3}
    row = loaded["train"][0]
    assert row["options"] == ["a longer text", "two", "three"]
    assert row["verdicts"][0]["reply"] == "B"
    card = (folder / "README.md").read_text()
    for told in ("cc-by-4.0", "read: 9 in, 6 out", "dropped as blind: 1", "some model", "p1",
                 "longest option", "Counting"):  # fmt: skip
        assert told in card
    assert "p2" not in card
    back = {q.question_id: q for q in mustsee.read(folder)}
    assert back == {q.question_id: q for q in questions if q.drop is None}


@pytest.mark.parametrize("kind", [Question, Video], ids=lambda c: c.__name__)
def test_the_dataset_library_loads_a_run_s_tables(tmp_path: Path, kind: type) -> None:
    import datasets

    rows = [Video(video_id="v", uri="v.mp4", lineage={"look": "k"}, shots=(Span(0.0, 2.0),))]
    made_rows = made(3) if kind is Question else rows
    pq.write_table(schemas.table(made_rows, kind), tmp_path / "rows.parquet")
    loaded = datasets.load_dataset("parquet", data_files=str(tmp_path / "rows.parquet"),
                                   cache_dir=str(tmp_path / "cache"))["train"]  # fmt: skip
    assert [schemas.load(kind, row) for row in loaded] == made_rows
    name, told = ("metrics", "blind_failures") if kind is Question else ("lineage", "look")
    assert [pair["name"] for pair in loaded[0][name]] == [told]


def test_known_biases_are_measured() -> None:
    found = hugging_face.biases(made(9))
    assert found["answer_is_longest"] == pytest.approx(1 / 3)
    assert found["answer_is_longest_by_chance"] == pytest.approx(1 / 3)
    assert found["most_common_place"] == pytest.approx(1 / 3)
    assert hugging_face.biases([]) == {}


def test_chat_records(tmp_path: Path) -> None:
    questions = [*made(3), replace(made(1)[0], question_id="open", options=(), answer_index=None,
                                   answer="He sings.")]  # fmt: skip
    chat.write(questions, tmp_path, [Video(video_id="v0", uri="films/v0.mp4")])
    lines = [json.loads(x) for x in (tmp_path / "chat.jsonl").read_text().splitlines()]
    assert len(lines) == 4
    assert lines[0]["video"] == "films/v0.mp4"
    assert lines[1]["messages"][1]["content"][0]["text"] == "(B) two"
    assert lines[3]["messages"][1]["content"][0]["text"] == "He sings."
    assert "(C) three" in lines[0]["messages"][0]["content"][1]["text"]


def test_the_lmms_eval_task_is_scored_by_our_extraction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    import yaml

    lmms_eval.write(made(), tmp_path, name="our_task")
    spec = importlib.util.spec_from_file_location("task_utils", tmp_path / "utils.py")
    assert spec is not None
    assert spec.loader is not None
    utils = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(utils)

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", lambda _, node: getattr(utils, node.value.split(".")[1]))
    task = yaml.load((tmp_path / "our_task.yaml").read_text(), Loader)
    rows = pq.read_table(task["dataset_kwargs"]["data_files"]["test"]).to_pylist()
    assert len(rows) == 11
    scored = [
        task["process_results"](r, [f"The answer is {task['doc_to_target'](r)}."]) for r in rows
    ]
    scored[0] = task["process_results"](rows[0], ["I cannot say."])
    means = {m["metric"]: m["aggregation"]([s[m["metric"]] for s in scored])
             for m in task["metric_list"]}  # fmt: skip
    assert means["accuracy"] == pytest.approx(10 / 11)
    assert means["unparsed"] == pytest.approx(1 / 11)
    told = task["lmms_eval_specific_kwargs"]["default"]
    assert "C. three" in task["doc_to_text"](rows[0], told)
    (tmp_path / "videos").mkdir()
    with pytest.raises(FileNotFoundError, match="MUSTSEE_VIDEOS"):
        task["doc_to_visual"](rows[0])
    name = rows[0]["video_id"]
    for file in (f"{name}.en.vtt", f"{name}.mp4"):
        (tmp_path / "videos" / file).touch()
    monkeypatch.setenv("MUSTSEE_VIDEOS", str(tmp_path / "videos"))
    assert task["doc_to_visual"](rows[0]) == [str(tmp_path / "videos" / f"{name}.mp4")]
    with pytest.raises(UserError, match="small letters"):
        lmms_eval.write(made(), tmp_path, name="Our task")
