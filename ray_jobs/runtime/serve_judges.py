"""Starts judges on Ray Serve in the run's Ray, where stages ask for it (`judge.engine.start`)."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator, Iterable
from typing import Any
from urllib.parse import urlsplit

from actors.judge.served import NoJudge, Served, describe
from mustsee.errors import MustseeError, UserError
from ray_jobs.runtime.trials import walk_parts

APP = "judge"  # name of the application
LOCAL_HOSTS = ("127.0.0.1", "localhost")


@contextlib.contextmanager
def serve_judges(parts: Iterable[Any]) -> Generator[None]:
    """Serve the judge that parts ask to be started, unless one answers at its address already; it
    ends with the context. Each node of a cluster has a proxy at that address of its own.

    Raises UserError for an address of another machine and for a judge that refuses the key,
    MustseeError if the judge does not start.
    """
    asked = {
        item.url: item for part in parts for item in walk_parts(part)
        if isinstance(item, Served) and item.start is not None
    }  # fmt: skip
    started = [served for served in asked.values() if not _answers(served)]
    if len(started) > 1:
        raise UserError(f"judge.engine.start: one judge a run, not {len(started)}")
    if not started:
        yield
        return
    from ray import serve

    _start(started[0])
    try:
        yield
    finally:
        serve.delete(APP)


def _answers(served: Served) -> bool:
    with contextlib.suppress(NoJudge):
        describe(served)
        return True
    return False


def _start(served: Served) -> None:
    from ray import serve

    from serve.judge import JudgeServeSettings, build_app
    from serve.judge_guard import Keys

    address = urlsplit(served.url)
    if address.hostname not in LOCAL_HOSTS:
        raise UserError(
            f"judge.engine.url={served.url}: a judge that the job starts answers at 127.0.0.1 of "
            "each node; give such an address, or start the judge there by `serve run "
            "serve.judge:app`"
        )
    assert served.start is not None
    settings = JudgeServeSettings(
        judge=APP, replicas=served.replicas, cpus=0, gpus=served.gpus, tpus=served.tpus
    )
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    try:
        serve.start(
            proxy_location="EveryNode",
            http_options={"host": "127.0.0.1", "port": address.port or 80},
        )
        serve.run(build_app(served.start, settings, Keys.read("", "")), name=APP)
    except Exception as error:  # Ray raises plain exceptions here.
        raise MustseeError(f"the judge could not be served at {served.url}: {error}") from error
