"""The doctor reports what a machine has and lacks, and never shows a key."""

import dataclasses
from datetime import date
from pathlib import Path

import pytest

from actors.calls.endpoint import Endpoint
from actors.calls.trial import TrialReply
from loopback.endpoint import Loopback
from ray_jobs import doctor
from ray_jobs.cli.build import build
from ray_jobs.cli.compose import compose
from ray_jobs.doctor import WITH_MODELS, DoctorCheck
from ray_jobs.runtime.asked_models import Listings, model_notes, read_listing


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


def test_presets_are_reported_by_what_their_endpoints_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A model that is served is fine; one that stops soon, by the endpoint or by the table, or is
    not served, is said to be; without a key or a server nothing is known.
    """
    monkeypatch.setenv("A_KEY", "sk-not-to-be-seen")
    monkeypatch.delenv("NO_KEY", raising=False)
    today = date(2026, 11, 28)
    with Loopback(models=("here", "gpt-4.1")) as server:

        def check(model: str, url: str = server.url, key: str | None = "A_KEY") -> DoctorCheck:
            endpoint = Endpoint(model=model, base_url=url, key_env=key)
            return doctor.preset_check("p", [endpoint], Listings(), today, "2026-11-01")

        served, dying, absent = check("here"), check("gpt-4.1"), check("hero")
        unset, silent = check("here", key="NO_KEY"), check("here", "http://127.0.0.1:9/v1", None)
    assert (served.mark, served.detail) == ("ok", "here (checked on 2026-11-01)")
    assert [c.mark for c in (dying, absent, unset, silent)] == ["-"] * 4
    assert "gpt-4.1 stops in 47 days (2027-01-14)" in dying.detail
    assert "gpt-6-luna" in dying.detail
    assert "hero is not served here; did you mean 'here'?" in absent.detail
    assert "NO_KEY is not set" in unset.detail
    assert "127.0.0.1:9/v1/models was not read" in silent.detail
    assert "sk-not-to-be-seen" not in repr((served, dying, absent, unset, silent))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"shutdown_date": "2026-12-05T00:00:00Z"}, "stops in 7 days"),
        ({"expiration_date": "2026-11-20"}, "has stopped (2026-11-20)"),
        ({"shutdown_date": None}, ""),
        ({"shutdown_date": "soon"}, ""),
    ],
)
def test_an_end_that_the_endpoint_announces_counts_before_the_table(
    row: dict[str, object], says: str
) -> None:
    endpoint = Endpoint(model="gpt-6-luna", base_url="https://api.openai.com/v1")
    listing = read_listing(TrialReply(status=200, body={"data": [{"id": "gpt-6-luna", **row}]}))
    assert "".join(model_notes(endpoint, listing, date(2026, 11, 28)))[: len(says)] == says


@pytest.mark.parametrize("body", [None, {}, {"data": "x"}, {"data": []}, [1, {"no": "id"}], "page"])
def test_a_list_that_cannot_be_read_says_nothing_of_models(body: object) -> None:
    listing = read_listing(TrialReply(status=200, body=body))
    assert listing.models is None
    assert listing.why
    endpoint = Endpoint(model="m", base_url="http://127.0.0.1:9/v1", key_env=None)
    assert list(model_notes(endpoint, listing, date(2026, 11, 28))) == []


def test_every_preset_with_models_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    checks = {c.what: c for c in doctor.presets(Listings(seconds=0.5), date(2026, 11, 28))}
    assert {f"+experiment={name}" for name in WITH_MODELS} < checks.keys()
    assert "OPENAI_API_KEY is not set" in checks["+experiment=openai"].detail
    assert "gpt-6-luna, gpt-6.1-terra (checked on 20" in checks["+experiment=openai"].detail
    assert "gpt-transcribe" in checks["hear=openai"].detail


def stages_of(choice: str) -> dict[str, dict[str, float]]:
    """Stage -> resources of one worker."""
    stages = build(compose("doctor", [f"cluster={choice}"])).cluster.stages
    return {name: dict(hardware.resources) for name, hardware in stages.items()}


def test_each_stage_says_what_it_asks_and_what_the_cluster_lacks() -> None:
    cluster = build(compose("doctor", ["cluster=gpu"])).cluster
    small = {check.what: check for check in doctor.placement(cluster, [{"CPU": 8.0}])}
    assert small["stage ask"].mark == "ok"
    assert small["stage caption"].mark == "-"
    assert "1 to 2 x 1 CPU, 0.4 GPU; there are 8 CPU" in small["stage caption"].detail
    large = doctor.placement(cluster, [{"CPU": 8.0, "GPU": 1.0}])
    assert {check.mark for check in large} == {"ok"}
    fixed = dataclasses.replace(cluster, autoscales=False)
    assert {check.mark for check in doctor.placement(fixed, [{"CPU": 8.0}])} == {"ok", "missing"}


def test_a_machine_without_accelerators_and_cluster_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(doctor, "gpu_names", lambda: ["A100", "A100"])
    assert [node["GPU"] for node in doctor.nodes()] == [2.0]


def test_embeddings_and_alignment_are_placed_on_accelerators_beside_the_others() -> None:
    used = ("hear", "caption", "embed", "align")
    on_gpu = [stages_of("gpu")[name]["GPU"] for name in used]
    assert min(on_gpu) > 0
    assert sum(on_gpu) <= 1  # One GPU holds one worker of each.
    assert [stages_of("tpu")[name].get("TPU") for name in used[1:]] == [4, 1, 1]


def test_a_judge_on_tpu_chips_is_one_worker_that_has_them_all() -> None:
    cluster = build(compose("doctor", ["cluster=tpu", "cluster.stages.grade.tpus=4"])).cluster
    cluster = dataclasses.replace(cluster, autoscales=False)

    def grade(chips: float) -> DoctorCheck:
        checks = doctor.placement(cluster, [{"CPU": 8.0, "TPU": chips}])
        return next(check for check in checks if check.what == "stage grade")

    assert (grade(4).mark, grade(4).detail) == ("ok", "1 x 1 CPU, 4 TPU")
    assert (grade(1).mark, grade(1).detail) == (
        "missing",
        "1 x 1 CPU, 4 TPU; there are 8 CPU, 1 TPU",
    )


@pytest.mark.slow
def test_ray_places_a_worker_of_each_stage_on_the_accelerators_that_it_has() -> None:
    import ray

    ray.init(address="local", num_cpus=32, num_gpus=1, resources={"TPU": 12})
    try:
        for choice in ("gpu", "tpu"):
            tasks = [
                ray.remote(ray.get_gpu_ids).options(
                    num_cpus=asked.get("CPU", 0), num_gpus=asked.get("GPU", 0),
                    resources={"TPU": asked["TPU"]} if "TPU" in asked else {},
                ).remote()
                for asked in stages_of(choice).values()
            ]  # fmt: skip
            has_gpu = [bool(ids) for ids in ray.get(tasks, timeout=120)]
            assert has_gpu == ["GPU" in asked for asked in stages_of(choice).values()]
    finally:
        ray.shutdown()
