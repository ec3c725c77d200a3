"""The ballot box: raters, who has which item for how long, drafts and votes, in one SQLite file.

An item is a question in a round. Every change is one transaction that takes the file's write lock
first, so that two raters who ask at once never get the last place of an item both. Times are
arguments, in seconds since 1970.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mustsee.errors import UserError

VERSION = 2  # of the tables below
TABLES = """
create table if not exists rater (name text primary key, hash text unique, expires real,
  senior integer);
create table if not exists item (name text primary key, question text, round text, place integer,
  wanted integer, senior integer, rater text, after text, ready integer, votes integer default 0);
create index if not exists unfinished on item (place) where votes < wanted and ready = 1;
create index if not exists same on item (question);
create table if not exists lease (item text, rater text, opened real, until real,
  primary key (item, rater));
create table if not exists draft (item text, rater text, step integer, kept text, answers text,
  primary key (item, rater));
create table if not exists vote (item text, rater text, question text, answers text, seconds real,
  active real, at real, correct integer, primary key (item, rater));
create index if not exists met on vote (question, rater);
"""
TRAINING = "training"  # the round of items that everybody answers, and that count for nothing
EVERYBODY = 1_000_000
# What the rater may have: votes, and those who have it in hand (not the asker), leave a place, and
# they have not met the question in another round.
OPEN = """
select item.name from item where item.ready = 1 and item.votes < item.wanted and
  item.senior = (select senior from rater where name = :rater) and
  (item.rater is null or item.rater = :rater) and
  not exists (select 1 from vote where vote.question = item.question and vote.rater = :rater) and
  item.votes + (select count(*) from lease where lease.item = item.name and
    lease.rater != :rater and lease.until > :now) < item.wanted
