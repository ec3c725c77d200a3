"""What endpoints send, with values of any type anywhere: read, or refused in a line; never a
traceback, and never money, times or vectors that are no numbers.

    python -m tests.actors.calls.test_reply_bodies 10000     # as many, and what came of them
"""

from __future__ import annotations

import copy
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from actors.calls.batch_route import _entry, _job, _lines
from actors.calls.endpoint import Endpoint
from actors.calls.reply_bodies import UNREADABLE, parse_transcription
from actors.hear.openai import shift_segments
from actors.llm.openai import OpenAI, OpenAIChat
from actors.stages.embed import Embeddings, EmbeddingsClient, vectors
from mustsee.calls.llm import Message, Reply, Request, Sampling
from mustsee.errors import BadRow, Transient
from mustsee.media.transcript import order_lines
from tests.support.table_mutants import HOSTILE, _places_in

ADDRESS, SECONDS = "http://127.0.0.1:1/v1", 30.0
LOGPROBS = [
    {"token": t, "logprob": -0.1, "top_logprobs": [{"token": "B", "logprob": -2.0}]} for t in "AB"
]
MESSAGE = {"role": "assistant", "content": "B", "refusal": None, "reasoning_content": "so"}
PARTS = [{"type": "thinking", "thinking": [{"text": "hm"}]}, {"type": "text", "text": "B"}]
CHAT = {
    "id": "x", "model": "m-1",
    "choices": [{"finish_reason": "stop", "message": MESSAGE, "logprobs": {"content": LOGPROBS}}],
    "usage": {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17,
              "completion_tokens_details": {"reasoning_tokens": 2}},
}  # fmt: skip
BODIES: dict[str, Mapping[str, Any]] = {
    "chat": CHAT,
    "parts": {**CHAT, "choices": [{"message": {**MESSAGE, "content": PARTS}}]},
    "vectors": {"model": "m-1", "usage": {"prompt_tokens": 4},
                "data": [{"index": n, "embedding": [0.5, float(n)]} for n in range(2)]},
    "transcription": {
        "text": "Hello there.", "language": "english",
        "words": [{"word": w, "start": 1.0 * n, "end": n + 0.9}
                  for n, w in enumerate(("Hello", "there"))],
        "segments": [{"start": 0.0, "end": 1.9, "text": " Hello there.", "avg_logprob": -0.2,
                      "no_speech_prob": 0.01}],
    },
    "batch": {"id": "b", "status": "completed", "metadata": {"mustsee": "t"}, "created_at": 1,
              "errors": {"data": [{"code": "x", "message": "no"}]}, "output_file_id": "f"},
    "batch line": {"custom_id": "k", "response": {"status_code": 200, "body": CHAT}},
}  # fmt: skip
ASKED = Request(
    prompt="p", digest="", messages=(Message("user", "one"), Message("user", "two")),
    sampling=Sampling(top_logprobs=2),
)  # fmt: skip


