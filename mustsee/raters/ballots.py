"""The ballot box: raters, leases of items, drafts and votes, in one database.

An item is a question in a round. Transactions run one at a time, across threads, processes and
machines, so that two raters never both get the last place of an item. Times are arguments, in
seconds since 1970.
"""

from __future__ import annotations

import hashlib
import secrets
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from mustsee.raters import box
from mustsee.raters.box import BOX, DRAFT, ITEM, LEASE, RATER, VOTE, VOTES

TRAINING = "training"  # the round whose items every rater answers first; its votes do not count
EVERYBODY_VOTES = 1_000_000  # votes wanted on a training item, more than there are raters


@dataclass(frozen=True, kw_only=True)
class RatedItem:
    """A question in a round.

    `wanted` is the number of votes. A `senior` item is for experienced raters only, another one for
    the other raters only. `rater` is the only rater of a dealt item. `after` names the round of the
    same question that comes before.
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
    """A vote.

    `seconds` runs from the first showing of the item, `active` is the part with activity, `at` the
    time of the vote. `correct` is set for training items.
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
    """A rater's progress in an item: the step, the final answers of earlier steps (`kept`), and the
    text of this step's answers so far.
    """

    step: int = 0
    kept: Mapping[str, Any] = field(default_factory=dict[str, Any])
    answers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True)
class RoundProgress:
    """A round: `items`, of which `complete` have all their votes; `votes` of `wanted`."""

    name: str
    items: int
    complete: int
    votes: int
    wanted: int


