"""Who gets which question, and that no vote is lost, doubled or one too many."""

import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mustsee.errors import UserError
from mustsee.raters.ballots import TRAINING, Ballots, Cast, Draft, Item

DAY = 86_400.0


@pytest.fixture
def box(tmp_path: Path) -> Ballots:
    return made(tmp_path, Item(question_id="q1", round="r", wanted=2), again("q2"))


def again(name: str, round: str = "r", **more: Any) -> Item:
    return Item(question_id=name, round=round, **{"wanted": 2, **more})


def made(folder: Path, *items: Item, **more: Any) -> Ballots:
    """A box with everybody invited."""
    box = Ballots(path=folder / "votes.sqlite", lease=100, **more)
    box.open(items)
    for name in ("ana", "ben", "dan", "eve", "zoe"):
        box.invite(name, DAY, senior=name == "zoe")
    return box


def test_a_token_is_kept_as_a_hash_and_ends(box: Ballots) -> None:
    token = box.invite("ana", expires=DAY)
    assert box.rater(token, now=DAY - 1) == "ana"
    assert box.rater(token, now=DAY) is None
    assert box.rater("", now=0) is None
    raw = b"".join(p.read_bytes() for p in box.path.parent.iterdir())
    assert token.encode() not in raw
    assert box.path.stat().st_mode & 0o077 == 0
    new = box.invite("ana", expires=2 * DAY)
    assert (box.rater(token, now=0), box.rater(new, now=DAY)) == (None, "ana")


def test_places_and_leases(box: Ballots) -> None:
    assert box.take("ana", 0) == "q1/r"
    assert box.take("ana", 50) == "q1/r"  # a reload gives the same
    assert box.take("ben", 0) == "q1/r"
    assert box.take("eve", 0) == "q2/r"  # both places of q1 are in hand
    assert box.take("eve", 101) == "q2/r"
    assert box.take("dan", 140) == "q1/r"  # ben's ran out at 100; ana's stands until 150
    assert not box.vote("q1/r", "ben", {"a": "1"}, 141)  # ana and dan have both places
    assert box.take("ben", 141) == "q2/r"
    assert box.vote("q1/r", "ana", {"a": "1"}, 145)
    assert box.vote("q1/r", "dan", {"a": "2"}, 145)
    assert box.take("ana", 146) is None  # eve and ben have q2
    assert box.progress("ana") == (1, 1)
    assert box.take("ana", 500) == "q2/r"
    assert box.vote("q2/r", "ana", {"a": "1"}, 501)
    assert box.progress("ana") == (2, 0)


def test_a_vote_counts_once_and_only_by_whom_it_was_given_to(box: Ballots) -> None:
    assert not box.vote("q1/r", "ana", {"a": "1"}, 0)
    box.take("ana", 0)
    assert not box.vote("q2/r", "ana", {"a": "1"}, 0)
    assert box.vote("q1/r", "ana", {"a": "1"}, 12.34)
    assert box.vote("q1/r", "ana", {"a": "2"}, 20)
    (vote,) = box.votes()
    assert (vote.answers, vote.seconds) == ({"a": "1"}, 12.3)


def test_drafts_outlive_the_server_and_keep_the_lease(box: Ballots) -> None:
    box.take("ana", 0)
    assert box.keep("q1/r", "ana", {"note": "ä"}, 90)
    later = Ballots(path=box.path, lease=100)
    assert later.open([again("other")]) == [again("q1"), again("q2")]  # what was asked goes on
    assert later.draft("q1/r", "ana") == Draft(answers={"note": "ä"})
    later.take("ben", 150)
    assert later.take("eve", 150) == "q2/r"  # ana's was prolonged by the draft
    assert not later.keep("q2/r", "ana", {}, 0)
    later.vote("q1/r", "ana", {"a": "1"}, 160)
    assert later.draft("q1/r", "ana") == Draft()


def test_a_step_that_was_answered_stands(box: Ballots) -> None:
    box.take("ana", 0)
    assert not box.advance("q2/r", "ana", 0, {"blind": 1}, 1)
    box.keep("q1/r", "ana", {"blind": "0"}, 1)
    assert box.advance("q1/r", "ana", 0, {"blind": 1}, 2)
    assert box.advance("q1/r", "ana", 0, {"blind": 2}, 3)  # sent twice
    box.keep("q1/r", "ana", {"answer": "3"}, 4)
    assert box.draft("q1/r", "ana") == Draft(step=1, kept={"blind": 1}, answers={"answer": "3"})
    assert (box.held("ana", 5), box.held("ana", 500)) == ("q1/r", None)
    assert box.opened("q1/r", "ana") == 0
    assert box.held("ana", 90) == "q1/r"  # who watches for long keeps it
    assert box.held("ana", 180) == "q1/r"