def mutated(body: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:
    """The body with up to three of its values replaced or removed."""
    mutant: Any = copy.deepcopy(body)
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = list(_places_in(mutant))
        if not places:
            break
        holder, key = rng.choice(places)
        if isinstance(holder, dict) and rng.random() < 0.2:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(rng.choice(HOSTILE))
    return mutant


def _strict(reply: Reply) -> None:
    for text in (reply.text, reply.thoughts, reply.model, *reply.by):
        text.encode()
    for tokens in (reply.tokens_in, reply.tokens_out, reply.tokens_thought, reply.tokens_cached):
        assert type(tokens) is int, tokens
        assert 0 <= tokens < 1e12, tokens
    assert 0 <= reply.usd < 1e9, reply.usd
    for place in reply.logprobs or ():
        for token, logprob in place.items():
            token.encode()
            assert type(logprob) is float, logprob
            assert logprob <= 0, logprob


def test_tokens_from_the_cache_of_prompts_have_their_price() -> None:
    chat = OpenAIChat(
        OpenAI(model="m", base_url=ADDRESS, key_env=None, prices={"m": (2.0, 8.0, 0.5)})
    )
    body = {
        "choices": [{"finish_reason": "stop", "message": {"content": "Yes."}}],
        "usage": {
            "prompt_tokens": 1000,
            "completion_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 800},
        },
    }
    reply = chat.read(ASKED, body)
    assert reply.tokens_cached == 800
    assert reply.usd == pytest.approx((200 * 2.0 + 800 * 0.5 + 10 * 8.0) / 1e6)


def readers() -> dict[str, Callable[[Any], object]]:
    """Kind of body -> its parser, with a check of the result by a strict reader."""
    prices = {"m": (1.0, 2.0)}
    chat = OpenAIChat(OpenAI(model="m", base_url=ADDRESS, prices=prices))
    endpoint = Endpoint(model="m", base_url=ADDRESS, prices=prices)
    embedding = EmbeddingsClient(Embeddings(endpoint=endpoint))

    def read_chat(body: Any) -> None:
        _strict(chat.read(ASKED, body))

    def read_vectors(body: Any) -> None:
        reply = embedding.read(ASKED, body)
        _strict(reply)
        rows = vectors(reply.text)
        assert len(rows) == 2
        assert all(map(math.isfinite, rows.ravel()))

    def read_transcription(body: Any) -> None:
        parsed = json.loads(json.dumps(parse_transcription(body, SECONDS)))
        for line in order_lines(shift_segments(parsed, 10.0, SECONDS)):
            for part in (line, *line.words):
                assert 10.0 <= part.start <= part.end <= 10.0 + SECONDS, part
            line.text.encode()

    def read_line(body: Any) -> None:
        for line in _lines(json.dumps(body).encode()):
            if (answer := _entry(line)) is not None and not answer.lost:
                read_chat(answer.body)

    return {
        "chat": read_chat, "parts": read_chat, "vectors": read_vectors, "batch": _job,
        "transcription": read_transcription, "batch line": read_line,
    }  # fmt: skip


def tried(count: int, seed: int = 0) -> Counter[str]:
    """The numbers of bodies of each kind that were parsed and refused."""
    rng, counts, read = random.Random(seed), Counter[str](), readers()
    for _ in range(count):
        kind = rng.choice([*BODIES])
        body = mutated(BODIES[kind], rng)
        refusals = UNREADABLE if kind == "transcription" else (Transient, BadRow)
        try:
            read[kind](body)
            counts[f"{kind} read"] += 1
        except refusals:
            counts[f"{kind} refused"] += 1
    return counts


@pytest.mark.usefixtures("key")
def test_bodies_with_values_of_any_type_are_parsed_strictly_or_refused() -> None:
    counts = tried(2000)
    assert all(counts[f"{kind} read"] and counts[f"{kind} refused"] for kind in BODIES)


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("kind", BODIES)
def test_a_valid_body_of_each_kind_is_parsed(kind: str) -> None:
    readers()[kind](BODIES[kind])


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("usage", [
    None, [], {"prompt_tokens": -5}, {"prompt_tokens": "12"},
    {"prompt_tokens": float("nan"), "completion_tokens": 10**400},
])  # fmt: skip
def test_invalid_token_counts_are_estimated(usage: Any) -> None:
    chat = OpenAIChat(OpenAI(model="m", base_url=ADDRESS, prices={"m": (1.0, 2.0)}))
    parsed, plain = (chat.read(ASKED, {**CHAT, "usage": u}) for u in (usage, {}))
    assert (parsed.tokens_in, parsed.tokens_out, parsed.usd) == (
        plain.tokens_in, plain.tokens_out, plain.usd,
    )  # fmt: skip
    assert parsed.usd > 0


def test_a_transcription_stays_within_its_audio() -> None:
    words = [{"word": "late", "start": 29.0, "end": 1e308}]
    parts = [{"start": 29.0, "end": 31.5, "text": "late"}, {"start": 31.5, "end": 33, "text": "no"}]
    parsed = parse_transcription({"text": "late", "words": words, "segments": parts}, SECONDS)
    assert [line.text for line in shift_segments(parsed, 0.0, SECONDS)] == ["late"]
    assert parsed["words"] == [{"word": "late", "start": 29.0, "end": 30.0}]


if __name__ == "__main__":
    for outcome, number in sorted(tried(*map(int, sys.argv[1:])).items()):
        print(f"{number:7} {outcome}")
