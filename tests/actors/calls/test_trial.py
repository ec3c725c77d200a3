"""The trial of an endpoint: its message for each fault, and that it costs nothing."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from actors.calls.endpoint import Endpoint, find_address_fault
from actors.calls.trial import refusal
from actors.llm.openai import OpenAI
from loopback.endpoint import Loopback
from mustsee.errors import Transient, UserError
from tests.support.openai_llm import asked as question

KEY = "sk-of-a-test-0123456789"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def test_a_listed_model_is_found_by_one_free_request() -> None:
    with Loopback(key=KEY, models=("qwen", "gemma")) as server:
        assert refusal(OpenAI(model="qwen", base_url=server.url)) is None
        assert (server.stats["models"], server.stats.get("chat", 0)) == (1, 0)


def test_a_missing_model_is_named_with_the_existing_ones() -> None:
    with Loopback(models=("gpt-4.1", "gpt-4.1-mini", "whisper-1")) as server:
        reason = refusal(OpenAI(model="gpt-4.1-mni", base_url=server.url)) or ""
        for part in ("'gpt-4.1-mni'", server.url, "did you mean 'gpt-4.1-mini'", "whisper-1"):
            assert part in reason
        assert "\n" not in reason
        assert "no such model" in (refusal(Endpoint(model="x", base_url=server.url)) or "")


def test_a_refused_key_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another-0123456789")
    with Loopback(key=KEY) as server:
        reason = refusal(OpenAI(model="m", base_url=server.url)) or ""
    assert "HTTP 401" in reason
    assert "OPENAI_API_KEY was refused" in reason
    assert "sk-another" not in reason
    with Loopback(key=KEY) as server:
        reason = refusal(OpenAI(model="m", base_url=server.url, key_env=None)) or ""
    assert "key_env=null sends none" in reason


def test_an_address_without_a_server_is_reported_in_seconds() -> None:
    with socket.socket() as taken:  # bound, but not listening
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        reason = refusal(OpenAI(model="m", base_url=f"http://127.0.0.1:{port}/v1")) or ""
    assert "connection refused" in reason
    assert "base_url=" in reason
    reason = refusal(OpenAI(model="m", base_url="http://no.such.host.invalid/v1")) or ""
    assert "no answer" in reason


@pytest.fixture
def bare(request: pytest.FixtureRequest) -> Iterator[tuple[str, list[str]]]:
    """A server that lists no models: its address, and its requests. `param`: path -> status and
    body.
    """
    requests: list[str] = []
    answers: dict[str, tuple[int, bytes]] = request.param

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            status, body = answers.get(self.path, (404, b"{}"))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            requests.append(self.rfile.read(int(self.headers["content-length"])).decode())
            self.do_GET()

        def log_message(self, *_: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", requests
        server.shutdown()


CHAT = {"/v1/chat/completions": (200, b'{"choices": []}')}


@pytest.mark.parametrize("bare", [CHAT], indirect=True)
def test_one_token_is_requested_if_nothing_is_listed(bare: tuple[str, list[str]]) -> None:
    url, requests = bare
    assert refusal(OpenAI(model="org/m", base_url=f"{url}/v1")) is None
    assert requests[:2] == ["/v1/models", "/v1/models/org%2Fm"]
    assert '"max_completion_tokens":1' in requests[2]
    assert "no such model or address" in (refusal(OpenAI(model="m", base_url=url)) or "")


@pytest.mark.parametrize(
    "bare",
    [{"/v1/models": (503, b"busy")}, {"/v1/models": (429, b"{}")}],
    indirect=True,
)
def test_a_busy_server_is_not_refused(bare: tuple[str, list[str]]) -> None:
    url, requests = bare
    assert refusal(OpenAI(model="m", base_url=f"{url}/v1")) is None
    assert requests == ["/v1/models"]


PAGE = b"<!DOCTYPE html><html><body>Log in</body></html>"
EMPTY = b'{"error": {"code": "insufficient_quota", "message": "You exceeded your quota"}}'
LISTED = (200, b'{"data": [{"id": "m"}]}')


@pytest.mark.parametrize("bare", [{"/v1/models": (200, PAGE)}], indirect=True)
def test_a_web_page_is_not_an_endpoint(bare: tuple[str, list[str]]) -> None:
    url, requests = bare
    reason = refusal(OpenAI(model="m", base_url=f"{url}/v1")) or ""
    assert "an HTML page; is base_url right? it usually ends in /v1" in reason
    assert requests == ["/v1/models"]


@pytest.mark.parametrize("bare", [{"/v1/models": (502, PAGE)}], indirect=True)
def test_a_server_that_stays_down_behind_its_proxy_is_reported(
    bare: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.calls.trial.PAUSE_S", 0.0)
    url, requests = bare
    reason = refusal(OpenAI(model="m", base_url=f"{url}/v1")) or ""
    assert "HTTP 502: an HTML page, 3 times" in reason
    assert requests == ["/v1/models"] * 3


@pytest.mark.parametrize(
    "bare", [{"/v1/models": LISTED, "/v1/chat/completions": (429, EMPTY)}], indirect=True
)
def test_an_account_without_credit_is_found_before_the_job(bare: tuple[str, list[str]]) -> None:
    url, _ = bare
    paid = OpenAI(model="m", base_url=f"{url}/v1", prices={"m": (1.0, 2.0)})
    reason = refusal(paid) or ""
    assert "has no credit left (You exceeded your quota)" in reason
    assert refusal(replace(paid, fallback=({"model": "n"},))) is None  # it is asked instead
    assert refusal(replace(paid, prices={"m": (0.0, 0.0)})) is None  # calls are free


@pytest.mark.parametrize(
    "bare",
    [{"/v1/models": (200, PAGE), "/v1/chat/completions": (200, PAGE)}],
    indirect=True,
)
def test_a_web_page_in_place_of_a_first_reply_ends_the_run_at_once(
    bare: tuple[str, list[str]],
) -> None:
    url, requests = bare
    with pytest.raises(UserError, match="HTML page; is base_url right"):
        asyncio.run(OpenAI(model="m", base_url=f"{url}/v1").open().complete(question()))
    assert len(requests) == 3  # the call's body, its path, the models


@pytest.mark.parametrize(
    "bare",
    [{"/v1/models": LISTED, "/v1/chat/completions": (200, PAGE)}],
    indirect=True,
)
def test_a_page_from_an_endpoint_that_lists_its_models_is_transient(
    bare: tuple[str, list[str]],
) -> None:
    url, _ = bare
    with pytest.raises(Transient, match="HTML page"):
        asyncio.run(OpenAI(model="m", base_url=f"{url}/v1").open().complete(question()))


@pytest.mark.parametrize(
    "bare",
    [
        {"/v1/models": LISTED, "/v1/chat/completions": (200, PAGE)},
        {"/v1/models": LISTED, "/v1/chat/completions": (200, b"hello")},
    ],
    indirect=True,
)
def test_a_listed_model_whose_trial_is_no_reply_is_refused_before_the_job(
    bare: tuple[str, list[str]],
) -> None:
    url, _ = bare
    paid = OpenAI(model="m", base_url=f"{url}/v1", prices={"m": (1.0, 2.0)})
    assert "not an OpenAI-compatible endpoint; check base_url=" in (refusal(paid) or "")


@pytest.mark.parametrize("url", ["api.openai.com/v1", "http://", "http://host:port/v1", "ftp://h/"])
def test_a_malformed_address_is_reported_without_a_request(url: str) -> None:
    assert "base_url=" in (find_address_fault(url) or "")
    with pytest.raises(UserError, match="expected http"):
        Endpoint(model="m", base_url=url).check(None)


def test_an_address_with_an_account_is_refused_with_what_to_do() -> None:
    with pytest.raises(UserError, match="key_env=NAME") as refused:
        Endpoint(model="m", base_url="http://user:password@127.0.0.1:1/v1").check(None)
    assert "password@" not in str(refused.value)
    assert "127.0.0.1:1/v1" in str(refused.value)


def test_a_model_that_only_its_own_route_names_is_found_without_a_call() -> None:
    with Loopback() as server:  # lists "loopback", and has a route for any model
        assert refusal(OpenAI(model="alias", base_url=server.url)) is None
        assert (server.counts["models"], server.counts["trials"]) == (2, 0)
