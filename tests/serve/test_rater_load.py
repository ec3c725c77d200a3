"""Fifty raters at once: no vote is lost, none is there twice, no question has one too many."""

import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.cookiejar import CookieJar
from pathlib import Path
from threading import Thread
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest
import uvicorn

from mustsee.raters.ballots import Ballots, hashed
from mustsee.raters.deal import items
from mustsee.raters.results import results
from mustsee.records import Question
from ray_jobs.rate import port
from ray_jobs.running.launch import build, compose
from serve.rater import Desk, create_app
from serve.rater_film import Films
from serve.rater_show import Tasks

RATERS, QUESTIONS, VOTES = 50, 150, 3
GOOD = {"answer_right": "yes", "only_answer": "yes", "needs_film": "no"}


class Rater:
    """Rates until nothing is left, sending every vote twice. `cast`: the items voted on."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()))
        self.seconds: list[float] = []
        self.cast: list[str] = []
        self._page = self._asked(f"/r/{token}")

    def work(self) -> None:
        while item := self._hidden("item"):
            sent = {"csrf": self._hidden("csrf"), "item": item, "step": "0", **GOOD}
            self._asked("/draft", {**sent, "comment": "half"})
            self._asked("/vote", sent)
            self._page = self._asked("/vote", sent)
            self.cast.append(item)

    def _hidden(self, name: str) -> str:
        found = re.search(rf'name="{name}" value="([^"]*)"', self._page)
        return found[1] if found else ""

    def _asked(self, path: str, data: dict[str, str] | None = None) -> str:
        body = None if data is None else urlencode(data).encode()
        begun = time.perf_counter()
        try:
            with self._opener.open(Request(self._address + path, body), timeout=60) as reply:
                text = reply.read().decode()
        except HTTPError as error:
            raise AssertionError(f"{path}: {error.code} {error.read()!r}") from error
        self.seconds.append(time.perf_counter() - begun)
        return text


@pytest.mark.slow
def test_fifty_raters_at_once(tmp_path: Path) -> None:
    form = build(compose("rate", ["questions=x"])).form
    questions = {
        f"q{i}": Question(question_id=f"q{i}", video_id=f"v{i % 9}", recipe="r", question="Why?",
                          question_type="k", options=("a", "b"), answer_index=0)
        for i in range(QUESTIONS)
    }  # fmt: skip
    box = Ballots(where=tmp_path / "votes.sqlite")
    asked = box.open(items(form, [*questions], raters=VOTES, people=()))
    tasks = Tasks(
        form=form, items={i.name: i for i in asked}, questions=questions, videos={},
        films=Films([], tmp_path),
    )  # fmt: skip
    desk = Desk(
        tasks=tasks, ballots=box, admin=hashed("admin"),
        results=lambda: results(form, questions, asked, box.votes(), wanted=0.95),
    )  # fmt: skip
    with port("127.0.0.1", 0) as listening:
        server = uvicorn.Server(
            uvicorn.Config(create_app(desk), log_level="warning", log_config=None)
        )
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        tokens = [box.invite(f"r{i}", time.time() + 600) for i in range(RATERS)]
        try:
            with ThreadPoolExecutor(RATERS) as pool:
                raters = list(pool.map(lambda token: Rater(address, token), tokens))
                list(pool.map(Rater.work, raters))
        finally:
            server.should_exit = True
            thread.join(30)
    votes = box.votes()
    assert Counter(v.question_id for v in votes) == dict.fromkeys(questions, VOTES)
    assert len({(v.question_id, v.rater) for v in votes}) == len(votes)
    said = sorted((item, f"r{i}") for i, rater in enumerate(raters) for item in rater.cast)
    assert said == sorted((f"{v.question_id}/{v.round}", v.rater) for v in votes)
    seconds = sorted(s for rater in raters for s in rater.seconds)
    print(f"{len(seconds)} requests, p95 {seconds[int(0.95 * len(seconds))] * 1000:.0f} ms")
