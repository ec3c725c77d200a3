"""The job: what it writes, that a killed run goes on with the same bytes, forecast and bill."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from benchmarks.clean import BlindModel, CleanJob, PlantedRow, plant_rows
from benchmarks.errata import draw_questions
from loopback.endpoint import Loopback
from mustsee.clean.table_parts import plan_parts, read_part
from mustsee.errors import UserError
from ray_jobs import clean as job
from ray_jobs.cli.launch import build, compose
from ray_jobs.runtime.cluster import connect_ray

PLANTED = list(plant_rows(draw_questions(400), 400))


@pytest.fixture
def ray() -> Iterator[None]:
    with connect_ray():
        yield


def write(folder: Path, rows: list[PlantedRow] = PLANTED) -> Path:
    file = folder / "train.jsonl"
    file.write_text("".join(json.dumps(each.row) + "\n" for each in rows))
    return file


def run(**overrides: object) -> int:
    return build(compose("clean", [f"{k}={v}" for k, v in overrides.items()]))()


def endpoint(server: Loopback) -> dict[str, object]:
    return {
        "llm": "openai", "llm.model": "m", "llm.base_url": server.url, "llm.key_env": "null",
        "+llm.prices.m": "[1.0,2.0]", "llm.limits.requests_per_minute": "null",
        "llm.limits.tokens_per_minute": "null", "judge": "lexical", "rows_per_block": 90,
    }  # fmt: skip


def record(out: Path) -> dict[str, Any]:
    return json.loads((out / "clean.json").read_text())


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def by_name(groups: list[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {group["name"]: group for group in groups}


@pytest.mark.slow
def test_rows_are_read_by_a_model_and_written_as_they_came(tmp_path: Path) -> None:
    file, out = write(tmp_path), tmp_path / "out"
    with Loopback(reply=BlindModel(PLANTED)) as server:
        assert run(questions=file, out=out, sample=150, **endpoint(server)) == 0
        calls = server.counts["chat"]
        rows = lines(out / "rows" / "train.jsonl")
        assert [row["id"] for row in rows] == [each.row["id"] for each in PLANTED]
        assert [{k: row[k] for k in each.row} for row, each in zip(rows, PLANTED, strict=True)] == [
            each.row for each in PLANTED
        ]
        kept, dropped = (lines(out / name / "train.jsonl") for name in ("kept", "dropped"))
        assert [r["id"] for r in rows if r["clean_verdict"] != "known"] == [r["id"] for r in kept]
        assert [r["id"] for r in rows if r["clean_verdict"] == "known"] == [
            r["id"] for r in dropped
        ]
        assert kept == [each.row for each in PLANTED if each.row["id"] in {r["id"] for r in kept}]
        made = record(out)
        assert (made["rows"], made["kept"], made["dropped"]) == (400, len(kept), len(dropped))
        sources = by_name(made["by"]["source"])
        assert sources["by knowledge"]["known"] == sources["by knowledge"]["rows"] == 40
        assert sources["by position"]["known"] >= 36
        assert set(made["left_alone"]) == {"its answer is a box", "its answer is a span"}
        asked = 400 - sum(made["left_alone"].values())
        assert calls <= 3 * asked + 2  # each row three times; a trial of the endpoint
        forecast, bill = made["forecast"], made["bill"]
        assert abs(forecast["usd"][0] / bill["usd"] - 1) < 0.2
        assert forecast["usd"][1] <= bill["usd"] <= forecast["usd"][2]
        assert made["graded_by"]["open"].endswith("the judge lexical")
        text = (out / "clean.txt").read_text()
        assert "blind right in >= 2 of 3" in text
        assert "by source" in text
        chat = lines(out / "chat.jsonl")
        assert len(chat) == len(kept) - sum(made["left_alone"].values())
        assert chat[0]["messages"][0]["content"][1]["text"].startswith("Which, ")
        assert not (out / ".parts").exists()
        # Another rule asks nothing again.
        again = {**endpoint(server), "rule.then": "weigh", "rule.weight": 0.5, "rule.luck": 0.9}
        assert run(questions=file, out=out, sample=150, **again) == 0
        assert server.counts["chat"] <= calls + 1
    weighed = lines(out / "kept" / "train.jsonl")
    assert len(weighed) == 400
    assert {row["clean_weight"] for row in weighed} == {0.5, 1.0}
    assert lines(out / "dropped" / "train.jsonl") == []


@pytest.mark.slow
def test_a_dry_run_prices_the_run_without_a_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = write(tmp_path), tmp_path / "out"
    with Loopback(reply=BlindModel(PLANTED)) as server:
        assert run(questions=file, out=out, dry_run=True, **endpoint(server)) == 0
        assert server.counts["chat"] == 0
        free = json.loads((out / "estimate.json").read_text())
        assert "not known: what the models know" in capsys.readouterr().out
        assert not (out / "clean.json").exists()
        given = {**endpoint(server), "dry_run": True, "dry_run_usd": 1, "sample": 200}
        assert run(questions=file, out=out, **given) == 0
        assert 0 < server.counts["chat"] < 650
        paid = json.loads((out / "estimate.json").read_text())
        assert run(questions=file, out=out, sample=200, **endpoint(server)) == 0
    bill = record(out)["bill"]
    # The replies of the dry run are in the store, and its bill is of a run of its own.
    assert bill["calls"] < paid["calls"]
    assert free["calls"] == pytest.approx(paid["calls"], rel=0.1)
    assert paid["known"][0] == pytest.approx(record(out)["dropped"], rel=0.25)


@pytest.mark.slow
def test_a_budget_ends_the_run_and_a_greater_one_goes_on(tmp_path: Path) -> None:
    file, out = write(tmp_path, PLANTED[:200]), tmp_path / "out"
    with Loopback(reply=BlindModel(PLANTED)) as server:
        given = {**endpoint(server), "sample": 20, "seed": 1}
        with pytest.raises(Exception, match="budget_usd is reached"):
            run(questions=file, out=out, budget_usd=0.02, **given)
        assert not (out / "clean.json").exists()
        assert run(questions=file, out=out, budget_usd=1, **given) == 0
        calls = server.counts["chat"]
    left = sum(record(out)["left_alone"].values())
    assert calls <= 3 * (200 - left) + 2 + 10  # no row is paid twice


def test_calls_that_fail_are_counted_and_end_with_3(tmp_path: Path) -> None:
    def refuse(payload: Mapping[str, Any]) -> tuple[int, Any] | None:
        if "clip" not in json.dumps(payload):
            return None
        return 400, {"error": {"message": "this prompt is not allowed", "code": "content_filter"}}

    file, out = write(tmp_path, PLANTED[:60]), tmp_path / "out"
    with Loopback(refuse=refuse) as server:
        given = {**endpoint(server), "learned.on": False}
        assert run(questions=file, out=out, **given) == 3
    made = record(out)
    assert made["dropped"] == 0
    assert made["verdicts"]["not decided"] == 60 - sum(made["left_alone"].values())
    (message,) = made["failed_calls"]
    assert "not allowed" in message


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_the_output_has_the_format_of_the_input(suffix: str, tmp_path: Path) -> None:
    import csv

    import pyarrow as pa

    rows = [dict(each.row) for each in PLANTED[:100]]
    file, out = tmp_path / f"train.{suffix}", tmp_path / "out"
    if suffix == "json":
        file.write_text(json.dumps(rows))
    elif suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    else:
        with file.open("w", newline="") as opened:
            writer = csv.DictWriter(opened, list(rows[0]), extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
    assert run(questions=file, out=out, rows_per_block=30) == 0
    after = [dict(r.values) for p in plan_parts(str(out / "rows" / file.name), 999, tmp_path)
             for r in read_part(p)]  # fmt: skip
    assert [r["id"] for r in after] == [r["id"] for r in rows]
    assert {r["clean_verdict"] for r in after} >= {"left alone", "not known"}


def test_what_cannot_be_cleaned_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path)
    with pytest.raises(UserError, match="there is no reader"):
        run(questions=file, out=tmp_path / "out", **{"learned.on": False})
    with pytest.raises(UserError, match="answer= must be blind"):
        run(questions=file, out=tmp_path / "out", answer="openai")
    with pytest.raises(UserError, match="no such file"):
        run(questions=tmp_path / "none.csv", out=tmp_path / "out")
    (tmp_path / "half.jsonl").write_text('{"question": "Who?", "ans\n')
    with pytest.raises(UserError, match="no row can be read: not valid JSON"):
        run(questions=tmp_path / "half.jsonl", out=tmp_path / "out")


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_ray_s_workers_write_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path)
    with Loopback(reply=BlindModel(PLANTED)) as server:
        given = {**endpoint(server), "sample": 50}
        assert run(questions=file, out=tmp_path / "here", **given) == 0
        monkeypatch.setattr(job, "LIGHT_BYTES", 0)
        assert run(questions=file, out=tmp_path / "ray", **given) == 0
    digests = {CleanJob(file, tmp_path / name).digest() for name in ("here", "ray")}
    assert len(digests) == 1
    here, there = record(tmp_path / "here"), record(tmp_path / "ray")
    assert here["by"] == there["by"]
    assert here["bill"]["calls"] == there["bill"]["calls"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_run_that_is_killed_three_times_writes_the_same_bytes(tmp_path: Path) -> None:
    file = write(tmp_path)
    with Loopback(reply=BlindModel(PLANTED)) as server:
        given = [f"{k}={v}" for k, v in {**endpoint(server), "sample": 50}.items()]
        given[-2] = "rows_per_block=40"
        assert "rows_per_block=40" in given
        whole, killed = (CleanJob(file, tmp_path / n, given) for n in ("whole", "killed"))
        assert whole.run()
        calls = server.counts["chat"]
        assert not killed.run("features", 0.5)
        assert not killed.run("replies", 0.3)
        assert not killed.run("replies", 0.8)
        assert killed.run()
        again = server.counts["chat"] - calls
    assert killed.digest() == whole.digest()
    # Calls in flight at a kill are made again; the first kill was before any call.
    assert again <= calls + 2 * 3 * 80
    assert {k: v for k, v in whole.record.items() if k not in ("forecast", "bill")} == {
        k: v for k, v in killed.record.items() if k not in ("forecast", "bill")
    }


@pytest.mark.slow
def test_the_command_runs_from_any_folder(tmp_path: Path) -> None:
    file = write(tmp_path, PLANTED[:50])
    done = subprocess.run(
        [sys.executable, "-m", "ray_jobs.clean", f"questions={file.name}", "out=out"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(job.__file__).parents[1])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "50 rows:" in done.stdout
