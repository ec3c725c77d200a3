"""The rater's page: one question with its film, the form below it, votes into the ballot box.

`python -m ray_jobs.rate` serves it. A rater comes by a link with a token, of which a cookie keeps
them logged in. Every page is whole without JavaScript; `rater.js` adds keys, drafts and the loop.
"""

from __future__ import annotations

import hashlib
import hmac
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

from mustsee.errors import MustseeError
from mustsee.raters.ballots import Ballots, hashed
from mustsee.raters.form import Form
from mustsee.raters.results import Results
from mustsee.records import Line, Question, Span, Video
from serve.rater_film import Films
from serve.rater_guard import Guard, Rate

HERE = Path(__file__).parent / "rater_page"
COOKIE = "mustsee_rater"
AROUND = 60.0  # seconds of transcript before and behind the evidence


@dataclass(frozen=True, kw_only=True)
class Desk:
    """What is rated. `results`: what the votes come to, for whoever has the key of which
    `admin` is the SHA-256. `clock`: seconds since 1970.
    """

    form: Form
    questions: Mapping[str, Question]
    videos: Mapping[str, Video]
    ballots: Ballots
    films: Films
    results: Callable[[], Results]
    admin: str
    clock: Callable[[], float] = time.time
    hosts: Sequence[str] = ("127.0.0.1", "localhost")
    rate: Rate = field(default_factory=Rate)


def create_app(desk: Desk) -> Starlette:
    """The application; it answers only requests that name one of `desk.hosts`."""
    page = _Pages(desk)
    return Starlette(
        routes=[
            Route("/r/{token}", page.enter),
            Route("/", page.task),
            Route("/task", page.task),
            Route("/draft", page.draft, methods=["POST"]),
            Route("/vote", page.vote, methods=["POST"]),
            Route("/film/{key}", page.film),
            Route("/film/{key}/{number:int}", page.stretch),
            Route("/results", page.results),
            Route("/page/{name}", page.static),
        ],
        middleware=[
            Middleware(Guard),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(desk.hosts)),
        ],
    )


def csrf(token: str) -> str:
    """What a form of this rater's must carry; no other site knows the token that it is made of."""
    return hmac.new(token.encode(), b"csrf", hashlib.sha256).hexdigest()


