"""The tables of the ballot box, and the database that they are in: a SQLite file or PostgreSQL.

`votes=` is the path of a file, or `postgresql://USER@HOST/DATABASE`, the database (or the schema,
by `?options=-csearch_path=NAME`) being the ballot box's own. A password in it is never shown or
kept; without one libpq looks into PGPASSWORD and ~/.pgpass.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    URL,
    Boolean,
    Column,
    Connection,
    Double,
    Engine,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    create_engine,
    insert,
    inspect,
    make_url,
    select,
    update,
)
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError
from sqlalchemy.exc import TimeoutError as NoneFree
from sqlalchemy.schema import CreateIndex, CreateTable

from mustsee.errors import Transient, UserError, hide_secrets, secret

LOCK_TIMEOUT_S = 20  # seconds for whoever changes something before
MAX_CONNECTIONS = 10  # of one server; PostgreSQL allows 100 unless told otherwise
LIMITS = (
    f"-c lock_timeout={LOCK_TIMEOUT_S}s "
    f"-c idle_in_transaction_session_timeout={3 * LOCK_TIMEOUT_S}s"
)

TABLES = MetaData()
# One row, which every change changes first: so they come one after the other, in either database.
BOX = Table(
    "box", TABLES,
    Column("name", Text, primary_key=True), Column("changes", Integer),
)  # fmt: skip
RATER = Table(
    "rater", TABLES,
    Column("name", Text, primary_key=True), Column("hash", Text, unique=True),
    Column("expires", Double), Column("senior", Boolean),
)  # fmt: skip
ITEM = Table(
    "item", TABLES,
    Column("name", Text, primary_key=True), Column("question", Text), Column("round", Text),
    Column("place", Integer), Column("wanted", Integer), Column("senior", Boolean),
    Column("rater", Text), Column("after", Text), Column("ready", Boolean),
    Column("votes", Integer, server_default="0"),
)  # fmt: skip
LEASE = Table(
    "lease", TABLES,
    Column("item", Text, primary_key=True), Column("rater", Text, primary_key=True),
    Column("opened", Double), Column("until", Double),
)  # fmt: skip
DRAFT = Table(
    "draft", TABLES,
    Column("item", Text, primary_key=True), Column("rater", Text, primary_key=True),
    Column("step", Integer), Column("kept", JSON), Column("answers", JSON),
)  # fmt: skip
VOTE = Table(
    "vote", TABLES,
    Column("item", Text, primary_key=True), Column("rater", Text, primary_key=True),
    Column("question", Text), Column("answers", JSON), Column("seconds", Double),
    Column("active", Double), Column("at", Double), Column("correct", Boolean),
)  # fmt: skip
WANTING = (ITEM.c.votes < ITEM.c.wanted) & ITEM.c.ready
INDEXES = (
    Index("unfinished", ITEM.c.place, sqlite_where=WANTING, postgresql_where=WANTING),
    Index("same", ITEM.c.question),
    Index("met", VOTE.c.question, VOTE.c.rater),
)


def is_address(where: str | Path) -> bool:
    """Whether it is a database's address, not a path."""
    return "://" in str(where)


def display_name(where: str | Path) -> str:
    """What messages call it: a path as it is; an address without user, password and options."""
    if not is_address(where):
        return repr(str(where))
    url = _url(str(where))
    return f"'postgresql://{url.host or ''}{f':{url.port}' if url.port else ''}/{url.database}'"


def database(where: str | Path) -> Engine:
    """With connections that stay open: a SQLite file whose last one closes is tidied up each time,
    which takes longer than a vote. Raises UserError for an address that is none, or without its
    driver.
    """
    if is_address(where):
        url = _url(str(where))
        options = f"{url.query.get('options', '')} {LIMITS}"
        url = url.difference_update_query(["options"])
        arguments = {"options": options, "connect_timeout": LOCK_TIMEOUT_S}
    else:
        url, arguments = URL.create("sqlite", database=str(where)), {"timeout": LOCK_TIMEOUT_S}
    try:
        return create_engine(
            url,
            connect_args=arguments,
            pool_size=MAX_CONNECTIONS,
            max_overflow=0,
            pool_timeout=LOCK_TIMEOUT_S,
            pool_pre_ping=True,  # PostgreSQL may have been started anew
            hide_parameters=True,
        )
    except ImportError:
        raise UserError(
            f"votes={display_name(where)} needs a driver: pip install 'mustsee[postgresql]'"
        ) from None


def create_tables(base: Engine, where: str | Path) -> None:
    """Make the tables that are missing. Raises UserError for what is something else."""
    for last in (False, True):  # two servers that make the same table at once: one fails
        try:
            _made(base, where)
            return
        except DatabaseError as error:
            if last:
                raise UserError(
                    f"{display_name(where)} cannot be opened as a ballot box: {_said(error)}"
                ) from None


def has_items(base: Engine) -> bool:
    """Whether there are items to rate in it."""
    if not inspect(base).has_table("item"):
        return False
    with base.connect() as asked:
        return asked.execute(select(ITEM.c.name).limit(1)).first() is not None


def put(
    base: Connection,
    table: Table,
    key: Mapping[str, str],
    values: Mapping[str, Any],
    fresh: Mapping[str, Any] | None = None,
) -> None:
    """Change the row of a key; or add it, with what only a `fresh` one gets."""
    which = [table.c[name] == value for name, value in key.items()]
    if not base.execute(update(table).where(*which).values(**values)).rowcount:
        base.execute(insert(table).values(**key, **(fresh or {}), **values))


@contextmanager
def report_unreachable(where: Path | str) -> Generator[None]:
    """Says which database could not be reached, and no secret. Raises Transient."""
    try:
        yield
    except (OperationalError, NoneFree) as error:
        why = _said(error) if isinstance(error, OperationalError) else "too many wait for it"
        raise Transient(f"the votes in {display_name(where)} cannot be reached: {why}") from None


def _made(base: Engine, where: str | Path) -> None:
    with base.begin() as made:
        here = inspect(made)
        there = set(here.get_table_names())
        ours = [table for table in TABLES.sorted_tables if table.name in there]
        columns = {t.name: {c["name"] for c in here.get_columns(t.name)} for t in ours}
        if (there and not ours) or any(columns[t.name] != {*t.columns.keys()} for t in ours):
            raise UserError(
                f"{display_name(where)} is of another version of this job, or no ballot box: "
                "give another folder= or votes="
            )
        if base.dialect.name == "sqlite":
            made.exec_driver_sql("pragma journal_mode = wal")  # who reads waits for nobody
        for table in TABLES.sorted_tables:
            made.execute(CreateTable(table, if_not_exists=True))
        for index in INDEXES:
            made.execute(CreateIndex(index, if_not_exists=True))
        if made.execute(select(BOX.c.name)).first() is None:
            made.execute(insert(BOX).values(name="votes", changes=0))


def _said(error: DatabaseError) -> str:
    """What the database said, in a line, without secrets."""
    return hide_secrets(" ".join(str(error.orig).split()))


def _url(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # it may be in what they say
        url = None
    if url is None or url.drivername not in ("postgresql", "postgres") or not url.database:
        raise UserError("votes= is no path and no postgresql://USER@HOST/DATABASE")
    for value in (url.password, url.query.get("password"), url.query.get("sslpassword")):
        secret(str(value or ""))
    return url.set(drivername="postgresql+psycopg")
