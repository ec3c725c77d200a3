"""The rater's page: one question with its video, the form below it, votes into the ballot box.

`python -m ray_jobs.rate` serves it. A rater comes by a link with a token, of which a cookie keeps
them logged in. Every page is whole without JavaScript; `rater.js` adds keys, drafts and the loop.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from mustsee.errors import MustseeError, Transient
from mustsee.raters.ballots import TRAINING, Ballots, CastVote, hash_token
from mustsee.raters.results import RatingResults
from serve.media import media
from serve.rater_guard import RaterGuard, RequestRate
from serve.rater_show import Tasks, answer_text, clock
from serve.rater_video import ServedVideo

HERE = Path(__file__).parent / "rater_page"
STATIC = ("rater.js", "player.js", "video.js", "parts.js", "rater.css")
COOKIE = "mustsee_rater"


@dataclass(frozen=True, kw_only=True)
class RatingDesk:
    """What is rated. `results`: what the votes come to, for whoever has the key of which
    `admin` is the SHA-256. `trained`: the share of training items that a rater must have right to
    go on. `clock`: seconds since 1970.
    """

    tasks: Tasks
    ballots: Ballots
    results: Callable[[], RatingResults]
    admin: str
    trained: float = 0.0
    clock: Callable[[], float] = time.time
    hosts: Sequence[str] = ("127.0.0.1", "localhost")
    rate: RequestRate = field(default_factory=RequestRate)


def create_app(desk: RatingDesk) -> Starlette:
    """The application; it answers only requests that name one of `desk.hosts`."""
    page = _Pages(desk)
    return Starlette(
        routes=[
            Route("/r/{token}", page.enter),
            Route("/", page.task),
            Route("/task", page.task),
            Route("/draft", page.draft, methods=["POST"]),
            Route("/vote", page.vote, methods=["POST"]),
            Route("/feedback/{question:path}", page.feedback),
            Route("/video/{key}", page.video),
            Route("/video/{key}/{number:int}", page.stretch),
            Route("/results", page.results),
            Route("/page/{name}", page.static),
        ],
        exception_handlers={Transient: _later},
        middleware=[
            Middleware(RaterGuard),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(desk.hosts)),
        ],
    )


def csrf(token: str) -> str:
    """What a form of this rater's must carry; no other site knows the token that it is made of."""
    return hmac.new(token.encode(), b"csrf", hashlib.sha256).hexdigest()


