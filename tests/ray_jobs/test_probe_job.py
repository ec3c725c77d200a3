"""`mustsee probe` as a command: what it says and costs beforehand, its files, and what an
evaluation makes of them.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from loopback.endpoint import Loopback
from loopback.replies import canned_reply
from mustsee.errors import UserError
from mustsee.layouts import read
from mustsee.recipes.neptune import layout as neptune
from ray_jobs.cli.launch import build, compose
from tests.support.evaluation import questions
from tests.support.probed_server import ProbedServer, ServerFaults

SHORT = ("images=[8]", "longest_seconds=16", "in_flight=2")


def run(job: str, *overrides: str) -> int:
    return build(compose(job, list(overrides)))()


def at(server: Loopback, out: Path, *more: str) -> list[str]:
    return [f"base_url={server.url}", "key_env=null", "model=m", f"out={out}", *more]


def test_the_embedded_loopback_is_probed_in_less_than_a_minute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It answers with words of its own, which say nothing of what it sees."""
    began = time.monotonic()
    with Loopback() as server:
        assert run("probe", *at(server, tmp_path)) == 0
    assert time.monotonic() - began < 60
    said = capsys.readouterr().out
    assert "no fault found; could not be told: images seen, video seen" in said
    record = json.loads((tmp_path / "probe.json").read_text())
    assert record["faults"] == []
    assert json.loads((tmp_path / "run.json").read_text())["recipe"] == "probe"


def test_the_calls_and_their_cost_are_said_before_the_first_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ProbedServer().loopback() as server:
        given = at(server, tmp_path, *SHORT, "+llm.prices.m=[1,2]")
        assert run("probe", *given, "dry_run=true") == 0
        assert server.counts["chat"] == 0
        said = capsys.readouterr().out
        assert not list(tmp_path.iterdir())
        assert run("probe", *given) == 0
        asked = server.counts["chat"] + server.counts["trials"]
    words = said.split()
    at_most = int(words[words.index("calls,") - 1])
    usd = float(words[words.index("USD,") - 1])
    record = json.loads((tmp_path / "probe.json").read_text())
    assert record["calls"] <= asked <= at_most
    assert 0 < record["usd"] <= usd


def test_a_budget_ends_a_probe_and_what_was_not_asked_is_said(tmp_path: Path) -> None:
    with ProbedServer().loopback() as server:
        given = at(server, tmp_path, *SHORT, "+llm.prices.m=[1,0]", "budget_usd=0.0145")
        assert run("probe", *given) == 0
    record = json.loads((tmp_path / "probe.json").read_text())
    assert 0 < record["usd"] <= 0.0145
    states = [r["state"] for name in ("images", "videos") for r in record[name]]
    assert "unasked" in states
    assert record["faults"] == []
    assert "not asked" in (tmp_path / "probe.html").read_text()


def test_a_second_probe_asks_anew(tmp_path: Path) -> None:
    with ProbedServer().loopback() as server:
        assert run("probe", *at(server, tmp_path, *SHORT)) == 0
        first = server.counts["chat"]
        assert run("probe", *at(server, tmp_path, *SHORT)) == 0
        assert server.counts["chat"] == 2 * first


def test_a_server_that_answers_nothing_ends_the_command_with_its_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(payload: Any) -> tuple[int, Any] | None:
        is_trial = payload["messages"][0]["content"] == "Hello"
        return None if is_trial else (400, {"error": {"message": "the engine is out of order"}})

    with Loopback(refuse=refuse) as server:
        assert run("probe", *at(server, tmp_path, *SHORT)) == 3
    assert "nothing was measured" in (said := capsys.readouterr().out)
    assert "the engine is out of order" in said
    assert not (tmp_path / "probe.json").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["key_env=null", "base_url=https://host.example/v1", "file_urls=true"],
            "not on this machine",
        ),
        (["llm=offline"], "must be an endpoint"),
        (["key_env=null", "base_url=http://127.0.0.1:9/v1"], "no server answers at port 9"),
        (["images=[48,8]"], "rising"),
    ],
)
def test_a_mistake_is_reported_before_any_call(
    given: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        run("probe", f"out={tmp_path}", *given)


def test_the_page_names_every_fault_and_needs_no_script(tmp_path: Path) -> None:
    with ProbedServer(faults=ServerFaults(shuffles=True, deaf=True)).loopback() as server:
        assert run("probe", *at(server, tmp_path, *SHORT, "model='<b>m</b>'")) == 0
    page = (tmp_path / "probe.html").read_text()
    assert "<script" not in page
    assert "<b>m</b>" not in page
    for kind in ("shuffled", "sound dropped"):
        assert kind in page
    assert 'src="http' not in page


@pytest.mark.slow
def test_an_evaluation_keeps_the_probe_of_its_server_and_warns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the folder, and by a store that both share; frames that are not sent do not warn."""
    release = tmp_path / "neptune_full.json"
    neptune.write(questions(), release)
    probed = tmp_path / "probe"
    faulty = ProbedServer(faults=ServerFaults(keeps=2))
    with faulty.loopback() as server:
        assert run("probe", *at(server, probed, *SHORT)) == 0
        server.reply = canned_reply
        given = [f"questions={release}", "llm=openai", f"base_url={server.url}", "key_env=null",
                 "llm.model=m", "limit=2"]  # fmt: skip

        def evaluate(name: str, *more: str) -> tuple[dict[str, Any], str]:
            capsys.readouterr()
            assert run("evaluate", *given, f"out={tmp_path / name}", *more) == 0
            results = json.loads((tmp_path / name / "results.json").read_text())
            captured = capsys.readouterr()
            return results, " ".join((captured.err + captured.out).split())

        blind, said = evaluate("blind", "answer=blind", f"server_probe={probed}")
        (kept,) = blind["server_probes"]
        assert (kept["warnings"], kept["file"]) == ([], "probe.json")
        assert "not seen" not in said
        copy = json.loads((tmp_path / "blind/probe.json").read_text())
        assert copy == json.loads((probed / "probe.json").read_text())

        shown, said = evaluate(
            "shown", "answer=openai", f"store={probed}/store", "max_problem_share=1"
        )
        (kept,) = shown["server_probes"]
        assert "4 evenly spread are not seen" in kept["warnings"][0]
        assert said.count("4 evenly spread are not seen") == 2  # before and after the calls

        unprobed, _ = evaluate("unprobed", "answer=blind")
        assert unprobed["server_probes"] == []
        with pytest.raises(UserError, match="is of model 'm'"):
            evaluate("other", "answer=blind", "llm.model=other", f"server_probe={probed}")
    assert read(str(release)).questions