"""
CAST = """
select item.question, item.round, vote.rater, answers, seconds, at, active, correct
from vote join item on item.name = vote.item
"""
HELD = "exists (select 1 from lease where lease.item = item.name and lease.rater = :rater)"


@dataclass(frozen=True, kw_only=True)
class Item:
    """A question in a round. `wanted`: votes. `senior`: for experienced raters only, else for the
    others only. `rater`: for nobody else. `after`: the round of the same question before it.
    """

    question_id: str
    round: str
    wanted: int
    senior: bool = False
    rater: str | None = None
    after: str | None = None

    @property
    def name(self) -> str:
        return f"{self.question_id}/{self.round}"


@dataclass(frozen=True, kw_only=True)
class Cast:
    """One vote. `seconds`: from when the item was first shown to the rater; `active`: those of them
    in which they were at it. `correct`: of a training item.
    """

    question_id: str
    round: str
    rater: str
    answers: Mapping[str, Any]
    seconds: float
    at: float
    active: float = 0.0
    correct: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Draft:
    """Where a rater is in an item: the step, the answers of the steps before (which stand), and
    those of this step so far, as sent.
    """

    step: int = 0
    kept: Mapping[str, Any] = field(default_factory=dict[str, Any])
    answers: Mapping[str, str] = field(default_factory=dict[str, str])


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Ballots:
    """`lease`: seconds for which an item stays a rater's after the last sign of life. `goes_on`:
    whether a question goes to the round after this one, which these votes complete.
    """

    path: Path
    lease: float = 1800.0
    goes_on: Callable[[str, Sequence[Cast]], bool] = lambda name, votes: True

    @contextmanager
    def _change(self) -> Generator[sqlite3.Connection]:
        """A transaction; all of it counts or nothing does."""
        base = sqlite3.connect(self.path, timeout=20, isolation_level=None)
        try:
            base.execute("begin immediate")
            yield base
            base.execute("commit")
        except BaseException:
            if base.in_transaction:
                base.execute("rollback")
            raise
        finally:
            base.close()

    def open(self, items: Sequence[Item] = ()) -> list[Item]:
        """Make the file where there is none, with the items that are asked, in their order. Where
        it asks some already, these stay, whatever is given. Returns those that are asked. Raises
        UserError for a file that is something else.
        """
        base = sqlite3.connect(self.path, timeout=20)
        try:
            base.execute("pragma journal_mode = wal")
            made = base.execute("select count(*) from sqlite_master").fetchone()[0]
            if made and base.execute("pragma user_version").fetchone()[0] != VERSION:
                raise UserError(
                    f"{str(self.path)!r} is of another version of this job, or no ballot box: "
                    "give another folder="
                )
            base.executescript(TABLES)
            base.execute(f"pragma user_version = {VERSION}")
        except sqlite3.DatabaseError as error:
            raise UserError(f"{str(self.path)!r} is no ballot box: {error}") from error
        finally:
            base.close()
        self.path.chmod(0o600)
        with self._change() as base:
            if not base.execute("select 1 from item limit 1").fetchone():
                base.executemany(
                    "insert into item (name, question, round, place, wanted, senior, rater, after,"
                    " ready) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        (i.name, i.question_id, i.round, place, i.wanted, i.senior, i.rater,
                         i.after, i.after is None)
                        for place, i in enumerate(items)
                    ],
                )  # fmt: skip
        columns = "question, round, wanted, senior, rater, after"
        return [
            Item(
                question_id=q, round=r, wanted=w, senior=bool(s), rater=who, after=a
            )
            for q, r, w, s, who, a in self._rows(f"select {columns} from item order by place")
        ]  # fmt: skip

    def invite(self, name: str, expires: float, *, senior: bool = False) -> str:
        """A new token for a rater, of which only a hash is kept; the old one ends."""
        token = secrets.token_urlsafe(32)
        with self._change() as base:
            base.execute(
                "insert into rater values (?, ?, ?, ?) on conflict (name) do update set "
                "hash = excluded.hash, expires = excluded.expires, senior = excluded.senior",
                (name, hashed(token), expires, senior),
            )
        return token

    def invited(self) -> dict[str, float]:
        """Rater -> when the invitation ends."""
        return dict(self._rows("select name, expires from rater order by name"))

    def rater(self, token: str, now: float) -> str | None:
        """Whose token it is, as long as it counts."""
        asked = (hashed(token), now)
        found = self._rows("select name from rater where hash = ? and expires > ?", asked)
        return found[0][0] if found else None

    def take(self, rater: str, now: float) -> str | None:
        """The item that the rater has in hand, else the next that wants a vote; then it is theirs
        for `lease` seconds. Null when there is none (now).
        """
        asked = {"rater": rater, "now": now}
        mine = f"{OPEN} and {HELD}"
        with self._change() as base:
            for some in (mine, OPEN):
                found = base.execute(f"{some} order by place limit 1", asked).fetchone()
                if found:
                    self._hold(base, found[0], rater, now)
                    return found[0]
        return None

    def held(self, rater: str, now: float) -> str | None:
        """The item that the rater has in hand; it is theirs for longer, then."""
        query = (
            "select item, until from lease where rater = ? and until > ? order by 2 desc limit 1"
        )
        found = self._rows(query, (rater, now))
        if found and found[0][1] < now + self.lease / 2:  # not for each range of a film
            with self._change() as base:
                self._hold(base, found[0][0], rater, now)
        return found[0][0] if found else None

    def opened(self, item: str, rater: str) -> float:
        """When a rater was first shown the item in their hands."""
        asked = (item, rater)
        return self._rows("select opened from lease where item = ? and rater = ?", asked)[0][0]

    def keep(self, item: str, rater: str, answers: Mapping[str, str], now: float) -> bool:
        """Keep a draft of the step, and the item with its rater; false where it is not in their
        hands.
        """
        with self._change() as base:
            if not self._may(base, item, rater, now):
                return False
            base.execute(
                "insert into draft values (:item, :rater, 0, '{}', :answers) "
                "on conflict (item, rater) do update set answers = excluded.answers",
                {"item": item, "rater": rater, "answers": json.dumps(dict(answers))},
            )
            self._hold(base, item, rater, now)
        return True

    def advance(
        self, item: str, rater: str, step: int, answers: Mapping[str, Any], now: float
    ) -> bool:
        """Go on from a step, whose answers stand from now on; sent twice it is done once. False
        where the item is not in their hands.
        """
        with self._change() as base:
            if not self._may(base, item, rater, now):
                return False
            before = self._draft(base, item, rater)
            if before.step == step:
                base.execute(
                    "insert or replace into draft values (?, ?, ?, ?, '{}')",
                    (item, rater, step + 1, json.dumps({**before.kept, **answers})),
                )
            self._hold(base, item, rater, now)
        return True

    def draft(self, item: str, rater: str) -> Draft:
        """Where the rater is in an item."""
        base = sqlite3.connect(self.path, timeout=20)
        try:
            return self._draft(base, item, rater)
        finally:
            base.close()

    def vote(
        self,
        item: str,
        rater: str,
        answers: Mapping[str, Any],
        now: float,
        *,
        active: float | None = None,
        correct: bool | None = None,
    ) -> bool:
        """Cast a vote. The first one of a rater on an item counts, sent twice it is there once;
        false where the item is not in their hands and others have filled its places.
        """
        with self._change() as base:
            asked = (item, rater)
            if base.execute("select 1 from vote where item = ? and rater = ?", asked).fetchone():
                return True
            if not self._may(base, item, rater, now):
                return False
            taken = "select opened from lease where item = ? and rater = ?"
            (opened,) = base.execute(taken, asked).fetchone()
            seconds = round(now - opened, 1)
            busy = seconds if active is None else round(max(0.0, min(active, seconds)), 1)
            base.execute(
                "insert into vote select name, ?, question, ?, ?, ?, ?, ? from item where name = ?",
                (rater, json.dumps(dict(answers)), seconds, busy, now, correct, item),
            )
            base.execute("update item set votes = votes + 1 where name = ?", (item,))
            for table in ("lease", "draft"):
                base.execute(f"delete from {table} where item = ? and rater = ?", asked)
            self._follow(base, item)
        return True

    def take_in(self, votes: Sequence[Cast], now: float) -> int:
        """Votes that were cast elsewhere: how many are new and found a place."""
        new = 0
        for vote in votes:
            item = f"{vote.question_id}/{vote.round}"
            with self._change() as base:
                base.execute("insert or ignore into rater values (?, null, 0, 0)", (vote.rater,))
                asked = {"item": item, "rater": vote.rater, "now": now}
                if not base.execute(f"{OPEN} and item.name = :item", asked).fetchone():
                    continue
                base.execute(
                    "insert into vote values (?, ?, ?, ?, ?, ?, ?, null)",
                    (item, vote.rater, vote.question_id, json.dumps(dict(vote.answers)),
                     vote.seconds, vote.seconds, vote.at),
                )  # fmt: skip
                base.execute("update item set votes = votes + 1 where name = ?", (item,))
                self._follow(base, item)
                new += 1
        return new

    def votes(self) -> list[Cast]:
        """All votes, training among them, by question, round and rater."""
        rows = self._rows(f"{CAST} order by item.question, item.round, vote.rater")
        return [_cast(row) for row in rows]

    def votes_on(self, question: str, name: str) -> list[Cast]:
        """The votes on a question in a round, by rater."""
        query = f"{CAST} where item.question = ? and item.round = ? order by vote.rater"
        return [_cast(row) for row in self._rows(query, (question, name))]

    def training(self, rater: str) -> tuple[int, int]:
        """How many training items the rater had right, of how many."""
        query = "select coalesce(sum(correct), 0), count(correct) from vote where rater = ?"
        return self._rows(query, (rater,))[0]

    def progress(self, rater: str) -> tuple[int, int]:
        """How many votes the rater has cast, and how many items still want one of theirs."""
        asked = {"rater": rater, "now": float("inf")}
        (done,) = self._rows("select count(*) from vote where rater = ?", (rater,))[0]
        return done, len(self._rows(OPEN, asked))

    def _follow(self, base: sqlite3.Connection, item: str) -> None:
        """Open the round after a complete one."""
        row = base.execute(
            "select question, round, wanted - votes from item where name = ?", (item,)
        ).fetchone()
        question, name, missing = row
        next_ones = base.execute(
            "select name from item where question = ? and after = ?", (question, name)
        ).fetchall()
        if missing or not next_ones:
            return
        query = f"{CAST} where item.name = ? order by vote.rater"
        rows = base.execute(query, (item,)).fetchall()
        if self.goes_on(name, [_cast(row) for row in rows]):
            base.executemany("update item set ready = 1 where name = ?", next_ones)

    def _draft(self, base: sqlite3.Connection, item: str, rater: str) -> Draft:
        found = base.execute(
            "select step, kept, answers from draft where item = ? and rater = ?", (item, rater)
        ).fetchone()
        if not found:
            return Draft()
        return Draft(step=found[0], kept=json.loads(found[1]), answers=json.loads(found[2]))

    def _may(self, base: sqlite3.Connection, item: str, rater: str, now: float) -> bool:
        """Whether the rater was given the item and it still has a place for them."""
        asked = {"rater": rater, "now": now, "item": item}
        query = f"{OPEN} and {HELD} and item.name = :item"
        return base.execute(query, asked).fetchone() is not None

    def _hold(self, base: sqlite3.Connection, item: str, rater: str, now: float) -> None:
        base.execute(
            "insert into lease values (?, ?, ?, ?) on conflict (item, rater) do update set "
            "until = excluded.until",
            (item, rater, now, now + self.lease),
        )

    def _rows(self, query: str, given: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
        base = sqlite3.connect(self.path, timeout=20)
        try:
            return base.execute(query, given).fetchall()
        finally:
            base.close()


def _cast(row: Sequence[Any]) -> Cast:
    question, name, rater, answers, seconds, at, active, correct = row
    return Cast(
        question_id=question, round=name, rater=rater, answers=json.loads(answers),
        seconds=seconds, at=at, active=active, correct=None if correct is None else bool(correct),
    )  # fmt: skip
