"""Reading and writing the released layouts: nothing lost on a round trip, nothing wrong hidden."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mustsee
from mustsee.errors import UserError
from mustsee.layouts import chat, cinepile, egoschema, hugging_face, lmms_eval, mlvu, neptune, ours
from mustsee.records import Provenance, Question, Verdict, Video

TEXT = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=30).filter(
    lambda t: t.strip() != ""
)
NAMES = st.text("abcdefghijklmnopqrstuvwxyzABC-_0123456789", min_size=1, max_size=11)


@st.composite
def questions(
    draw: st.DrawFn, count: int = 5, kinds: tuple[str, ...] = ("Counting",)
) -> list[Question]:
    made = []
    for number in range(draw(st.integers(1, 4))):
        options = draw(st.lists(TEXT, min_size=count, max_size=count, unique=True))
        index = draw(st.integers(0, count - 1))
        made.append(
            Question(
                question_id=f"q{number}",
                video_id=draw(NAMES),
                recipe="r",
                question=draw(TEXT),
                question_type=draw(st.sampled_from(kinds)),
                options=tuple(options),
                answer_index=index,
                answer=options[index],
            )
        )
    return made


def same(left: Question, right: Question) -> bool:
    fields = ("question", "options", "answer_index", "answer")
    return all(getattr(left, f) == getattr(right, f) for f in fields)


@given(questions())
@settings(max_examples=40, deadline=None)
def test_neptune_round_trip(made: list[Question]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tagged = [replace(q, subsets=("mmh",) if i % 2 else ()) for i, q in enumerate(made)]
        neptune.write(tagged, folder)
        got = mustsee.read(folder)
        assert [q.subsets for q in got] == [q.subsets for q in tagged]
        assert all(same(a, b) and a.video_id == b.video_id for a, b in zip(got, made, strict=True))
        assert [q.question_type for q in got] == [q.question_type for q in made]
        assert got.findings == ()
        again = Path(folder) / "again.json"
        neptune.write(got.questions, again)
        assert [q.question_id for q in mustsee.read(again)] == [q.question_id for q in got]


@given(questions(kinds=("Theme Exploration", "Narrative and Plot Analysis", "Own")), st.booleans())
@settings(max_examples=40, deadline=None)
def test_cinepile_round_trip(made: list[Question], hard: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        flags = {"hardness": float(hard), "vision_reliance": 1.0}
        tagged = [replace(q, metrics=flags) for q in made]
        cinepile.write(
            tagged, folder, [Video(video_id=made[0].video_id, uri="u", title="t", year=3)]
        )
        got = mustsee.read(folder)
        assert got.layout == "cinepile"
        assert all(same(a, b) for a, b in zip(got, made, strict=True))
        assert all(a.question_type == b.question_type for a, b in zip(got, made, strict=True))
        assert all(q.metrics == flags and q.subsets == ("hard",) * hard for q in got)


@given(questions())
@settings(max_examples=40, deadline=None)
def test_egoschema_round_trip(made: list[Question]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        clips = [
            Video(video_id=q.video_id, uri="", source="v", start=30.0, end=210.0) for q in made
        ]
        egoschema.write(made, folder, clips)
        got = mustsee.read(folder)
        assert all(same(a, b) for a, b in zip(got, made, strict=True))
        assert [q.question_id for q in got] == [q.question_id for q in made]
        assert {(v.source, v.start, v.end) for v in got.videos} == {("v", 30.0, 210.0)}
        assert got.findings == ()


@given(questions(4, ("plotQA", "findNeedle", "my own task")), questions(6, ("count",)))
@settings(max_examples=40, deadline=None)
def test_mlvu_round_trip(dev: list[Question], test: list[Question]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        mlvu.write(dev, folder)
        got = mustsee.read(folder)
        assert sorted(q.question for q in got) == sorted(q.question for q in dev)
        assert {(q.question, q.question_type) for q in got} == {
            (q.question, q.question_type) for q in dev
        }
    with tempfile.TemporaryDirectory() as folder:
        mlvu.write_test(test, folder)
        got = mustsee.read(folder)
        assert all(same(a, b) for a, b in zip(got, test, strict=True))
        assert [q.question_id for q in got] == [q.question_id for q in test]


@given(questions())
@settings(max_examples=20, deadline=None)
def test_ours_round_trip(made: list[Question]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        full = [
            replace(q, drop="blind", verdicts=(Verdict(filter="blind", model="m", correct=True),),
                    metrics={"x": 0.5})
            for q in made
        ]  # fmt: skip
        ours.write(full, folder)
        assert list(mustsee.read(folder)) == full


def test_dropped_questions_stay_out_of_every_release(tmp_path: Path) -> None:
    base = Question(question_id="a", video_id="v", recipe="r", question="?", question_type="plotQA",
                    options=("x", "y"), answer_index=0, answer="x")  # fmt: skip
    both = [base, replace(base, question_id="b", question="gone", drop="blind: guessed")]
    for number, write in enumerate((neptune.write, cinepile.write, egoschema.write, mlvu.write)):
        write(both, tmp_path / str(number))
        assert [q.question for q in mustsee.read(tmp_path / str(number))] == ["?"]


def save(path: Path, rows: object) -> Path:
    path.write_text(json.dumps(rows))
    return path


def test_neptune_quirks_are_found(tmp_path: Path) -> None:
    row = {f"answer_choice_{i}": f"o{i}" for i in range(5)} | {
        "key": "k/1", "video_id": "https://www.youtube.com/watch?v=-9QGyHPv1v0", "question": "?",
        "answer": "o1", "answer_id": "1", "question type": "Counting",
    }  # fmt: skip
    rows = [
        row,
        row | {"key": "k/2", "answer_id": 2},
        row | {"key": "k/3", "answer_id": None, "answer": "other"},
        row | {"key": "k/4", "answer_id": 7},
        row | {"key": "k/4", "answer_id": None},
    ]
    got = mustsee.read(save(tmp_path / "neptune_mmh.json", rows))
    assert got[0].video_id == "-9QGyHPv1v0"
    assert got[0].subsets == ("mmh",)
    assert [q.answer_index for q in got] == [1, None, None, 1, 1]
    assert [(f.row, f.what) for f in got.findings] == [
        (1, "answer number and answer text disagree"),
        (2, "answer is no option"),
        (3, "answer number is outside the options"),
        (4, "this id occurs again"),
    ]
    assert len({q.question_id for q in got}) == 5


def test_mlvu_answers_outside_their_candidates_are_found(tmp_path: Path) -> None:
    good = {"video": "needle_1.mp4", "duration": 480.5, "question": "What?", "answer": "Two",
            "candidates": ["One", "Two", "Three", "Four"],
            "question_type": "findNeedle"}  # fmt: skip
    bad = good | {"video": "needle_4.mp4", "answer": "Catching a flying drone quadcopter"}
    save(tmp_path / "2_needle.json", [good, bad])
    scene = {"video": "a.mp4", "duration": 9, "question": "Say.", "answer": "He eats.",
             "question_type": "subPlot", "scoring_points": ["he", "eats"]}  # fmt: skip
    save(tmp_path / "8_sub_scene.json", [scene])
    got = mustsee.read(tmp_path)
    assert [q.answer_index for q in got] == [1, None, None]
    assert got[1].answer == "Catching a flying drone quadcopter"
    assert got[2].scoring_points == ("he", "eats")
    assert [(f.file, f.row, f.what) for f in got.findings] == [
        ("2_needle.json", 1, "answer is no option")
    ]
    assert {v.video_id: v.duration for v in got.videos}["needle_1"] == 480.5


def test_the_mlvu_mirror_with_letters_and_options_in_the_question(tmp_path: Path) -> None:
    row = {"video_name": "x.mp4", "question": "Who?\n(A) One\n(B) Two", "answer": "B",
           "task_type": "plotQA"}  # fmt: skip
    (got,) = mustsee.read(save(tmp_path / "m.json", [row]))
    assert (got.question, got.options, got.answer_index) == ("Who?", ("One", "Two"), 1)


def test_cinepile_string_flags_and_broken_category(tmp_path: Path) -> None:
    row = {"movie_name": "M", "year": 1999, "genre": ["a", "b"], "yt_clip_title": "T",
           "yt_clip_link": "https://youtu.be/abcdefghijk", "movie_scene": "S", "subtitles": "x\ny",
           "question": "?", "choices": ["a", "b", "c", "d", "e"], "answer_key": "b",
           "answer_key_position": 1, "question_category": "Narrative and\nPlot Analysis",
           "hard_split": "True", "visual_reliance": "maybe"}  # fmt: skip
    pq.write_table(pa.Table.from_pylist([row, row | {"answer_key": "z"}]), tmp_path / "t.parquet")
    got = mustsee.read(tmp_path)
    assert got[0].question_type == "Narrative and Plot Analysis"
    assert got[0].metrics == {"hardness": 1.0}
    assert got[1].answer_index == 1
    assert [f.what for f in got.findings] == [
        "visual_reliance is neither true nor false",
        "answer is no option",
        "visual_reliance is neither true nor false",
    ]
    (video,) = got.videos
    assert [line.text for line in video.lines or ()] == ["x", "y"]
    cinepile.write(got.questions, tmp_path / "out", got.videos)
    written = pq.read_table(tmp_path / "out/test.parquet")
    assert written["question_category"][0].as_py() == "Narrative and\nPlot Analysis"
    assert written["hard_split"][0].as_py() == "True"
    assert written["genre"][0].as_py() == ["a", "b"]
    assert written["movie_scene"][0].as_py() == "S"
    table = written.to_pandas()
    table.to_csv(tmp_path / "t.csv", index=False)
    assert mustsee.read(tmp_path / "t.csv")[0].options == ("a", "b", "c", "d", "e")


def test_egoschema_answers_counted_from_one_and_missing_ones(tmp_path: Path) -> None:
    row = {"google_drive_id": "", "question": "?"} | {f"option {i}": f"o{i}" for i in range(5)}
    save(tmp_path / "questions.json", [row | {"q_uid": "a"}, row | {"q_uid": "b"}])
    save(tmp_path / "subset_answers.json", {"a": 5, "c": 1})
    got = mustsee.read(tmp_path)
    assert [q.answer_index for q in got] == [4, None]
    assert {f.what for f in got.findings} == {
        "answers are counted from 1", "an answer without its question"
    }  # fmt: skip
    egoschema.submission({"a": 4}, tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text().splitlines() == ["q_uid,answer", "a,4"]


def test_the_egoschema_mirror(tmp_path: Path) -> None:
    row = {"question_idx": "0", "question": "?", "video_idx": "u", "answer": "2",
           "option": [f"{c}. o{c}" for c in "ABCDE"]}  # fmt: skip
    (tmp_path / "Subset").mkdir()
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "Subset/test.parquet")
    (got,) = mustsee.read(tmp_path)
    assert (got.options[2], got.answer_index) == ("oC", 2)


def test_a_line_separator_inside_a_record_ends_no_record(tmp_path: Path) -> None:
    row = {"question_id": "q", "video_id": "v", "recipe": "r", "question_type": "t",
           "question": "one\u2028two\x85", "options": ["a", "b"], "answer_index": 0}  # fmt: skip
    text = json.dumps(row, ensure_ascii=False)
    (tmp_path / "q.jsonl").write_text(f"{text}\n\n{text}\n", encoding="utf-8")
    assert [q.question for q in mustsee.read(tmp_path / "q.jsonl")] == [row["question"]] * 2


def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        mustsee.read(tmp_path / "none")
    with pytest.raises(UserError, match="no known layout"):
        mustsee.read(save(tmp_path / "x.json", [{"a": 1}]))
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match="cannot read questions"):
        mustsee.read(tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_text(f"yt_clip_link,movie_scene\nu,{'x' * 200_000}\n")
    with pytest.raises(UserError, match="field limit"):
        mustsee.read(tmp_path / "x.csv")
    (tmp_path / "x.jsonl").write_text('["a"]\n')
    with pytest.raises(UserError, match="row 0"):
        mustsee.read(tmp_path / "x.jsonl")
    ours_row = {"question_id": "q", "video_id": "v", "question": "?", "answer_index": 2,
                "options": ["a", "b"]}  # fmt: skip
    with pytest.raises(UserError, match="no question_type, recipe"):
        mustsee.read(save(tmp_path / "y.json", [ours_row]))
    got = mustsee.read(save(tmp_path / "y.json", [ours_row | {"question_type": "", "recipe": ""}]))
    assert [q.answer_index for q in got] == [None]  # no index that an export would stumble over
    assert [f.what for f in got.findings] == ["answer number is outside the options"]
    with pytest.raises(UserError, match="expected a list"):
        mustsee.read(save(tmp_path / "y.json", {"a": 1}))
    (tmp_path / "z.json").write_text("{")
    with pytest.raises(UserError, match="cannot read"):
        mustsee.read(tmp_path / "z.json")


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
