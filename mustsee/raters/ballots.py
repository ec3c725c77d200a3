"""The ballot box: raters, who has which question for how long, drafts and votes, in one SQLite
file.

Every change is one transaction that takes the file's write lock first, so that two raters who ask
at once never get the last place of a question both. Times are arguments, in seconds since 1970.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLES = """
create table if not exists rater (name text primary key, hash text unique, expires real);
create table if not exists item (question text primary key, place integer);
create table if not exists lease (question text, rater text, opened real, until real,
  primary key (question, rater));
create table if not exists draft (question text, rater text, answers text,
  primary key (question, rater));
create table if not exists vote (question text, rater text, answers text, seconds real, at real,
  primary key (question, rater));
"""
# Open places: `raters` less the votes, less those who have it in hand (not the asker).
OPEN = """
select item.question from item where
  not exists (select 1 from vote where vote.question = item.question and vote.rater = :rater) and
  (select count(*) from vote where vote.question = item.question) +
  (select count(*) from lease where lease.question = item.question and lease.rater != :rater
     and lease.until > :now) < :raters
"""
HELD = """
exists (select 1 from lease where lease.question = item.question and lease.rater = :rater)
"""


@dataclass(frozen=True, kw_only=True)
class Cast:
    """One vote. `seconds`: from when the question was first shown to the rater."""

    question_id: str
    rater: str
    answers: Mapping[str, str]
    seconds: float
    at: float


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Ballots:
    """`raters`: votes wanted on a question. `lease`: seconds for which a question stays a rater's
    after the last sign of life.
    """

    path: Path
    raters: int = 3
    lease: float = 1800.0

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

    def open(self, questions: Sequence[str] = ()) -> list[str]:
        """Make the file where there is none, with the questions that are asked, in their order.
        Where it asks some already, these stay, whatever is given. Returns those that are asked.
        """
        base = sqlite3.connect(self.path, timeout=20)
        base.execute("pragma journal_mode = wal")
        base.executescript(TABLES)
        base.close()
        self.path.chmod(0o600)
        with self._change() as base:
            if not base.execute("select 1 from item limit 1").fetchone():
                rows = [(question, place) for place, question in enumerate(questions)]
                base.executemany("insert into item values (?, ?)", rows)
        return [question for (question,) in self._rows("select question from item order by place")]

    def invite(self, name: str, expires: float) -> str:
        """A new token for a rater, of which only a hash is kept; the old one ends."""
        token = secrets.token_urlsafe(32)
        with self._change() as base:
            base.execute(
                "insert into rater values (?, ?, ?) on conflict (name) do update set "
                "hash = excluded.hash, expires = excluded.expires",
                (name, hashed(token), expires),
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
        """The question that the rater has in hand, else the next that wants a vote; then it is
        theirs for `lease` seconds. Null when there is none (now).
        """
        asked = {"rater": rater, "now": now, "raters": self.raters}
        mine = f"{OPEN} and {HELD}"
        with self._change() as base:
            for some in (mine, OPEN):
                found = base.execute(f"{some} order by place limit 1", asked).fetchone()
                if found:
                    self._hold(base, found[0], rater, now)
                    return found[0]
        return None

    def keep(self, question: str, rater: str, answers: Mapping[str, str], now: float) -> bool:
        """Keep a draft, and the question with its rater; false where it is not in their hands."""
        with self._change() as base:
            if not self._may(base, question, rater, now):
                return False
            base.execute(
                "insert or replace into draft values (?, ?, ?)",
                (question, rater, json.dumps(answers)),
            )
            self._hold(base, question, rater, now)
        return True

    def draft(self, question: str, rater: str) -> dict[str, str]:
        """What the rater had answered so far."""
        asked = (question, rater)
        found = self._rows("select answers from draft where question = ? and rater = ?", asked)
        return json.loads(found[0][0]) if found else {}

    def vote(self, question: str, rater: str, answers: Mapping[str, str], now: float) -> bool:
        """Cast a vote. The first one of a rater on a question counts, sent twice it is there once;
        false where the question is not in their hands and others have filled its places.
        """
        with self._change() as base:
            asked = (question, rater)
            if base.execute(
                "select 1 from vote where question = ? and rater = ?", asked
            ).fetchone():
                return True
            if not self._may(base, question, rater, now):
                return False
            taken = "select opened from lease where question = ? and rater = ?"
            (opened,) = base.execute(taken, asked).fetchone()
            base.execute(
                "insert into vote values (?, ?, ?, ?, ?)",
                (question, rater, json.dumps(dict(answers)), round(now - opened, 1), now),
            )
            for table in ("lease", "draft"):
                base.execute(f"delete from {table} where question = ? and rater = ?", asked)
        return True

    def votes(self) -> list[Cast]:
        """All votes, by question and rater."""
        rows = self._rows("select question, rater, answers, seconds, at from vote order by 1, 2")
        return [
            Cast(question_id=q, rater=r, answers=json.loads(a), seconds=s, at=t)
            for q, r, a, s, t in rows
        ]

    def progress(self, rater: str) -> tuple[int, int]:
        """How many votes the rater has cast, and how many questions still want one of theirs."""
        asked = {"rater": rater, "now": 0.0, "raters": self.raters}
        (done,) = self._rows("select count(*) from vote where rater = ?", (rater,))[0]
        return done, len(self._rows(OPEN.replace("lease.until > :now", "0 > :now"), asked))

    def _may(self, base: sqlite3.Connection, question: str, rater: str, now: float) -> bool:
        """Whether the rater was given the question and it still has a place for them."""
        asked = {"rater": rater, "now": now, "raters": self.raters, "question": question}
        query = f"{OPEN} and {HELD} and item.question = :question"
        return base.execute(query, asked).fetchone() is not None

    def _hold(self, base: sqlite3.Connection, question: str, rater: str, now: float) -> None:
        base.execute(
            "insert into lease values (?, ?, ?, ?) on conflict (question, rater) do update set "
            "until = excluded.until",
            (question, rater, now, now + self.lease),
        )

    def _rows(self, query: str, given: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
        base = sqlite3.connect(self.path, timeout=20)
        try:
            return base.execute(query, given).fetchall()
        finally:
            base.close()
