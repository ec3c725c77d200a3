"""The ballot box's tables and its database, a SQLite file or PostgreSQL.

`votes=` is the path of a file, or `postgresql://USER@HOST/DATABASE`. The database, or the schema in
`?options=-csearch_path=NAME`, must hold nothing else. A password in the address is never shown or
stored; without one, libpq reads PGPASSWORD and ~/.pgpass.

Queries of the ballot box: which items a rater may take, and the rows of votes and drafts.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.schema import CreateIndex, CreateTable

from mustsee.errors import Transient, UserError, hide_secrets, secret

LOCK_TIMEOUT_S = 20  # seconds to wait for other transactions, and for a connection
MAX_CONNECTIONS = 10  # connections of one server; PostgreSQL allows 100 by default
SESSION_OPTIONS = (
    f"-c lock_timeout={LOCK_TIMEOUT_S}s "
    f"-c idle_in_transaction_session_timeout={3 * LOCK_TIMEOUT_S}s"
)

TABLES = sa.MetaData()
# Every transaction updates this table's one row first, which makes transactions run one at a time
# in either database.
BOX = sa.Table(
    "box", TABLES,
    sa.Column("name", sa.Text, primary_key=True), sa.Column("changes", sa.Integer),
)  # fmt: skip
RATER = sa.Table(
    "rater", TABLES,
    sa.Column("name", sa.Text, primary_key=True), sa.Column("hash", sa.Text, unique=True),
    sa.Column("expires", sa.Double), sa.Column("senior", sa.Boolean),
)  # fmt: skip
ITEM = sa.Table(
    "item", TABLES,
    sa.Column("name", sa.Text, primary_key=True), sa.Column("question", sa.Text),
    sa.Column("round", sa.Text), sa.Column("place", sa.Integer), sa.Column("wanted", sa.Integer),
    sa.Column("senior", sa.Boolean), sa.Column("rater", sa.Text), sa.Column("after", sa.Text),
    sa.Column("ready", sa.Boolean), sa.Column("votes", sa.Integer, server_default="0"),
)  # fmt: skip
LEASE = sa.Table(
    "lease", TABLES,
    sa.Column("item", sa.Text, primary_key=True), sa.Column("rater", sa.Text, primary_key=True),
    sa.Column("opened", sa.Double), sa.Column("until", sa.Double),
)  # fmt: skip
DRAFT = sa.Table(
    "draft", TABLES,
    sa.Column("item", sa.Text, primary_key=True), sa.Column("rater", sa.Text, primary_key=True),
    sa.Column("step", sa.Integer), sa.Column("kept", sa.JSON), sa.Column("answers", sa.JSON),
)  # fmt: skip
VOTE = sa.Table(
    "vote", TABLES,
    sa.Column("item", sa.Text, primary_key=True), sa.Column("rater", sa.Text, primary_key=True),
    sa.Column("question", sa.Text), sa.Column("answers", sa.JSON), sa.Column("seconds", sa.Double),
    sa.Column("active", sa.Double), sa.Column("at", sa.Double), sa.Column("correct", sa.Boolean),
)  # fmt: skip
OPEN_ITEMS = (ITEM.c.votes < ITEM.c.wanted) & ITEM.c.ready
INDEXES = (
    sa.Index("unfinished", ITEM.c.place, sqlite_where=OPEN_ITEMS, postgresql_where=OPEN_ITEMS),
    sa.Index("same", ITEM.c.question),
    sa.Index("met", VOTE.c.question, VOTE.c.rater),
)


def is_address(where: str | Path) -> bool:
    """Return whether `where` is a database's address and not a path."""
    return "://" in str(where)


def display_name(where: str | Path) -> str:
    """Return the name for messages: the path, or the address without user, password and options."""
    if not is_address(where):
        return repr(str(where))
    url = _url(str(where))
    return f"'postgresql://{url.host or ''}{f':{url.port}' if url.port else ''}/{url.database}'"


def database(where: str | Path) -> sa.Engine:
    """Return an engine with a pool of open connections.

    Closing the last connection of a SQLite file runs a checkpoint, which takes longer than a vote.
    Raises UserError for an invalid address or a missing driver.
    """
    if is_address(where):
        url = _url(str(where))
        options = f"{url.query.get('options', '')} {SESSION_OPTIONS}"
        url = url.difference_update_query(["options"])
        arguments = {"options": options, "connect_timeout": LOCK_TIMEOUT_S}
    else:
        url, arguments = sa.URL.create("sqlite", database=str(where)), {"timeout": LOCK_TIMEOUT_S}
    try:
        return sa.create_engine(
            url,
            connect_args=arguments,
            pool_size=MAX_CONNECTIONS,
            max_overflow=0,
            pool_timeout=LOCK_TIMEOUT_S,
            pool_pre_ping=True,  # PostgreSQL may have been restarted
            hide_parameters=True,
        )
    except ImportError:
        raise UserError(
            f"votes={display_name(where)} needs a driver: pip install 'mustsee[postgresql]'"
        ) from None


