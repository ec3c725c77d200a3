"""The OpenAI-compatible client: its requests, and the errors reported before a job."""

from __future__ import annotations

import asyncio
import json
import pickle
import traceback
from dataclasses import replace

import pytest

from actors.calls.coordinator import Coordinator
from actors.calls.endpoint import CHARACTERS_PER_TOKEN
from actors.llm.openai import OpenAI, is_strict
from loopback.endpoint import Loopback, RefusedRequest
from loopback.replies import THOUGHT
from mustsee.calls.llm import Message, Request, Sampling
from mustsee.errors import BadRow, MustseeError, UserError
from mustsee.files.store import digest
from tests.support.openai_llm import FORM, asked, config, connect, once

pytestmark = pytest.mark.usefixtures("key")


def test_images_schema_sampling_and_usage_reach_the_endpoint(tmp_path):
    with Loopback(payloads=[], schemas="honoured") as server:
        request = asked(
            "What is it?",
            (b"\xff\xd8one", b"\xff\xd8two"),
            form=FORM,
            seed=7,
            sampling=Sampling(temperature=0.5, max_tokens=50, top_logprobs=2),
        )
        reply = once(server, request, extra_body={"top_k": 3})
        (payload,) = server.payloads
    assert json.loads(reply.text) == {"answer": "yes"}
    content = payload["messages"][0]["content"]
    assert [part["type"] for part in content] == ["image_url", "image_url", "text"]
    assert content[0]["image_url"]["url"].startswith("data:image/jpeg;base64,")
    assert payload["response_format"]["json_schema"]["schema"] == FORM
    assert payload["response_format"]["json_schema"]["strict"] is True
    assert (payload["seed"], payload["temperature"], payload["top_k"]) == (7, 0.5, 3)
    assert payload["max_completion_tokens"] == 50
    assert reply.usd == pytest.approx((reply.tokens_in + 2 * reply.tokens_out) / 1e6)
    assert reply.tokens_out > 0
    assert reply.logprobs is not None
    assert reply.logprobs[0]["other"] == -2.5


def test_a_reply_truncated_by_the_limit_is_marked():
    with Loopback(reply=lambda payload: "word " * 100) as server:
        reply = once(server, asked(sampling=Sampling(max_tokens=10)))
    assert reply.finish == "length"
    assert len(reply.text) == 40


@pytest.mark.parametrize("thinks", ["tags", "field"])
def test_reasoning_is_paid_for_and_kept_and_not_parsed(thinks, tmp_path):
    with Loopback(reply=lambda payload: "The answer is A.", thinks=thinks) as server:
        coordinator = Coordinator()
        reply = asyncio.run(connect(server, tmp_path, coordinator).complete(asked()))
        stored = asyncio.run(connect(server, tmp_path, coordinator).complete(asked()))
    assert reply.text == stored.text == "The answer is A."
    assert reply.thoughts == stored.thoughts == THOUGHT
    assert len(THOUGHT) / 5 < reply.tokens_thought < reply.tokens_out
    assert coordinator.snapshot().llm.total.tokens_thought == reply.tokens_thought
    assert reply.usd == pytest.approx((reply.tokens_in + 2 * reply.tokens_out) / 1e6)


@pytest.mark.parametrize("thinks", ["tags", "field"])
def test_reasoning_that_uses_all_tokens_is_not_a_reply(thinks):
    with Loopback(reply=lambda payload: "B", thinks=thinks) as server:
        short = asked(sampling=Sampling(max_tokens=100))
        cut, whole = once(server, short), once(server, short, thought_tokens=2000)
    assert (cut.text, cut.finish) == ("", "length")
    assert (whole.text, whole.finish) == ("B", "stop")


