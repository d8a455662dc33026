"""Alembic for deployments that may start at the same time: one migrates, the others wait and then
find nothing to do.

    PGDATABASE=shop alembic -c alembic.ini upgrade head

A connection that does nothing else holds the lock for the whole run. It is on autocommit, so it has
no open transaction while the migrations run. CALL advisory.await_lock() waits without a snapshot,
so CREATE INDEX CONCURRENTLY of the other deployment does not wait for it. See "Wait without a
snapshot" in doc/locks.md.
"""
from logging.config import fileConfig

from alembic import context
from sqlalchemy import engine_from_config, pool, text

config = context.config
fileConfig(config.config_file_name, disable_existing_loggers=False)
engine = engine_from_config(config.get_section(config.config_ini_section), poolclass=pool.NullPool)

if context.is_offline_mode():
    raise SystemExit('this needs a database: not with --sql')

with engine.connect().execution_options(isolation_level='AUTOCOMMIT') as lock:
    lock.execute(text("CALL advisory.await_lock('migration', 'app', '10 min')"))
    # What is left to do is read in run_migrations(), under the lock.
    with engine.connect() as connection:
        context.configure(connection=connection, transaction_per_migration=True)
        with context.begin_transaction():
            context.run_migrations()
    # Raises an error if the connection, and with it the lock, was lost in between.
    lock.execute(text("SELECT advisory.unlock('migration', 'app')"))