def keep_private(path: Path) -> None:
    """Let only its owner read the file of a box, made if it is not there, and those beside it.

    SQLite gives `-wal` and `-shm` the mode that the file has when it opens it.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError:
        return  # Opening it as a database says what is wrong.
    for file in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        if file.exists():
            file.chmod(0o600)


def create_tables(base: sa.Engine, where: str | Path) -> None:
    """Create the missing tables. Raises UserError for a database with other tables."""
    for is_last_try in (False, True):  # one of two servers that create a table at once fails
        try:
            _create_missing(base, where)
            return
        except DatabaseError as error:
            if is_last_try:
                raise UserError(
                    f"{display_name(where)} cannot be opened as a ballot box: {_error_line(error)}"
                ) from None


def has_items(base: sa.Engine) -> bool:
    """Return whether the database has items to rate."""
    if not sa.inspect(base).has_table("item"):
        return False
    with base.connect() as connection:
        return connection.execute(sa.select(ITEM.c.name).limit(1)).first() is not None


def put(
    base: sa.Connection,
    table: sa.Table,
    key: Mapping[str, str],
    values: Mapping[str, Any],
    first_values: Mapping[str, Any] | None = None,
) -> None:
    """Update the row of a key, or insert it with the `first_values` as well."""
    conditions = [table.c[name] == value for name, value in key.items()]
    if not base.execute(sa.update(table).where(*conditions).values(**values)).rowcount:
        base.execute(sa.insert(table).values(**key, **(first_values or {}), **values))


@contextmanager
def report_unreachable(where: Path | str) -> Generator[None]:
    """Turn connection errors into Transient, with the database's name and without secrets."""
    try:
        yield
    except (OperationalError, PoolTimeout) as error:
        busy = f"no free connection within {LOCK_TIMEOUT_S} s"
        reason = _error_line(error) if isinstance(error, OperationalError) else busy
        raise Transient(f"the votes in {display_name(where)} cannot be reached: {reason}") from None


def _create_missing(base: sa.Engine, where: str | Path) -> None:
    with base.begin() as connection:
        inspector = sa.inspect(connection)
        existing = set(inspector.get_table_names())
        known_tables = [table for table in TABLES.sorted_tables if table.name in existing]
        columns = {t.name: {c["name"] for c in inspector.get_columns(t.name)} for t in known_tables}
        if (existing and not known_tables) or any(
            columns[t.name] != {*t.columns.keys()} for t in known_tables
        ):
            raise UserError(
                f"{display_name(where)} is not a ballot box, or one of another version of this "
                "job: give another folder= or votes="
            )
        if base.dialect.name == "sqlite":
            connection.exec_driver_sql("pragma journal_mode = wal")  # readers need not wait
        for table in TABLES.sorted_tables:
            connection.execute(CreateTable(table, if_not_exists=True))
        for index in INDEXES:
            connection.execute(CreateIndex(index, if_not_exists=True))
        if connection.execute(sa.select(BOX.c.name)).first() is None:
            connection.execute(sa.insert(BOX).values(name="votes", changes=0))


def _error_line(error: DatabaseError) -> str:
    """Return the database's message on one line, without secrets."""
    return hide_secrets(" ".join(str(error.orig).split()))


def _url(text: str) -> sa.URL:
    try:
        url = sa.make_url(text)
    except (ArgumentError, ValueError):  # not chained: the message may contain the password
        url = None
    if url is None or url.drivername not in ("postgresql", "postgres") or not url.database:
        raise UserError("votes= is not a path and not postgresql://USER@HOST/DATABASE")
    for value in (url.password, url.query.get("password"), url.query.get("sslpassword")):
        secret(str(value or ""))
    return url.set(drivername="postgresql+psycopg")


VOTES = sa.select(
    ITEM.c.question.label("question_id"), ITEM.c.round, VOTE.c.rater, VOTE.c.answers,
    VOTE.c.seconds, VOTE.c.at, VOTE.c.active, VOTE.c.correct,
).join_from(VOTE, ITEM, ITEM.c.name == VOTE.c.item)  # fmt: skip

SECONDS_BY_ROUND = (
    sa.select(ITEM.c.round, sa.func.sum(VOTE.c.seconds))
    .join_from(VOTE, ITEM, ITEM.c.name == VOTE.c.item)
    .group_by(ITEM.c.round)
)


def items_open_to(rater: str, now: float) -> sa.Select[Any]:
    """Return the query for the names of the items that a rater may vote on.

    Votes and other raters' leases leave a place, and the rater has not voted on the question in
    any round.
    """
    c, lease = ITEM.c, LEASE.c
    others = sa.select(sa.func.count()).where(
        lease.item == c.name, lease.rater != rater, lease.until > now
    ).scalar_subquery()  # fmt: skip
    senior = sa.select(RATER.c.senior).where(RATER.c.name == rater).scalar_subquery()
    return sa.select(c.name).where(
        c.ready, c.votes < c.wanted, c.senior == senior,
        sa.or_(c.rater.is_(None), c.rater == rater),
        ~sa.exists().where(VOTE.c.question == c.question, VOTE.c.rater == rater),
        c.votes + others < c.wanted,
    )  # fmt: skip


def is_held_by(rater: str) -> Any:
    """Return the condition that the rater has, or had, a lease of the item."""
    return sa.exists().where(LEASE.c.item == ITEM.c.name, LEASE.c.rater == rater)


def may_vote(base: sa.Connection, item: str, rater: str, now: float) -> bool:
    """Return whether the rater was given the item and it still has a place for them."""
    query = items_open_to(rater, now).where(is_held_by(rater), ITEM.c.name == item)
    return base.execute(query).first() is not None


def draft_query(item: str, rater: str) -> sa.Executable:
    """Return the query for a rater's draft: step, kept, answers."""
    return sa.select(DRAFT.c.step, DRAFT.c.kept, DRAFT.c.answers).where(*in_row(DRAFT, item, rater))


def row_key(item: str, rater: str) -> dict[str, str]:
    """Return the key of a rater's row for an item, as of the tables of leases, drafts and votes."""
    return {"item": item, "rater": rater}


def in_row(table: sa.Table, item: str, rater: str) -> tuple[Any, Any]:
    """Return the conditions that select a rater's row for an item."""
    return table.c.item == item, table.c.rater == rater
