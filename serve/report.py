"""Serves a run's report with its videos: the page of the run, with a player beside each question.

`python -m ray_jobs.report out=O serve=true` serves it to everyone who has its link. The file of the
page has no player and no ticks: their script is added when the page is served.
"""

from __future__ import annotations

import hmac
import re
from asyncio import to_thread
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import time
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from mustsee.errors import MustseeError
from mustsee.layouts.ticks import Tick, append_tick, read_ticks
from mustsee.records import Video
from serve.guard import POLICY, RaterGuard, RequestRate, is_foreign, plain
from serve.rater_video import STEP_S, ServedVideos, clip_reply, media, visible_span

HERE = Path(__file__).parent
STATIC = {
    "watch.js": HERE / "report_page/watch.js", "watch.css": HERE / "report_page/watch.css",
    "video.js": HERE / "rater_page/video.js",
}  # fmt: skip
COOKIE = "mustsee_report"
# What a body that is no tick raises; RecursionError: it is nested too deeply.
TICK_FAULTS = (
    ValueError, LookupError, TypeError, AttributeError, RecursionError, MustseeError
)  # fmt: skip
# The content policy in the page, which allows only its script, by hash.
PAGE_POLICY = re.compile(
    r"""<meta http-equiv="Content-Security-Policy" content="[^"]*?('sha256-[^']+')[^"]*">"""
)
PLAYER_TAGS = (
    '<link rel="stylesheet" href="/page/watch.css">'
    '<script type="module" src="/page/watch.js"></script>'
)


@dataclass(frozen=True, kw_only=True)
class ReportApp:
    """The report to serve. `page`: its HTML. `questions`: id -> number of options of those that may
    be ticked.
    `folder`: where ticks are kept; None: none are taken. `token`: secret of the link. `clock`: Unix
    seconds.
    """

    page: str
    videos: Mapping[str, Video]
    served: ServedVideos
    token: str = field(repr=False)
    questions: Mapping[str, int] = field(default_factory=dict[str, int])
    folder: Path | None = None
    hosts: Sequence[str] = ("127.0.0.1", "localhost")
    rate: RequestRate = field(default_factory=RequestRate)
    clock: Callable[[], float] = time


def create_app(report: ReportApp) -> Starlette:
    """The application. It answers only requests that name one of `report.hosts`."""
    pages = _Pages(report)
    return Starlette(
        routes=[
            Route("/r/{token}", pages.enter),
            Route("/", pages.report),
            Route("/videos", pages.video_facts),
            Route("/video/{key}", pages.video),
            Route("/video/{key}/{number}", pages.clip),
            Route("/ticks", pages.ticks),
            Route("/ticks", pages.take_tick, methods=["POST"]),
            Route("/page/{name}", pages.static),
        ],
        middleware=[
            Middleware(RaterGuard, policy=pages.policy),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(report.hosts)),
        ],
    )


class _Pages:
    """The handlers. Each runs in its own thread."""

    def __init__(self, report: ReportApp) -> None:
        self._report, self._served = report, report.served
        policy = PAGE_POLICY.search(report.page)
        script = policy[1] if policy else ""
        self.policy = POLICY.replace("script-src", f"script-src {script}").replace(
            "style-src", "style-src 'unsafe-inline'"
        )
        self._page = PAGE_POLICY.sub("", report.page, count=1).replace(
            "</body>", PLAYER_TAGS + "</body>"
        )

    def enter(self, request: Request) -> Response:
        """Handle the link: set the cookie and redirect to an address without the token."""
        token = request.path_params["token"]
        if not hmac.compare_digest(token.encode(), self._report.token.encode()):
            return self._refuse_stranger(request)
        reply = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        reply.set_cookie(COOKIE, token, httponly=True, samesite="lax", secure=secure)
        return reply

    def report(self, request: Request) -> Response:
        return self._refused(request) or Response(self._page, media_type="text/html")

    def video_facts(self, request: Request) -> Response:
        """The facts of `?video=ID` that video.js needs, or its `problem`."""
        if refused := self._refused(request):
            return refused
        name = request.query_params.get("video", "")
        video = self._served.find_video(name)
        if video is None:
            return plain("this video has no file", 404)
        span = visible_span(self._report.videos.get(name), video)
        answer: dict[str, Any] = {**asdict(video), "every": STEP_S}
        del answer["uri"]
        return JSONResponse(answer | ({"begin": span.start, "end": span.end} if span else {}))

    def video(self, request: Request) -> Response:
        """The file itself, whole or by byte ranges."""
        key = request.path_params["key"]
        return self._refused(request) or media(request, self._served.file(key))

    def clip(self, request: Request) -> Response:
        """An encoded clip of a video that browsers do not play."""
        key = request.path_params["key"]
        return self._refused(request) or clip_reply(request, self._served, key)

    def ticks(self, request: Request) -> Response:
        """The ticks so far: question id -> verdict, reason, and the words of an edited question."""
        if refused := self._refused(request):
            return refused
        if self._report.folder is None:
            return plain("ticks are kept in a local folder only", 404)
        ticks = read_ticks(self._report.folder)
        return JSONResponse({name: _tick_parts(tick) for name, tick in ticks.items()})

    async def take_tick(self, request: Request) -> Response:
        """Keep a tick `{question, verdict, reason}`, with `words` and `options` where the verdict
        is "edit". Only the page itself may send one.
        """
        if refused := self._refused(request):
            return refused
        if is_foreign(request):
            return plain("this tick does not come from the page: load the page again", 403)
        try:
            given = await request.json()
            tick = Tick(
                question_id=str(given["question"]),
                verdict=str(given["verdict"]),
                reason=_one_line(given.get("reason", "")),
                when=round(self._report.clock(), 3),
                question=_one_line(given.get("words", "")),
                options=[_one_line(option) for option in given.get("options", ())],
            )
        except TICK_FAULTS as error:
            return plain(f"this is no tick: {error}", 422)
        if self._report.folder is None or tick.question_id not in self._report.questions:
            return plain("there is no such question", 404)
        count = self._report.questions[tick.question_id]
        if tick.verdict == "edit" and len(tick.options) != count:
            return plain(f"this question has {count} options, not {len(tick.options)}", 422)
        await to_thread(append_tick, self._report.folder, tick)
        return JSONResponse(_tick_parts(tick))

    def static(self, request: Request) -> Response:
        path = STATIC.get(request.path_params["name"])
        return FileResponse(path) if path else plain("there is no such file", 404)

    def _refused(self, request: Request) -> Response | None:
        """The refusal of a request without the link's cookie; None if it may pass."""
        given = request.cookies.get(COOKIE, "").encode()
        if hmac.compare_digest(given, self._report.token.encode()):
            return None
        return self._refuse_stranger(request)

    def _refuse_stranger(self, request: Request) -> Response:
        who, rate = request.client.host if request.client else "", self._report.rate
        if not rate.spend(who, self._report.clock(), rate.stranger):
            return plain("too many requests: wait a minute", 429)
        return plain("this needs the link that the job printed", 401)


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


def _tick_parts(tick: Tick) -> list[Any]:
    words = [tick.question, list(tick.options)] if tick.verdict == "edit" else []
    return [tick.verdict, tick.reason, *words]
