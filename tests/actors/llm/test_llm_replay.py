"""Which recorded replies are stale, and what is said of a request that was not recorded."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from actors.llm.replay import Player, Recording, hash_rows, hash_words, read
from mustsee.calls.llm import Message, Request
from mustsee.errors import BadRow
from mustsee.prompts import Prompts

ROOT = Path(__file__).resolve().parents[3]


def test_replies_of_a_changed_and_of_a_removed_prompt_are_stale() -> None:
    lines = [
        {"prompt": "facts/look", "digest": Prompts().digest("facts/look")},
        {"prompt": "facts/rank", "digest": "another"},
        {"prompt": "facts/gone", "digest": "another"},
        {"prompt": "facts/gone", "digest": "one more"},
    ]
    assert Recording(lines).stale() == {"facts/rank": 1, "facts/gone": 2}


def line(text: str, **fields: object) -> dict[str, object]:
    request = Request(prompt="facts/look", digest="", messages=(Message("user", text),))
    return {
        "prompt": request.prompt, "key": request.key(""), "words": hash_words(request),
        "rows": hash_rows(request.messages), **fields,
    }  # fmt: skip


def test_a_request_that_was_not_recorded_names_the_rows_that_differ() -> None:
    said = "Look at these lines.\n[1.0-2.0] Hi there.\n\n[{}] We bake bread.\nWhich are true?"
    recording = Recording([line("Something else.\nWhich are true?"), line(said.format("2.9-5.8"))])
    request = Request(
        prompt="facts/look", digest="", messages=(Message("user", said.format("2.9-6.0")),)
    )
    assert recording.reply(request) is None
    with pytest.raises(BadRow) as error:
        asyncio.run(Player("replay", recording).complete(request))
    assert "1 of its 4 rows are not in this request" in str(error.value)
    assert "has 1 others: '[2.9-6.0] We bake bread.'" in str(error.value)
    recorded = replace(request, messages=(Message("user", said.format("2.9-5.8")),))
    assert "its text is recorded, with another seed" in recording.difference(
        replace(recorded, seed=7)
    )
    assert "no reply to this prompt" in recording.difference(replace(request, prompt="facts/rank"))
    old = [{k: v for k, v in each.items() if k != "rows"} for each in recording.lines]
    assert "no reply to this prompt" in Recording(old).difference(request)


def test_the_recorded_replies_of_the_demo_hold_the_rows_of_their_requests() -> None:
    for name in ("facts", "neptune"):
        recording = read(f"{ROOT}/examples/replies/{name}.jsonl")
        assert all(len(each["rows"]) % 4 == 0 and each["rows"] for each in recording.lines)
