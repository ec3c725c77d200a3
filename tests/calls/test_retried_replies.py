"""A model of which the store has unparseable replies only is asked again where problems are."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from mustsee.calls.llm import Asker, Reply, Request, Sampling
from mustsee.errors import BadRow, Unparsed
from mustsee.prompts import Prompts
from mustsee.replies.forms import free


@dataclass
class Stored:
    """A model behind a store. `texts`: its replies, in order; the last one again and again."""

    texts: list[str]
    identity: str = "model"
    replies: dict[str, Reply] = field(default_factory=dict[str, Reply])
    paid: list[Request] = field(default_factory=list[Request])
    finish: str = "stop"

    async def complete(self, request: Request) -> Reply:
        key = request.key(self.identity)
        if key in self.replies:
            return replace(self.replies[key], cached=True)
        self.paid.append(request)
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        self.replies[key] = Reply(text=text, model="model", finish=self.finish)
        return self.replies[key]


def read_colour(reply: str) -> str:
    if reply not in ("RED", "BLUE"):
        raise Unparsed("it names no colour")
    return reply


def ask(model: Stored, folder: Path, *, retries_stored: bool) -> str:
    (folder / "colour.j2").write_text("{% block user %}Which colour?{% endblock %}")
    asker = Asker(
        llm=model, prompts=Prompts(str(folder)), tries=3, retries_stored=retries_stored,
        sampling=Sampling(max_tokens=10),
    )  # fmt: skip
    return asyncio.run(asker.ask("colour", free(read_colour)))


@pytest.mark.parametrize("finish", ["stop", "length", "refusal"])
def test_stored_replies_that_cannot_be_read_are_paid_for_once(finish: str, tmp_path: Path) -> None:
    model = Stored(["well", "well", "well", "RED"], finish=finish)
    for _ in range(2):
        with pytest.raises(BadRow, match="none of 3 replies"):
            ask(model, tmp_path, retries_stored=False)
    assert len(model.paid) == 3


def test_a_retry_asks_anew_and_pays_only_for_that(tmp_path: Path) -> None:
    model = Stored(["well", "well", "well", "RED"])
    with pytest.raises(BadRow):
        ask(model, tmp_path, retries_stored=False)
    assert ask(model, tmp_path, retries_stored=True) == "RED"
    assert len(model.paid) == 4
    assert model.paid[3].messages == model.paid[0].messages  # Without the earlier replies.
    assert ask(model, tmp_path, retries_stored=True) == "RED"
    assert len(model.paid) == 4


def test_each_retry_has_as_many_tries(tmp_path: Path) -> None:
    model = Stored(["well"])
    for times in (1, 2, 3):
        with pytest.raises(BadRow, match="none of 3 replies"):
            ask(model, tmp_path, retries_stored=True)
        assert len(model.paid) == 3 * times


def test_a_retry_goes_on_where_a_run_stopped(tmp_path: Path) -> None:
    """A run that was killed after the first of three tries has two left, and not six."""
    model = Stored(["well"])
    with pytest.raises(BadRow):
        ask(model, tmp_path, retries_stored=False)
    for request in model.paid[1:]:
        del model.replies[request.key(model.identity)]
    model.paid.clear()
    with pytest.raises(BadRow):
        ask(model, tmp_path, retries_stored=True)
    assert len(model.paid) == 2
