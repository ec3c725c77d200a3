"""Assignment of questions to raters; no vote is lost, doubled or beyond the wanted number."""

import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mustsee.errors import Transient, UserError
from mustsee.raters.ballots import TRAINING, Ballots, CastVote, RatedItem, UnfinishedVote

DAY = 86_400.0
Make = Callable[..., Ballots]


@pytest.fixture
def make(votes: str) -> Make:
    """Return a function that makes boxes with five invited raters."""

    def make_box(*items: RatedItem, **more: Any) -> Ballots:
        box = Ballots(where=votes, lease=100, **more)
        box.open(items)
        for rater in ("ana", "ben", "dan", "eve", "zoe"):
            box.invite(rater, DAY, senior=rater == "zoe", unless=0)
        return box

    return make_box


@pytest.fixture
def box(make: Make) -> Ballots:
    return make(RatedItem(question_id="q1", round="r", wanted=2), rated_item("q2"))


def rated_item(name: str, round: str = "r", **more: Any) -> RatedItem:
    return RatedItem(question_id=name, round=round, **{"wanted": 2, **more})


def test_a_token_expires_and_a_new_one_replaces_it(box: Ballots) -> None:
    token = box.invite("ana", expires=DAY) or ""
    assert box.rater(token, now=DAY - 1) == "ana"
    assert box.rater(token, now=DAY) is None
    assert box.rater("", now=0) is None
    assert box.expiry("ana") == DAY
    assert box.invite("ana", expires=2 * DAY, unless=DAY - 1) is None
    assert box.rater(token, now=0) == "ana"
    new = box.invite("ana", expires=2 * DAY, unless=DAY) or ""
    assert (box.rater(token, now=0), box.rater(new, now=DAY)) == (None, "ana")


def test_only_the_owner_may_read_the_file_and_it_holds_no_token(tmp_path: Path) -> None:
    box = Ballots(where=tmp_path / "votes.sqlite")
    box.open([rated_item("q1")])
    token = box.invite("ana", expires=DAY) or ""
    raw = b"".join(p.read_bytes() for p in tmp_path.iterdir())
    assert b"ana" in raw
    assert token.encode() not in raw
    for end in ("", "-wal", "-shm"):
        assert (tmp_path / f"votes.sqlite{end}").stat().st_mode & 0o077 == 0, end


def test_a_box_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    files = [tmp_path / f"votes.sqlite{end}" for end in ("", "-wal", "-shm")]
    box = Ballots(where=files[0])
    box.open([rated_item("q1")])
    for file in files:
        file.chmod(0o644)
    Ballots(where=files[0]).open()
    assert [file.stat().st_mode & 0o077 for file in files] == [0, 0, 0]


def test_items_are_leased_in_order_while_they_have_places(box: Ballots) -> None:
    assert box.take("ana", 0) == "q1/r"
    assert box.take("ana", 50) == "q1/r"  # a reload gives the same
    assert box.take("ben", 0) == "q1/r"
    assert box.take("eve", 0) == "q2/r"  # both places of q1 are leased
    assert box.take("eve", 101) == "q2/r"
    assert box.take("dan", 140) == "q1/r"  # ben's lease ended at 100; ana's ends at 150
    assert not box.vote("q1/r", "ben", {"a": "1"}, 141)  # ana and dan have both places
    assert box.take("ben", 141) == "q2/r"
    assert box.vote("q1/r", "ana", {"a": "1"}, 145)
    assert box.vote("q1/r", "dan", {"a": "2"}, 145)
    assert box.take("ana", 146) is None  # eve and ben have q2
    assert box.progress("ana") == (1, 1)
    assert box.take("ana", 500) == "q2/r"
    assert box.vote("q2/r", "ana", {"a": "1"}, 501)
    assert box.progress("ana") == (2, 0)


def test_a_vote_counts_once_and_only_from_the_rater_with_the_lease(box: Ballots) -> None:
    assert not box.vote("q1/r", "ana", {"a": "1"}, 0)
    box.take("ana", 0)
    assert not box.vote("q2/r", "ana", {"a": "1"}, 0)
    assert box.vote("q1/r", "ana", {"a": "1"}, 12.34)
    assert box.vote("q1/r", "ana", {"a": "2"}, 20)
    (vote,) = box.votes()
    assert (vote.answers, vote.seconds) == ({"a": "1"}, 12.3)