class _Pages:
    """The handlers. Those that wait for nothing run in a thread of their own each."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        room = Environment(loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True)
        room.filters["clock"] = clock
        self._page = room.get_template("page.html.j2")

    def enter(self, request: Request) -> Response:
        """The link: it logs in, and leaves the token out of the address."""
        token, now = request.path_params["token"], self._desk.clock()
        if self._desk.ballots.rater(token, now) is None:
            return self._stranger(request)
        reply = RedirectResponse("/task", 303)
        left = int(self._desk.ballots.invited()[self._desk.ballots.rater(token, now) or ""] - now)
        reply.set_cookie(
            COOKIE, token, max_age=max(left, 1), httponly=True, samesite="lax",
            secure=request.url.scheme == "https",
        )  # fmt: skip
        return reply

    def task(self, request: Request) -> Response:
        """The question in hand, or the next one, or thanks."""
        rater = self._who(request)
        if isinstance(rater, Response):
            return rater
        name = self._desk.ballots.take(rater, self._desk.clock())
        if name is None:
            done, left = self._desk.ballots.progress(rater)
            why = "Nothing is left for you: thank you."
            if left:
                why = "Others have the last questions in hand. Load this page again later."
            return self._shown(title="Done", message=why, done=done)
        return self._asked(request, rater, name, self._desk.ballots.draft(name, rater))

    async def draft(self, request: Request) -> Response:
        return await self._posted(request, self._draft)

    async def vote(self, request: Request) -> Response:
        return await self._posted(request, self._vote)

    def film(self, request: Request) -> Response:
        """The file itself, whole or by ranges."""
        rater = self._who(request)
        if isinstance(rater, Response):
            return rater
        path = self._desk.films.file(request.path_params["key"])
        return FileResponse(path) if path else _plain("there is no such film", 404)

    def stretch(self, request: Request) -> Response:
        """A stretch coded anew, for what no browser plays."""
        rater = self._who(request)
        if isinstance(rater, Response):
            return rater
        key, number = request.path_params["key"], request.path_params["number"]
        try:
            path = self._desk.films.stretch(key, number)
        except MustseeError as error:
            return _plain(f"this stretch cannot be shown: {type(error).__name__}", 422)
        return FileResponse(path) if path else _plain("there is no such stretch", 404)

    def results(self, request: Request) -> Response:
        """For whoever sends `Authorization: Bearer KEY`."""
        kind, _, key = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(hashed(key), self._desk.admin):
            return self._stranger(request)
        return JSONResponse(self._desk.results().plain())

    def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        return FileResponse(HERE / name) if name in ("rater.js", "rater.css") else _plain("no", 404)

    def _who(self, request: Request) -> str | Response:
        """The rater's name, or the reply to somebody who is none."""
        now = self._desk.clock()
        rater = self._desk.ballots.rater(request.cookies.get(COOKIE, ""), now)
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
        elsewhere = request.headers.get("sec-fetch-site", "same-origin") not in (
            "same-origin",
            "none",
        )
        sent = given.pop("csrf", "").encode()
        if elsewhere or not hmac.compare_digest(sent, csrf(token).encode()):
            return _plain("this form is not from your page: load it again", 403)
        name = given.pop("question", "")
        if name not in self._desk.questions:
            return _plain("there is no such question", 404)
        return await run_in_threadpool(then, request, rater, name, given)

    def _draft(self, request: Request, rater: str, name: str, given: dict[str, str]) -> Response:
        known = {f.name for f in self._desk.form.fields}
        if not set(given) <= known or any(len(value) > 8000 for value in given.values()):
            return _plain("this is no draft of this form", 422)
        if not self._desk.ballots.keep(name, rater, given, self._desk.clock()):
            return _plain("this question is no longer in your hands", 409)
        return Response(status_code=204)

    def _vote(self, request: Request, rater: str, name: str, given: dict[str, str]) -> Response:
        plain = "application/json" in request.headers.get("accept", "")
        if faults := self._desk.form.faults(given):
            if plain:
                return JSONResponse({"faults": faults}, 422)
            return self._asked(request, rater, name, given, faults)
        if not self._desk.ballots.vote(name, rater, given, self._desk.clock()):
            return _plain("others have answered this question meanwhile: go on to the next", 409)
        return JSONResponse({"next": "/task"}) if plain else RedirectResponse("/task", 303)

    def _asked(
        self,
        request: Request,
        rater: str,
        name: str,
        answers: Mapping[str, str],
        faults: Sequence[str] = (),
    ) -> Response:
        question = self._desk.questions[name]
        video = self._desk.videos.get(question.video_id)
        done, left = self._desk.ballots.progress(rater)
        return self._shown(
            422 if faults else 200,
            title=self._desk.form.title, form=self._desk.form, question=question,
            right=_right(question), film=self._desk.films.known(question.video_id),
            lines=nearby(video, question.evidence), answers=answers, faults=faults,
            csrf=csrf(request.cookies[COOKIE]), done=done, left=left, rater=rater,
        )  # fmt: skip

    def _shown(self, status: int = 200, **what: Any) -> Response:
        return Response(self._page.render(**what), status, media_type="text/html")


def nearby(video: Video | None, evidence: Sequence[Span]) -> list[Line]:
    """The transcript around the evidence; all of it where there is none."""
    lines = video.lines if video is not None and video.lines else ()
    if not evidence:
        return list(lines[:200])
    begin = min(s.start for s in evidence) - AROUND
    end = max(s.end for s in evidence) + AROUND
    return [line for line in lines if line.end >= begin and line.start <= end]


def clock(seconds: float) -> str:
    """1:02:03.4"""
    minutes, rest = divmod(round(seconds, 1), 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02d}:{rest:04.1f}" if hours else f"{minutes}:{rest:04.1f}"


def _right(question: Question) -> str:
    if question.answer_index is None or not question.options:
        return question.answer
    return question.options[question.answer_index]


def _plain(text: str, status: int) -> Response:
    return Response(text + "\n", status, media_type="text/plain")
