"""Who gets which question, and that no vote is lost, doubled or one too many."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mustsee.raters.ballots import Ballots

DAY = 86_400.0


@pytest.fixture
def box(tmp_path: Path) -> Ballots:
    made = Ballots(path=tmp_path / "votes.sqlite", raters=2, lease=100)
    made.open(["q1", "q2"])
    return made


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
    assert box.take("ana", 0) == "q1"
    assert box.take("ana", 50) == "q1"  # a reload gives the same
    assert box.take("ben", 0) == "q1"
    assert box.take("eve", 0) == "q2"  # both places of q1 are in hand
    assert box.take("eve", 101) == "q2"
    assert box.take("dan", 140) == "q1"  # ben's ran out at 100; ana's stands until 150
    assert not box.vote("q1", "ben", {"a": "1"}, 141)  # ana and dan have both places
    assert box.take("ben", 141) == "q2"
    assert box.vote("q1", "ana", {"a": "1"}, 145)
    assert box.vote("q1", "dan", {"a": "2"}, 145)
    assert box.take("ana", 146) is None  # eve and ben have q2
    assert box.progress("ana") == (1, 1)
    assert box.take("ana", 500) == "q2"
    assert box.vote("q2", "ana", {"a": "1"}, 501)
    assert box.progress("ana") == (2, 0)


def test_a_vote_counts_once_and_only_by_whom_it_was_given_to(box: Ballots) -> None:
    assert not box.vote("q1", "ana", {"a": "1"}, 0)
    box.take("ana", 0)
    assert not box.vote("q2", "ana", {"a": "1"}, 0)
    assert box.vote("q1", "ana", {"a": "1"}, 12.34)
    assert box.vote("q1", "ana", {"a": "2"}, 20)
    (vote,) = box.votes()
    assert (vote.answers, vote.seconds) == ({"a": "1"}, 12.3)


def test_drafts_outlive_the_server_and_keep_the_lease(box: Ballots) -> None:
    box.take("ana", 0)
    assert box.keep("q1", "ana", {"note": "ä"}, 90)
    again = Ballots(path=box.path, raters=2, lease=100)
    assert again.open(["other"]) == ["q1", "q2"]  # what was asked goes on
    assert again.draft("q1", "ana") == {"note": "ä"}
    again.take("ben", 150)
    assert again.take("eve", 150) == "q2"  # ana's was prolonged by the draft
    assert not again.keep("q2", "ana", {}, 0)
    again.vote("q1", "ana", {"a": "1"}, 160)
    assert again.draft("q1", "ana") == {}


def test_many_at_once_leave_each_question_its_votes(tmp_path: Path) -> None:
    box = Ballots(path=tmp_path / "votes.sqlite", raters=3)
    names = box.open([f"q{i}" for i in range(10)])

    def rate(rater: str) -> None:
        while name := box.take(rater, 0):
            assert box.vote(name, rater, {"a": "1"}, 1)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(rate, [f"r{i}" for i in range(8)]))
    votes = box.votes()
    assert Counter(v.question_id for v in votes) == dict.fromkeys(names, 3)
    assert len({(v.question_id, v.rater) for v in votes}) == 30
