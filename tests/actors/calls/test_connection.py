"""What a request to an endpoint becomes: redirects, replies without end, errors of all kinds."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from typing import Any

import pytest

from actors.calls.trial import refusal
from actors.llm.openai import OpenAI
from mustsee.errors import (
    BadRow,
    Busy,
    KeyRefused,
    NoCredit,
    NoSuchModel,
    Transient,
    UserError,
    hide_secrets,
    secrets_in,
)
from mustsee.files.fetch import MAX_REPLY_BYTES
from mustsee.run.record import RunAbort
from tests.support.bare_server import BareServer, serving
from tests.support.openai_llm import asked

KEY = "sk-of-a-test-0123456789"
REASONS = {"reasons": ["violence"], "flagged_input": "...", "provider_name": "X"}
FLAGGED = "Your chosen model requires moderation and your input was flagged"
TOO_LONG = "This endpoint's maximum context length is 8192 tokens. You requested 9000 tokens."


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def ask(server: BareServer, **more: Any) -> Exception | str:
    llm = OpenAI(model="m", base_url=server.url, **more).open()
    try:
        return asyncio.run(llm.complete(asked())).text
    except Exception as error:
        return error


def answered(status: int, body: Any) -> Exception | str:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    with serving(BareServer(status=status, body=raw)) as server:
        return ask(server)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_neither_trial_nor_calls_follow_a_redirect(status: int) -> None:
    with serving(BareServer()) as other, serving(BareServer(status=status)) as here:
        here.headers = {"Location": f"{other.url}/models?key=abc"}
        tried = refusal(OpenAI(model="m", base_url=here.url)) or ""
        called = ask(here)
        assert isinstance(called, UserError)
        for said in (tried, str(called)):
            assert f"redirects to {other.url}/models, which is not followed" in said
            assert "base_url=" in said
            assert "abc" not in said
        assert other.requests == []
        assert all(sent == f"Bearer {KEY}" for _, _, sent in here.requests)


def test_a_reply_without_end_is_read_in_pieces_up_to_a_limit() -> None:
    bomb = gzip.compress(b" " * (300 << 20), 1)
    packed = BareServer(body=bomb, headers={"content-encoding": "gzip"})
    with serving(packed) as server:
        tracemalloc.start()
        error = ask(server)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert isinstance(error, Transient)
        assert "more than 64 MB" in str(error)
        assert peak < 3 * MAX_REPLY_BYTES
        assert "more than 64 mb" in (refusal(OpenAI(model="m", base_url=server.url)) or "")


def test_a_reply_that_says_itself_that_it_is_too_large_is_not_read() -> None:
    with serving(BareServer(body=b" " * (MAX_REPLY_BYTES + 1))) as server:
        assert "more than 64 MB" in str(ask(server))


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (403, {"message": FLAGGED, "code": 403, "metadata": REASONS}),
        (403, {"message": "Input blocked", "code": 403, "metadata": REASONS}),
        (400, {"message": "The response was filtered", "param": "prompt", "code": "content_filter",
               "innererror": {"code": "ResponsibleAIPolicyViolation"}}),
        (400, {"code": "data_inspection_failed", "message": "Input data may contain inappropriate "
               "content.", "type": "data_inspection_failed"}),
        (400, {"code": "content_policy_violation", "message": "Your request was rejected"}),
        (451, {"message": "The prompt was blocked by the safety filter"}),
    ],
)  # fmt: skip
def test_a_moderated_prompt_is_a_failed_call_with_its_text(status: int, error: Any) -> None:
    for sent, body in ((status, {"error": error}), (200, {"error": error, "choices": None})):
        got = answered(sent, body)
        assert isinstance(got, BadRow)
        assert not isinstance(got, UserError)
        assert str(error["message"]) in str(got)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (403, {"error": {"code": "unsupported_country_region_territory",
                         "message": "Country, region, or territory not supported"}}),
        (403, {"error": {"message": "Your account was flagged and access suspended"}}),
        (403, {"error": "Project has no access to model m"}),
        (403, b"Forbidden by the gateway"),
    ],
)  # fmt: skip
def test_another_403_ends_the_run_in_the_endpoint_s_words(status: int, body: Any) -> None:
    got = answered(status, body)
    assert isinstance(got, KeyRefused)
    said = body.decode() if isinstance(body, bytes) else body["error"]
    assert str(said["message"] if isinstance(said, dict) else said) in str(got)


def test_a_refused_key_within_a_run_is_a_wrong_configuration() -> None:
    for kind in ("UserError", "KeyRefused", "NotInstalled"):
        assert isinstance(RunAbort(error=kind, message="x").to_error(), UserError)
    for kind in ("MustseeError", "DiskFull", "Sequence", "no such"):
        assert not isinstance(RunAbort(error=kind, message="x").to_error(), UserError)


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ({"error": {"message": TOO_LONG, "code": 400}}, BadRow, TOO_LONG[:40]),
        ({"error": {"message": TOO_LONG, "code": "400"}}, BadRow, TOO_LONG[:40]),
        ([{"error": {"message": TOO_LONG, "code": 400}}], BadRow, TOO_LONG[:40]),
        ({"error": json.dumps({"error": {"message": TOO_LONG, "code": 400}})}, BadRow, "maximum"),
        ({"error": TOO_LONG}, BadRow, TOO_LONG[:40]),
        ({"error": {"message": "No auth", "code": 401}}, KeyRefused, "OPENAI_API_KEY"),
        ({"error": {"message": "x", "type": "authentication_error"}}, KeyRefused, "OPENAI_API_KEY"),
        ({"error": {"message": "slow down", "code": 429}}, Busy, "slow down"),
        ({"error": "Rate limit exceeded"}, Busy, "Rate limit"),
        ({"error": {"message": "bad gateway", "code": 502}}, Transient, "bad gateway"),
        ({"error": "something odd"}, Transient, "something odd"),
        ({"error": ["something", "odd"]}, Transient, "something odd"),
        ({"object": "error", "message": "no model", "type": "NotFoundError", "code": 404},
         NoSuchModel, "no model"),
        ({"error": {"message": "none left", "code": "insufficient_quota"}}, NoCredit, "none left"),
        ({"error": {"message": "pay", "code": 402}}, NoCredit, "pay"),
        ({"choices": [{"error": {"code": 502, "message": "upstream"}, "message": {"content": ""},
                       "finish_reason": "error"}]}, Transient, "upstream"),
        ({"choices": [], "error": {"code": 400, "message": TOO_LONG}}, BadRow, "maximum"),
        ({"detail": [{"msg": TOO_LONG}]}, BadRow, "maximum"),
        ({"base_resp": {"status_code": 1004, "status_msg": "login fail"}}, Transient, "login fail"),
        ({"response": {"error": {"code": 400, "message": TOO_LONG}}}, BadRow, "maximum"),
        (TOO_LONG, BadRow, "maximum"),
        ({"choices": []}, Transient, "no choice"),
    ],
)  # fmt: skip
def test_an_error_within_status_200_counts_as_the_status_that_it_carries(
    body: Any, kind: type[Exception], said: str
) -> None:
    got = answered(200, body)
    assert type(got) is kind, got
    assert said in str(got)


@pytest.mark.parametrize(
    "more",
    [{"error": None}, {"error": {}}, {"base_resp": {"status_code": 0}}, {"detail": "fine"}, {}],
)
def test_a_reply_beside_empty_errors_is_a_reply(more: Any) -> None:
    choice = {"finish_reason": "stop", "message": {"content": "B"}}
    assert answered(200, {"choices": [choice], **more}) == "B"


@pytest.mark.parametrize("finish", ["content_filter", "SAFETY", "prohibited_content"])
def test_a_filtered_reply_is_a_failed_call(finish: str) -> None:
    body = {"choices": [{"finish_reason": finish, "message": {"content": None}}]}
    got = answered(200, body)
    assert isinstance(got, BadRow)
    assert "content filter" in str(got)


def test_a_list_of_errors_is_read_as_its_first() -> None:
    got = answered(400, [{"error": {"code": 400, "message": TOO_LONG, "status": "INVALID"}}])
    assert isinstance(got, BadRow)
    assert str(got).endswith(TOO_LONG)


@pytest.mark.parametrize("name", ["key", "api_key", "api-key", "access_token", "sig", "Signature"])
def test_a_key_in_the_query_of_an_address_is_refused_and_hidden(name: str) -> None:
    address = secrets_in(f"https://example.com/v1?api-version=2&{name}=abcdefghij12345")
    with pytest.raises(UserError, match="key_env=NAME") as caught:
        OpenAI(model="m", base_url=address).check(None)
    for text in (str(caught.value), hide_secrets(address), hide_secrets("it was abcdefghij12345")):
        assert "abcdefghij12345" not in text
    assert hide_secrets("https://example.com/v1?api-version=2&q=a") == (
        "https://example.com/v1?api-version=2&q=a"
    )


def test_another_query_stays_at_the_end_of_the_address() -> None:
    body = {"choices": [{"finish_reason": "stop", "message": {"content": "B"}}]}
    with serving(BareServer(body=json.dumps(body).encode())) as server:
        llm = OpenAI(model="m", base_url=f"{server.url}/?api-version=2").open()
        assert asyncio.run(llm.complete(asked())).text == "B"
        assert server.requests[0][1] == "/v1/chat/completions?api-version=2"
