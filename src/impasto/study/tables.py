"""The tables of a study's database; how they came to be is in ``migrations``."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
    text,
)

WORD = String(32)  # 128 random bits in hexadecimal digits
METADATA = MetaData(
    naming_convention={  # so that a later migration can name what it changes
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Somebody: a random word and the number of the sequence they were dealt, nothing else.
participants = Table(
    "participants",
    METADATA,
    Column("study", WORD, nullable=False),
    Column("id", WORD, nullable=False),
    Column("seat", Integer, nullable=False),
    PrimaryKeyConstraint("study", "id"),
    UniqueConstraint("study", "seat"),
)

# A choice. One that was taken back stays, so that a late repetition does not revive it.
votes = Table(
    "votes",
    METADATA,
    Column("study", WORD, nullable=False),
    Column("key", WORD, nullable=False),  # random, chosen by the page: the same vote has the same
    Column("participant", WORD, nullable=False),
    Column("position", Integer, nullable=False),  # in the participant's sequence
    Column("method", Integer, nullable=False),
    Column("milliseconds", BigInteger, nullable=False),  # since 1970
    Column("standing", Boolean, nullable=False),
    PrimaryKeyConstraint("study", "key"),
    ForeignKeyConstraint(["study", "participant"], ["participants.study", "participants.id"]),
    # Never two standing votes on one ballot: the database itself sees to it.
    Index(
        "uq_votes_standing",
        "study",
        "participant",
        "position",
        unique=True,
        sqlite_where=text("standing"),
        postgresql_where=text("standing"),
    ),
)
