"""Refused parameters: each costs one call, whatever is in flight, and is remembered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from actors.calls import parameters
from actors.calls.coordinator import Coordinator
from actors.calls.gateway import open_model
from actors.calls.trial import refusal
from loopback.endpoint import Loopback, RefusedRequest
from loopback.refusals import FAMILIES, refuse_in_words_of
from mustsee.calls.llm import ProvenanceRecorder, Request, Sampling
from mustsee.errors import BadRow, Transient, UserError
from mustsee.files.store import Store
from tests.support.openai_llm import FORM, asked, config, connect, once

pytestmark = pytest.mark.usefixtures("key")
IN_FLIGHT = 64
ALL = (
    "temperature", "top_p", "seed", "max_completion_tokens", "logprobs", "response_format",
    "detail", "reasoning_effort", "stop", "n", "presence_penalty", "top_k",
)  # fmt: skip
MORE: dict[str, Any] = {
    "reasoning_effort": "low",
    "extra_body": {"stop": ["###"], "n": 1, "presence_penalty": 0.5, "top_k": 20},
}


def request(number: int = 0) -> Request:
    sampling = Sampling(max_tokens=64, top_logprobs=2)
    return asked(f"question {number}", (b"\xff\xd8",), form=FORM, sampling=sampling, seed=number)


def ask_many(server: Loopback, folder: Any, **more: Any) -> Sequence[Any]:
    async def run() -> Sequence[Any]:
        llm = connect(server, folder, Coordinator(), **(more or MORE))
        # As gateways connect models (`Gateway.connect`).
        llm._llm = open_model(config(server, **(more or MORE)), Store(str(folder)))
        calls = [llm.complete(request(n)) for n in range(IN_FLIGHT)]
        return await asyncio.gather(*calls, return_exceptions=True)

    return asyncio.run(run())


@pytest.mark.parametrize("family", FAMILIES)
def test_each_refused_parameter_costs_one_call_with_64_in_flight(family, tmp_path):
    refuse = refuse_in_words_of(family, ALL)
    with Loopback(refuse=refuse, latency=0.02, payloads=[]) as server:
        replies = ask_many(server, tmp_path / "store")
        assert [r for r in replies if isinstance(r, Exception)] == []
        assert server.counts["refused"] <= len(ALL)
        assert server.counts["chat"] == IN_FLIGHT
        last = server.payloads[-1]
        assert last["max_tokens"] == 64
        assert set(last) == {"model", "messages", "max_tokens"}
        left_out = {"temperature", "top_p", "seed", "logprobs", "detail", "stop"}
        assert left_out <= set(replies[-1].left_out)
        assert not {"response_format", "max_completion_tokens"} & set(replies[-1].left_out)
        # Another worker or run: nothing is learned anew.
        before = server.counts["refused"]
        again = asyncio.run(
            open_model(config(server, **MORE), Store(str(tmp_path / "store"))).complete(request(99))
        )
        assert server.counts["refused"] == before
        assert again.left_out == replies[-1].left_out


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ALL)
def test_nothing_but_the_refused_parameter_is_left_out(family, name):
    with Loopback(refuse=refuse_in_words_of(family, [name]), payloads=[]) as server:
        once(server, request(), **MORE)
        first, last = server.payloads[0], server.payloads[-1]
        assert server.counts["refused"] == 1
    lost = {name} - {"detail"} | ({"top_logprobs"} if name == "logprobs" else set())
    assert set(first) - set(last) == lost
    assert set(last) - set(first) == (
        {"max_tokens"} if name in first and "tokens" in name else set()
    )


def test_workers_that_start_later_read_what_the_first_has_learned(tmp_path):
    store = Store(str(tmp_path))
    with Loopback(refuse=refuse_in_words_of("openai", ALL[:4])) as server:
        early, late = open_model(config(server), store), open_model(config(server), store)
        asyncio.run(early.complete(asked("a")))
        lost = server.counts["refused"]
        asyncio.run(late.complete(asked("b")))  # opened before anything was learned
        assert server.counts["refused"] == lost == 4


def test_a_refusal_is_tried_again_after_a_month(tmp_path, monkeypatch):
    store = Store(str(tmp_path))
    with Loopback(refuse=refuse_in_words_of("openai", ["seed"])) as server:
        asyncio.run(open_model(config(server), store).complete(asked("a")))
        server.refuse = lambda payload: None
        now = time.time()
        monkeypatch.setattr(parameters.time, "time", lambda: now + 31 * 86400)
        reply = asyncio.run(open_model(config(server), store).complete(asked("b")))
    assert reply.left_out == ()


def test_what_was_left_out_is_part_of_the_provenance():
    with Loopback(refuse=refuse_in_words_of("openai", ["seed", "temperature"])) as server:
        recorder = ProvenanceRecorder(config(server).open())
        asyncio.run(recorder.complete(asked()))
    assert recorder.identity.endswith(" without seed, temperature")


def test_a_damaged_record_is_learned_anew(tmp_path):
    store = Store(str(tmp_path))
    with Loopback(refuse=refuse_in_words_of("openai", ["seed"])) as server:
        for content in (b"[]", b"{", b'{"refused": {"seed": 5}}', b'{"taken": 3}'):
            store.put(parameters.KIND, parameters._key(config(server)), content)
            assert asyncio.run(open_model(config(server), store).complete(asked())).text


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_an_endpoint_that_takes_no_limit_of_tokens_ends_the_run_in_its_words(name):
    refuse = refuse_in_words_of("openai", ["max_tokens", "max_completion_tokens"])
    with Loopback(refuse=refuse) as server, pytest.raises(UserError, match="is not supported"):
        once(server, asked(), token_limit=name)


def test_a_schema_that_was_demanded_is_not_left_out():
    with Loopback(refuse=refuse_in_words_of("openai", ["response_format"])) as server:
        with pytest.raises(BadRow, match="response_format"):
            once(server, asked(form=FORM), structured="json_schema")
        assert once(server, asked(form=FORM)).text


def test_a_slow_first_call_holds_the_others_up_for_a_moment_only(monkeypatch):
    monkeypatch.setattr(parameters, "WAIT_S", 0.2)

    async def run(server: Loopback) -> float:
        llm, began = config(server).open(), time.monotonic()
        await asyncio.gather(*(llm.complete(asked(str(n))) for n in range(8)))
        return time.monotonic() - began

    with Loopback(latency=1.0) as server:
        assert asyncio.run(run(server)) < 1.9


def test_calls_that_fail_for_other_reasons_do_not_go_one_by_one(monkeypatch):
    def reply(payload):
        raise RefusedRequest(500, "something broke")

    async def run(server: Loopback) -> list[Any]:
        llm = config(server).open()
        calls = [llm.complete(asked(str(n))) for n in range(IN_FLIGHT)]
        return await asyncio.gather(*calls, return_exceptions=True)

    began = time.monotonic()
    with Loopback(reply=reply, latency=0.2) as server:
        assert all(isinstance(each, Transient) for each in asyncio.run(run(server)))
    assert time.monotonic() - began < 0.2 * 10


def test_the_trial_learns_before_any_call(tmp_path):
    store = Store(str(tmp_path))
    chosen = ("temperature", "seed", "max_completion_tokens", "response_format")
    with Loopback(refuse=refuse_in_words_of("mistral", chosen), models=("m",)) as server:
        model = config(server)
        assert refusal(model, store=store) is None
        assert (server.counts["refused"], server.counts["chat"]) == (4, 0)
        asyncio.run(open_model(model, store).complete(asked(form=FORM)))
        assert server.counts["refused"] == 4
        tried = server.counts["trials"]
        assert refusal(replace(model, prices={}), store=store) is None  # free: nothing is unknown
        assert server.counts["trials"] == tried


def test_the_trial_says_in_the_endpoint_s_words_what_cannot_be_adapted(tmp_path):
    refuse = refuse_in_words_of("mistral", ["max_tokens", "max_completion_tokens"])
    with Loopback(refuse=refuse) as server:
        reason = refusal(config(server), store=Store(str(tmp_path))) or ""
    assert "Extra inputs are not permitted" in reason
    assert "max_tokens cannot be left out" in reason