def test_training_comes_first_and_leaves_everybody_a_place(tmp_path: Path) -> None:
    drill = again("t", TRAINING, wanted=1_000_000)
    box = made(tmp_path, drill, again("q1", wanted=1))
    for name, right in (("ana", True), ("ben", False), ("eve", None)):
        assert box.take(name, 0) == "t/training"
        assert box.vote("t/training", name, {"a": "1"}, 1, correct=right)
    assert [box.training(name) for name in ("ana", "ben", "eve")] == [(1, 1), (0, 1), (0, 0)]
    assert (box.take("ana", 2), box.take("ben", 2)) == ("q1/r", None)


def test_a_later_round_opens_when_the_one_before_lets_the_question_pass(tmp_path: Path) -> None:
    passed: list[str] = []
    box = made(
        tmp_path, again("q1"), again("q2"), again("q1", "s", wanted=1, senior=True, after="r"),
        again("q2", "s", wanted=1, senior=True, after="r"),
        goes_on=lambda name, votes: passed.append(name) or votes[0].answers["a"] == "good",
    )  # fmt: skip
    assert box.take("zoe", 0) is None
    for question, said in (("q1/r", "good"), ("q2/r", "bad")):
        for name in ("ana", "ben"):
            assert box.take(name, 0) == question
            box.vote(question, name, {"a": said}, 1)
    assert passed == ["r", "r"]
    assert box.take("ana", 2) is None
    assert box.take("zoe", 2) == "q1/s"
    assert box.vote("q1/s", "zoe", {"a": "good"}, 3)
    assert box.take("zoe", 3) is None
    assert [v.rater for v in box.votes_on("q1", "r")] == ["ana", "ben"]


def test_nobody_meets_a_question_in_two_rounds(tmp_path: Path) -> None:
    box = made(tmp_path, again("q1", wanted=1), again("q1", "s", wanted=1, after="r"))
    box.take("ana", 0)
    box.vote("q1/r", "ana", {"a": "1"}, 1)
    assert (box.take("ana", 2), box.take("ben", 2)) == (None, "q1/s")


def test_what_is_dealt_to_one_is_for_nobody_else(tmp_path: Path) -> None:
    box = made(tmp_path, again("q1", wanted=1, rater="ben"))
    assert (box.take("ana", 0), box.take("ben", 0)) == (None, "q1/r")


def test_the_time_at_work_is_no_longer_than_the_time(box: Ballots) -> None:
    for name, active in (("ana", 5.0), ("ben", 900.0)):
        box.take(name, 0)
        box.vote("q1/r", name, {}, 20, active=active)
    assert [v.active for v in box.votes()] == [5.0, 20.0]


def test_a_file_of_another_kind_is_said(tmp_path: Path) -> None:
    path = tmp_path / "votes.sqlite"
    path.write_text("no database, but long enough to be taken for one" * 20)
    with pytest.raises(UserError, match="no ballot box"):
        Ballots(path=path).open([again("q1")])
    path.unlink()
    with sqlite3.connect(path) as base:
        base.execute("create table item (question text, place integer)")
    base.close()
    with pytest.raises(UserError, match="another version"):
        Ballots(path=path).open([again("q1")])


def test_votes_from_elsewhere_take_places_that_are_free(tmp_path: Path) -> None:
    box = made(tmp_path, again("q1"), again("q1", "s", wanted=1, after="r"))
    box.take("ana", 0)
    votes = [
        Cast(question_id="q1", round="r", rater=name, answers={"a": "1"}, seconds=3, at=0)
        for name in ("x", "x", "y", "z")
    ]
    assert box.take_in(votes, 1) == 1  # ana has the other place in hand
    assert box.take_in(votes, 200) == 1
    assert box.take_in(votes, 200) == 0
    assert [v.rater for v in box.votes()] == ["x", "y"]
    assert box.take("ana", 201) == "q1/s"


def test_many_at_once_leave_each_question_its_votes(tmp_path: Path) -> None:
    names = [f"q{i}" for i in range(10)]
    box = made(tmp_path, *(again(name, wanted=3) for name in names))
    for i in range(8):
        box.invite(f"r{i}", DAY)

    def rate(rater: str) -> None:
        while name := box.take(rater, 0):
            assert box.vote(name, rater, {"a": "1"}, 1)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(rate, [f"r{i}" for i in range(8)]))
    votes = box.votes()
    assert Counter(v.question_id for v in votes) == dict.fromkeys(names, 3)
    assert len({(v.question_id, v.rater) for v in votes}) == 30
