"""What Alembic runs: the migrations on the connection that it is given."""

from alembic import context

from impasto.study.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
