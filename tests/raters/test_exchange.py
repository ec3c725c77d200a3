"""Export of tasks to other tools, and import of their votes."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from mustsee.errors import UserError
from mustsee.raters import transfer
from mustsee.raters.form import RatingForm
from mustsee.records import Question, Span, Video
from ray_jobs.cli.launch import build, compose

QUESTION = Question(
    question_id="q1", video_id="v", recipe="r", question='Why "so" <b>?', question_type="k",
    options=("red", "blue", "green"), answer_index=1, answer="blue", evidence=(Span(1, 2),),
)  # fmt: skip
VIDEOS = {"v": Video(video_id="v", uri="/videos/a b.mp4", duration=60, fps=24)}
ANSWERS: dict[str, dict[str, Any]] = {
    "neptune": {
        "valuable": ["clear", "video"], "needs": "both", "question": "Why so?",
        "decoys": ["red", "grey"], "comment": "two\nlines",
    },
    "certificate": {"parts": [[1.0, 2.5], [10.0, 12.0]], "sure": "yes"},
    "verify": {"answer_right": "no", "only_answer": "unsure", "needs_video": "yes"},
}  # fmt: skip


def form(name: str) -> RatingForm:
    return build(compose("rate", ["questions=x", f"form={name}"])).form


def label_studio_export(kind: RatingForm, folder: Path, said: dict[str, Any]) -> Path:
    """Write Label Studio 1.x's export with these answers to the written tasks and controls."""
    config = ElementTree.parse(folder / "config.xml").getroot()
    (task,) = json.loads((folder / "tasks.json").read_text())
    result = []
    for name, value in said.items():
        control = next(e for e in config.iter() if e.get("name") == name)
        base = {"from_name": name, "to_name": control.get("toName"), "id": name, "origin": "manual"}
        if control.tag == "Choices":
            picked = [value] if isinstance(value, str) else value
            assert set(picked) <= {choice.get("alias") for choice in control}
            answer = {"type": "choices", "value": {"choices": picked}}
        elif control.tag == "TextArea":
            text = value if isinstance(value, str) else "\n".join(value)
            answer = {"type": "textarea", "value": {"text": [text]}}
        else:
            answer = {"type": "timelinelabels", "value": None}
            for start, end in value:
                span = {"start": round(start * 24) + 1, "end": round(end * 24)}
                answer["value"] = {"ranges": [span], "timelinelabels": [name]}
                result.append({**base, **answer})
            continue
        result.append({**base, **answer})
    made = {
        "id": 7, "completed_by": {"id": 1, "email": "ana@example.org"}, "was_cancelled": False,
        "lead_time": 12.5, "created_at": "2026-03-09T22:16:08.728353Z", "result": result,
    }  # fmt: skip
    skipped = {**made, "was_cancelled": True}
    path = folder / "export.json"
    path.write_text(json.dumps([{"id": 1, **task, "annotations": [made, skipped]}]))
    return path


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_votes_are_the_same_after_export_and_import(tmp_path: Path, name: str) -> None:
    kind = form(name)
    transfer.write_tasks(kind, [QUESTION], VIDEOS, tmp_path)
    given = transfer.read_export(label_studio_export(kind, tmp_path, ANSWERS[name]))
    imported = transfer.read_votes(kind, given, {"q1": QUESTION}, VIDEOS)
    assert imported.refused == []
    (vote,) = imported.votes
    assert vote.rater == "label_studio:ana@example.org"
    assert vote.answers == ANSWERS[name]


def test_the_exported_tasks_show_the_question_and_the_form(tmp_path: Path) -> None:
    transfer.write_tasks(form("neptune"), [QUESTION], VIDEOS, tmp_path)
    ((task),) = json.loads((tmp_path / "tasks.json").read_text())
    assert task["data"]["video"] == "/data/local-files/?d=videos/a%20b.mp4"
    assert task["data"]["now_question"] == QUESTION.question
    assert "B. blue  (given as the answer)" in task["data"]["options"]


def test_invalid_votes_are_refused_with_a_reason() -> None:
    kind = form("verify")
    votes = [
        transfer.ForeignVote(question_id="q9", rater="a", given=ANSWERS["verify"]),
        transfer.ForeignVote(
            question_id="q1", rater="b", given={**ANSWERS["verify"], "other": "x"}
        ),
        transfer.ForeignVote(question_id="q1", rater="c", given={"answer_right": "no"}),
    ]
    imported = transfer.read_votes(kind, votes, {"q1": QUESTION}, VIDEOS)
    assert imported.votes == []
    assert [reason.partition(":")[0].partition(",")[0] for reason in imported.refused] == [*"abc"]


def test_other_files_and_forms_that_cannot_be_exported_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text in ("{", "[1]", '[{"data": {}}]', '{"a": 1}'):
        path.write_text(text)
        with pytest.raises(UserError, match="not a JSON export"):
            transfer.read_export(path)
    for name in ("human_benchmark", "mlvu"):
        with pytest.raises(UserError, match="cannot go"):
            transfer.page_of(form(name))