@pytest.mark.parametrize(
    ("message", "usage", "said", "thought", "tokens_out"),
    [
        ({"content": "B", "reasoning": "look"}, (5, 9, 14), "B", "look", 9),
        ({"content": "B"}, (5, 1, 26), "B", "", 21),  # Gemini: reasoning only in the total
        (
            {"content": [{"type": "thinking", "thinking": "look"}, {"type": "text", "text": "B"}]},
            (5, 9, 14), "B", '"look"', 9,
        ),
        ({"content": None, "reasoning_content": "look"}, (5, 9, 14), "", "look", 9),
    ],
)  # fmt: skip
def test_reasoning_is_found_wherever_endpoints_put_it(message, usage, said, thought, tokens_out):
    named = dict(zip(("prompt_tokens", "completion_tokens", "total_tokens"), usage, strict=True))
    body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": named}
    with Loopback() as server:
        chat = config(server).open()
        reply = chat.read(asked(), body)
    assert (reply.text, reply.thoughts, reply.tokens_out) == (said, thought, tokens_out)


def test_the_reasoning_effort_reaches_the_endpoint():
    with Loopback(payloads=[]) as server:
        once(server, asked(), reasoning_effort="low", thought_tokens=1000)
        (payload,) = server.payloads
    assert payload["reasoning_effort"] == "low"
    assert payload["max_completion_tokens"] == Sampling().max_tokens + 1000


def in_either_form(seed: int = 0, turns: int = 1) -> Request:
    """Return a request whose reply may be asked for by a schema or in lines."""
    question = Message("user", "Is it?", lines="ANSWER: yes or no")
    return replace(asked(form=FORM, seed=seed), messages=(question,) * turns)


def forms_sent(payloads) -> list[str]:
    """Return what says the form of the reply in each payload."""
    forms = []
    for payload in payloads:
        texts = {message["content"] for message in payload["messages"]}
        lined = {"Is it?\n\nANSWER: yes or no"}
        assert texts in ({"Is it?"}, lined)
        forms.append("schema" * ("response_format" in payload) + "lines" * (texts == lined))
    return forms


def test_an_endpoint_that_refuses_schemas_is_asked_for_lines():
    with Loopback(schemas="refused", payloads=[], reply=lambda payload: "yes") as server:
        llm = config(server).open()

        async def run():
            return [(await llm.complete(in_either_form(seed))).text for seed in range(3)]

        assert asyncio.run(run()) == ["yes"] * 3
        assert forms_sent(server.payloads) == ["schema", "lines", "lines", "lines"]
        with pytest.raises(BadRow, match="response_format"):
            once(server, asked(form=FORM), structured="json_schema")


@pytest.mark.parametrize(
    ("reply", "structured", "forms"),
    [
        ("ANSWER: yes", "auto", ["schema", "lines", "lines"]),
        ("ANSWER: yes", "json_schema", ["schema"] * 3),
        ("ANSWER: yes", "none", ["lines"] * 3),
        ('{"answer": "yes"}', "auto", ["schema"] * 3),
        ('Sure! {"answer": "yes"}', "auto", ["schema"] * 3),
        ('{"answer": "yes', "auto", ["schema"] * 3),
    ],
)
def test_an_endpoint_that_ignores_schemas_is_asked_for_lines(reply, structured, forms):
    with Loopback(schemas="ignored", payloads=[], reply=lambda payload: reply) as server:
        llm = config(server, structured=structured).open()

        async def run():
            for seed in range(3):
                await llm.complete(in_either_form(seed, turns=2))

        asyncio.run(run())
        assert forms_sent(server.payloads) == forms


def test_tokens_are_estimated_of_the_form_that_is_sent():
    def tokens(request: Request, structured: str) -> float:
        llm = OpenAI(model="m", key_env=None, structured=structured)
        return llm.estimate(request).tokens_in

    request, bare = in_either_form(), asked("Is it?")
    by_schema, in_lines = tokens(request, "auto"), tokens(request, "none")
    schema = len(json.dumps(FORM)) / CHARACTERS_PER_TOKEN
    lines = len("\n\nANSWER: yes or no") / CHARACTERS_PER_TOKEN
    assert by_schema - tokens(bare, "auto") == pytest.approx(schema)
    assert in_lines - tokens(bare, "none") == pytest.approx(lines)


def test_a_store_key_covers_the_lines():
    one = in_either_form()
    other = replace(one, messages=(replace(one.messages[0], lines="ANSWER: true or false"),))
    joined = replace(one, messages=one.messages_for(schema=False))
    assert len({request.key("m") for request in (one, other, joined, asked("Is it?"))}) == 4