def test_drafts_survive_a_server_restart_and_renew_the_lease(box: Ballots, make: Make) -> None:
    box.take("ana", 0)
    assert box.keep("q1/r", "ana", {"note": "ä"}, 90)
    later = make(rated_item("other"))
    assert later.open() == [rated_item("q1"), rated_item("q2")]  # existing items stay
    assert later.draft("q1/r", "ana") == UnfinishedVote(answers={"note": "ä"})
    later.take("ben", 150)
    assert later.take("eve", 150) == "q2/r"  # the draft renewed ana's lease
    assert not later.keep("q2/r", "ana", {}, 0)
    later.vote("q1/r", "ana", {"a": "1"}, 160)
    assert later.draft("q1/r", "ana") == UnfinishedVote()


def test_an_answered_step_is_final(box: Ballots) -> None:
    box.take("ana", 0)
    assert not box.advance("q2/r", "ana", 0, {"blind": 1}, 1)
    box.keep("q1/r", "ana", {"blind": "0"}, 1)
    assert box.advance("q1/r", "ana", 0, {"blind": 1}, 2)
    assert box.advance("q1/r", "ana", 0, {"blind": 2}, 3)  # sent twice
    box.keep("q1/r", "ana", {"answer": "3"}, 4)
    assert box.draft("q1/r", "ana") == UnfinishedVote(
        step=1, kept={"blind": 1}, answers={"answer": "3"}
    )
    assert (box.current_item("ana", 5), box.current_item("ana", 500)) == ("q1/r", None)
    assert box.opened_at("q1/r", "ana") == 0
    assert box.current_item("ana", 90) == "q1/r"  # requests for the video renew the lease
    assert box.current_item("ana", 180) == "q1/r"


def test_training_comes_first_and_has_a_place_for_every_rater(make: Make) -> None:
    training_item = rated_item("t", TRAINING, wanted=1_000_000)
    box = make(training_item, rated_item("q1", wanted=1))
    for name, right in (("ana", True), ("ben", False), ("eve", None)):
        assert box.take(name, 0) == "t/training"
        assert box.vote("t/training", name, {"a": "1"}, 1, correct=right)
    assert [box.training(name) for name in ("ana", "ben", "eve")] == [(1, 1), (0, 1), (0, 0)]
    assert (box.take("ana", 2), box.take("ben", 2)) == ("q1/r", None)


def test_a_later_round_opens_when_the_earlier_one_keeps_the_question(make: Make) -> None:
    complete: list[str] = []
    box = make(
        rated_item("q1"), rated_item("q2"), rated_item("q1", "s", wanted=1, senior=True, after="r"),
        rated_item("q2", "s", wanted=1, senior=True, after="r"),
        goes_on=lambda name, votes: complete.append(name) or votes[0].answers["a"] == "good",
    )  # fmt: skip
    assert box.take("zoe", 0) is None
    for question, answer in (("q1/r", "good"), ("q2/r", "bad")):
        for name in ("ana", "ben"):
            assert box.take(name, 0) == question
            box.vote(question, name, {"a": answer}, 1)
    assert complete == ["r", "r"]
    assert box.take("ana", 2) is None
    assert box.take("zoe", 2) == "q1/s"
    assert box.vote("q1/s", "zoe", {"a": "good"}, 3)
    assert box.take("zoe", 3) is None
    assert [v.rater for v in box.votes_on("q1", "r")] == ["ana", "ben"]


def test_a_rater_gets_a_question_in_one_round_only(make: Make) -> None:
    box = make(rated_item("q1", wanted=1), rated_item("q1", "s", wanted=1, after="r"))
    box.take("ana", 0)
    box.vote("q1/r", "ana", {"a": "1"}, 1)
    assert (box.take("ana", 2), box.take("ben", 2)) == (None, "q1/s")


