"""The ballot box: raters, who has which item for how long, drafts and votes, in one database.

An item is a question in a round. Every change is one transaction that no other one runs beside, be
it of another thread, process or machine: two raters who ask at once never get the last place of an
item both. Times are arguments, in seconds since 1970.
"""

from __future__ import annotations

import hashlib
import secrets
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    Executable,
    Select,
    Table,
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from mustsee.raters.box import (
    BOX,
    DRAFT,
    ITEM,
    LEASE,
    RATER,
    VOTE,
    create_tables,
    database,
    has_items,
    is_address,
    put,
    report_unreachable,
)

TRAINING = "training"  # the round of items that everybody answers, and that count for nothing
EVERYBODY_VOTES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class RatedItem:
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
class CastVote:
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
class UnfinishedVote:
    """Where a rater is in an item: the step, the answers of the steps before (which stand), and
    those of this step so far, as sent.
    """

    step: int = 0
    kept: Mapping[str, Any] = field(default_factory=dict[str, Any])
    answers: Mapping[str, str] = field(default_factory=dict[str, str])


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Ballots:
    """`where`: a file's path, or a `postgresql://` address. `lease`: seconds for which an item
    stays a rater's after the last sign of life. `goes_on`: whether a question goes to the round
    after this one, which these votes complete.
    All methods raise Transient where the database cannot be reached.
    """

    where: Path | str = field(repr=False)
    lease: float = 1800.0
    goes_on: Callable[[str, Sequence[CastVote]], bool] = lambda name, votes: True

    def there(self) -> bool:
        """Whether items are asked already."""
        if not is_address(self.where) and not Path(self.where).is_file():
            return False
        with report_unreachable(self.where):
            return has_items(self._base)

    def open(self, items: Sequence[RatedItem] = ()) -> list[RatedItem]:
        """Make the tables where there are none, with the items that are asked, in their order.
        Where some are asked already, these stay, whatever is given. Returns those that are asked.
        Raises UserError for a database that is something else.
        """
        create_tables(self._base, self.where)
        if not is_address(self.where):
            Path(self.where).chmod(0o600)
        with self._change() as base:
            if items and not base.execute(select(ITEM.c.name).limit(1)).first():
                rows = [
                    {
                        "name": i.name, "question": i.question_id, "round": i.round, "place": place,
                        "wanted": i.wanted, "senior": i.senior, "rater": i.rater, "after": i.after,
                        "ready": i.after is None,
                    }
                    for place, i in enumerate(items)
                ]  # fmt: skip
                base.execute(insert(ITEM), rows)
        c = ITEM.c
        columns = (c.question, c.round, c.wanted, c.senior, c.rater, c.after)
        return [
            RatedItem(question_id=q, round=r, wanted=w, senior=s, rater=who, after=a)
            for q, r, w, s, who, a in self._rows(select(*columns).order_by(c.place))
        ]

    def invite(
        self, name: str, expires: float, *, senior: bool = False, unless: float | None = None
    ) -> str | None:
        """A new token for a rater, of which only a hash is kept; the old one ends. None where the
        old one still counts at the time `unless`.
        """
        token, known = secrets.token_urlsafe(32), {"name": name}
        with self._change() as base:
            query = select(RATER.c.expires).where(RATER.c.name == name)
            if unless is not None and (base.execute(query).scalar() or 0) > unless:
                return None
            row = {"hash": hash_token(token), "expires": expires, "senior": senior}
            put(base, RATER, known, row)
        return token

    def expiry(self, rater: str) -> float:
        """When the invitation ends."""
        return self._rows(select(RATER.c.expires).where(RATER.c.name == rater))[0][0]

    def rater(self, token: str, now: float) -> str | None:
        """Whose token it is, as long as it counts."""
        asked = select(RATER.c.name).where(RATER.c.hash == hash_token(token), RATER.c.expires > now)
        found = self._rows(asked)
        return found[0][0] if found else None

    def take(self, rater: str, now: float) -> str | None:
        """The item that the rater has in hand, else the next that wants a vote; then it is theirs
        for `lease` seconds. Null when there is none (now).
        """
        anything = _open_to(rater, now)
        with self._change() as base:
            for some in (anything.where(_held_by(rater)), anything):
                found = base.execute(some.order_by(ITEM.c.place).limit(1)).scalar()
                if found is not None:
                    self._hold(base, found, rater, now)
                    return found
        return None

    def current_item(self, rater: str, now: float) -> str | None:
        """The item that the rater has in hand; it is theirs for longer, then."""
        c = LEASE.c
        query = select(c.item, c.until).where(c.rater == rater, c.until > now)
        found = self._rows(query.order_by(c.until.desc()).limit(1))
        if found and found[0][1] < now + self.lease / 2:  # not for each range of a video
            with self._change() as base:
                self._hold(base, found[0][0], rater, now)
        return found[0][0] if found else None

    def opened_at(self, item: str, rater: str) -> float:
        """When a rater was first shown the item in their hands."""
        return self._rows(select(LEASE.c.opened).where(*_of(LEASE, item, rater)))[0][0]

    def keep(self, item: str, rater: str, answers: Mapping[str, str], now: float) -> bool:
        """Keep a draft of the step, and the item with its rater; false where it is not in their
        hands.
        """
        with self._change() as base:
            if not _may(base, item, rater, now):
                return False
            fresh = {"step": 0, "kept": {}}
            put(base, DRAFT, _key(item, rater), {"answers": dict(answers)}, fresh)
            self._hold(base, item, rater, now)
        return True

    def advance(
        self, item: str, rater: str, step: int, answers: Mapping[str, Any], now: float
    ) -> bool:
        """Go on from a step, whose answers stand from now on; sent twice it is done once. False
        where the item is not in their hands.
        """
        with self._change() as base:
            if not _may(base, item, rater, now):
                return False
            before = _draft(base.execute(_drafts(item, rater)).first())
            if before.step == step:
                after = {"step": step + 1, "kept": {**before.kept, **answers}, "answers": {}}
                put(base, DRAFT, _key(item, rater), after)
            self._hold(base, item, rater, now)
        return True

    def draft(self, item: str, rater: str) -> UnfinishedVote:
        """Where the rater is in an item."""
        return _draft(next(iter(self._rows(_drafts(item, rater))), None))

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
            if base.execute(select(VOTE.c.item).where(*_of(VOTE, item, rater))).first():
                return True
            if not _may(base, item, rater, now):
                return False
            (opened,) = base.execute(select(LEASE.c.opened).where(*_of(LEASE, item, rater))).one()
            seconds = round(now - opened, 1)
            busy = seconds if active is None else round(max(0.0, min(active, seconds)), 1)
            self._add(base, item, rater, answers, seconds, busy, now, correct)
            for table in (LEASE, DRAFT):
                base.execute(delete(table).where(*_of(table, item, rater)))
        return True

    def import_votes(self, votes: Sequence[CastVote], now: float) -> int:
        """Votes that were cast elsewhere: how many are new and found a place."""
        new = 0
        for vote in votes:
            item, who = f"{vote.question_id}/{vote.round}", vote.rater
            with self._change() as base:
                if not base.execute(select(RATER.c.name).where(RATER.c.name == who)).first():
                    base.execute(insert(RATER).values(name=who, expires=0, senior=False))
                if base.execute(_open_to(who, now).where(ITEM.c.name == item)).first():
                    self._add(base, item, who, vote.answers, vote.seconds, vote.seconds, vote.at)
                    new += 1
        return new

    def votes(self) -> list[CastVote]:
        """All votes, training among them, by question, round and rater."""
        return _cast(self._rows(CAST))

    def votes_on(self, question: str, name: str) -> list[CastVote]:
        """The votes on a question in a round, by rater."""
        return _cast(self._rows(CAST.where(ITEM.c.question == question, ITEM.c.round == name)))

    def training(self, rater: str) -> tuple[int, int]:
        """How many training items the rater had right, of how many."""
        query = select(VOTE.c.correct).where(VOTE.c.rater == rater, VOTE.c.correct.is_not(None))
        rows = self._rows(query)
        return sum(right for (right,) in rows), len(rows)

    def progress(self, rater: str) -> tuple[int, int]:
        """How many votes the rater has cast, and how many items still want one of theirs."""
        wanting = _open_to(rater, float("inf")).subquery()
        done = select(func.count()).where(VOTE.c.rater == rater).scalar_subquery()
        return tuple(self._rows(select(done, func.count()).select_from(wanting))[0])

    @cached_property
    def _base(self) -> Engine:
        base = database(self.where)
        weakref.finalize(self, base.dispose)
        return base

    @contextmanager
    def _change(self) -> Generator[Connection]:
        """A transaction, alone; all of it counts or nothing does."""
        with report_unreachable(self.where), self._base.begin() as base:
            base.execute(update(BOX).values(changes=BOX.c.changes + 1))  # waits for its turn
            yield base

    def _rows(self, query: Executable) -> Sequence[Any]:
        with report_unreachable(self.where), self._base.connect() as base:
            return base.execute(query).all()

    def _add(
        self,
        base: Connection,
        item: str,
        rater: str,
        answers: Mapping[str, Any],
        seconds: float,
        active: float,
        at: float,
        correct: bool | None = None,
    ) -> None:
        """Add a vote; where the round is complete with it, open the next one."""
        c = ITEM.c
        base.execute(update(ITEM).where(c.name == item).values(votes=c.votes + 1))
        question, name, missing = base.execute(
            select(c.question, c.round, c.wanted - c.votes).where(c.name == item)
        ).one()
        base.execute(
            insert(VOTE).values(
                item=item, rater=rater, question=question, answers=dict(answers), seconds=seconds,
                active=active, at=at, correct=correct,
            )
        )  # fmt: skip
        following = and_(c.question == question, c.after == name)
        if missing or not base.execute(select(c.name).where(following)).first():
            return
        if self.goes_on(name, _cast(base.execute(CAST.where(c.name == item)).all())):
            base.execute(update(ITEM).where(following).values(ready=True))

    def _hold(self, base: Connection, item: str, rater: str, now: float) -> None:
        until = {"until": now + self.lease}
        put(base, LEASE, _key(item, rater), until, {"opened": now})


