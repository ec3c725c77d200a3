"""The rater's page: one question with its video and form; the votes go into the ballots.

`python -m ray_jobs.rate` serves it. A rater's link has a token, and a cookie keeps the rater logged
in. Every page works without JavaScript; `rater.js` adds keys, drafts and the loop.
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

from mustsee.errors import Transient
from mustsee.raters.ballots import TRAINING, Ballots, CastVote, hash_token
from mustsee.raters.results import RatingResults
from serve.guard import RaterGuard, RequestRate, plain, whole_number
from serve.rater_show import Tasks, answer_text, clock
from serve.rater_video import ServedVideo, clip_reply, media

HERE = Path(__file__).parent / "rater_page"
STATIC = ("rater.js", "player.js", "video.js", "parts.js", "rater.css")
COOKIE = "mustsee_rater"
BOARD_COOKIE = "mustsee_board"


@dataclass(frozen=True, kw_only=True)
class RatingDesk:
    """The tasks and ballots of a rating page.

    `results`: computes the results, which need the key whose SHA-256 is `admin`. `trained`: least
    share of training items that a rater must get right. `clock`: Unix seconds.
    """

    tasks: Tasks
    ballots: Ballots
    results: Callable[[], RatingResults]
    admin: str
    trained: float = 0.0
    clock: Callable[[], float] = time.time
    hosts: Sequence[str] = ("127.0.0.1", "localhost")
    rate: RequestRate = field(default_factory=RequestRate)


class RefusedPage(Exception):
    """A request is refused with `reply`."""

    def __init__(self, reply: Response) -> None:
        super().__init__(reply.status_code)
        self.reply = reply


def create_app(desk: RatingDesk) -> Starlette:
    """The application. It answers only requests that name one of `desk.hosts`."""
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
            Route("/video/{key}/{number}", page.clip),
            Route("/results", page.results),
            Route("/board", page.board),
            Route("/board/{key}", page.enter_board),
            Route("/page/{name}", page.static),
        ],
        exception_handlers={Transient: _unavailable, RefusedPage: _reply_to_refused},
        middleware=[
            Middleware(RaterGuard),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(desk.hosts)),
        ],
    )


def time_ago(seconds: float) -> str:
    """A time before now in words: "12 s ago", "5 min ago", "3 h ago"."""
    if seconds < 90:
        return f"{max(seconds, 0):.0f} s ago"
    return f"{seconds / 60:.0f} min ago" if seconds < 5400 else f"{seconds / 3600:.0f} h ago"


def csrf(token: str) -> str:
    """The secret that a rater's forms must carry. It is derived from the token, which no other site
    has.
    """
    return hmac.new(token.encode(), b"csrf", hashlib.sha256).hexdigest()


class _Pages:
    """The handlers. Those that are not coroutines each run in their own thread."""

    def __init__(self, desk: RatingDesk) -> None:
        self._desk, self._tasks, self._ballots = desk, desk.tasks, desk.ballots
        templates = Environment(loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True)
        templates.filters["clock"] = clock
        self._page = templates.get_template("page.html.j2")
        self._board = templates.get_template("board.html.j2")

    def enter(self, request: Request) -> Response:
        """Handle the link: log in and redirect to an address without the token."""
        token, now = request.path_params["token"], self._desk.clock()
        rater = self._ballots.rater(token, now)
        if rater is None:
            return self._refuse_stranger(request)
        reply = RedirectResponse("/task", 303)
        seconds_left = int(self._ballots.expiry(rater) - now)
        reply.set_cookie(
            COOKIE, token, max_age=max(seconds_left, 1), httponly=True, samesite="lax",
            secure=request.url.scheme == "https",
        )  # fmt: skip
        return reply

    def task(self, request: Request) -> Response:
        """The rater's current item, the next one, or the last page."""
        rater = self._rater(request)
        if self._failed(rater):
            message = (
                "Too many of your practice answers differ from the agreed ones. Please contact the "
                "person who invited you."
            )
            return self._render(title="Practice is over", message=message, done=0)
        name = self._ballots.take(rater, self._desk.clock())
        if name is None:
            done, left = self._ballots.progress(rater)
            message = "You have answered everything. Thank you."
            if left:
                message = "Other raters have the last questions. Load this page again later."
            return self._render(title="Done", message=message, done=done)
        return self._item_page(request, rater, name)

    async def draft(self, request: Request) -> Response:
        return await self._handle_form(request, self._draft)

    async def vote(self, request: Request) -> Response:
        return await self._handle_form(request, self._vote)

    def feedback(self, request: Request) -> Response:
        """The agreed answers of a training item beside the rater's."""
        rater = self._rater(request)
        name = request.path_params["question"]
        training = self._tasks.training.get(name)
        votes = self._ballots.votes_on(name, TRAINING) if training else []
        own = [v for v in votes if v.rater == rater]
        if training is None or not own:
            return plain("there is no such question", 404)
        given, question = own[0].answers, self._tasks.questions[name]
        missed = training.missed_fields(given)
        fields = {f.name: f for f in self._tasks.form.rounds[0].fields}
        rows = [
            {
                "ask": fields[key].ask, "hit": key not in missed,
                "given": answer_text(fields[key], given.get(key), question),
                "agreed": answer_text(fields[key], value, question),
            }
            for key, value in training.answers.items()
        ]  # fmt: skip
        title = "Your answers match" if not missed else "Some answers differ"
        done, left = self._ballots.progress(rater)
        return self._render(
            title=title, feedback=rows, question=question, why=training.why, done=done, left=left
        )

    def video(self, request: Request) -> Response:
        """The file itself, whole or by byte ranges, for a rater whose current item shows it."""
        video, fps = self._allowed_video(request)
        return media(request, self._tasks.served.file(video.key) if fps is None else None)

    def clip(self, request: Request) -> Response:
        """An encoded clip of a video that browsers do not play, or that is shown at a low rate."""
        video, fps = self._allowed_video(request)
        return clip_reply(request, self._tasks.served, video.key, fps)

    def results(self, request: Request) -> Response:
        """The results as JSON. The request needs `Authorization: Bearer KEY`."""
        kind, _, key = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not self._is_admin(key):
            return self._refuse_stranger(request)
        return JSONResponse(self._desk.results().plain())

    def enter_board(self, request: Request) -> Response:
        """Handle the link of the dashboard: redirect to an address without the key."""
        key = request.path_params["key"]
        if not self._is_admin(key):
            return self._refuse_stranger(request)
        reply = RedirectResponse("/board", 303)
        secure = request.url.scheme == "https"
        reply.set_cookie(
            BOARD_COOKIE, key, httponly=True, samesite="lax", secure=secure, path="/board"
        )
        return reply

    def board(self, request: Request) -> Response:
        """The dashboard: progress, raters and what they hold, agreement."""
        if not self._is_admin(request.cookies.get(BOARD_COOKIE, "")):
            return self._refuse_stranger(request)
        now, results = self._desk.clock(), self._desk.results()
        raters = [
            {
                "name": rater.name,
                "senior": rater.senior,
                "expired": rater.expires <= now,
                "votes": rater.votes,
                "work": results.work.get(rater.name),
                "last": None if rater.last is None else time_ago(now - rater.last),
                "holds": [
                    {
                        "question": self._tasks.questions[name].question or name,
                        "since": time_ago(now - since),
                    }
                    for name, since in rater.holds.items()
                    if name in self._tasks.questions
                ],
            }
            for rater in self._ballots.raters(now)
        ]
        page = self._board.render(
            results=results.plain(), rounds=self._ballots.rounds(), raters=raters
        )
        return Response(page, media_type="text/html")

    def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        return FileResponse(HERE / name) if name in STATIC else plain("there is no such file", 404)

    def _is_admin(self, key: str) -> bool:
        return hmac.compare_digest(hash_token(key), self._desk.admin)

    def _rater(self, request: Request) -> str:
        """The rater's name. Raises RefusedPage for a request without a valid link."""
        now = self._desk.clock()
        rater = self._ballots.rater(request.cookies.get(COOKIE, ""), now)
        if rater is None:
            raise RefusedPage(self._refuse_stranger(request))
        if not self._desk.rate.spend(f"rater {rater}", now, self._desk.rate.rater):
            raise RefusedPage(plain("too many requests: wait a minute", 429))
        return rater

    def _refuse_stranger(self, request: Request) -> Response:
        who = f"address {request.client.host if request.client else ''}"
        if not self._desk.rate.spend(who, self._desk.clock(), self._desk.rate.stranger):
            return plain("too many requests: wait a minute", 429)
        return plain("your link is missing or has expired: ask for a new one", 401)

    def _allowed_video(self, request: Request) -> tuple[ServedVideo, float | None]:
        """The requested video, and its frames per second (None: as they are). Raises
        RefusedPage unless the rater's current step shows it.
        """
        rater = self._rater(request)
        item = self._ballots.current_item(rater, self._desk.clock())  # Watching counts as activity.
        step = self._ballots.draft(item, rater).step if item else 0
        video = self._tasks.served_video(item, step) if item else None
        if item is None or video is None or video.key != request.path_params["key"]:
            raise RefusedPage(plain("there is no such video", 404))
        return video, self._tasks.round(item).fps

    def _failed(self, rater: str) -> bool:
        """Whether all training items are answered, and too few of them right."""
        total = len(self._tasks.training)
        right, count = self._ballots.training(rater) if total else (0, 0)
        return count >= total > 0 and right / count < self._desk.trained

    async def _handle_form(self, request: Request, then: Callable[..., Response]) -> Response:
        rater = await run_in_threadpool(self._rater, request)
        try:
            text = (await request.body()).decode("utf-8")
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=200, errors="strict")
        except ValueError:
            return plain("not a form", 400)
        token = request.cookies.get(COOKIE, "")
        given: dict[str, str] = {}
        for name, value in pairs:  # Several ticks of one field come as pairs with the same name.
            given[name] = f"{given[name]},{value}" if name in given else value
        origin = request.headers.get("sec-fetch-site", "same-origin")
        sent = given.pop("csrf", "").encode()
        if origin not in ("same-origin", "none") or not hmac.compare_digest(
            sent, csrf(token).encode()
        ):
            return plain("this form does not come from your page: load the page again", 403)
        name, step = given.pop("item", ""), whole_number(given.pop("step", "0"))
        if name not in self._tasks.items or step is None:
            return plain("there is no such question", 404)
        return await run_in_threadpool(then, request, rater, name, step, given)

    def _draft(
        self, request: Request, rater: str, name: str, step: int, given: dict[str, str]
    ) -> Response:
        given.pop("active", None)
        current = self._ballots.draft(name, rater).step
        names = {f.name for f in self._tasks.step(name, current).fields}
        if step != current:
            return plain("this page is out of date: load it again", 409)
        if not set(given) <= names or any(len(value) > 8000 for value in given.values()):
            return plain("not a draft of this form", 422)
        if not self._ballots.keep(name, rater, given, self._desk.clock()):
            return plain("this question has been given to another rater", 409)
        return Response(status_code=204)

    def _vote(
        self, request: Request, rater: str, name: str, step: int, given: dict[str, str]
    ) -> Response:
        """Handle the answers to a step: go to the next one, or cast the vote at the last."""
        active, draft = _number(given.pop("active", "")), self._ballots.draft(name, rater)
        if step < draft.step:
            return self._go(request, "/task")
        if step > draft.step:
            return plain("this page is out of date: load it again", 409)
        span = self._tasks.visible_span(name)
        end = span.end if span else None
        question = self._tasks.question(name)
        answers, faults = self._tasks.step(name, step).read(given, question, end)
        faults = faults or self._tasks.form.faults({**draft.kept, **answers}, question)
        if faults:
            if "application/json" in request.headers.get("accept", ""):
                return JSONResponse({"faults": faults}, 422)
            return self._item_page(request, rater, name, given, faults)
        now, answers = self._desk.clock(), {**draft.kept, **answers}
        if not self._tasks.last(name, step):
            accepted, address = self._ballots.advance(name, rater, step, answers, now), "/task"
        else:
            question = self._tasks.items[name].question_id
            training = self._tasks.training.get(question)
            right = None if training is None else not training.missed_fields(answers)
            accepted = self._ballots.vote(name, rater, answers, now, active=active, correct=right)
            address = "/task" if training is None else f"/feedback/{question}"
        if not accepted:
            return plain("other raters have answered this question: go to the next one", 409)
        return self._go(request, address)

    def _go(self, request: Request, address: str) -> Response:
        if "application/json" in request.headers.get("accept", ""):
            return JSONResponse({"next": address})
        return RedirectResponse(address, 303)

    def _item_page(
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
        values = self._tasks.template_values(
            name, draft, draft.answers if given is None else given, votes
        )
        return self._render(
            422 if faults else 200, title=self._tasks.form.title, faults=faults,
            csrf=csrf(request.cookies[COOKIE]), done=done, left=left, seconds=seconds,
            **{**values, "map": json.dumps(values["map"])},
        )  # fmt: skip

    def _render(self, status: int = 200, **values: Any) -> Response:
        return Response(self._page.render(**values), status, media_type="text/html")


def _number(text: str) -> float | None:
    """The seconds that a page counted; None if it sent no number."""
    return float(text) if text.replace(".", "", 1).isdecimal() else None


def _reply_to_refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedPage)
    return error.reply


def _unavailable(request: Request, error: Exception) -> Response:
    """The reply while the database of the votes is unreachable or overloaded."""
    return plain("not saved: the server cannot reach its votes now; retry in a moment", 503)
