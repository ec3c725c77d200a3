"""A served page ends by Ctrl-C with a closing message, also where Ctrl-C is ignored."""

import os
import signal
import threading
import urllib.request
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from ray_jobs.runtime.web import port, serve_until_signal


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_ctrl_c_ends_the_page_with_a_closing_message(
    handler: Any, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    before = signal.signal(signal.SIGINT, handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    app = Starlette(routes=[Route("/", lambda _: PlainTextResponse("there"))])
    seen: list[bytes] = []
    with port("127.0.0.1", 0) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/"

        def look_and_stop() -> None:
            with urllib.request.urlopen(address, timeout=60) as reply:
                seen.append(reply.read())
            os.kill(os.getpid(), signal.SIGINT)

        looking = threading.Thread(target=look_and_stop)
        looking.start()
        code = serve_until_signal(
            app, listening, f"a page at {address}", "stopped: 3 votes are kept"
        )
        looking.join()
    assert (code, seen) == (130, [b"there"])
    output = capsys.readouterr()
    assert output.out == f"a page at {address}\n"
    assert output.err == "mustsee: stopped: 3 votes are kept\n"
