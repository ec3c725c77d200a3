"""A look answers each phrase exactly once, and nothing but the three verdicts is read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.errors import BadRow, Unparsed
from mustsee.facts.extract import make_fact
from mustsee.facts.look import NOT_SEEN, SEEN, UNSURE, look, verdicts_form
from mustsee.prompts import Prompts
from mustsee.records import Fact, Span

FORM = verdicts_form(3)
MEANT = (SEEN, NOT_SEEN, UNSURE)
HERE = Span(12.0, 18.0)


@pytest.mark.parametrize(
    "reply",
    [
        "1: SEEN\n2: NOT SEEN\n3: UNSURE",
        "1: SEEN\n2: NOT SEEN | another man: he pours\n3: UNSURE | it is dark",
        "Here is what I see:\n\n**1:** SEEN\n**2:** NOT SEEN | so\n**3:** UNSURE.\n\nThat is all.",
        "1. Seen\n2. Not seen – a cat\n3. Unsure (dark)",
        "3) UNSURE\n1) **SEEN**\n2) [NOT_SEEN]",
        "- Phrase 1: SEEN\n- Phrase 2: NOT SEEN\n- Phrase 3: UNSURE",
        "```\n1: SEEN\r\n2: NOT SEEN\r\n3: UNSURE\n```",
        "1：SEEN\n2：NOT-SEEN: another\n3：UNSURE",
    ],
)
def test_common_replies_are_parsed(reply: str) -> None:
    assert FORM.read(reply) == MEANT


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "1: SEEN\n2: NOT SEEN",
        "1: SEEN\n2: NOT SEEN\n3: UNSURE\n4: SEEN",
        "1: SEEN\n2: NOT SEEN\n3: UNSURE\n2: SEEN",
        "1: SEEN\n2: NOT SEEN\n3: UNSURE\n3: UNSURE",
        "1: SEEN\n2: NOT SEEN\n3: perhaps",
        "1: SEEN\n2: NOT SEEN\n3:",
        "1: SEEN or NOT SEEN\n2: NOT SEEN\n3: UNSURE",
        "1: SEEN, NOT SEEN\n2: NOT SEEN\n3: UNSURE",
        "1: SEEN / UNSURE\n2: NOT SEEN\n3: UNSURE",
        "1: PARTLY SEEN\n2: NOT SEEN\n3: UNSURE",
        "1: UNSEEN\n2: NOT SEEN\n3: UNSURE",
        "0: SEEN\n1: NOT SEEN\n2: UNSURE",
        "SEEN\nNOT SEEN\nUNSURE",
        json.dumps({"seen": [1], "not_seen": [2], "unsure": []}),
        json.dumps({"seen": [1, 2], "not_seen": [2], "unsure": [3]}),
        json.dumps({"seen": [1], "not_seen": ["2"], "unsure": [3]}),
        json.dumps({"seen": [1], "not_seen": [2, 3]}),
    ],
)
def test_other_replies_are_refused(reply: str) -> None:
    with pytest.raises(Unparsed):
        FORM.read(reply)


verdicts = st.lists(st.sampled_from(MEANT), min_size=1, max_size=24)
reasons = st.text("abc SENOTU|:-", max_size=30).map(lambda text: " ".join(text.split()))


@given(verdicts, reasons, st.randoms(use_true_random=False))
def test_verdicts_in_any_order_and_form_are_the_same(
    said: list[str], reason: str, rng: Random
) -> None:
    numbered = list(enumerate(said, 1))
    rng.shuffle(numbered)
    text = "\n".join(f"{n}: {verdict}{f' | {reason}' if reason else ''}" for n, verdict in numbered)
    names = {"seen": SEEN, "not_seen": NOT_SEEN, "unsure": UNSURE}
    lists = {name: [n for n, v in numbered if v == verdict] for name, verdict in names.items()}
    form = verdicts_form(len(said))
    assert form.read(text) == form.read(json.dumps(lists)) == tuple(said)


class Verifier:
    """Says SEEN of the phrases that it knows, NOT SEEN of others, UNSURE of dark ones."""

    identity = "verifier"

    def __init__(self, knows: Sequence[str]) -> None:
        self.knows, self.requests = knows, list[Request]()

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        phrases = [fact.phrase for fact in request.variables["phrases"]]
        lines = [
            f"{n}: {SEEN if p in self.knows else UNSURE if 'dark' in p else NOT_SEEN}"
            for n, p in enumerate(phrases, 1)
        ]
        return Reply(text="\n".join(lines), model="verifier")


def facts(count: int) -> list[Fact]:
    return [
        make_fact(
            "event", f"a {'dark' if n % 3 == 2 else 'red'} cat runs {n}", [Span(n, n + 1)], "m"
        )
        for n in range(count)
    ]


def look_with(verifier: Verifier, shown: Sequence[Fact], seed: int = 0):
    asker = Asker(llm=verifier, prompts=Prompts(), tries=1)
    asked = [(fact, HERE) for fact in shown]
    return asyncio.run(look(asked, (b"1", b"2", b"3"), (11.0, 13.0, 19.0), asker, seed=seed))


@given(st.integers(1, 24), st.integers(0, 99))
def test_verdicts_return_to_their_facts(count: int, seed: int) -> None:
    shown = facts(count)
    known = [fact.phrase for fact in shown[::3]]
    seen = look_with(Verifier(known), shown, seed)
    assert seen == [(True, False, None)[n % 3] for n in range(count)]


def test_phrases_are_shuffled_by_the_seed_and_the_moment() -> None:
    """And not by the order in which they are given."""
    shown, verifier = facts(12), Verifier(())
    for seed, given_facts in ((0, shown), (0, shown[::-1]), (1, shown)):
        look_with(verifier, given_facts, seed)
    orders = [tuple(f.fact_id for f in r.variables["phrases"]) for r in verifier.requests]
    own = tuple(fact.fact_id for fact in shown)
    assert orders[0] == orders[1] != orders[2]
    assert own not in orders
    assert {frozenset(order) for order in orders} == {frozenset(own)}


def test_the_moment_and_the_spacing_of_its_frames_are_said() -> None:
    verifier = Verifier(())
    cause = make_fact("cause", "the bell rings", [HERE], "m", of="a man runs")
    look_with(verifier, [cause])
    (request,) = verifier.requests
    text = request.messages[-1].text
    assert (request.variables["frames"], request.variables["span"]) == ((11.0, 13.0, 19.0), HERE)
    assert request.messages[-1].images == (b"1", b"2", b"3")
    assert "from 12.0 s to 18.0 s" in text
    assert "one picture about every 4.0 s" in text
    assert "1: (cause) a man runs, because the bell rings" in text
    within = (
        Prompts().render("facts/look", phrases=(cause,), moments=(), frames=(13.0,), span=HERE).user
    )
    assert "one picture about every" not in within


def test_phrases_of_several_moments_stand_with_theirs_in_the_order_of_time() -> None:
    verifier, shown = Verifier([facts(3)[0].phrase]), facts(3)
    later = Span(18.0, 24.0)
    asked = [(shown[0], later), (shown[1], HERE), (shown[0], HERE)]
    asker = Asker(llm=verifier, prompts=Prompts(), tries=1)
    seen = asyncio.run(look(asked, (b"1",), (20.0,), asker, seed=0))
    assert seen == [True, False, True]
    text = verifier.requests[0].messages[-1].text
    assert "from 12.0 s to 24.0 s" in text
    assert text.index("[12.0-18.0] (event)") < text.index("3: [18.0-24.0] (event) a red cat runs 0")


def test_a_look_without_readable_reply_raises() -> None:
    class Mute(Verifier):
        async def complete(self, request: Request) -> Reply:
            return Reply(text="I see nothing.", model="verifier")

    with pytest.raises(BadRow, match="number 1 is missing"):
        look_with(Mute(()), facts(2))
