"""Exports for other tools: a dataset folder with its card, chat records, preference pairs."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import mustsee
from mustsee.errors import UserError
from mustsee.evaluate import compare, compare_show
from mustsee.files import schemas
from mustsee.layouts import card, card_figures, chat, hugging_face, ours
from mustsee.layouts.hugging_face import CROISSANT_FILE
from mustsee.recipes.neptune import layout as neptune
from mustsee.records import Provenance, Question, Span, Step, Trace, Verdict, Video


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


def test_a_dataset_folder_loads_offline_and_its_card_describes_it(tmp_path: Path) -> None:
    import datasets

    questions = made()
    run = {"funnel": [{"stage": "read", "in": 9, "out": 6, "dropped": {}, "problems": 0}],
           "questions": {"made": 12, "dropped": {"blind": 1},
                         "guesses": {"said": ["a guesser at chance lets 0.512 in"]}},
           "prompts": {"neptune/questions": "p1", "egoschema/x": "p2"},
           "checked": [{"form": "verify", "said": "9 checked by people, 8 right"},
                       {"form": "other"}]}  # fmt: skip
    folder = tmp_path / "set"
    hugging_face.write(questions, folder, card=card.Card(run=run, licence="cc-by-4.0"))
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert {k: len(v) for k, v in loaded.items()} == {"train": 8, "test": 3}
    row = loaded["train"][0]
    assert row["options"] == ["a longer text", "two", "three"]
    assert row["verdicts"][0]["reply"] == "B"
    readme = (folder / "README.md").read_text()
    for text in ("cc-by-4.0", "read: 9 in, 6 out", "dropped as blind: 1", "some model", "p1",
                 "longest option", "Counting", "9 checked by people, 8 right",
                 "- a guesser at chance lets 0.512 in"):  # fmt: skip
        assert text in readme
    assert "p2" not in readme
    read_back = {q.question_id: q for q in mustsee.read(folder)}
    assert read_back == {q.question_id: q for q in questions if q.drop is None}


@pytest.mark.parametrize("kind", [Question, Video], ids=lambda c: c.__name__)
def test_the_dataset_library_loads_a_run_s_tables(tmp_path: Path, kind: type) -> None:
    import datasets

    rows = [Video(video_id="v", uri="v.mp4", lineage={"look": "k"}, shots=(Span(0.0, 2.0),))]
    expected = made(3) if kind is Question else rows
    pq.write_table(schemas.table(expected, kind), tmp_path / "rows.parquet")
    loaded = datasets.load_dataset("parquet", data_files=str(tmp_path / "rows.parquet"),
                                   cache_dir=str(tmp_path / "cache"))["train"]  # fmt: skip
    assert [schemas.load(kind, row) for row in loaded] == expected
    name, key = ("metrics", "blind_failures") if kind is Question else ("lineage", "look")
    assert [pair["name"] for pair in loaded[0][name]] == [key]


def test_the_card_has_the_results_of_an_audit(tmp_path: Path) -> None:
    audit = {
        "questions": 11, "videos": 6, "clean": 9, "duplicates": [], "overlap": [{}, {}],
        "suspects": [{}],
        "battery": [{"name": "longest", "kind": "guesser", "alarm": True},
                    {"name": "worn", "kind": "guesser", "alarm": False},
                    {"name": "blind", "kind": "condition", "alarm": True}],
        "figures": [{"answerer": "m", "shortcuts": {
            "ratio": {"value": 0.125, "low": 0.02, "high": 0.31}}}],
    }  # fmt: skip
    (tmp_path / "audit.json").write_text(json.dumps(audit))
    audit_card = card.Card(audit=card.read_audit(str(tmp_path)))
    hugging_face.write(made(), tmp_path / "set", card=audit_card)
    readme = (tmp_path / "set" / "README.md").read_text()
    for text in ("9 of 11 multiple-choice questions on 6 videos", "beat chance: longest.",
                 "`m`: 12.5 % (2.0 to 31.0)", "0 pairs; in other benchmarks: 2;"):  # fmt: skip
        assert text in readme
    assert card.read_audit(None) == {}
    hugging_face.write(made(), tmp_path / "set")
    assert "have not been audited for shortcuts" in (tmp_path / "set" / "README.md").read_text()
    with pytest.raises(UserError, match=r"no audit\.json"):
        card.read_audit(str(tmp_path / "set"))


def test_the_card_says_what_the_rows_have(tmp_path: Path) -> None:
    """Of a table that people wrote, it claims no evidence, verdicts, making or models."""

    def said(questions: list[Question], name: str) -> tuple[str, dict[str, Any]]:
        hugging_face.write(questions, tmp_path / name)
        metadata = json.loads((tmp_path / name / CROISSANT_FILE).read_text())
        return (tmp_path / name / "README.md").read_text(), metadata

    bare = [replace(q, evidence=(), verdicts=(), provenance=None) for q in made(3)]
    run = {"prompts": {"filters/blind": "p1", "neptune/questions": "p2"}}
    readme, metadata = said(bare, "people")
    assert ". Exported with Mustsee.\n" in readme
    assert metadata["description"] == (
        "Questions on videos. Exported with Mustsee. README.md describes them."
    )
    assert metadata["rai:dataLimitations"] == (
        "Who wrote the questions is not recorded; they may be wrong."
    )
    assert "rai:hasSyntheticData" not in metadata
    tally = card.CardCounts()
    for question in bare:
        tally.keep(question, "test")
    assert card.provenance(run, tally) == "Not recorded."
    judged = [replace(bare[0], verdicts=made(1)[0].verdicts), *bare[1:]]
    readme, metadata = said(judged, "judged")
    assert "Exported with Mustsee. 1 of 3 rows have: the verdicts of its filters with" in readme
    assert metadata["rai:dataLimitations"].startswith("Questions were filtered automatically. Who")
    readme, metadata = said([replace(q, evidence=(Span(0.0, 1.0),)) for q in made(3)], "made")
    held = "Every row has: evidence, the verdicts of its filters with their raw replies, prov"
    assert f". Made with Mustsee. {held}enance.\n" in readme
    assert held in metadata["description"]
    assert metadata["rai:dataLimitations"] == (
        "Questions were written and filtered automatically and may be wrong."
    )
    assert metadata["rai:hasSyntheticData"] is True


def test_the_card_has_the_genres_of_the_videos_with_questions() -> None:
    tally = card.CardCounts()
    for name in "abc":
        question = Question(
            question_id=name, video_id=name, recipe="r", question="?", question_type=""
        )
        tally.keep(question, "test")
    videos = [
        Video(video_id="a", uri="a", duration=100.0, genre=("cooking", "sport")),
        Video(video_id="b", uri="b", duration=201.0, genre=("cooking",)),
        Video(video_id="c", uri="c"),
        Video(video_id="no questions", uri="d", duration=9999.0, genre=("news",)),
    ]
    text = card.card_text(card.Card(), tally, videos, files="{}", where="here")
    _, _, section = text.partition("## Videos\n\n")
    assert section.startswith(
        "| genre | videos |\n|---|---:|\n| cooking | 2 |\n| sport | 1 |\n\nhere\n"
    )
    assert "## Videos" not in card.card_text(card.Card(), tally, [], files="{}")


def test_the_card_has_the_title_the_lengths_and_the_skills(tmp_path: Path) -> None:
    questions = [
        *made(),
        replace(made(1)[0], question_id="open", options=(), answer_index=None, skill="cause",
                answer="because the boat has left the quay"),
    ]  # fmt: skip
    seconds = (30.0, 90.0, 4000.0, 200.0, None, 60.0)
    videos = [Video(video_id=f"v{n}", uri=f"v{n}.mp4", duration=s) for n, s in enumerate(seconds)]
    unasked = Video(video_id="unasked", uri="u.mp4", duration=9.0)
    hugging_face.write(questions, tmp_path, [*videos, unasked], card.Card(title="Boats & quays"))
    readme = (tmp_path / "README.md").read_text()
    assert 'pretty_name: "Boats & quays"\n' in readme
    assert "\n# Boats & quays\n" in readme
    assert "| videos | 0:30 | 1:00 | 1:30 | 3:20 | 1:06:40 | 5 |" in readme
    assert "Length of all videos: 1:13:00, on average 14:36." in readme
    assert "The length of 1 of 6 videos is not known." in readme
    assert "| questions, words | 2 | 2 | 2 | 2 | 2 | 12 |" in readme
    assert "| answers, words | 1 | 1 | 1 | 3 | 7 | 12 |" in readme
    assert "| wrong options, words | 1 | 1 | 1 | 3 | 3 | 22 |" in readme
    assert "| cause | 1 | 8% |" in readme
    assert "| Counting | 7 | 58% |" in readme
    assert json.loads((tmp_path / CROISSANT_FILE).read_text())["name"] == "Boats & quays"


@pytest.mark.parametrize(("seconds", "is_long"), [(599.0, False), (600.0, True)])
def test_only_long_videos_are_tagged_so(tmp_path: Path, seconds: float, is_long: bool) -> None:
    hugging_face.write(made(2), tmp_path, [Video(video_id="v0", uri="v.mp4", duration=seconds)])
    assert ("- long-video\n" in (tmp_path / "README.md").read_text()) == is_long


def test_a_set_without_options_is_not_tagged_as_multiple_choice(tmp_path: Path) -> None:
    open_ended = replace(made(1)[0], options=(), answer_index=None)
    hugging_face.write([open_ended], tmp_path)
    assert "- multiple-choice\n" not in (tmp_path / "README.md").read_text()


def test_the_card_has_people_beside_models(tmp_path: Path) -> None:
    from mustsee.evaluate.answers import verdict_on_reply

    questions = [replace(q, verdicts=()) for q in made() if q.drop is None]
    answered = [
        replace(q, verdicts=(verdict_on_reply(q, "ABC"[n % 3], model="model m"),))
        for n, q in enumerate(questions)
    ]
    scored = compare.score_evaluation(answered, {})
    evaluation = compare.ComparedEvaluation(folder="e", dataset="d", shown="blind", **scored)
    right = dict.fromkeys((q.question_id for q in questions[:6]), 1.0)
    people = compare.PeopleScores(name="a form, one minute", scores=right)
    compare_show.write(tmp_path, compare.compare_models([evaluation], [people]), {})
    compared = card_figures.read_compared(str(tmp_path))
    run = {"checked": [{"form": "human_benchmark", "answered": {
        "one_minute.answer": {"value": 0.9, "low": 0.8, "high": 0.97}}}]}  # fmt: skip
    hugging_face.write(questions, tmp_path / "set", card=card.Card(compared=compared, run=run))
    readme = (tmp_path / "set" / "README.md").read_text()
    assert "Multiple choice: accuracy, %, on 11 questions. " in readme
    assert "| **people: a form, one minute** | 100.0 (" in readme
    assert ") | 6 | 3 |" in readme
    assert "| `model m`, blind | 100.0 (" in readme
    assert "| guessing among the options | 33.3 | | |" in readme
    assert "(human_benchmark, one_minute): 90.0 % (80.0 to 97.0) right." in readme
    hugging_face.write(questions[3:], tmp_path / "fewer", card=card.Card(compared=compared))
    fewer = (tmp_path / "fewer" / "README.md").read_text()
    assert "on 11 questions, 3 of which are not in this dataset." in fewer
    others = [replace(q, question_id=f"other {q.question_id}") for q in questions]
    with pytest.raises(UserError, match="none of the 11 questions"):
        hugging_face.write(others, tmp_path / "others", card=card.Card(compared=compared))


def test_a_card_holds_the_ids_of_compared_questions_alone() -> None:
    """Ids of all questions would be the one thing of an export that grows with them."""
    questions = made()
    first, second, *_ = (q.question_id for q in questions)
    compared = {
        "tables": [{"columns": [{"questions": ["gone", name]}]} for name in (first, second)]
    }
    for given, held in (({}, set[str]()), (compared, {first, second})):
        tally = card.CardCounts(compared=given)
        for question in questions:
            tally.keep(question, "test")
        assert tally.questions == held
        assert tally.kept_count == len(questions)


def test_a_folder_without_a_comparison_of_models_is_refused(tmp_path: Path) -> None:
    assert card_figures.read_compared(None) == {}
    with pytest.raises(UserError, match=r"no compare\.json"):
        card_figures.read_compared(str(tmp_path))
    (tmp_path / "compare.json").write_text('{"runs": []}')
    with pytest.raises(UserError, match="compares no models"):
        card_figures.read_compared(str(tmp_path))


def test_known_biases_are_measured() -> None:
    tally = card.CardCounts()
    for question in made(9):
        tally.keep(question, "test")
    figures = tally.biases
    assert figures["answer_is_longest"] == pytest.approx(1 / 3)
    assert figures["answer_is_longest_by_chance"] == pytest.approx(1 / 3)
    assert figures["most_common_place"] == pytest.approx(1 / 3)
    assert card.CardCounts().biases == {}


def test_chat_records_have_the_video_the_options_and_the_answer(tmp_path: Path) -> None:
    questions = [*made(3), replace(made(1)[0], question_id="open", options=(), answer_index=None,
                                   answer="He sings.")]  # fmt: skip
    chat.write(questions, tmp_path, [Video(video_id="v0", uri="videos/v0.mp4")])
    lines = [json.loads(x) for x in (tmp_path / "chat.jsonl").read_text().splitlines()]
    assert len(lines) == 4
    assert lines[0]["video"] == "videos/v0.mp4"
    assert lines[1]["messages"][1]["content"][0]["text"] == "(B) two"
    assert lines[3]["messages"][1]["content"][0]["text"] == "He sings."
    assert "(C) three" in lines[0]["messages"][0]["content"][1]["text"]


def test_chat_records_have_a_trace_or_a_rationale(tmp_path: Path) -> None:
    trace = Trace(steps=(Step(start=1.0, end=2.5, text="A bell rings."),), conclusion="So two.")
    traced = replace(made(2)[1], trace=trace, rationale="It rang.")
    for traces, answer in ((True, "1.0-2.5 s: A bell rings.\nSo two.\n\n(B) two"),
                         (False, "(B) two\nIt rang.")):  # fmt: skip
        chat.write([traced], tmp_path, traces=traces)
        (line,) = (tmp_path / "chat.jsonl").read_text().splitlines()
        assert json.loads(line)["messages"][1]["content"][0]["text"] == answer


def test_preference_pairs_are_of_verified_questions_only(tmp_path: Path) -> None:
    """Each wrong option is used once."""
    verified = replace(made(2)[1], metrics={"sight_passed": 1.0})
    open_ended = replace(verified, question_id="open", options=(), answer_index=None)
    questions = [verified, *made(3), open_ended, replace(verified, question_id="x", drop="later")]
    chat.write_preference(questions, tmp_path, [Video(video_id="v0", uri="videos/v0.mp4")])
    pairs = [json.loads(x) for x in (tmp_path / "preference.jsonl").read_text().splitlines()]
    assert {p["id"] for p in pairs} == {"q1"}
    assert {p["video"] for p in pairs} == {"videos/v0.mp4"}
    answers = [(p["chosen"][0]["content"][0]["text"], p["rejected"][0]["content"][0]["text"])
            for p in pairs]  # fmt: skip
    assert sorted(answers) == [("(B) two", "(A) a longer text"), ("(B) two", "(C) three")]
    assert all("(A) a longer text" in p["prompt"][0]["content"][1]["text"] for p in pairs)
    chat.write_preference(questions, tmp_path, each=1)
    assert len((tmp_path / "preference.jsonl").read_text().splitlines()) == 1


def test_twins_are_left_out_of_released_layouts(tmp_path: Path) -> None:
    first = made(1)[0]
    sibling = replace(first, question_id="s", sibling_of="q0", relation="paraphrase", group="q0")
    twin = replace(sibling, question_id="t", options=(), answer_index=None, relation="open")
    neptune.write([first, sibling, twin], tmp_path)
    (kept,) = json.loads((tmp_path / "neptune_full.json").read_text())
    assert kept["key"] == "v0/1"
    ours.write([first, sibling, twin], tmp_path)
    assert mustsee.read(tmp_path / "questions.parquet").questions == (first, sibling, twin)


def test_exported_videos_have_their_licences_and_no_private_paths(tmp_path: Path) -> None:
    videos = [
        Video(video_id="v0", uri="/home/me/videos/a.mp4", license="cc-by-4.0",
              source_url="https://videos.example/a|b"),
        Video(video_id="v1", uri="s3://mine/b.mkv", source="b", start=30.0, end=60.0),
        Video(video_id="unasked", uri="c.mp4", license="cc0-1.0"),
    ]  # fmt: skip
    hugging_face.write(made(4), tmp_path, videos)
    read = mustsee.read(tmp_path)
    assert list(read) == made(4)
    assert [v.video_id for v in read.videos] == ["v0", "v1"]
    assert [v.uri for v in read.videos] == [f"{tmp_path}/videos/{n}" for n in ("a.mp4", "b.mkv")]
    assert (read.videos[1].source, read.videos[1].start, read.videos[1].end) == ("b", 30.0, 60.0)
    sources = json.loads((tmp_path / CROISSANT_FILE).read_text())["prov:wasDerivedFrom"]
    assert sources == ["https://videos.example/a|b"]
    readme = (tmp_path / "README.md").read_text()
    assert "| v0 | cc-by-4.0 | https://videos.example/a\\|b |" in readme
    assert "The licence of 1 of 2 videos is not known." in readme
    rows = pq.read_table(tmp_path / "data" / "train.parquet").to_pylist()
    assert [r["video"] for r in rows] == ["a.mp4", "a.mp4", "b.mkv", "b.mkv"]
    all_bytes = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    for private in (b"/home/me", b"s3://mine", b"unasked"):
        assert private not in all_bytes


def test_the_croissant_names_every_file_and_column(tmp_path: Path) -> None:
    """This checks its structure; the next test reads it by `mlcroissant` if that is installed."""
    hugging_face.write(made(), tmp_path, [Video(video_id="v0", uri="v0.mp4")])
    metadata = json.loads((tmp_path / CROISSANT_FILE).read_text())
    assert {f["contentUrl"] for f in metadata["distribution"]} == {
        "data/train.parquet", "data/test.parquet", "videos.parquet"
    }  # fmt: skip
    for file, rows in zip(metadata["distribution"], metadata["recordSet"], strict=True):
        data = (tmp_path / file["contentUrl"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(data).hexdigest()
        columns = pq.read_schema(tmp_path / file["contentUrl"]).names
        assert [f["name"] for f in rows["field"]] == columns
    for name in ("dataCollection", "dataBiases", "dataLimitations", "dataUseCases",
                 "personalSensitiveInformation", "dataSocialImpact"):  # fmt: skip
        assert metadata[f"rai:{name}"].strip()
    assert metadata["rai:machineAnnotationTools"] == ["m", "some model"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its parser
def test_mlcroissant_reads_the_rows_without_errors(tmp_path: Path) -> None:
    mlcroissant = pytest.importorskip("mlcroissant", exc_type=ImportError)
    video = Video(video_id="v0", uri="v0.mp4", source_url="https://videos.example/a")
    hugging_face.write(made(), tmp_path / "a", [video])
    (tmp_path / "a").rename(tmp_path / "b")
    dataset = mlcroissant.Dataset(str(tmp_path / "b" / CROISSANT_FILE))
    assert not dataset.metadata.ctx.issues.errors
    row = next(iter(dataset.records("train")))
    assert row["train/question"] == b"What, 0?"
    assert row["train/metrics"] == [
        {"train/metrics/name": b"blind_failures", "train/metrics/value": 2.0}
    ]
