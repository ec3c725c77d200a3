"""Which recorded replies are stale."""

from __future__ import annotations

from actors.llm.replay import Recording
from mustsee.prompts import Prompts


def test_replies_of_a_changed_and_of_a_removed_prompt_are_stale() -> None:
    lines = [
        {"prompt": "facts/look", "digest": Prompts().digest("facts/look")},
        {"prompt": "facts/rank", "digest": "another"},
        {"prompt": "facts/gone", "digest": "another"},
        {"prompt": "facts/gone", "digest": "one more"},
    ]
    assert Recording(lines).stale() == {"facts/rank": 1, "facts/gone": 2}