def test_a_dealt_item_is_open_to_its_rater_only(make: Make) -> None:
    box = make(rated_item("q1", wanted=1, rater="ben"))
    assert (box.take("ana", 0), box.take("ben", 0)) == (None, "q1/r")


def test_active_time_is_at_most_the_time_since_opening(box: Ballots) -> None:
    for name, active in (("ana", 5.0), ("ben", 900.0)):
        box.take(name, 0)
        box.vote("q1/r", name, {}, 20, active=active)
    assert [v.active for v in box.votes()] == [5.0, 20.0]


def test_a_file_that_is_not_a_ballot_box_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "votes.sqlite"
    path.write_text("no database, but long enough to be taken for one" * 20)
    with pytest.raises(UserError, match="as a ballot box: file is not a database"):
        Ballots(where=path).open([rated_item("q1")])
    lease = "create table lease (item text, rater text, opened real, until real)"
    for tables in (
        "create table item (question text, place integer)",
        f"{lease}; create table vote (item text, rater text, answers text)",
        "create table other (thing text)",
    ):
        path.unlink()
        with sqlite3.connect(path) as base:
            base.executescript(tables)
        base.close()
        with pytest.raises(UserError, match="another version"):
            Ballots(where=path).open([rated_item("q1")])


def test_imported_votes_take_free_places_only(make: Make) -> None:
    box = make(rated_item("q1"), rated_item("q1", "s", wanted=1, after="r"))
    box.take("ana", 0)
    votes = [
        CastVote(question_id="q1", round="r", rater=name, answers={"a": "1"}, seconds=3, at=0)
        for name in ("x", "x", "y", "z")
    ]
    assert box.import_votes(votes, 1) == 1  # ana has a lease of the other place
    assert box.import_votes(votes, 200) == 1
    assert box.import_votes(votes, 200) == 0
    assert [v.rater for v in box.votes()] == ["x", "y"]
    assert box.take("ana", 201) == "q1/s"


SERVER_SCRIPT = """
import sys
from concurrent.futures import ThreadPoolExecutor
from mustsee.raters.ballots import Ballots, RatedItem

items = [RatedItem(question_id=f"q{i}", round="r", wanted=3) for i in range(12)]
box = Ballots(where=sys.argv[1])
box.open(items)
invited = []

def rate(rater):
    invited.extend([rater] if box.invite(rater, 86400.0, unless=0) else [])
    while name := box.take(rater, 0):
        assert box.vote(name, rater, {"a": "1"}, 1)
        assert box.vote(name, rater, {"a": "2"}, 1)

with ThreadPoolExecutor(4) as pool:
    list(pool.map(rate, [f"r{i}" for i in range(4)]))
print(*invited)
"""


@pytest.mark.slow
def test_concurrent_servers_give_each_question_its_number_of_votes(votes: str) -> None:
    """Four servers start at once without a database: tables, items, invitations, leases, votes."""
    command = [sys.executable, "-c", SERVER_SCRIPT, votes]
    servers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    outputs = [server.communicate() for server in servers]
    assert [error for _, error in outputs] == [""] * 4
    assert sorted(" ".join(output for output, _ in outputs).split()) == ["r0", "r1", "r2", "r3"]
    box = Ballots(where=votes)
    cast = box.votes()
    assert Counter(v.question_id for v in cast) == dict.fromkeys([f"q{i}" for i in range(12)], 3)
    assert len({(v.question_id, v.rater) for v in cast}) == 36
    assert {v.answers["a"] for v in cast} == {"1"}


