"""Numbers of 5,000 digits and JSON 20,000 deep, sent to every route of the judge, the rater's page
and the report: each is refused, none ends in a traceback.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from mustsee.records import Video
from serve.guard import RequestRate
from serve.rater import COOKIE, csrf
from serve.rater_video import ServedVideos, key_of
from serve.report import ReportApp
from serve.report import create_app as create_report
from tests.serve.test_rater import GOOD, World
from tests.support import sample_videos
from tests.support.judge_app import BEARER, CAR, make_app

DIGITS = "9" * 5000
DEEP = "[" * 20_000 + "]" * 20_000
BODIES = (
    DIGITS, DEEP, f'{{"a": {DIGITS}}}', f'{{"a": {DEEP}}}', f"a={DIGITS}",
    f'{{"question": "q1", "verdict": {DIGITS}}}', f'{{"question": "q1", "options": {DEEP}}}',
    f'{{"items": {DEEP}}}', f'{{"items": [{{"question": {DIGITS}}}]}}',
)  # fmt: skip
HEADERS: tuple[Mapping[str, str], ...] = (
    {}, {"range": f"bytes={DIGITS}-"}, {"range": f"bytes=0-{DIGITS}"},
    {"range": f"bytes=-{DIGITS}"},
    {"x-request-start": DIGITS}, {"authorization": DIGITS}, {"cookie": f"mustsee_rater={DIGITS}"},
    {"content-length": DIGITS}, {"content-length": "0" * 4999 + "9"}, {"content-length": "\u00b2"},
)  # fmt: skip


def requests_to(app: Any, values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield a method and path of each route: with digits in all its places, and with `values` in
    all but one.
    """
    for route in app.routes:
        names = re.findall(r"{(\w+)[^}]*}", route.path)
        fillings = [dict.fromkeys(names, DIGITS)]
        fillings += [{**values, n: DIGITS} for n in names] or [{}]
        for method, filling in product(sorted(route.methods or ()), fillings):
            path = route.path
            for name in names:
                path = re.sub(rf"{{{name}[^}}]*}}", filling.get(name, DIGITS), path)
            yield method, path


def assert_no_failure(client: TestClient, values: Mapping[str, str]) -> None:
    asked = set(requests_to(client.app, values))
    assert len(asked) >= 6
    for method, path in sorted(asked):
        for headers in HEADERS:
            data = {k.encode(): v.encode("latin-1") for k, v in headers.items()}
            reply = client.request(
                method, path, params={"video": DIGITS}, headers=data, follow_redirects=False
            )
            assert reply.status_code < 500, (method, path[:60], headers)
        for body in BODIES if method == "POST" else ():
            for kind in ("application/json", "application/x-www-form-urlencoded"):
                reply = client.post(path, content=body, headers={"content-type": kind})
                assert 400 <= reply.status_code < 500, (path, body[:60], reply.status_code)


@pytest.mark.parametrize("known", [True, False])
def test_the_judge_refuses_them(known: bool) -> None:
    with TestClient(
        make_app(), headers=BEARER if known else {}, raise_server_exceptions=False
    ) as client:
        assert_no_failure(client, {})
        for name in ("threshold", "prompt_version", "model", "id"):
            for value in (DIGITS, DEEP):
                body = f'{{"items": [{json.dumps(CAR)}], "{name}": {value}}}'
                reply = client.post("/v1/equivalence", content=body)
                assert 400 <= reply.status_code < 500, name


@pytest.mark.parametrize("known", [True, False])
def test_the_rater_page_refuses_them(tmp_path: Path, known: bool) -> None:
    world = World(tmp_path, rate=plenty())
    client = world.client("ana")
    form = {"csrf": csrf(client.cookies[COOKIE]), "item": world.reach("ana", "q1/verify")}
    if not known:
        client.cookies.clear()
    client = quiet(client)
    assert_no_failure(client, {"key": key_of("a/../a"), "question": "q1", "name": "rater.js"})
    for path, name in product(("/draft", "/vote"), (*form, "step")):
        for value in (DIGITS, DEEP):
            reply = client.post(path, data={**form, "step": "0", **GOOD, name: value})
            assert 400 <= reply.status_code < 500, (path, name)
    given = {**form, "step": "0", **GOOD, "active": DIGITS}
    reply = client.post("/vote", data=given, follow_redirects=False)
    assert reply.status_code == (303 if known else 401)


@pytest.mark.parametrize("form", ["verify", "neptune", "egoschema", "certificate"])
def test_answers_of_any_length_and_depth_are_texts(tmp_path: Path, form: str) -> None:
    world = World(tmp_path, form, rate=plenty())
    client = world.client("ana")
    name = world.ballots.take("ana", world.now)
    assert name is not None
    own = {"csrf": csrf(client.cookies[COOKIE]), "item": name, "step": "0"}
    client = quiet(client)
    fields = [f.name for f in world.desk.tasks.step(name, 0).fields]
    for path, value in product(("/draft", "/vote"), (DIGITS, DEEP, f"{DIGITS}:{DIGITS}")):
        for each in (*([f] for f in fields), fields):
            reply = client.post(path, data={**own, **dict.fromkeys(each, value)})
            assert reply.status_code < 500, (path, each)
            assert client.get("/task").status_code == 200


@pytest.mark.parametrize("known", [True, False])
def test_the_report_refuses_them(tmp_path: Path, known: bool) -> None:
    app = report_app(tmp_path)
    client = TestClient(app, "http://127.0.0.1", raise_server_exceptions=False)
    if known:
        client.get("/r/secret")
    assert_no_failure(client, {"key": key_of("a"), "name": "watch.js"})
    clip = client.get(f"/video/{key_of('a')}/{DIGITS}")
    assert clip.status_code == (404 if known else 401)
    assert not (tmp_path / "ticks.jsonl").exists()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1"}, 200),
        ({"origin": "http://127.0.0.1"}, 200),
        ({"sec-fetch-site": "cross-site", "content-type": "text/plain"}, 403),
        ({"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:9"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:9"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_a_tick_comes_from_the_page_itself(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    client = TestClient(report_app(tmp_path), "http://127.0.0.1")
    client.get("/r/secret")
    tick = {"question": "q1", "verdict": "drop", "reason": "wrong"}
    assert client.post("/ticks", json=tick, headers=headers).status_code == status
    assert (tmp_path / "ticks.jsonl").exists() == (status == 200)


def quiet(client: TestClient) -> TestClient:
    """The same browser, with a 500 in place of an exception."""
    return TestClient(
        client.app, "http://127.0.0.1", raise_server_exceptions=False, cookies=client.cookies
    )


def plenty() -> RequestRate:
    return RequestRate(rater=100_000, stranger=100_000)


def report_app(folder: Path) -> Starlette:
    """A served report on a video, with the link /r/secret."""
    file = sample_videos.write(folder / "a.mp4", sample_videos.cuts([24]), tone=1.0)
    videos = [Video(video_id="a", uri=str(file))]
    return create_report(
        ReportApp(
            page="<html><body></body></html>", videos={v.video_id: v for v in videos},
            served=ServedVideos(videos, folder / "clips"), token="secret", questions={"q1": 2},
            folder=folder, rate=plenty(),
        )
    )  # fmt: skip
