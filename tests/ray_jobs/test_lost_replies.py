"""What a stage could not read is said, kept from the dataset, and asked for again."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.engine.hardware import Hardware
from actors.part import Opened, RunContext
from mustsee.calls.usage import RequestTally
from mustsee.errors import BadRow
from mustsee.files import schemas
from mustsee.files.store import hardware
from mustsee.questions.decision import Decision
from mustsee.records import Question, Video
from ray_jobs.runtime.cluster import Cluster
from ray_jobs.runtime.run import JobSettings

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class AsksThrice:
    """Makes a question for each of three looks. While the file `refusal` exists, the looks at rows
    with "poor" in their id have no readable reply but for one, and those with "none" none at all.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id",)
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = ("questions", "unasked")
    refusal: str = hardware("")

    def open(self, run: RunContext) -> Opened:
        def ask(row: Video) -> Video:
            requests, refused = RequestTally(), Path(self.refusal).exists()
            lost = 0
            if refused:
                lost = 2 if "poor" in row.video_id else 3 if "none" in row.video_id else 0
            requests.add_sent("looks", 3)
            if lost == 3:
                raise BadRow("none of the 3 looks was readable: HTTP 400: too long")
            if lost:
                requests.add_unread("looks", BadRow("HTTP 400: too long"), lost)
            questions = tuple(question(row.video_id, n) for n in range(3 - lost))
            return dataclasses.replace(row, questions=questions, requests=requests.counts)

        return ask


def question(video: str, number: int) -> Question:
    return Question(
        question_id=f"{video}-{number}", video_id=video, recipe="toy", question=f"{number}?",
        question_type="Other", options=("a", "b"), answer_index=0, answer="a", subsets=("full",),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FailsOn:
    """Fails for the row with the id `bad`."""

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "questions")
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = ("questions",)
    bad: str = ""

    def open(self, run: RunContext) -> Opened:
        def work(row: Video) -> Video:
            if row.video_id == self.bad:
                raise BadRow("no verdict at all")
            return row

        return work


@dataclass(frozen=True, kw_only=True)
class KeepsAll:
    columns: Sequence[str] = ("questions",)

    def __call__(self, rows: pa.Table) -> Decision:
        return Decision()


@pytest.fixture
def job(tmp_path: Path) -> JobSettings:
    stages = dict.fromkeys(("ask", "vet"), Hardware(cpus=0.2))
    return JobSettings(
        out=str(tmp_path / "out"), store=str(tmp_path / "store"), cluster=Cluster(stages=stages)
    )


def run(
    job: JobSettings, names: Sequence[str], *, bad: str = "", measures: bool = False
) -> tuple[int, Mapping[str, Any]]:
    """Return the exit code and the record of a run without Ray, with a barrier at its end."""
    ask = AsksThrice(refusal=f"{job.out}-refusal")
    with job.open("toy", light=True) as running:
        running.read(schemas.table([Video(video_id=name, uri="x") for name in names], Video))
        running.stage("ask", ask)
        running.stage("vet", FailsOn(bad=bad))
        running.together(KeepsAll())
        code = running.publish(measures=measures)
    return code, json.loads((Path(job.out) / "run.json").read_text())


def drops(job: JobSettings) -> dict[str, str | None]:
    rows = pq.read_table(Path(job.out) / "questions.parquet").to_pylist()
    return {row["question_id"]: row["drop"] for row in rows}


def test_questions_of_a_row_that_fails_in_a_later_stage_are_not_kept(job: JobSettings) -> None:
    code, record = run(job, ["a", "b", "c"], bad="b")
    reason = "video: failed in vet: no verdict at all"
    assert drops(job) == {
        f"{name}-{n}": reason if name == "b" else None for name in "abc" for n in range(3)
    }
    assert (code, record["questions"]["made"], record["questions"]["kept"]) == (0, 9, 6)
    assert record["questions"]["dropped"] == {"video": 3}


def test_a_row_that_fails_while_it_is_measured_keeps_its_questions(job: JobSettings) -> None:
    run(job, ["a", "b", "c"], bad="b", measures=True)
    assert set(drops(job).values()) == {None}


def test_lost_replies_are_said_each_time_and_asked_for_again_only_on_request(
    job: JobSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    names, refusal = ["a", "b", "c", "poor"], Path(f"{job.out}-refusal")
    refusal.touch()
    lost = {
        "what": "looks", "sent": 12, "unread": 2, "error": "HTTP 400: too long", "stage": "ask",
    }  # fmt: skip
    for computed in (4, 0):  # The second run finds all rows in the store, and says the same.
        code, record = run(job, names)
        assert code == 0
        assert record["computed"]["ask"] == computed
        assert (record["requests"], record["incomplete_videos"]) == ([lost], 1)
        printed = " ".join(capsys.readouterr().out.split())
        assert "ask: 2 of 12 looks had no readable reply (the last: HTTP 400: too long)" in printed
        assert "retry_problems=true" in printed
    again = dataclasses.replace(job, retry_problems=True)
    code, record = run(again, names)  # It is refused once more; the barrier does not mind.
    assert (code, record["computed"]["ask"], record["reused"]["ask"]) == (0, 1, 3)
    assert record["requests"] == [lost]
    refusal.unlink()
    code, record = run(again, names)
    assert (record["computed"]["ask"], record["incomplete_videos"]) == (1, 0)
    assert len(drops(job)) == 12
    capsys.readouterr()
    assert run(again, names)[1]["computed"]["ask"] == 0
    assert "readable" not in capsys.readouterr().out


def test_a_run_that_could_read_less_than_half_of_what_it_asked_says_so_first_and_exits_3(
    job: JobSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(f"{job.out}-refusal").touch()
    assert run(job, ["a", "b", "poor"])[0] == 0
    capsys.readouterr()
    assert run(job, ["poor1", "poor2", "poor3"])[0] == 3
    first = next(line for line in capsys.readouterr().out.splitlines() if line.strip())
    assert first.startswith("too little was readable: 6 of 9 looks had no readable reply")


def test_a_video_of_which_nothing_could_be_read_is_a_problem_that_is_retried(
    job: JobSettings,
) -> None:
    refusal = Path(f"{job.out}-refusal")
    refusal.touch()
    code, record = run(job, ["a", "b", "none"])
    assert (code, record["funnel"][1]["problems"], len(drops(job))) == (0, 1, 6)
    refusal.unlink()
    assert run(job, ["a", "b", "none"])[1]["computed"]["ask"] == 0
    _, record = run(dataclasses.replace(job, retry_problems=True), ["a", "b", "none"])
    assert (record["funnel"][1]["problems"], len(drops(job))) == (0, 9)