@dataclass(frozen=True, kw_only=True)
class InvitedRater:
    """A rater: votes, the time of the last one (null: none), and the questions that they hold now,
    with the time since which they do. `expires`: when their link does. All times in Unix seconds.
    """

    name: str
    senior: bool
    expires: float
    votes: int
    last: float | None
    holds: Mapping[str, float]


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Ballots:
    """The ballot box in the database `where`, a file's path or a `postgresql://` address.

    `lease` is the number of seconds that a rater keeps an item without activity. `hours`: round ->
    hours of all its votes together, after which its items are given to nobody. `goes_on(round,
    votes)` returns whether a question goes to the next round after these votes completed a round.
    All methods raise Transient if the database cannot be reached.
    """

    where: Path | str = field(repr=False)
    lease: float = 1800.0
    hours: Mapping[str, float] = field(default_factory=dict[str, float])
    goes_on: Callable[[str, Sequence[CastVote]], bool] = lambda name, votes: True

    def has_items(self) -> bool:
        """Return whether the box exists and has items."""
        if not box.is_address(self.where) and not Path(self.where).is_file():
            return False
        with box.report_unreachable(self.where):
            return box.has_items(self._base)

    def open(self, items: Sequence[RatedItem] = ()) -> list[RatedItem]:
        """Create missing tables, and insert the items in order if there are none yet.

        Existing items stay, and `items` is then ignored. Returns the box's items. Raises UserError
        for a database with other tables.
        """
        if not box.is_address(self.where):
            box.keep_private(Path(self.where))
        box.create_tables(self._base, self.where)
        with self._transaction() as base:
            if items and not base.execute(sa.select(ITEM.c.name).limit(1)).first():
                rows: list[dict[str, Any]] = []
                for place, item in enumerate(items):
                    row = {**asdict(item), "name": item.name, "place": place}
                    rows.append(
                        {**row, "question": row.pop("question_id"), "ready": not item.after}
                    )
                base.execute(sa.insert(ITEM), rows)
        c = ITEM.c
        question = c.question.label("question_id")
        query = sa.select(question, c.round, c.wanted, c.senior, c.rater, c.after).order_by(c.place)
        return [RatedItem(**row._mapping) for row in self._rows(query)]

    def invite(
        self, name: str, expires: float, *, senior: bool = False, unless: float | None = None
    ) -> str | None:
        """Return a new token for a rater, which replaces the old one; only its hash is stored.

        Returns None if the old token is still valid at the time `unless`.
        """
        token, key = secrets.token_urlsafe(32), {"name": name}
        with self._transaction() as base:
            query = sa.select(RATER.c.expires).where(RATER.c.name == name)
            if unless is not None and (base.execute(query).scalar() or 0) > unless:
                return None
            row = {"hash": hash_token(token), "expires": expires, "senior": senior}
            box.put(base, RATER, key, row)
        return token

    def expiry(self, rater: str) -> float:
        """Return the time at which the rater's token expires."""
        return self._rows(sa.select(RATER.c.expires).where(RATER.c.name == rater))[0][0]

    def rater(self, token: str, now: float) -> str | None:
        """Return the name of the rater with this token, or None if it is unknown or expired."""
        query = sa.select(RATER.c.name).where(
            RATER.c.hash == hash_token(token), RATER.c.expires > now
        )
        rows = self._rows(query)
        return rows[0][0] if rows else None

    def take(self, rater: str, now: float) -> str | None:
        """Lease the rater's current item, else the next open one, for `lease` seconds.

        Returns its name, or None if no item is open to the rater now.
        """
        items = box.items_open_to(rater, now)
        with self._transaction() as base:
            spent = dict(map(tuple, base.execute(box.SECONDS_BY_ROUND).all())) if self.hours else {}
            over = [name for name, h in self.hours.items() if spent.get(name, 0.0) >= 3600 * h]
            fresh = items.where(ITEM.c.round.not_in(over))
            for candidates in (items.where(box.is_held_by(rater)), fresh):
                item = base.execute(candidates.order_by(ITEM.c.place).limit(1)).scalar()
                if item is not None:
                    self._renew_lease(base, item, rater, now)
                    return item
        return None

    def current_item(self, rater: str, now: float) -> str | None:
        """Return the item that the rater has a lease of, and renew the lease."""
        c = LEASE.c
        query = sa.select(c.item, c.until).where(c.rater == rater, c.until > now)
        rows = self._rows(query.order_by(c.until.desc()).limit(1))
        if rows and rows[0][1] < now + self.lease / 2:  # a video has many requests
            with self._transaction() as base:
                self._renew_lease(base, rows[0][0], rater, now)
        return rows[0][0] if rows else None

    def opened_at(self, item: str, rater: str) -> float:
        """Return the time at which the leased item was first shown to the rater."""
        return self._rows(sa.select(LEASE.c.opened).where(*box.in_row(LEASE, item, rater)))[0][0]

    def keep(self, item: str, rater: str, answers: Mapping[str, str], now: float) -> bool:
        """Store a draft of the step and renew the lease; False if the rater may not vote on it."""
        with self._transaction() as base:
            if not box.may_vote(base, item, rater, now):
                return False
            first_values = {"step": 0, "kept": {}}
            box.put(base, DRAFT, box.row_key(item, rater), {"answers": dict(answers)}, first_values)
            self._renew_lease(base, item, rater, now)
        return True

    def advance(
        self, item: str, rater: str, step: int, answers: Mapping[str, Any], now: float
    ) -> bool:
        """Go to the next step and make the answers of this one final; repeated calls do nothing.

        Returns False if the rater may not vote on the item.
        """
        with self._transaction() as base:
            if not box.may_vote(base, item, rater, now):
                return False
            before = _as_draft(base.execute(box.draft_query(item, rater)).first())
            if before.step == step:
                after = {"step": step + 1, "kept": {**before.kept, **answers}, "answers": {}}
                box.put(base, DRAFT, box.row_key(item, rater), after)
            self._renew_lease(base, item, rater, now)
        return True

    def draft(self, item: str, rater: str) -> UnfinishedVote:
        """Return the rater's progress in an item."""
        return _as_draft(next(iter(self._rows(box.draft_query(item, rater))), None))

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
        """Cast a vote; only a rater's first vote on an item counts.

        Returns False if the item was not leased to the rater, or has no place left.
        """
        with self._transaction() as base:
            if base.execute(sa.select(VOTE.c.item).where(*box.in_row(VOTE, item, rater))).first():
                return True
            if not box.may_vote(base, item, rater, now):
                return False
            (opened,) = base.execute(
                sa.select(LEASE.c.opened).where(*box.in_row(LEASE, item, rater))
            ).one()
            seconds = round(now - opened, 1)
            active_seconds = seconds if active is None else round(max(0.0, min(active, seconds)), 1)
            self._add_vote(base, item, rater, answers, seconds, active_seconds, now, correct)
            for table in (LEASE, DRAFT):
                base.execute(sa.delete(table).where(*box.in_row(table, item, rater)))
        return True

    def import_votes(self, votes: Sequence[CastVote], now: float) -> int:
        """Add votes cast in another tool; return how many were new and had a place."""
        imported = 0
        for vote in votes:
            item, rater = f"{vote.question_id}/{vote.round}", vote.rater
            with self._transaction() as base:
                if not base.execute(sa.select(RATER.c.name).where(RATER.c.name == rater)).first():
                    base.execute(sa.insert(RATER).values(name=rater, expires=0, senior=False))
                if base.execute(box.items_open_to(rater, now).where(ITEM.c.name == item)).first():
                    self._add_vote(
                        base, item, rater, vote.answers, vote.seconds, vote.seconds, vote.at
                    )
                    imported += 1
        return imported

    def votes(self) -> list[CastVote]:
        """Return all votes, including training, sorted by question, round and rater."""
        return _as_votes(self._rows(VOTES))

    def votes_on(self, question: str, name: str) -> list[CastVote]:
        """Return the votes on a question in a round, sorted by rater."""
        return _as_votes(self._rows(VOTES.where(ITEM.c.question == question, ITEM.c.round == name)))

    def training(self, rater: str) -> tuple[int, int]:
        """Return (right, answered) numbers of the rater's training items."""
        query = sa.select(VOTE.c.correct).where(VOTE.c.rater == rater, VOTE.c.correct.is_not(None))
        rows = self._rows(query)
        return sum(right for (right,) in rows), len(rows)

    def progress(self, rater: str) -> tuple[int, int]:
        """Return (votes cast by the rater, items still open to the rater)."""
        open_items = box.items_open_to(rater, float("inf")).subquery()
        cast = sa.select(sa.func.count()).where(VOTE.c.rater == rater).scalar_subquery()
        return tuple(self._rows(sa.select(cast, sa.func.count()).select_from(open_items))[0])

    def rounds(self) -> list[RoundProgress]:
        """Return the progress of each round, training left out, in order."""
        complete = sa.func.sum(sa.case((ITEM.c.votes >= ITEM.c.wanted, 1), else_=0))
        query = (
            sa.select(
                ITEM.c.round.label("name"),
                sa.func.count().label("items"),
                complete.label("complete"),
                sa.func.sum(ITEM.c.votes).label("votes"),
                sa.func.sum(ITEM.c.wanted).label("wanted"),
            )
            .where(ITEM.c.round != TRAINING)
            .group_by(ITEM.c.round)
            .order_by(sa.func.min(ITEM.c.place))
        )
        return [RoundProgress(**row._mapping) for row in self._rows(query)]

    def raters(self, now: float) -> list[InvitedRater]:
        """Return the raters by name, with what each holds at `now`."""
        cast = sa.select(VOTE.c.rater, sa.func.count(), sa.func.max(VOTE.c.at)).group_by(
            VOTE.c.rater
        )
        votes = {rater: (count, last) for rater, count, last in self._rows(cast)}
        leases = (
            sa.select(LEASE.c.rater, ITEM.c.question, LEASE.c.opened)
            .join_from(LEASE, ITEM, ITEM.c.name == LEASE.c.item)
            .where(LEASE.c.until > now)
            .where(~sa.exists().where(VOTE.c.item == LEASE.c.item, VOTE.c.rater == LEASE.c.rater))
        )
        holds: dict[str, dict[str, float]] = {}
        for rater, question, opened in self._rows(leases):
            holds.setdefault(rater, {})[question] = opened
        invited = sa.select(RATER.c.name, RATER.c.senior, RATER.c.expires).order_by(RATER.c.name)
        raters: list[InvitedRater] = []
        for row in self._rows(invited):
            count, last = votes.get(row.name, (0, None))
            held = holds.get(row.name, {})
            raters.append(InvitedRater(**row._mapping, votes=count, last=last, holds=held))
        return raters

    @cached_property
    def _base(self) -> sa.Engine:
        base = box.database(self.where)
        weakref.finalize(self, base.dispose)
        return base

    @contextmanager
    def _transaction(self) -> Generator[sa.Connection]:
        """Open a transaction that runs alone."""
        with box.report_unreachable(self.where), self._base.begin() as base:
            base.execute(
                sa.update(BOX).values(changes=BOX.c.changes + 1)
            )  # waits for the row's lock
            yield base

    def _rows(self, query: sa.Executable) -> Sequence[Any]:
        with box.report_unreachable(self.where), self._base.connect() as base:
            return base.execute(query).all()

    def _add_vote(
        self,
        base: sa.Connection,
        item: str,
        rater: str,
        answers: Mapping[str, Any],
        seconds: float,
        active: float,
        at: float,
        correct: bool | None = None,
    ) -> None:
        """Add a vote, and open the question's next round if this one is complete."""
        c = ITEM.c
        base.execute(sa.update(ITEM).where(c.name == item).values(votes=c.votes + 1))
        question, name, missing = base.execute(
            sa.select(c.question, c.round, c.wanted - c.votes).where(c.name == item)
        ).one()
        base.execute(
            sa.insert(VOTE).values(
                item=item, rater=rater, question=question, answers=dict(answers), seconds=seconds,
                active=active, at=at, correct=correct,
            )
        )  # fmt: skip
        next_round = sa.and_(c.question == question, c.after == name)
        if missing or not base.execute(sa.select(c.name).where(next_round)).first():
            return
        if self.goes_on(name, _as_votes(base.execute(VOTES.where(c.name == item)).all())):
            base.execute(sa.update(ITEM).where(next_round).values(ready=True))

    def _renew_lease(self, base: sa.Connection, item: str, rater: str, now: float) -> None:
        until = {"until": now + self.lease}
        box.put(base, LEASE, box.row_key(item, rater), until, {"opened": now})


def _as_votes(rows: Sequence[Any]) -> list[CastVote]:
    """Return rows of VOTES as votes, in an order independent of the database's collation."""
    votes = [CastVote(**row._mapping) for row in rows]
    return sorted(votes, key=lambda v: (v.question_id, v.round, v.rater))


def _as_draft(row: Any) -> UnfinishedVote:
    return UnfinishedVote() if row is None else UnfinishedVote(**row._mapping)