class _Pages:
    """The handlers. Those that wait for nothing run in a thread of their own each."""

    def __init__(self, desk: RatingDesk) -> None:
        self._desk, self._tasks, self._ballots = desk, desk.tasks, desk.ballots
        room = Environment(loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True)
        room.filters["clock"] = clock
        self._page = room.get_template("page.html.j2")

    def enter(self, request: Request) -> Response:
        """The link: it logs in, and leaves the token out of the address."""
        token, now = request.path_params["token"], self._desk.clock()
        rater = self._ballots.rater(token, now)
        if rater is None:
            return self._stranger(request)
        reply = RedirectResponse("/task", 303)
        left = int(self._ballots.expiry(rater) - now)
        reply.set_cookie(
            COOKIE, token, max_age=max(left, 1), httponly=True, samesite="lax",
            secure=request.url.scheme == "https",
        )  # fmt: skip
        return reply

    def task(self, request: Request) -> Response:
        """The item in hand, or the next one, or thanks."""
        rater = self._who(request)
        if isinstance(rater, Response):
            return rater
        if self._failed(rater):
            why = (
                "The questions for practice went too differently from what was agreed. "
                "Talk to whoever invited you."
            )
            return self._shown(title="Practice is over", message=why, done=0)
        name = self._ballots.take(rater, self._desk.clock())
        if name is None:
            done, left = self._ballots.progress(rater)
            why = "Nothing is left for you: thank you."
            if left:
                why = "Others have the last questions in hand. Load this page again later."
            return self._shown(title="Done", message=why, done=done)
        return self._asked(request, rater, name)

    async def draft(self, request: Request) -> Response:
        return await self._posted(request, self._draft)

    async def vote(self, request: Request) -> Response:
        return await self._posted(request, self._vote)

    def feedback(self, request: Request) -> Response:
        """What was agreed on a training item, beside what the rater said."""
        rater = self._who(request)
        if isinstance(rater, Response):
            return rater
        name = request.path_params["question"]
        known = self._tasks.training.get(name)
        votes = self._ballots.votes_on(name, TRAINING) if known else []
        mine = [v for v in votes if v.rater == rater]
        if known is None or not mine:
            return _plain("there is no such question", 404)
        given, question = mine[0].answers, self._tasks.questions[name]
        missed = known.missed_fields(given)
        fields = {f.name: f for f in self._tasks.form.rounds[0].fields}
        rows = [
            {
                "ask": fields[key].ask, "hit": key not in missed,
                "said": answer_text(fields[key], given.get(key), question),
                "agreed": answer_text(fields[key], value, question),
            }
            for key, value in known.answers.items()
        ]  # fmt: skip
        title = "As agreed" if not missed else "Not quite as agreed"
        done, left = self._ballots.progress(rater)
        return self._shown(title=title, feedback=rows, question=question, why=known.why, done=done,
                           left=left)  # fmt: skip

    def video(self, request: Request) -> Response:
        """The file itself, whole or by ranges, for whoever has a question about it in hand."""
        video = self._watched(request)
        if isinstance(video, Response):
            return video
        path = self._tasks.served.file(video[0].key) if video[1] is None else None
        return media(request, path) if path else _plain("there is no such video", 404)

    def stretch(self, request: Request) -> Response:
        """A stretch coded anew, for what no browser plays, or what is shown in few pictures."""
        video = self._watched(request)
        if isinstance(video, Response):
            return video
        try:
            path = self._tasks.served.stretch(video[0].key, request.path_params["number"], video[1])
        except MustseeError as error:
            return _plain(f"this stretch cannot be shown: {type(error).__name__}", 422)
        return media(request, path) if path else _plain("there is no such stretch", 404)

    def results(self, request: Request) -> Response:
        """For whoever sends `Authorization: Bearer KEY`."""
        kind, _, key = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(hash_token(key), self._desk.admin):
            return self._stranger(request)
        return JSONResponse(self._desk.results().plain())

    def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        return FileResponse(HERE / name) if name in STATIC else _plain("no", 404)

    def _who(self, request: Request) -> str | Response:
        """The rater's name, or the reply to somebody who is none."""
        now = self._desk.clock()
        rater = self._ballots.rater(request.cookies.get(COOKIE, ""), now)
        if rater is None:
            return self._stranger(request)
        if not self._desk.rate.spend(f"rater {rater}", now, self._desk.rate.rater):
            return _plain("too many requests: wait a minute", 429)
        return rater

    def _stranger(self, request: Request) -> Response:
        who = f"address {request.client.host if request.client else ''}"
        if not self._desk.rate.spend(who, self._desk.clock(), self._desk.rate.stranger):
            return _plain("too many requests: wait a minute", 429)
        return _plain("this needs a link of yours that has not expired; ask for a new one", 401)

    def _watched(self, request: Request) -> tuple[ServedVideo, float | None] | Response:
        """The video that the rater's step shows, where it is the one that is asked for, and at how
        many pictures a second.
        """
        rater = self._who(request)
        if isinstance(rater, Response):
            return rater
        item = self._ballots.current_item(rater, self._desk.clock())  # who watches is at it
        step = self._ballots.draft(item, rater).step if item else 0
        video = self._tasks.served_video(item, step) if item else None
        if item is None or video is None or video.key != request.path_params["key"]:
            return _plain("there is no such video", 404)
        return video, self._tasks.round(item).fps

    def _failed(self, rater: str) -> bool:
        """Whether all training items are done, and too few of them right."""
        most = len(self._tasks.training)
        right, count = self._ballots.training(rater) if most else (0, 0)
        return count >= most > 0 and right / count < self._desk.trained

    async def _posted(self, request: Request, then: Callable[..., Response]) -> Response:
        rater = await run_in_threadpool(self._who, request)
        if isinstance(rater, Response):
            return rater
        try:
            text = (await request.body()).decode("utf-8")
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=200, errors="strict")
        except ValueError:
            return _plain("this is no form", 400)
        token = request.cookies.get(COOKIE, "")
        given: dict[str, str] = {}
        for name, value in pairs:  # several ticks of one field come as pairs of one name
            given[name] = f"{given[name]},{value}" if name in given else value
        origin = request.headers.get("sec-fetch-site", "same-origin")
        sent = given.pop("csrf", "").encode()
        if origin not in ("same-origin", "none") or not hmac.compare_digest(
            sent, csrf(token).encode()
        ):
            return _plain("this form is not from your page: load it again", 403)
        name, step = given.pop("item", ""), given.pop("step", "0")
        if name not in self._tasks.items or not step.isdecimal():
            return _plain("there is no such question", 404)
        return await run_in_threadpool(then, request, rater, name, int(step), given)

    def _draft(
        self, request: Request, rater: str, name: str, step: int, given: dict[str, str]
    ) -> Response:
        given.pop("active", None)
        now = self._ballots.draft(name, rater).step
        known = {f.name for f in self._tasks.step(name, now).fields}
        if step != now:
            return _plain("this page is not the last one of yours: load it again", 409)
        if not set(given) <= known or any(len(value) > 8000 for value in given.values()):
            return _plain("this is no draft of this form", 422)
        if not self._ballots.keep(name, rater, given, self._desk.clock()):
            return _plain("this question is no longer in your hands", 409)
        return Response(status_code=204)

    def _vote(
        self, request: Request, rater: str, name: str, step: int, given: dict[str, str]
    ) -> Response:
        """Answers to a step: the next one, or a vote. What was sent before is not sent again."""
        active, draft = _number(given.pop("active", "")), self._ballots.draft(name, rater)
        if step < draft.step:
            return self._go(request, "/task")
        if step > draft.step:
            return _plain("this page is not the last one of yours: load it again", 409)
        stretch = self._tasks.stretch(name)
        end = stretch.end if stretch else None
        answers, faults = self._tasks.step(name, step).read(given, self._tasks.question(name), end)
        faults = faults or self._tasks.form.faults({**draft.kept, **answers})
        if faults:
            if "application/json" in request.headers.get("accept", ""):
                return JSONResponse({"faults": faults}, 422)
            return self._asked(request, rater, name, given, faults)
        now, answers = self._desk.clock(), {**draft.kept, **answers}
        if not self._tasks.last(name, step):
            done, where = self._ballots.advance(name, rater, step, answers, now), "/task"
        else:
            question = self._tasks.items[name].question_id
            known = self._tasks.training.get(question)
            right = None if known is None else not known.missed_fields(answers)
            done = self._ballots.vote(name, rater, answers, now, active=active, correct=right)
            where = "/task" if known is None else f"/feedback/{question}"
        if not done:
            return _plain("others have answered this question meanwhile: go on to the next", 409)
        return self._go(request, where)

    def _go(self, request: Request, where: str) -> Response:
        if "application/json" in request.headers.get("accept", ""):
            return JSONResponse({"next": where})
        return RedirectResponse(where, 303)

    def _asked(
        self,
        request: Request,
        rater: str,
        name: str,
        given: Mapping[str, str] | None = None,
        faults: Sequence[str] = (),
    ) -> Response:
        item, draft = self._tasks.items[name], self._ballots.draft(name, rater)
        votes: list[CastVote] = []
        if item.after is not None:
            votes = self._ballots.votes_on(item.question_id, item.after)
        done, left = self._ballots.progress(rater)
        seconds = self._tasks.round(name).seconds
        if seconds is not None:
            seconds -= self._desk.clock() - self._ballots.opened_at(name, rater)
        shown = self._tasks.template_values(
            name, draft, draft.answers if given is None else given, votes
        )
        return self._shown(
            422 if faults else 200, title=self._tasks.form.title, faults=faults,
            csrf=csrf(request.cookies[COOKIE]), done=done, left=left, seconds=seconds,
            **{**shown, "map": json.dumps(shown["map"])},
        )  # fmt: skip

    def _shown(self, status: int = 200, **what: Any) -> Response:
        return Response(self._page.render(**what), status, media_type="text/html")


def _number(text: str) -> float | None:
    """The seconds that a page counted; null where it counted none."""
    return float(text) if text.replace(".", "", 1).isdecimal() else None


def _later(request: Request, error: Exception) -> Response:
    """The database is away, or too many wait for it."""
    return _plain("not saved: the server cannot reach its votes now; try again in a moment", 503)


def _plain(text: str, status: int) -> Response:
    return Response(text + "\n", status, media_type="text/plain")