# The tables of the version that supported SQLite only.
OLD_TABLES = """
create table rater (name text primary key, hash text unique, expires real, senior integer);
create table item (name text primary key, question text, round text, place integer,
  wanted integer, senior integer, rater text, after text, ready integer, votes integer default 0);
create index unfinished on item (place) where votes < wanted and ready = 1;
create index same on item (question);
create table lease (item text, rater text, opened real, until real, primary key (item, rater));
create table draft (item text, rater text, step integer, kept text, answers text,
  primary key (item, rater));
create table vote (item text, rater text, question text, answers text, seconds real,
  active real, at real, correct integer, primary key (item, rater));
create index met on vote (question, rater);
insert into rater values ('ana', 'x', 100, 0), ('ben', 'y', 100, 0);
insert into item values ('q1/r', 'q1', 'r', 0, 2, 0, null, null, 1, 1),
  ('q1/s', 'q1', 's', 1, 1, 1, null, 'r', 0, 0);
insert into lease values ('q1/r', 'ben', 3, 50);
insert into draft values ('q1/r', 'ben', 1, '{"blind": 1}', '{"a": "2"}');
insert into vote values ('q1/r', 'ana', 'q1', '{"a": "ä"}', 2.5, 1.5, 9, 1);
pragma user_version = 2;
"""


def test_a_file_of_an_earlier_version_can_be_continued(tmp_path: Path) -> None:
    path = tmp_path / "votes.sqlite"
    with sqlite3.connect(path) as base:
        base.executescript(OLD_TABLES)
    base.close()
    box = Ballots(where=path)
    assert box.has_items()
    assert [(i.name, i.senior, i.after) for i in box.open()] == [
        ("q1/r", False, None), ("q1/s", True, "r"),
    ]  # fmt: skip
    assert box.draft("q1/r", "ben") == UnfinishedVote(step=1, kept={"blind": 1}, answers={"a": "2"})
    assert box.take("ben", 10) == "q1/r"
    assert box.vote("q1/r", "ben", {"a": "1"}, 13)
    (first, second) = box.votes()
    assert (first.answers, first.correct, first.active) == ({"a": "ä"}, True, 1.5)
    assert (second.seconds, second.correct) == (10.0, None)
    box.invite("zoe", DAY, senior=True)
    assert box.take("zoe", 14) == "q1/s"


@pytest.mark.parametrize(
    "where",
    ["mysql://ana:verysecret@h/votes", "postgresql://ana:verysecret@h", "http://verysecret:x"],
)
def test_an_invalid_address_is_refused_without_showing_its_secrets(where: str) -> None:
    with pytest.raises(UserError, match="postgresql://USER@HOST/DATABASE") as caught:
        Ballots(where=where).open()
    assert "verysecret" not in str(caught.value)


def test_an_unreachable_database_is_reported_without_its_secrets() -> None:
    pytest.importorskip("psycopg")
    box = Ballots(where="postgresql://ana:verysecret@127.0.0.1:1/votes?sslpassword=othersecret")
    for reach, kind in ((box.open, UserError), (box.votes, Transient)):
        with pytest.raises(kind, match=r"postgresql://127\.0\.0\.1:1/votes'.*refused") as caught:
            reach()
        for word in ("verysecret", "othersecret", "ana"):
            assert word not in f"{caught.value} {box!r}".replace("mustsee", "")


def test_looking_for_a_box_does_not_create_one(votes: str) -> None:
    box = Ballots(where=votes)
    assert (box.has_items(), box.open(), box.has_items()) == (False, [], False)
    box.open([rated_item("q1")])
    assert box.has_items()


def test_answers_are_stored_unchanged(box: Ballots) -> None:
    odd = {
        "note": "ä \U0001f3ac \x00 \ud800 '; drop table vote; --",
        "parts": [[0.1, 2]],
        "n": None,
    }
    box.take("ana", 0)
    assert box.vote("q1/r", "ana", odd, 1)
    assert box.votes()[0].answers == odd


def test_a_round_ends_when_its_hours_are_spent(tmp_path: Path) -> None:
    box = Ballots(where=tmp_path / "votes.sqlite", hours={"timed": 0.02})  # 72 s
    box.open([
        RatedItem(question_id=f"q{n}", round=name, wanted=1) for name in ("timed", "free")
        for n in range(4)
    ])  # fmt: skip
    box.invite("ana", 1e6)
    now, done = 0.0, list[str]()
    while (item := box.take("ana", now)) is not None:
        done.append(item)
        now += 40.0
        box.vote(item, "ana", {"a": "b"}, now)
    assert done[:2] == ["q0/timed", "q1/timed"]
    assert set(done[2:]) == {"q2/free", "q3/free"}
