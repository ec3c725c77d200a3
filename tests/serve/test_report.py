"""The served report: access by its link, videos by key, and the file unchanged."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.testclient import TestClient

from mustsee.errors import UserError
from mustsee.media.video import facts
from ray_jobs.cli.launch import build, compose
from serve.rater_video import key_of
from tests.support import reported


def report(folder: Path, *overrides: str) -> Any:
    return build(compose("report", [f"out={folder}", "port=0", *overrides]))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reported.write(tmp_path_factory.mktemp("run"))


@pytest.fixture
def served(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[TestClient, str]:
    """A browser and the printed link."""
    apps: list[Any] = []
    monkeypatch.setattr(
        uvicorn.Server, "run", lambda server, sockets: apps.append(server.config.app)
    )
    assert report(run, "serve=true")() == 130
    link_match = re.search(r"http://127\.0\.0\.1:\d+(/r/\S+)", capsys.readouterr().out)
    assert link_match is not None
    return TestClient(apps[0], base_url="http://127.0.0.1"), link_match[1]


def test_the_report_needs_its_link(served: tuple[TestClient, str]) -> None:
    browser, link = served
    key = key_of("a.mp4")
    for path in ("/", "/videos?video=a.mp4", f"/video/{key}", f"/video/{key}/0", "/r/guess"):
        assert browser.get(path).status_code == 401, path
    reply = browser.get(link, follow_redirects=False)
    assert (reply.status_code, reply.headers["location"]) == (303, "/")
    assert "HttpOnly" in reply.headers["set-cookie"]
    assert browser.get("/").status_code == 200
    assert browser.get("/", headers={"host": "evil.example"}).status_code == 400
    browser.cookies.clear()
    replies = [browser.get("/").status_code for _ in range(61)]
    assert (replies[0], replies[-1]) == (401, 429)


def test_the_file_has_no_player_and_the_served_page_runs_only_its_scripts(
    served: tuple[TestClient, str], run: Path
) -> None:
    browser, link = served
    page, file = browser.get(link), (run / "report/index.html").read_text()
    assert "watch.js" not in file
    assert "/video" not in file
    assert page.text.count("/page/watch.js") == 1
    (own,) = re.findall(r"'sha256-[^']+'", file)
    policy = page.headers["content-security-policy"]
    assert f"script-src {own} 'self'" in policy
    assert "default-src 'none'" in policy
    assert "http-equiv" not in page.text  # The policy in the file would forbid the videos.
    for name in ("watch.js", "watch.css", "video.js"):
        assert browser.get(f"/page/{name}").status_code == 200
    assert browser.get("/page/report.py").status_code == 404


def test_videos_come_by_key_and_by_range_or_in_clips(
    served: tuple[TestClient, str], run: Path, tmp_path: Path
) -> None:
    browser, link = served
    browser.get(link)
    about = browser.get("/videos?video=a.mp4").json()
    assert str(run) not in str(about)
    assert (about["whole"], about["begin"], about["every"]) == (True, 0.0, 5.0)
    assert about["end"] == pytest.approx(8.0, abs=0.1)
    whole = browser.get(f"/video/{about['key']}")
    part = browser.get(f"/video/{about['key']}", headers={"range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, whole.content[10:20])
    assert whole.content == (run / "a.mp4").read_bytes()

    other = browser.get("/videos?video=b.mkv").json()
    assert other["whole"] is False
    assert browser.get(f"/video/{other['key']}").status_code == 404
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(browser.get(f"/video/{other['key']}/1").content)
    assert facts(str(clip)).duration == pytest.approx(10.0, abs=0.2)
    assert len([*(run / "report/clips").iterdir()]) == 1
    assert other["end"] == pytest.approx(33.0, abs=0.1)
    assert browser.get(f"/video/{other['key']}/6").status_code == 200
    assert browser.get(f"/video/{other['key']}/7").status_code == 404

    assert "cannot be read" in browser.get("/videos?video=c.mp4").json()["problem"]
    for path in ("/videos", "/videos?video=../a.mp4", "/video/a.mp4", "/video/..%2Frun.json"):
        assert browser.get(path).status_code == 404, path


def test_moved_videos_are_found_by_the_videos_setting(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    apps: list[Any] = []
    monkeypatch.setattr(
        uvicorn.Server, "run", lambda server, sockets: apps.append(server.config.app)
    )
    table = tmp_path / "videos.csv"
    table.write_text(f"video_id,uri\nc.mp4,{run / 'a.mp4'}\n")
    report(run, "serve=true", f"videos={table}")()
    link = re.search(r"http://127\.0\.0\.1:\d+(/r/\S+)", capsys.readouterr().out)
    assert link is not None
    browser = TestClient(apps[0], base_url="http://127.0.0.1")
    browser.get(link[1])
    assert browser.get("/videos?video=c.mp4").json()["whole"] is True


def test_serving_an_audit_is_refused(tmp_path: Path) -> None:
    folder = reported.write(tmp_path)
    text = (folder / "run.json").read_text().replace('"neptune"', '"audit"', 1)
    (folder / "run.json").write_text(text)
    with pytest.raises(UserError, match="serve=true"):
        report(folder, "serve=true")()


def test_ticks_are_kept_and_count_for_whoever_reads_the_run(
    served: tuple[TestClient, str], run: Path
) -> None:
    import mustsee

    browser, link = served
    first, *others = (q.question_id for q in mustsee.Dataset(str(run)).questions)
    drop = {"question": first, "verdict": "drop", "reason": "two are\nright"}
    assert browser.post("/ticks", json=drop).status_code == 401
    browser.get(link)
    assert browser.get("/ticks").json() == {}
    assert browser.post("/ticks", json=drop).json() == ["drop", "two are right"]
    for wrong, status in (
        ({**drop, "question": "none"}, 404),
        ({**drop, "verdict": "maybe"}, 422),
        ({**drop, "reason": "x" * 501}, 422),
        ({"verdict": "drop"}, 422),
        ([], 422),
    ):
        assert browser.post("/ticks", json=wrong).status_code == status, wrong
    assert browser.post("/ticks", content=b"{").status_code == 422
    assert browser.get("/ticks").json() == {first: ["drop", "two are right"]}
    made = mustsee.Dataset(str(run))
    assert [q.question_id for q in made.questions] == others
    assert {q.question_id: q.drop for q in made.dropped_questions}[
        first
    ] == "by hand: two are right"
    again = next((q.question_id for q in made.dropped_questions if q.question_id != first), None)
    if again is not None:
        browser.post("/ticks", json={"question": again, "verdict": "keep"})
        assert again in {q.question_id for q in mustsee.Dataset(str(run)).questions}
        browser.post("/ticks", json={"question": again, "verdict": "none"})
    browser.post("/ticks", json={"question": first, "verdict": "none"})
    assert [q.question_id for q in mustsee.Dataset(str(run)).questions] == [first, *others]
    with (run / "ticks.jsonl").open("a") as file:
        file.write('{"question_id": "cut')
    assert mustsee.read(run).questions


def test_an_edited_question_has_the_words_of_its_tick(
    served: tuple[TestClient, str], run: Path
) -> None:
    import mustsee

    browser, link = served
    browser.get(link)
    before = next(q for q in mustsee.Dataset(str(run)).questions if q.answer_index is not None)
    options = [f"{option}, in other\n words" for option in before.options]
    edit = {"question": before.question_id, "verdict": "edit", "words": "What now?",
            "options": options, "reason": "odd words"}  # fmt: skip
    said = [" ".join(option.split()) for option in options]
    assert browser.post("/ticks", json=edit).json() == ["edit", "odd words", "What now?", said]
    for wrong in (
        {"options": options[1:]},
        {"options": [options[0], *options[:-1]]},
        {"options": ["", *options[1:]]},
        {"words": " "},
        {"words": "x" * 2001},
        {"options": 3},
    ):
        assert browser.post("/ticks", json={**edit, **wrong}).status_code == 422, wrong
    after = {q.question_id: q for q in mustsee.Dataset(str(run)).questions}[before.question_id]
    assert (after.question, list(after.options)) == ("What now?", said)
    assert after.answer_index == before.answer_index
    assert after.answer == said[before.answer_index or 0]
    assert (after.subsets, after.group) == (("full",), None)
    assert after.repairs[-1].reason == "edited by hand: odd words"
    assert json.loads(after.repairs[-1].before)["question"] == before.question
    browser.post("/ticks", json={"question": before.question_id, "verdict": "none"})
    assert before in mustsee.Dataset(str(run)).questions
