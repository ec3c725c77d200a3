"""Questions written in a released layout are the same when read back."""

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import mustsee
from mustsee.layouts import ours
from mustsee.recipes.cinepile import layout as cinepile
from mustsee.recipes.egoschema import layout as egoschema
from mustsee.recipes.mlvu import layout as mlvu
from mustsee.recipes.neptune import layout as neptune
from mustsee.records import Question, Verdict, Video

TEXT = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=30).filter(
    lambda t: t.strip() != ""
)
NAMES = st.text("abcdefghijklmnopqrstuvwxyzABC-_0123456789", min_size=1, max_size=11)


@st.composite
def questions(
    draw: st.DrawFn, count: int = 5, kinds: tuple[str, ...] = ("Counting",)
) -> list[Question]:
    drawn = []
    for number in range(draw(st.integers(1, 4))):
        options = draw(st.lists(TEXT, min_size=count, max_size=count, unique=True))
        index = draw(st.integers(0, count - 1))
        drawn.append(
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
    return drawn


def same(left: Question, right: Question) -> bool:
    fields = ("question", "options", "answer_index", "answer")
    return all(getattr(left, f) == getattr(right, f) for f in fields)


@given(questions())
@settings(max_examples=40)
def test_neptune_round_trip(drawn: list[Question]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tagged = [replace(q, subsets=("mmh",) if i % 2 else ()) for i, q in enumerate(drawn)]
        neptune.write(tagged, folder)
        got = mustsee.read(folder)
        assert [q.subsets for q in got] == [q.subsets for q in tagged]
        assert all(same(a, b) and a.video_id == b.video_id for a, b in zip(got, drawn, strict=True))
        assert [q.question_type for q in got] == [q.question_type for q in drawn]
        assert got.findings == ()
        second_file = Path(folder) / "again.json"
        neptune.write(got.questions, second_file)
        assert [q.question_id for q in mustsee.read(second_file)] == [q.question_id for q in got]


@given(questions(kinds=("Theme Exploration", "Narrative and Plot Analysis", "Own")), st.booleans())
@settings(max_examples=40)
def test_cinepile_round_trip(drawn: list[Question], hard: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        flags = {"hardness": float(hard), "vision_reliance": 1.0}
        tagged = [replace(q, metrics=flags) for q in drawn]
        cinepile.write(
            tagged, folder, [Video(video_id=drawn[0].video_id, uri="u", title="t", year=3)]
        )
        got = mustsee.read(folder)
        assert got.layout == "cinepile"
        assert all(same(a, b) for a, b in zip(got, drawn, strict=True))
        assert all(a.question_type == b.question_type for a, b in zip(got, drawn, strict=True))
        assert all(q.metrics == flags and q.subsets == ("hard",) * hard for q in got)


@given(questions())
@settings(max_examples=40)
def test_egoschema_round_trip(drawn: list[Question]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        clips = [
            Video(video_id=q.video_id, uri="", source="v", start=30.0, end=210.0) for q in drawn
        ]
        egoschema.write(drawn, folder, clips)
        got = mustsee.read(folder)
        assert all(same(a, b) for a, b in zip(got, drawn, strict=True))
        assert [q.question_id for q in got] == [q.question_id for q in drawn]
        assert {(v.source, v.start, v.end) for v in got.videos} == {("v", 30.0, 210.0)}
        assert got.findings == ()


@given(questions(4, ("plotQA", "findNeedle", "my own task")), questions(6, ("count",)))
@settings(max_examples=40)
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
@settings(max_examples=20)
def test_ours_round_trip(drawn: list[Question]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        full = [
            replace(q, drop="blind", verdicts=(Verdict(filter="blind", model="m", correct=True),),
                    metrics={"x": 0.5})
            for q in drawn
        ]  # fmt: skip
        ours.write(full, folder)
        assert list(mustsee.read(folder)) == full


def test_dropped_questions_are_not_written_in_released_layouts(tmp_path: Path) -> None:
    base = Question(question_id="a", video_id="v", recipe="r", question="?", question_type="plotQA",
                    options=("x", "y"), answer_index=0, answer="x")  # fmt: skip
    both = [base, replace(base, question_id="b", question="gone", drop="blind: guessed")]
    for number, write in enumerate((neptune.write, cinepile.write, egoschema.write, mlvu.write)):
        write(both, tmp_path / str(number))
        assert [q.question for q in mustsee.read(tmp_path / str(number))] == ["?"]
