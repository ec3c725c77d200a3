"""EgoSchema's job, from narrations to release."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import fs

from mustsee.files import schemas
from mustsee.recipes.egoschema import clips
from mustsee.records import Line, Question, Video
from mustsee.run.outputs import ScratchFile, write_rows
from mustsee.run.tables import Tables
from ray_jobs.egoschema import EgoSchema


@pytest.mark.slow
def test_the_job_from_narrations_to_release(tmp_path: Path) -> None:
    """Twelve minutes of narrations: four clips, questions, the release, and the baseline of a model
    that does not see the questions.
    """
    verbs, things = (
        ("takes", "washes", "cuts", "puts down"),
        ("pan", "knife", "onion", "lid", "cup"),
    )
    rows = [f"v,{3 * i},C {verbs[i % 4]} the {things[i * i % 5]} {i % 7}" for i in range(240)]
    (tmp_path / "narrations.csv").write_text("\n".join(["video_id,time,text", *rows]) + "\n")
    out = tmp_path / "out"
    arguments = [f"narrations={tmp_path / 'narrations.csv'}", "no_question=true", f"out={out}",
             f"store={tmp_path / 'store'}",
             "llm._target_=actors.llm.scripted.ScriptedModel"]  # fmt: skip
    # A process of its own: Ray must not fork one in which JAX already runs.
    command = [sys.executable, "-m", "ray_jobs.egoschema", *arguments]
    process = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert process.returncode == 0, process.stderr
    record = json.loads((out / "run.json").read_text())
    assert record["clips"] == 3  # the last narration ends the video: 717 s
    assert record["questions"]["made"] == 9
    assert record["questions"]["kept"]
    kept = json.loads((out / "export/egoschema/questions.json").read_text())
    assert len(kept) == record["questions"]["kept"] == record["no_question"]["questions"]
    assert f"of {len(kept)} right" in process.stdout
    assert "mma" not in process.stdout  # Neptune's
    assert (out / "pictures/heat_map.png").stat().st_size > 10_000


def release(folder: Path, videos: list[Video], **changed: object) -> EgoSchema:
    """Run the job with one question on each video, clips included."""
    kept = [
        Question(question_id=f"q-{v.video_id}", video_id=v.video_id, recipe="egoschema",
                 question="?", question_type="set_a", options=("a", "b"), answer_index=0)
        for v in videos
    ]  # fmt: skip
    blank = dict.fromkeys(("run", "source", "ask", "repeats", "vet", "enrich", "analysis", "make"))
    job = EgoSchema(**{**blank, "cut": True, **changed})  # type: ignore[arg-type]
    folder.mkdir()
    job.write(kept, folder, videos)
    return job


def test_clips_without_a_video_have_questions_and_no_file(tmp_path: Path) -> None:
    """videos= may lack some of the narrated videos."""
    (tmp_path / "seen.mp4").write_bytes(b"video")
    (unseen,) = clips.clips({"w": [Line(start=0.0, end=1.0, text="C waits")]}, {"w": 180.0},
                            [clips.ClipGrid(least=1)])  # fmt: skip
    rows = [Video(video_id="v", uri=str(tmp_path / "seen.mp4")), unseen]
    job = release(tmp_path / "out", rows)
    assert [p.name for p in (tmp_path / "out/videos").iterdir()] == ["q-v.mp4"]
    assert len(json.loads((tmp_path / "out/questions.json").read_text())) == 2
    scratch = ScratchFile()
    scratch.add(schemas.table(rows, Video))
    write_rows(scratch, tmp_path)
    notes = job.notes(Tables(tmp_path), clips.heat_map({}, {}))["notes"]
    assert notes == ["1 of 2 clips were not cut: videos= lacks their videos"]
    scratch.close()


def test_clips_come_from_an_object_store_too(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "v.mp4").write_bytes(b"video")
    remote = fs.SubTreeFileSystem(str(tmp_path / "store"), fs.LocalFileSystem())
    monkeypatch.setattr("mustsee.layouts.video_files.resolve", lambda uri: (remote, Path(uri).name))
    release(tmp_path / "out", [Video(video_id="v", uri="s3://bucket/clips/v.mp4")])
    assert (tmp_path / "out/videos/q-v.mp4").read_bytes() == b"video"
