"""Participants and votes."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "participants",
        sa.Column("study", sa.String(32), nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("seat", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("study", "id", name="pk_participants"),
        sa.UniqueConstraint("study", "seat", name="uq_participants_study_seat"),
    )
    op.create_table(
        "votes",
        sa.Column("study", sa.String(32), nullable=False),
        sa.Column("key", sa.String(32), nullable=False),
        sa.Column("participant", sa.String(32), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("method", sa.Integer, nullable=False),
        sa.Column("milliseconds", sa.BigInteger, nullable=False),
        sa.Column("standing", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("study", "key", name="pk_votes"),
        sa.ForeignKeyConstraint(
            ["study", "participant"],
            ["participants.study", "participants.id"],
            name="fk_votes_study_participant",
        ),
    )
    op.create_index(
        "uq_votes_standing",
        "votes",
        ["study", "participant", "position"],
        unique=True,
        sqlite_where=sa.text("standing"),
        postgresql_where=sa.text("standing"),
    )


def downgrade() -> None:
    """Go back."""
    op.drop_table("votes")
    op.drop_table("participants")
