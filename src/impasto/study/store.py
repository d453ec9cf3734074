"""Where votes are kept: SQLite in the folder of the study, or PostgreSQL by its URL.

A vote is on the disk before :meth:`Store.vote` returns. None is there twice: the page gives each a
random key that stays the same when it is sent again, and the database allows one standing vote on
each ballot of a participant.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import alembic.command
import alembic.config
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from impasto.study.tables import participants, votes
from impasto.types import ImpastoError

FILE = "votes.sqlite"
MIGRATIONS = Path(__file__).parent / "migrations"
MOST_PARTICIPANTS = 100_000  # whoever has the link may join; nobody may fill the disk
WAIT_SECONDS = 30  # for a lock, a connection or a server


class Conflict(ImpastoError):
    """A vote that does not fit what was voted before; the page shows the present ballot anew."""


class Unknown(ImpastoError):
    """A participant or vote that this study does not know."""


class Standing(NamedTuple):
    """How far a participant has come."""

    seat: int
    done: int  # ballots voted on; the next has this position
    last: str | None  # the key of the last vote, which can be taken back


class Choice(NamedTuple):
    """A vote as the report reads it."""

    participant: str
    seat: int
    position: int
    method: int
    milliseconds: int


@dataclass(frozen=True, kw_only=True)
class Store:
    """The votes of one study."""

    engine: sa.Engine
    study: str
    # SQLite has one writer at a time; here they wait in a line, there they would poll.
    line: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def join(self, participant: str) -> Standing:
        """Give a participant the next free seat, or the one they have."""
        with self._writing() as connection:
            if self.engine.name == "postgresql":  # SQLite has one writer anyway
                connection.execute(sa.text("LOCK TABLE participants IN SHARE ROW EXCLUSIVE MODE"))
            if standing := self._standing(connection, participant):
                return standing
            taken = sa.select(sa.func.count()).select_from(participants)
            seat = connection.scalar(taken.where(participants.c.study == self.study)) or 0
            if seat >= MOST_PARTICIPANTS:
                raise Conflict("this study has all the participants it can take")
            row = {"study": self.study, "id": participant, "seat": seat}
            connection.execute(participants.insert().values(row))
            return Standing(seat, 0, None)

    def standing(self, participant: str) -> Standing:
        """How far a participant has come."""
        with self.engine.connect() as connection:
            return _known(self._standing(connection, participant))

    def vote(self, participant: str, *, key: str, position: int, method: int) -> Standing:
        """Keep a vote for good; the same one again changes nothing."""
        with self._writing() as connection:
            standing = _known(self._standing(connection, participant, lock=True))
            said = self._vote(connection, key)
            if said is not None:
                if (said.participant, said.position, said.method) == (
                    participant,
                    position,
                    method,
                ):
                    return standing
                raise Conflict("this key belongs to another vote; reload the page")
            if position != standing.done:
                raise Conflict(f"ballot {position + 1} is not the next one; reload the page")
            row = {
                "study": self.study,
                "key": key,
                "participant": participant,
                "position": position,
                "method": method,
                "milliseconds": time.time_ns() // 1_000_000,
                "standing": True,
            }
            connection.execute(votes.insert().values(row))
            return Standing(standing.seat, position + 1, key)

    def withdraw(self, participant: str, *, key: str) -> Standing:
        """Take back the last vote; the same again changes nothing."""
        with self._writing() as connection:
            standing = _known(self._standing(connection, participant, lock=True))
            said = self._vote(connection, key)
            if said is None or said.participant != participant:
                raise Unknown("there is no such vote; reload the page")
            if said.standing:
                if key != standing.last:
                    raise Conflict("only the last vote can be taken back; reload the page")
                mine = (votes.c.study == self.study) & (votes.c.key == key)
                connection.execute(votes.update().where(mine).values(standing=False))
            return _known(self._standing(connection, participant))

    def choices(self) -> list[Choice]:
        """All standing votes, in the order of participants and ballots."""
        query = (
            sa.select(
                votes.c.participant,
                participants.c.seat,
                votes.c.position,
                votes.c.method,
                votes.c.milliseconds,
            )
            .join(participants)
            .where(votes.c.study == self.study, votes.c.standing)
            .order_by(participants.c.seat, votes.c.position)
        )
        with self.engine.connect() as connection:
            return [Choice(*row) for row in connection.execute(query)]

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction that is on the disk when the block has ended."""
        line = self.line if self.engine.name == "sqlite" else contextlib.nullcontext()
        with line, self.engine.connect() as connection:
            connection = connection.execution_options(writing=True)
            with connection.begin():
                yield connection

    def _standing(
        self, connection: sa.Connection, participant: str, *, lock: bool = False
    ) -> Standing | None:
        who = sa.select(participants.c.seat).where(
            participants.c.study == self.study, participants.c.id == participant
        )
        seat = connection.scalar(who.with_for_update() if lock else who)
        if seat is None:
            return None
        mine = (
            sa.select(votes.c.key)
            .where(votes.c.study == self.study, votes.c.participant == participant)
            .where(votes.c.standing)
            .order_by(votes.c.position)
        )
        keys = connection.scalars(mine).all()
        return Standing(seat, len(keys), keys[-1] if keys else None)

    def _vote(self, connection: sa.Connection, key: str) -> Any:
        query = sa.select(votes).where(votes.c.study == self.study, votes.c.key == key)
        return connection.execute(query).one_or_none()


def connect(url: str, study: str) -> Store:
    """The votes of a study in the database of a URL, its tables brought up to date."""
    try:
        engine = _engine(url)
        with engine.connect() as connection:
            connection = connection.execution_options(writing=True)
            with connection.begin():
                config = alembic.config.Config(attributes={"connection": connection})
                config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
                alembic.command.upgrade(config, "head")
    except (ArgumentError, NoSuchModuleError, ImportError) as problem:
        raise ImpastoError(
            f"the database {_unnamed(url)} cannot be used ({problem}); known are sqlite:///FILE "
            "and, after pip install impasto[postgres], postgresql://USER@HOST/NAME"
        ) from None
    except DBAPIError as problem:
        reason = " ".join(str(problem.orig).split())
        raise ImpastoError(f"the database {_unnamed(url)} does not answer: {reason}") from None
    return Store(engine=engine, study=study)


def local(folder: Path) -> str:
    """The URL of the database in the folder of a study."""
    return f"sqlite:///{(folder / FILE).resolve()}"


def _known(standing: Standing | None) -> Standing:
    if standing is None:
        raise Unknown("this study does not know this participant; begin anew")
    return standing


def _engine(text: str) -> sa.Engine:
    url = sa.make_url(text)
    if url.get_backend_name() == "postgresql":
        return sa.create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_size=10,
            pool_timeout=WAIT_SECONDS,
            pool_pre_ping=True,
            # Durable whatever the server's configuration says.
            connect_args={"options": "-c synchronous_commit=on", "connect_timeout": WAIT_SECONDS},
        )
    if url.get_backend_name() != "sqlite":
        raise ArgumentError(f"unknown kind {url.get_backend_name()}")
    engine = sa.create_engine(url, connect_args={"timeout": WAIT_SECONDS}, pool_size=10)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _: Any) -> None:
    """Every commit reaches the disk; readers do not wait for the writer."""
    connection.isolation_level = None  # transactions begin where we say
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    """Who will write says so first: a reader cannot become the writer while another is."""
    writing = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _unnamed(url: str) -> str:
    """The URL without its password."""
    try:
        return sa.make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return "URL"