def test_parameters_can_be_left_out():
    with Loopback(payloads=[]) as server:
        once(server, asked(), omit=("temperature", "seed"), token_limit="max_tokens")
        (payload,) = server.payloads
    assert not {"temperature", "seed", "max_completion_tokens"} & set(payload)
    assert payload["max_tokens"] == 4096


def test_a_wrong_key_is_the_users_mistake_and_is_not_shown():
    with Loopback(key="another") as server, pytest.raises(UserError) as caught:
        once(server, asked())
    assert "OPENAI_API_KEY" in str(caught.value)
    assert "secret" not in str(caught.value)


KEY = "sk-test-0123456789abcdef"


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 409, 413, 422, 429, 500, 502, 503])
@pytest.mark.parametrize("padding", [0, 270])  # the message is truncated at 300 characters
def test_a_key_in_an_error_message_is_not_shown(status, padding, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def refuse(payload):
        raise RefusedRequest(status, "x" * padding)

    with Loopback(reply=refuse, echoes=True) as server, pytest.raises(MustseeError) as caught:
        once(server, asked())
    output = "".join(traceback.format_exception(caught.value)) + repr(caught.value.args)
    assert "(key)" in output or status in (401, 403)
    assert KEY[:10] not in output


def test_a_key_in_a_reply_is_not_stored(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Loopback(reply=lambda payload: f"It is B, {KEY}", thinks="tags") as server:
        reply = once(server, asked())
    assert reply.text == "It is B, (key)"


def test_a_refused_key_may_come_as_status_400():
    def refuse(payload):
        raise RefusedRequest(400, "no such key", "invalid_api_key")

    with Loopback(reply=refuse) as server, pytest.raises(UserError, match="the key in"):
        once(server, asked())


@pytest.mark.parametrize(
    "refused",
    [
        RefusedRequest(400, "unknown response_format", "unsupported_parameter", "response_format"),
        RefusedRequest(400, "output_config.format.schema: For 'array' type, 'x' is not supported"),
        RefusedRequest(400, "Grammar error: Unimplemented keys", "invalid_request"),
    ],
)
def test_a_refused_schema_is_left_out(refused):
    def reply(payload):
        if "response_format" in payload:
            raise refused
        return "yes"

    with Loopback(reply=reply) as server:
        assert once(server, asked(form=FORM)).text == "yes"


@pytest.mark.parametrize("more", [{"timeout": 0}, {"max_connections": 0}, {"attempts": 0}])
def test_an_impossible_number_is_reported_before_the_job(more):
    with pytest.raises(UserError, match=next(iter(more))):
        OpenAI(model="m", **more).check(None)


def test_a_missing_key_is_reported_before_the_job(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    chosen = OpenAI(model="m")
    for ask in (lambda: chosen.check(None), chosen.open):
        with pytest.raises(UserError, match="OPENAI_API_KEY"):
            ask()
    replace(chosen, key_env=None).check(None)


def test_a_budget_without_a_price_is_reported_before_the_job():
    OpenAI(model="m", prices={"m": [1, 1]}).check(5.0)
    with pytest.raises(UserError, match="'m'"):
        OpenAI(model="m").check(5.0)


def test_hardware_and_prices_are_not_part_of_the_key():
    base = OpenAI(model="m")
    same = replace(base, timeout=1, max_connections=2, key_env="OTHER", prices={"m": [1, 1]})
    assert digest(base) == digest(same)
    others = [{"model": "n"}, {"extra_body": {"top_k": 1}}, {"omit": ["seed"]}, {"detail": "low"}]
    assert len({digest(base), *(digest(replace(base, **other)) for other in others)}) == 5
    assert pickle.loads(pickle.dumps(base)) == base
    assert "secret" not in base.identity + repr(base)


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (FORM, True),
        ({**FORM, "required": []}, False),
        ({**FORM, "additionalProperties": True}, False),
        ({"type": "array", "items": FORM}, True),
        ({"type": "array", "items": {"type": "object"}}, False),
    ],
)
def test_only_a_closed_schema_is_strict(schema, strict):
    assert is_strict(schema) is strict
