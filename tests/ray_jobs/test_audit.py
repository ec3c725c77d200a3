"""The audit job: any layout, resumed, compared, without videos and with vision models."""

import csv
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import mustsee
from benchmarks.audit import AuditReplies
from benchmarks.audit_videos import plant_questions
from loopback.endpoint import Loopback
from mustsee.errors import UserError
from mustsee.layouts import ours
from mustsee.layouts.errata import Erratum, read_errata, write_errata
from mustsee.recipes.neptune import layout as neptune
from ray_jobs.cli.launch import build, compose
from ray_jobs.runtime.cluster import connect_ray
from tests.support.evaluation import questions


@pytest.fixture(scope="module")
def ray() -> Iterator[None]:
    with connect_ray():
        yield


def run(**overrides: object) -> int:
    return build(compose("audit", [f"{k}={v}" for k, v in overrides.items()]))()


def read_audit(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "audit.json").read_text())


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_an_audit_of_a_table_writes_a_clean_version_and_can_be_resumed_and_compared(
    tmp_path: Path,
) -> None:
    file, out = tmp_path / "val.csv", tmp_path / "out"
    dataset = questions(40)
    with file.open("w", newline="") as opened:
        rows = [
            {"video": q.video_id, "question": q.question, "answer": q.answer_index, "note": "kept",
             **{f"a{n}": o for n, o in enumerate(q.options)}} for q in [*dataset, dataset[3]]
        ]  # fmt: skip
        planted = csv.DictWriter(opened, list(rows[0]))
        planted.writeheader()
        planted.writerows(rows)
    assert run(questions=file, out=out, encoder="null") == 0
    first = (out / "audit.json").read_bytes()
    record = read_audit(out)
    assert record["layout"] == "table"
    assert (record["questions"], record["videos"]) == (41, 20)
    assert record["fails"]["duplicate"] == 1
    assert {t["name"] for t in record["battery"]} >= {"longest", "prior", "place E", "blind"}
    clean = mustsee.read(out / "clean" / "val.csv")
    assert len(clean) == record["clean"] < 41
    assert "note" in (out / "clean" / "val.csv").read_text().splitlines()[0]
    assert pq.read_table(out / "audit.parquet").num_rows == 41
    page = (out / "report" / "index.html").read_text()
    assert "<h2>Guesses</h2>" in page
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?https?:""", page), "it needs no network"
    assert run(questions=file, out=out, encoder="null") == 0
    assert json.loads((out / "run.json").read_text())["computed"] == {"answer": 0}
    assert (out / "audit.json").read_bytes() == first
    again = tmp_path / "again"
    assert run(questions=out / "clean" / "val.csv", out=again, encoder="null",
               against=f"[{out}]") == 0  # fmt: skip
    (compared,) = read_audit(again)["against"]
    assert (compared["theirs"], compared["shared"]) == (41, record["clean"])
    assert compared["lines"][0]["name"] == "shortcut ratio"


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_an_audit_with_two_vision_models_reports_each(tmp_path: Path) -> None:
    planted = plant_questions(tmp_path, 3)
    release = tmp_path / "questions.parquet"
    ours.write(planted.questions, release)
    bench = tmp_path / "bench.json"
    neptune.write(planted.benchmark, bench)
    out = tmp_path / "out"
    with Loopback(reply=AuditReplies()) as server:
        settings = {
            "questions": release, "videos": tmp_path, "answer": "openai", "llm": "openai",
            "llm.model": "one", "llm.base_url": server.url, "llm.key_env": "null",
            "answer.see.frames": 20, "answer.see.longest": 160, "also": "[{model: two}]",
            "benchmarks": f"[{bench}]", "encoder": "null", "out": out,
            "llm.limits.requests_per_minute": "null",
            "llm.limits.tokens_per_minute": "null",
        }  # fmt: skip
        assert run(**settings, dry_run=True) == 0
        assert server.counts["chat"] == 0, "a list of models is free"
        assert not (out / "audit.json").exists()
        assert run(**settings) == 0
        calls = server.counts["chat"]
        assert calls > 400
        assert run(**settings) == 0
        assert server.counts["chat"] == calls
    record = read_audit(out)
    assert [f["answerer"] for f in record["figures"]] == sorted(
        {t["answerer"] for t in record["battery"] if t["answerer"]}
    )
    assert len(record["figures"]) == 2
    tried = {t["name"]: t for t in record["battery"] if " one " in t["answerer"]}
    assert set(tried) == {"blind", "one_frame", "few", "frames", "shuffled", "evidence",
                          "without_evidence", "control", "whole"}  # fmt: skip
    assert tried["evidence"]["right"]["value"] > 0.8 > 0.6 > tried["blind"]["right"]["value"]
    page = (out / "report" / "index.html").read_text()
    assert "data:image/jpeg" in page
    assert build(compose("report", [f"out={out}"]))() == 0
    assert (out / "report" / "index.html").read_text() == page


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"answer": "guess"}, ["answer=", "guessers"]),
        ({"drops": "[blnd]"}, ["blnd", "duplicate"]),
        ({"table": "{video: v}"}, ["options", "question"]),
        ({"table": "{vido: v}"}, ["vido", "video"]),
        ({"also": "[{modl: x}]"}, ["modl"]),
        ({"against": "[/nowhere]"}, ["/nowhere", "not the output of an audit"]),
        ({"benchmark_videos": "[x]"}, ["benchmarks="]),
    ],
)
def test_wrong_settings_are_reported_before_any_work(
    settings: dict[str, object], parts: list[str], tmp_path: Path
) -> None:
    release = tmp_path / "q.json"
    neptune.write(questions(4), release)
    with pytest.raises(UserError) as caught:
        run(questions=release, out=tmp_path / "out", **settings)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.slow
def test_an_audit_by_rules_alone_starts_no_ray(tmp_path: Path) -> None:
    file = tmp_path / "val.csv"
    lines = [f"v{n},What is lifted at {n}?,a box,a lid,a cup,{n % 3}" for n in range(6)]
    file.write_text("\n".join(["video,question,a0,a1,a2,answer", *lines]))
    code = (
        "import sys\n"
        "from ray_jobs.cli.launch import build, compose\n"
        "code = build(compose('audit', sys.argv[1:]))()\n"
        "sys.exit(code or 'ray' in sys.modules)"
    )
    keys = [f"questions={file}", f"out={tmp_path / 'out'}", "encoder=null"]
    subprocess.run([sys.executable, "-c", code, *keys], check=True, timeout=120)
    assert read_audit(tmp_path / "out")["questions"] == 6


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_doubtful_keys_are_proposed_and_people_overrule_them(tmp_path: Path) -> None:
    release, out = tmp_path / "questions.parquet", tmp_path / "out"
    dataset = questions(40)
    wrong, right, bad = dataset[3], dataset[4], dataset[5]
    keys = {q.question_id: q.answer_index or 0 for q in dataset}
    ours.write(dataset, release)
    files: list[Path] = []
    for number in range(3):
        named = {n: (k + 1) % 5 if n == wrong.question_id else k for n, k in keys.items()}
        files.append(tmp_path / f"model{number}.json")
        files[-1].write_text(json.dumps({n: "ABCDE"[k] for n, k in named.items()} | {"x": "A"}))
    settings = {"questions": release, "guessers_only": "true", "encoder": "null",
                "predictions": f"[{','.join(map(str, files))}]"}  # fmt: skip
    assert run(out=out, **settings) == 0
    entries = read_errata(out / "errata.jsonl").entries
    assert entries.keys() == {wrong.question_id}
    assert entries[wrong.question_id].is_proposal
    record = read_audit(out)
    assert record["keys_tested"] is True
    assert record["fails"]["error"] == 1
    page = (out / "report" / "index.html").read_text()
    for part in ("Keys in doubt", "model0, model1, model2", "1 are to questions that are not here"):
        assert part in page
    people = tmp_path / "people.jsonl"
    write_errata(
        [
            Erratum(id=wrong.question_id, old=wrong.answer, new=wrong.answer, who="rater:ana"),
            Erratum(id=right.question_id, old=right.answer, new=right.options[0 if
                    right.answer_index else 1], who="rater:ana"),
            Erratum(id=bad.question_id, old=bad.answer, new="bad", who="rater:ana"),
        ],
        people,
    )  # fmt: skip
    again = tmp_path / "again"
    assert run(out=again, errata=people, **settings) == 0
    assert (again / "errata.jsonl").read_text() == ""
    record = read_audit(again)
    assert record["errata"]["corrected"] == [right.question_id]
    assert record["errata"]["bad"] == [bad.question_id]
    assert record["fails"]["error"] == 0
    clean = {q.question_id: q for q in mustsee.read(again / "clean")}
    assert clean[bad.question_id].drop is not None
    assert clean[right.question_id].answer_index == right.answer_index, "the file's own keys"
    assert "clean/ has the file" in (again / "report" / "index.html").read_text()


def test_settings_for_doubts_are_checked(tmp_path: Path) -> None:
    release = tmp_path / "questions.parquet"
    ours.write(questions(4), release)
    for wrong in ({"doubt": 0}, {"predictions": "[nowhere.json]"}, {"errata": "nowhere.jsonl"}):
        with pytest.raises(UserError, match=r"nowhere|doubt=0"):
            run(questions=release, out=tmp_path / "out", **wrong)
