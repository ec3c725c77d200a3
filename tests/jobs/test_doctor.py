"""The doctor reports what a machine has and lacks, and never shows a key."""

from pathlib import Path

import pytest

from loopback.endpoint import Loopback
from ray_jobs import doctor
from ray_jobs.cli.build import build
from ray_jobs.cli.compose import compose


def test_missing_things_are_reported_with_a_remedy(tmp_path: Path) -> None:
    (codecs,) = doctor.codecs(["h264", "none-such"])
    (model,) = doctor.models({"x": "package:none_such/model"}, needed=True)
    (spare,) = doctor.models({"x": "package:none_such/model"}, needed=False)
    assert spare.mark == "-"
    (module,) = doctor.modules({"none_such": "ears"})
    full = doctor.disk("disk", str(tmp_path / "deep" / "er"), 1e9)
    assert [f.mark for f in (codecs, model, module, full)] == ["missing"] * 4
    assert "none-such" in codecs.detail
    assert "pip install" in model.detail
    assert "pip install" in module.detail
    assert str(tmp_path) in full.detail
    assert doctor.disk("disk", str(tmp_path), 0.0).ok


def test_a_key_is_reported_without_its_value() -> None:
    checks = list(doctor.keys(["A_KEY", "B_KEY"], {"A_KEY": "sk-not-to-be-seen"}))
    assert [(f.what, f.mark) for f in checks] == [("key A_KEY", "ok"), ("key B_KEY", "-")]
    assert "sk-not-to-be-seen" not in repr(checks)


def test_a_cluster_that_does_not_answer_is_reported_as_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    *_, cluster = doctor.ray()
    assert cluster.mark == "missing"
    assert "127.0.0.1:9" in cluster.detail


def test_the_exit_code_is_1_if_something_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-seen")
    job = build(compose("doctor", [f"out={tmp_path}", "least_gib=1000000000"]))
    assert job() == 1
    output = capsys.readouterr().out
    assert "missing  disk of the store" in output
    assert "sk-not-to-be-seen" not in output


def test_presets_are_reported_by_their_keys_and_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback() as server:
        monkeypatch.setattr(
            doctor, "ADDRESSES", {"here": f"{server.url}/models", "not": "http://127.0.0.1:9/v1"}
        )
        checks = {c.what: c for c in doctor.presets({"GEMINI_API_KEY": "sk-not-to-be-seen"})}
    marks = {what.removeprefix("+experiment="): check.mark for what, check in checks.items()}
    assert marks == {"gemini": "ok", "openai": "-", "here": "ok", "not": "-"}
    assert "sk-not-to-be-seen" not in repr(checks)
