"""Servers that decode what they are sent: an honest one has no fault, each other one its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from loopback.endpoint import Loopback
from loopback.refusals import HiddenLimit, refuse_in_words_of
from ray_jobs.cli.launch import build, compose
from tests.support.probed_server import ProbedServer, ServerFaults

SHORT = ("images=[8]", "longest_seconds=16", "in_flight=0")
LONG = ("images=[8,48]", "longest_seconds=64", "in_flight=0")
pytestmark = pytest.mark.slow


def probe(out: Path, server: Loopback, *overrides: str) -> Mapping[str, Any]:
    """Probe a server; return the content of probe.json."""
    given = [f"base_url={server.url}", "key_env=null", "model=m", f"out={out}", *overrides]
    assert build(compose("probe", given))() == 0
    return json.loads((out / "probe.json").read_text())


def probe_with(
    faults: ServerFaults, out: Path, *overrides: str, words: Mapping[str, str] | None = None,
    in_json: bool = False, **server: Any,
) -> Mapping[str, Any]:  # fmt: skip
    probed = ProbedServer(faults=faults, words=words or {}, in_json=in_json)
    with probed.loopback(**server) as loopback:
        return probe(out, loopback, *(overrides or SHORT))


def kinds(record: Mapping[str, Any]) -> set[tuple[str, str]]:
    return {(fault["about"], fault["kind"]) for fault in record["faults"]}


def test_an_honest_server_has_no_fault_and_its_figures_are_right(tmp_path: Path) -> None:
    record = probe_with(ServerFaults(), tmp_path, *LONG, "+llm.prices.m=[0.5,2]", in_json=True)
    assert record["faults"] == record["notes"] == []
    seen = {(i["kind"], i["count"]): i["frames"]["seen"] for i in record["images"]}
    assert seen == {("images", 8): 8, ("images", 48): 48}
    assert (record["rate"], record["rate_is_least"]) == (2.0, True)
    assert (record["longest"], record["longest_is_least"]) == (64, True)
    assert record["times"][0]["errors"]["largest"] <= 0.5
    assert [(s["kind"], s["sounds"]["heard"]) for s in record["sounds"]] == [
        ("digits", 6), ("silent", 0), ("tones", 6),
    ]  # fmt: skip
    tokens = record["tokens"]
    assert tokens["image"] == pytest.approx(258, abs=1)
    assert tokens["second"] == pytest.approx(290, abs=1)
    assert tokens["characters"] == pytest.approx(4, abs=0.1)
    assert record["price"]["video"] == pytest.approx(0.5 * 3600 * 290 / 1e6, rel=0.01)
    assert record["price"]["images"] == pytest.approx(0.5 * 3600 * 258 / 1e6, rel=0.01)
    assert (record["structured"], record["part"]) == ("kept", "video_url")
    assert record["parameters"] == []
    assert {"stop", "temperature", "logprobs"} <= set(record["parameters_tried"])


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        (
            ServerFaults(keeps=2, fps=1.0),
            {("images", "frames dropped"), ("video", "frames dropped")},
        ),
        (ServerFaults(fps=0.5), {("video", "frames dropped")}),
        (ServerFaults(shuffles=True), {("images", "shuffled"), ("video", "shuffled")}),
        (ServerFaults(blind=True), {("images", "nothing seen"), ("video", "nothing seen")}),
        (ServerFaults(deaf=True), {("sound", "sound dropped")}),
        (ServerFaults(video_part="image_url"), {("video", "video dropped")}),
        (ServerFaults(clock=0.5), {("times", "times wrong")}),
    ],
    ids=["drops frames", "half a frame a second", "shuffles", "blind", "deaf", "drops video_url",
         "scales times"],
)  # fmt: skip
def test_each_fault_is_named_and_no_other(
    faults: ServerFaults, expected: set[tuple[str, str]], tmp_path: Path
) -> None:
    record = probe_with(faults, tmp_path)
    assert kinds(record) == expected


def test_a_cap_of_32_frames_is_named_for_images_and_for_video(tmp_path: Path) -> None:
    record = probe_with(ServerFaults(cap=32), tmp_path, *LONG)
    assert kinds(record) == {("images", "capped"), ("video", "capped")}
    assert all("capped at 32" in fault["says"] for fault in record["faults"])
    assert all(fault["confirmed"] for fault in record["faults"])
    assert (record["longest"], record["longest_is_least"]) == (32, False)


def test_a_rate_of_one_frame_a_second_is_no_fault(tmp_path: Path) -> None:
    record = probe_with(ServerFaults(fps=1.0), tmp_path)
    assert record["faults"] == []
    assert (record["rate"], record["rate_is_least"]) == (1.0, False)


def test_a_model_that_misreads_is_no_fault_of_the_server(tmp_path: Path) -> None:
    record = probe_with(ServerFaults(misreads=5), tmp_path, *LONG)
    assert record["faults"] == []
    assert record["images"][-1]["frames"]["misread"] > 0


@pytest.mark.parametrize(
    "meter",
    [lambda n: 2.0, lambda n: 0.5, lambda n: 1.0 + n % 3, lambda n: 0.0],
    ids=["doubles", "halves", "changes", "counts nothing"],
)
def test_a_server_that_lies_about_usage(meter: Any, tmp_path: Path) -> None:
    record = probe_with(ServerFaults(), tmp_path, meter=meter)
    assert {about for about, _ in kinds(record)} == {"usage"}


def test_a_reply_that_cannot_be_read_is_no_fault(tmp_path: Path) -> None:
    words = {"Each picture": "I see a few numbers.", "shows one large numeral": "Some numbers.",
             "Which digits": "A voice speaks.", "one tone follows": "Beeps.",
             "At which second": "Soon."}  # fmt: skip
    record = probe_with(ServerFaults(), tmp_path, words=words)
    assert record["faults"] == []
    states = {r["state"] for name in ("images", "videos", "times", "sounds") for r in record[name]}
    assert states == {"untold"}
    assert all(r["why"] for name in ("images", "videos") for r in record[name])
    page = (tmp_path / "probe.html").read_text()
    assert "could not be told" in page


def test_a_server_that_refuses_videos_or_many_images_has_no_fault(tmp_path: Path) -> None:
    def refuse(payload: Mapping[str, Any]) -> tuple[int, Any] | None:
        content = payload["messages"][-1]["content"]
        kinds = [] if isinstance(content, str) else [part["type"] for part in content]
        is_video = any("data:video" in json.dumps(p) for p in content if isinstance(p, dict))
        if is_video or "video_url" in kinds:
            return 400, {"error": {"message": "this model takes no videos"}}
        if kinds.count("image_url") > 16:
            return 400, {"error": {"message": "at most 16 images may be given in one prompt"}}
        return None

    record = probe_with(ServerFaults(), tmp_path, *LONG, refuse=refuse)
    assert record["faults"] == []
    assert [(i["count"], i["state"]) for i in record["images"]] == [
        (8, "answered"),
        (48, "refused"),
    ]
    assert "at most 16 images" in record["images"][1]["why"]
    assert (record["part"], record["times"], record["sounds"]) == ("", [], [])
    assert {v["state"] for v in record["videos"]} == {"refused"}


def test_refused_parameters_and_a_refused_schema_are_listed(tmp_path: Path) -> None:
    names = ["temperature", "stop", "logprobs", "response_format"]
    refuse = refuse_in_words_of("openai", names)
    record = probe_with(ServerFaults(), tmp_path, refuse=refuse)
    assert record["faults"] == []
    assert {p["name"] for p in record["parameters"]} >= set(names)
    assert all(p["says"] for p in record["parameters"])
    assert (record["structured"], record["logprobs"]) == ("refused", "none")


def test_a_schema_that_is_ignored_or_not_sent_is_said(tmp_path: Path) -> None:
    assert probe_with(ServerFaults(), tmp_path / "a")["structured"] == "ignored"
    off = probe_with(ServerFaults(), tmp_path / "b", *SHORT, "llm.structured=none")
    assert off["structured"] == "off"


def test_a_long_video_gets_room_for_its_reply_and_three_digits(tmp_path: Path) -> None:
    record = probe_with(
        ServerFaults(), tmp_path, "images=[]", "first_seconds=100", "longest_seconds=100",
        "in_flight=0", "max_tokens=64",
    )  # fmt: skip
    (video, *_) = record["videos"]
    assert (video["frames"]["seen"], record["longest"]) == (100, 100)


@pytest.mark.parametrize("count", [1, 2])
def test_few_images(count: int, tmp_path: Path) -> None:
    given = (f"images=[{count}]", "longest_seconds=8", "in_flight=0")
    whole = probe_with(ServerFaults(), tmp_path / "a", *given)
    assert whole["faults"] == []
    blind = probe_with(ServerFaults(blind=True), tmp_path / "b", *given)
    assert ("images", "nothing seen") in kinds(blind)


def test_a_second_draw_that_shows_no_fault_clears_the_server(tmp_path: Path) -> None:
    """A model that overlooks one image, once."""
    probed = ProbedServer()
    overlooked: list[bool] = []

    def reply(payload: Any) -> str:
        text = probed.reply(payload)
        if text.count(",") == 7 and "Each picture" in str(payload["messages"]) and not overlooked:
            overlooked.append(True)
            return text.rpartition(",")[0]
        return text

    with Loopback(reply=reply) as server:
        record = probe(tmp_path, server, *SHORT)
    assert overlooked
    assert record["faults"] == []
    assert "a second request did not show it" in record["notes"][0]


def test_the_ramp_ends_at_the_first_refusal(tmp_path: Path) -> None:
    limit = HiddenLimit(kind="window", limit=lambda seconds: 3)
    record = probe_with(
        ServerFaults(), tmp_path, "images=[]", "longest_seconds=8", "in_flight=16", latency=0.1,
        hidden=limit,
    )  # fmt: skip
    assert [step["in_flight"] for step in record["ramp"]] == [1, 2, 4]
    last = record["ramp"][-1]
    assert (last["answered"], last["refused"], last["failed"]) == (3, 1, 0)
    assert [step["refused"] for step in record["ramp"][:2]] == [0, 0]


def test_the_retry_after_of_a_refusal_is_reported(tmp_path: Path) -> None:
    """Of a server that admits one call in two seconds, once its ramp begins."""
    limit = HiddenLimit(kind="rate", limit=lambda seconds: 1000.0)
    probed = ProbedServer()

    def reply(payload: Any) -> str:
        text = probed.reply(payload)
        if "one tone follows" in str(payload["messages"]):  # the last request before the ramp
            limit.limit = lambda seconds: 0.5
        return text

    with Loopback(reply=reply, hidden=limit) as server:
        record = probe(tmp_path, server, "images=[]", "longest_seconds=8", "in_flight=8")
    last = record["ramp"][-1]
    assert last["refused"] >= 1
    assert 0 < last["retry_after"] <= 10


def test_cached_tokens_of_a_repeated_prefix_are_reported(tmp_path: Path) -> None:
    with ProbedServer(caches=True).loopback() as server:
        record = probe(tmp_path, server, *SHORT)
    first, second, third = record["cached"]
    assert first == 0
    assert second > 0.8 * record["prefix_tokens"]
    assert third == second
    assert record["faults"] == []


def test_a_file_url_is_sent_where_it_is_allowed(tmp_path: Path) -> None:
    record = probe_with(ServerFaults(), tmp_path, *SHORT, "file_urls=true")
    (by_file,) = [v for v in record["videos"] if v["kind"] == "file_url"]
    assert by_file["frames"]["seen"] == by_file["count"] == 8
    assert record["faults"] == []
