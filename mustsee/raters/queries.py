"""Queries of the ballot box: which items a rater may take, and the rows of votes and drafts."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Executable, Select, Table, exists, func, or_, select

from mustsee.raters.box import DRAFT, ITEM, LEASE, RATER, VOTE

VOTES = select(
    ITEM.c.question, ITEM.c.round, VOTE.c.rater, VOTE.c.answers, VOTE.c.seconds, VOTE.c.at,
    VOTE.c.active, VOTE.c.correct,
).join_from(VOTE, ITEM, ITEM.c.name == VOTE.c.item)  # fmt: skip

SECONDS_BY_ROUND = (
    select(ITEM.c.round, func.sum(VOTE.c.seconds))
    .join_from(VOTE, ITEM, ITEM.c.name == VOTE.c.item)
    .group_by(ITEM.c.round)
)


def items_open_to(rater: str, now: float) -> Select[Any]:
    """Return the query for the names of the items that a rater may vote on.

    Votes and other raters' leases leave a place, and the rater has not voted on the question in
    any round.
    """
    c, lease = ITEM.c, LEASE.c
    others = select(func.count()).where(
        lease.item == c.name, lease.rater != rater, lease.until > now
    ).scalar_subquery()  # fmt: skip
    senior = select(RATER.c.senior).where(RATER.c.name == rater).scalar_subquery()
    return select(c.name).where(
        c.ready, c.votes < c.wanted, c.senior == senior,
        or_(c.rater.is_(None), c.rater == rater),
        ~exists().where(VOTE.c.question == c.question, VOTE.c.rater == rater),
        c.votes + others < c.wanted,
    )  # fmt: skip


def is_held_by(rater: str) -> Any:
    """Return the condition that the rater has, or had, a lease of the item."""
    return exists().where(LEASE.c.item == ITEM.c.name, LEASE.c.rater == rater)


def may_vote(base: Connection, item: str, rater: str, now: float) -> bool:
    """Return whether the rater was given the item and it still has a place for them."""
    query = items_open_to(rater, now).where(is_held_by(rater), ITEM.c.name == item)
    return base.execute(query).first() is not None


def draft_query(item: str, rater: str) -> Executable:
    """Return the query for a rater's draft: step, kept, answers."""
    return select(DRAFT.c.step, DRAFT.c.kept, DRAFT.c.answers).where(*in_row(DRAFT, item, rater))


def row_key(item: str, rater: str) -> dict[str, str]:
    """Return the key of a rater's row for an item, as of the tables of leases, drafts and votes."""
    return {"item": item, "rater": rater}


def in_row(table: Table, item: str, rater: str) -> tuple[Any, Any]:
    """Return the conditions that select a rater's row for an item."""
    return table.c.item == item, table.c.rater == rater
