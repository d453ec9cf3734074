"""The history of the tables, for Alembic; :func:`impasto.study.store.connect` runs it."""
