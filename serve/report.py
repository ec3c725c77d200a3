"""A run's report with its videos: the page that the run wrote, and beside each question the
evidence to be played.

`python -m ray_jobs.report out=O serve=true` serves it, to whoever has its link. The page as a file
knows nothing of this: the script that plays is added as it is served.
"""

from __future__ import annotations

import hmac
import re
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
from mustsee.records import Video
from serve.media import media
from serve.rater_guard import POLICY, RaterGuard, RequestRate
from serve.rater_video import STEP, ServedVideos, part_of

HERE = Path(__file__).parent
STATIC = {
    "watch.js": HERE / "report_page/watch.js", "watch.css": HERE / "report_page/watch.css",
    "video.js": HERE / "rater_page/video.js",
}  # fmt: skip
COOKIE = "mustsee_report"
# The page's own word on what it may load, which is nothing, and the hash of its one script.
OWN = re.compile(
    r"""<meta http-equiv="Content-Security-Policy" content="[^"]*?('sha256-[^']+')[^"]*">"""
)
ADDED = (
    '<link rel="stylesheet" href="/page/watch.css">'
    '<script type="module" src="/page/watch.js"></script>'
)


@dataclass(frozen=True, kw_only=True)
class ReportApp:
    """`page`: the report. `token`: of the link. `clock`: seconds since 1970."""

    page: str
    videos: Mapping[str, Video]
    served: ServedVideos
    token: str = field(repr=False)
    hosts: Sequence[str] = ("127.0.0.1", "localhost")
    rate: RequestRate = field(default_factory=RequestRate)
    clock: Callable[[], float] = time


def create_app(watched: ReportApp) -> Starlette:
    """The application; it answers only requests that name one of `watched.hosts`."""
    pages = _Pages(watched)
    return Starlette(
        routes=[
            Route("/r/{token}", pages.enter),
            Route("/", pages.report),
            Route("/videos", pages.video_facts),
            Route("/video/{key}", pages.video),
            Route("/video/{key}/{number:int}", pages.stretch),
            Route("/page/{name}", pages.static),
        ],
        middleware=[
            Middleware(RaterGuard, policy=pages.policy),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(watched.hosts)),
        ],
    )


class _Pages:
    """The handlers, in a thread of their own each."""

    def __init__(self, watched: ReportApp) -> None:
        self._watched, self._served = watched, watched.served
        own = OWN.search(watched.page)
        script = own[1] if own else ""
        self.policy = POLICY.replace("script-src", f"script-src {script}").replace(
            "style-src", "style-src 'unsafe-inline'"
        )
        self._page = OWN.sub("", watched.page, count=1).replace("</body>", ADDED + "</body>")

    def enter(self, request: Request) -> Response:
        """The link: it leaves the token out of the address."""
        token = request.path_params["token"]
        if not hmac.compare_digest(token.encode(), self._watched.token.encode()):
            return self._stranger(request)
        reply = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        reply.set_cookie(COOKIE, token, httponly=True, samesite="lax", secure=secure)
        return reply

    def report(self, request: Request) -> Response:
        return self._refused(request) or Response(self._page, media_type="text/html")

    def video_facts(self, request: Request) -> Response:
        """What is known of the video of `?video=ID`: what video.js needs, or its `problem`."""
        if refused := self._refused(request):
            return refused
        name = request.query_params.get("video", "")
        video = self._served.find_video(name)
        if video is None:
            return _plain("there is no video of this video", 404)
        shown = part_of(self._watched.videos.get(name), video)
        told: dict[str, Any] = {**asdict(video), "every": STEP}
        del told["uri"]
        return JSONResponse(told | ({"begin": shown.start, "end": shown.end} if shown else {}))

    def video(self, request: Request) -> Response:
        """The file itself, whole or by ranges."""
        if refused := self._refused(request):
            return refused
        path = self._served.file(request.path_params["key"])
        return media(request, path) if path else _plain("there is no such video", 404)

    def stretch(self, request: Request) -> Response:
        """A stretch coded anew, of what no browser plays."""
        if refused := self._refused(request):
            return refused
        try:
            path = self._served.stretch(request.path_params["key"], request.path_params["number"])
        except MustseeError as error:
            return _plain(f"this stretch cannot be shown: {type(error).__name__}", 422)
        return media(request, path) if path else _plain("there is no such stretch", 404)

    def static(self, request: Request) -> Response:
        path = STATIC.get(request.path_params["name"])
        return FileResponse(path) if path else _plain("no", 404)

    def _refused(self, request: Request) -> Response | None:
        """The reply to somebody who has not come by the link."""
        given = request.cookies.get(COOKIE, "").encode()
        if hmac.compare_digest(given, self._watched.token.encode()):
            return None
        return self._stranger(request)

    def _stranger(self, request: Request) -> Response:
        who, rate = request.client.host if request.client else "", self._watched.rate
        if not rate.spend(who, self._watched.clock(), rate.stranger):
            return _plain("too many requests: wait a minute", 429)
        return _plain("this needs the link that the job printed", 401)


def _plain(text: str, status: int) -> Response:
    return Response(text + "\n", status, media_type="text/plain")
