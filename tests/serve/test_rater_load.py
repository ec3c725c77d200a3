"""Fifty raters at once: no vote is lost or counted twice, and no question gets too many."""

import asyncio
import json
import random
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.cookiejar import CookieJar
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import aiohttp
import pyarrow.parquet as pq
import pytest
import uvicorn

from mustsee.files import schemas
from mustsee.raters.assignment import items
from mustsee.raters.ballots import Ballots, hash_token
from mustsee.raters.results import results
from mustsee.records import Question, Span, Video
from ray_jobs.cli.launch import build, compose
from ray_jobs.runtime.web import port
from serve.rater import RatingDesk, create_app
from serve.rater_show import Tasks
from serve.rater_video import ServedVideos
from tests.support import sample_videos
from tests.support.served import Served

RATERS, QUESTIONS, VOTES = 50, 150, 3
GOOD = {"answer_right": "yes", "only_answer": "yes", "needs_video": "no"}


class Rater:
    """Rates until no item is left, and sends every vote twice. `cast`: the rated items."""

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
        match = re.search(rf'name="{name}" value="([^"]*)"', self._page)
        return match[1] if match else ""

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
@pytest.mark.long
def test_fifty_raters_vote_at_once(tmp_path: Path, votes: str) -> None:
    form = build(compose("rate", ["questions=x"])).form
    questions = {
        f"q{i}": Question(question_id=f"q{i}", video_id=f"v{i % 9}", recipe="r", question="Why?",
                          question_type="k", options=("a", "b"), answer_index=0)
        for i in range(QUESTIONS)
    }  # fmt: skip
    box = Ballots(where=votes)
    drawn = box.open(items(form, [*questions], raters=VOTES, people=()))
    tasks = Tasks(
        form=form, items={i.name: i for i in drawn}, questions=questions, videos={},
        served=ServedVideos([], tmp_path),
    )  # fmt: skip
    desk = RatingDesk(
        tasks=tasks, ballots=box, admin=hash_token("admin"),
        results=lambda: results(form, questions, drawn, box.votes(), wanted=0.95),
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
    cast = box.votes()
    assert Counter(v.question_id for v in cast) == dict.fromkeys(questions, VOTES)
    assert len({(v.question_id, v.rater) for v in cast}) == len(cast)
    cast_votes = sorted((item, f"r{i}") for i, rater in enumerate(raters) for item in rater.cast)
    assert cast_votes == sorted((f"{v.question_id}/{v.round}", v.rater) for v in cast)
    seconds = sorted(s for rater in raters for s in rater.seconds)
    print(f"{len(seconds)} requests, p95 {seconds[int(0.95 * len(seconds))] * 1000:.0f} ms")


class Paced:
    """Rate as people do: load the page and video, send two drafts, vote after some ten seconds."""

    def __init__(self, link: str, seed: int) -> None:
        self._address, self._link = link.split("/r/")[0], link
        self._random = random.Random(seed)
        self.seconds: dict[str, list[float]] = {"page": [], "video": [], "draft": [], "vote": []}
        self.cast: list[str] = []

    async def work(self, until: float) -> None:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            await asyncio.sleep(self._random.uniform(0, 10))  # Raters start at different times.
            page = await self._asked(session, "page", self._link)
            while time.monotonic() < until:
                item, video = _hidden(page, "item"), re.search(r'src="(/video/[^"]+)"', page)
                assert item, page
                if video:
                    part = {"range": "bytes=0-65535"}
                    await self._asked(session, "video", self._address + video[1], headers=part)
                sent = {"csrf": _hidden(page, "csrf"), "item": item, "step": "0"}
                for comment in ("half", "half a thought"):
                    await asyncio.sleep(self._random.uniform(1.5, 4))
                    draft = {**sent, "comment": comment}
                    await self._asked(session, "draft", f"{self._address}/draft", data=draft)
                await asyncio.sleep(self._random.uniform(1.5, 4))
                reply = await self._asked(
                    session, "vote", f"{self._address}/vote", data={**sent, **GOOD},
                    headers={"accept": "application/json"},
                )  # fmt: skip
                self.cast.append(item)
                page = await self._asked(session, "page", self._address + json.loads(reply)["next"])

    async def _asked(
        self, session: aiohttp.ClientSession, kind: str, address: str, **more: Any
    ) -> str:
        begun = time.perf_counter()
        way = session.post if "data" in more else session.get
        async with way(address, **more) as reply:
            body = await reply.read()
            assert reply.status < 300, (kind, reply.status, body)
        self.seconds[kind].append(time.perf_counter() - begun)
        return "" if kind == "video" else body.decode()


def _hidden(page: str, name: str) -> str:
    match = re.search(rf'name="{name}" value="([^"]*)"', page)
    return match[1] if match else ""


@pytest.mark.long
@pytest.mark.slow
def test_fifty_raters_vote_for_a_minute(tmp_path: Path, votes: str) -> None:
    """Raters vote at a human pace, with the server in its own process; -s prints the speed."""
    sample_videos.write(tmp_path / "a.mp4", sample_videos.cuts([48]), tone=2.0)
    drawn = [
        Question(question_id=f"q{i}", video_id="a", recipe="r", question="Why?", question_type="k",
                 options=("a", "b"), answer_index=0, evidence=(Span(0.5, 1.0),))
        for i in range(1000)
    ]  # fmt: skip
    video = Video(video_id="a", uri=str(tmp_path / "a.mp4"), duration=2.0)
    pq.write_table(schemas.table(drawn, Question), tmp_path / "questions.parquet")
    pq.write_table(schemas.table([video], Video), tmp_path / "videos.parquet")
    names = [f"r{i}" for i in range(RATERS)]
    served = Served(tmp_path, f"votes='{votes}'", f"names=[{','.join(names)}]")
    people = [Paced(served.links[name], seed) for seed, name in enumerate(names)]

    async def all_of_them() -> None:
        until = time.monotonic() + 60
        await asyncio.gather(*(person.work(until) for person in people))

    try:
        asyncio.run(all_of_them())
    finally:
        served.kill()
    box = Ballots(where=votes)
    cast = box.votes()
    cast_votes = sorted(
        (item, name) for name, who in zip(names, people, strict=True) for item in who.cast
    )
    assert cast_votes == sorted((f"{v.question_id}/{v.round}", v.rater) for v in cast)
    assert max(Counter(v.question_id for v in cast).values()) <= VOTES
    print(f"\n{len(cast)} votes")
    for kind in people[0].seconds:
        each = sorted(s for who in people for s in who.seconds[kind])
        middle, most = each[len(each) // 2], each[int(0.95 * len(each))]
        print(f"{kind}: {len(each)}, p50 {1000 * middle:.0f} ms, p95 {1000 * most:.0f} ms")
