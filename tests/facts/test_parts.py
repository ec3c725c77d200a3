"""A claim that holds is taken apart: with a part that is not so, twice, it falls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from mustsee.calls.llm import Reply, Request
from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.facts.parts import (
    NOT_WHOLLY,
    PART_LOOKS,
    UNREAD,
    group_shown,
    parts_form,
    share_words,
)
from mustsee.facts.settings import ClaimRules
from mustsee.records import Claim, Span
from mustsee.verify.conditions.seen import Condition
from tests.facts.test_deep import Model, claim, pair, parts_reply, rank_reply, weigh, weigh_reply

Looks = Mapping[int, Mapping[str, str]]  # verdicts on the last part of a claim, by look


def model_with(looks: Looks) -> Model:
    """A verifier for whom all claims hold, and all of their parts but those of `looks`."""

    def reply(request: Request) -> str:
        lines = parts_reply()(request).splitlines()
        for n, text in enumerate(request.variables["statements"]):
            if verdict := looks.get(request.seed, {}).get(text):
                lines[4 * n + 1] = f"PART {n + 1}: onto the counter | {verdict} | 96.5: a chair"
        return "\n".join(lines)

    return Model({"facts/weigh": weigh_reply(), "facts/parts": reply, "facts/rank": rank_reply})


CLAIMS = [claim(n, pair(n)) for n in range(4)]
TEXT = CLAIMS[2].text


@pytest.mark.parametrize(("verdict", "words"), [("WRONG", "wrong"), ("NOT SHOWN", "not shown")])
def test_a_claim_with_a_part_that_is_not_so_in_two_looks_falls(verdict: str, words: str) -> None:
    done, counts = weigh(CLAIMS, model_with({1: {TEXT: verdict}, 2: {TEXT: verdict}}))
    reason = f"a part of it is {words} (onto the counter)"
    assert [c.drop for c in done] == [None, None, reason, None]
    assert counts[NOT_WHOLLY] == 1
    assert counts["claims that hold"] == 3


def test_two_looks_must_find_fault_with_the_same_part() -> None:
    def reply(request: Request) -> str:
        part = {1: "onto the counter", 2: "with his hat"}[request.seed]
        replies = model_with({request.seed: {TEXT: "WRONG"}}).replies["facts/parts"](request)
        return replies.replace("onto the counter", part)

    model = replace(model_with({}), replies={**model_with({}).replies, "facts/parts": reply})
    assert {c.drop for c in weigh(CLAIMS, model)[0]} == {None}


@pytest.mark.parametrize(
    ("a", "b", "shared"),
    [
        ("he is slumped over the counter", "what he slumps over is the counter", True),
        ("the lever is under the seat", "she is in a hall", False),
        ("the same", "it is the same", True),
        ("soon", "again", False),
    ],
)
def test_parts_share_words(a: str, b: str, shared: bool) -> None:
    assert share_words(a, b) == share_words(b, a) == shared


def test_a_part_that_a_second_look_finds_is_so() -> None:
    model = model_with({1: {TEXT: "WRONG"}})
    done, counts = weigh(CLAIMS, model)
    assert {c.drop for c in done} == {None}
    assert counts[NOT_WHOLLY] == 0
    first, second = model.of("facts/parts")
    assert len(first.variables["statements"]) == 4
    assert second.variables["statements"] == (TEXT,), "only what is in doubt is looked at again"
    assert not set(first.variables["frames"]) & set(second.variables["frames"])


def test_only_claims_that_hold_in_certain_moments_are_taken_apart() -> None:
    model = model_with({})
    weigh([CLAIMS[0], claim(1, pair(1), wrong=True), claim(2, pair(2), kind="never")], model)
    (request,) = model.of("facts/parts")
    assert request.variables["statements"] == (CLAIMS[0].text,)
    assert request.messages[-1].images


@pytest.mark.parametrize("verdict", ["SHOWN", "WRONG"])
def test_the_parts_decide_where_no_two_looks_agree(verdict: str) -> None:
    """One look finds the claim, one does not, one cannot tell."""
    verdicts = {1: "HOLDS | 7.0-9.0", 2: "DOES NOT HOLD | NONE", 3: "CANNOT BE TOLD | NONE"}

    def differ(request: Request) -> str:
        lines = weigh_reply()(request).splitlines()
        for n, text in enumerate(request.variables["statements"]):
            if text == TEXT:
                lines[n] = f"STATEMENT {n + 1}: {verdicts[request.seed]} | so"
        return "\n".join(lines)

    model = model_with({1: {TEXT: verdict}, 2: {TEXT: verdict}})
    model = replace(model, replies={**model.replies, "facts/weigh": differ})
    (done,) = [c for c in weigh(CLAIMS, model)[0] if c.text == TEXT]
    assert done.shown == (Span(7.0, 9.0),)
    assert (done.drop is None) == (verdict == "SHOWN")
    (done,) = [c for c in weigh(CLAIMS, model, ClaimRules(parts=None))[0] if c.text == TEXT]
    assert done.drop == "no two looks agree whether it holds"


def test_without_frames_for_it_nothing_is_taken_apart() -> None:
    model = model_with({1: {TEXT: "WRONG"}, 2: {TEXT: "WRONG"}})
    done, _ = weigh(CLAIMS, model, ClaimRules(parts=None))
    assert not model.of("facts/parts")
    assert {c.drop for c in done} == {None}


@pytest.mark.parametrize(("lost", "drop"), [((1,), None), ((1, 2), UNREAD)])
def test_what_a_look_could_not_read_is_looked_at_again(
    lost: Sequence[int], drop: str | None
) -> None:
    def reply(request: Request) -> str:
        is_lost = request.seed in lost and TEXT in request.variables["statements"]
        return "I cannot see that." if is_lost else parts_reply()(request)

    model = replace(model_with({}), replies={**model_with({}).replies, "facts/parts": reply})
    done, counts = weigh(CLAIMS, model, ClaimRules(parts_together=1))
    assert [c.drop for c in done] == [None, None, drop, None]
    assert counts[PART_LOOKS] == len(lost)


def test_looks_of_which_none_can_be_read_are_a_problem() -> None:
    replies = {**model_with({}).replies, "facts/parts": lambda _: "No."}
    with pytest.raises(BadRow, match="facts/parts"):
        weigh(CLAIMS, Model(replies))


def shown_claim(number: int, *spans: tuple[float, float]) -> Claim:
    return replace(CLAIMS[0], claim_id=f"c{number}", shown=tuple(Span(a, b) for a, b in spans))


def test_claims_of_the_same_moments_share_a_look_as_long_as_its_frames_reach() -> None:
    see = Condition(condition="evidence", fps=2.0, most=64)  # 32 s
    near = [shown_claim(n, (5.0 * n, 5.0 * n + 6)) for n in range(5)]
    far = shown_claim(9, (100.0, 110.0), (200.0, 215.0))
    same = shown_claim(7, (30.0, 31.0), (205.0, 211.0))
    groups = group_shown([same, far, *near], see, 4)
    assert [[c.claim_id for c in group] for group in groups] == [
        ["c0", "c1", "c2", "c3"], ["c4", "c7"], ["c9"],
    ]  # fmt: skip
    groups = group_shown([same, far], see, 4)
    assert [[c.claim_id for c in group] for group in groups] == [["c7", "c9"]], "30 s in all"
    long = shown_claim(1, (0.0, 100.0))
    assert group_shown([long, *near[:1]], see, 4) == [[near[0]], [long]], "one alone in any case"


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ("PART 1: he | SHOWN | 3.0", "statement 1 is not taken apart"),
        ("PART 1: he | SHOWN | 3.0\nPART 1: goes | SHOWN | 3.0", "statement 2 is not taken apart"),
        ("PART 3: he | SHOWN | 3.0", "PART 3, but there are 2 statements"),
        ("PART 1: he | LIKELY | 3.0", "a part of statement 1"),
        ("PART 1: he", "PART 1 has 1 of 3 parts"),
        ("All of it is so.", "it has no row"),
    ],
)
def test_a_reply_that_leaves_a_part_open_is_not_parsed(reply: str, error: str) -> None:
    with pytest.raises(Unparsed, match=error):
        parts_form(2).read(Reply(text=reply, model="m").text)


def test_claims_of_a_look_are_at_least_one() -> None:
    with pytest.raises(UserError, match="parts_together=0"):
        ClaimRules(parts_together=0)