CAST = select(
    ITEM.c.question, ITEM.c.round, VOTE.c.rater, VOTE.c.answers, VOTE.c.seconds, VOTE.c.at,
    VOTE.c.active, VOTE.c.correct,
).join_from(VOTE, ITEM, ITEM.c.name == VOTE.c.item)  # fmt: skip


def _cast(rows: Sequence[Any]) -> list[CastVote]:
    """Rows of CAST, in an order that no database's alphabet changes."""
    found = [
        CastVote(question_id=question, round=name, rater=rater, answers=answers, seconds=seconds,
                 at=at, active=active, correct=correct)
        for question, name, rater, answers, seconds, at, active, correct in rows
    ]  # fmt: skip
    return sorted(found, key=lambda v: (v.question_id, v.round, v.rater))


def _open_to(rater: str, now: float) -> Select[Any]:
    """What a rater may have: votes, and those who have it in hand (not the asker), leave a place,
    and they have not met the question in another round.
    """
    c, held = ITEM.c, LEASE.c
    others = select(func.count()).where(
        held.item == c.name, held.rater != rater, held.until > now
    ).scalar_subquery()  # fmt: skip
    senior = select(RATER.c.senior).where(RATER.c.name == rater).scalar_subquery()
    return select(c.name).where(
        c.ready, c.votes < c.wanted, c.senior == senior,
        or_(c.rater.is_(None), c.rater == rater),
        ~exists().where(VOTE.c.question == c.question, VOTE.c.rater == rater),
        c.votes + others < c.wanted,
    )  # fmt: skip


def _held_by(rater: str) -> Any:
    return exists().where(LEASE.c.item == ITEM.c.name, LEASE.c.rater == rater)


def _may(base: Connection, item: str, rater: str, now: float) -> bool:
    """Whether the rater was given the item and it still has a place for them."""
    asked = _open_to(rater, now).where(_held_by(rater), ITEM.c.name == item)
    return base.execute(asked).first() is not None


def _drafts(item: str, rater: str) -> Executable:
    return select(DRAFT.c.step, DRAFT.c.kept, DRAFT.c.answers).where(*_of(DRAFT, item, rater))


def _draft(row: Any) -> UnfinishedVote:
    if row is None:
        return UnfinishedVote()
    return UnfinishedVote(step=row.step, kept=row.kept, answers=row.answers)


def _key(item: str, rater: str) -> dict[str, str]:
    return {"item": item, "rater": rater}


def _of(table: Table, item: str, rater: str) -> tuple[Any, Any]:
    return table.c.item == item, table.c.rater == rater
