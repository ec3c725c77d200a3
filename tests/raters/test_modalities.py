"""Neptune's three files: full, mma by filters, mmh by raters."""

import json
from pathlib import Path

import pytest

from mustsee.errors import UserError
from mustsee.raters.votes import mark_modalities, read_modalities
from mustsee.recipes.neptune import layout as neptune
from mustsee.records import Question
from ray_jobs.export import Export


def ask(number: int, **fields: object) -> Question:
    name = f"v/{number}"
    return Question(question_id=name, video_id="v", recipe="neptune", question=f"{name}?",
                    question_type="Other", options=("a", "b"), answer_index=0, answer="a",
                    **fields)  # type: ignore[arg-type]  # fmt: skip


QUESTIONS = [
    ask(0, subsets=("mma",), metrics={"blind_passed": 1.0}), ask(1, metrics={"blind_passed": 0.0}),
    ask(2, metrics={"blind_passed": 1.0}), ask(3),
]  # fmt: skip
TABLE = "question_id,rater,needs\n" + "".join(
    f"v/{n},{rater},{needs}\n"
    for n, said in ((0, "both video audio"), (1, "both both both"), (2, "audio audio video"))
    for rater, needs in zip("xyz", said.split(), strict=True)
)


def marks() -> list[dict[str, str]]:
    head, *rows = (line.split(",") for line in TABLE.split())
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_questions_that_most_raters_answer_by_sound_alone_are_not_in_mmh() -> None:
    marked = mark_modalities(QUESTIONS, read_modalities(marks()))
    assert [q.subsets for q in marked] == [("mma", "mmh"), (), (), ()]
    assert [q.metrics.get("audio_only") for q in marked] == [
        pytest.approx(1 / 3), 0.0, pytest.approx(2 / 3), None,
    ]  # fmt: skip
    assert mark_modalities(marked, read_modalities(marks())) == marked
    half = read_modalities([*marks()[6:7], *marks()[8:9]])  # one says audio, one video
    assert mark_modalities(QUESTIONS, half)[2].subsets == ("mmh",)


@pytest.mark.parametrize("name", ["blind", "blind_2", "options"])
def test_guesses_without_video_and_transcript_keep_questions_out_of_mmh(name: str) -> None:
    asked = [ask(0, metrics={f"{name}_passed": 0.0}), ask(1, metrics={"asr_passed": 0.0})]
    marked = mark_modalities(asked, read_modalities(marks()))
    assert [q.subsets for q in marked] == [(), ("mmh",)]


def test_marks_of_unknown_questions_or_modalities_are_refused() -> None:
    with pytest.raises(UserError, match="row 1"):
        read_modalities([{"question_id": "v/0", "needs": "eyes"}])
    with pytest.raises(UserError, match="none of the marks"):
        mark_modalities([ask(9)], read_modalities(marks()))


def test_all_three_files_are_written(tmp_path: Path) -> None:
    """`mma` is written if filters ran, and `mmh` if raters voted, even if empty."""
    source = tmp_path / "questions"
    neptune.write([ask(3)], source)
    assert [p.name for p in source.iterdir()] == ["neptune_full.json"]
    neptune.write([QUESTIONS[1]], source)
    assert json.loads((source / "neptune_mma.json").read_text()) == []
    (tmp_path / "marks.csv").write_text(TABLE)
    neptune.write(QUESTIONS, source)
    out = tmp_path / "out"
    job = Export(questions=str(source), out=str(out), format=None, subset="all",
                 modalities=str(tmp_path / "marks.csv"), layout=neptune.write)  # fmt: skip
    assert job() == 0
    rows = {p.stem: json.loads(p.read_text()) for p in out.glob("*.json")}
    assert {name: [r["key"] for r in file_rows] for name, file_rows in rows.items()} == {
        "neptune_full": ["v/0", "v/1", "v/2", "v/3"],
        "neptune_mma": ["v/0"],
        "neptune_mmh": [
            "v/0",
            "v/1",
        ],  # a released file does not state which questions were guessed
    }
