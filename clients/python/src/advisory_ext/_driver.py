"""The two drivers, psycopg 3 and psycopg2, and where connections come from."""
from __future__ import annotations

import sys
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager, suppress
from threading import Thread
from time import monotonic
from typing import Any, ContextManager, Iterator

IDLE, ACTIVE, IN_TRANSACTION, IN_ERROR, LOST = range(5)     # libpq's, as both drivers have them


def is_psycopg3(connection: Any) -> bool:
    return isinstance(connection, getattr(sys.modules.get('psycopg'), 'Connection', ()))


def ask(connection: Any, expression: str, values: tuple = (), verb: str = 'SELECT') -> Any:
    """The one row of a SELECT or CALL, as a tuple, whatever the connection's own cursors make of
    rows; () if it has none.

    psycopg 3 would give a name to a statement that it sends often, which old poolers could not
    carry.
    """
    if is_psycopg3(connection):
        from psycopg import Cursor, rows
        with Cursor(connection, row_factory=rows.tuple_row) as cursor:
            cursor.execute(f'{verb} {expression}', values, prepare=False)
            return cursor.fetchone() if cursor.description else ()
    from psycopg2.extensions import cursor as cursor_factory
    with connection.cursor(cursor_factory=cursor_factory) as cursor:
        cursor.execute(f'{verb} {expression}', values)
        return cursor.fetchone() if cursor.description else ()


def interruptibly(connection: Any, *question: Any) -> Any:
    """The same for what may take long. psycopg2 would not let Ctrl-C or a handler of a signal
    through, until it has its answer.
    """
    if is_psycopg3(connection):
        return ask(connection, *question)
    answer: Future = Future()

    def run() -> None:
        try:
            answer.set_result(ask(connection, *question))
        except BaseException as error:
            answer.set_exception(error)

    thread = Thread(target=run, name='advisory_ext wait', daemon=True)
    try:
        thread.start()
        return answer.result()
    except BaseException:
        # Ctrl-C: the server would go on, and the rollback wait for it. A cancel that comes before
        # the statement is lost.
        give_up = monotonic() + 10
        while thread.is_alive() and not answer.done() and monotonic() < give_up:
            with suppress(Exception):
                connection.cancel()
            wait([answer], 0.2)
        raise


def status(connection: Any) -> int:
    return connection.info.transaction_status


def sqlstate(error: BaseException) -> str | None:
    return getattr(error, 'sqlstate', None) or getattr(error, 'pgcode', None)


@contextmanager
def transaction(connection: Any) -> Iterator[None]:
    """Commits, or rolls back after an error. Fails on a connection that is in a transaction
    already.
    """
    if is_psycopg3(connection):
        # In a transaction, its transaction() would be a savepoint, which commits nothing.
        # autocommit cannot be set there.
        with autocommit(connection, True), connection.transaction():
            yield
        return
    # The connection's own context would hide an error of a connection that is broken by that of the
    # rollback.
    with autocommit(connection, False):
        try:
            yield
        except BaseException:
            with suppress(Exception):
                connection.rollback()
            raise
        connection.commit()


@contextmanager
def autocommit(connection: Any, value: bool) -> Iterator[None]:
    before = connection.autocommit
    connection.autocommit = value
    try:
        yield
    finally:
        if not connection.closed and status(connection) == IDLE:
            connection.autocommit = before


@contextmanager
def collect_warnings(connection: Any) -> Iterator[list]:
    """A list to which the server's warnings are appended. (psycopg2 has notices among them, whose
    severity is in the server's language.)
    """
    warnings: list = []

    def collect(diag: Any) -> None:
        if diag.severity_nonlocalized == 'WARNING':
            warnings.append(diag.message_primary)

    if not is_psycopg3(connection):
        yield connection.notices
        return
    connection.add_notice_handler(collect)
    yield warnings
    connection.remove_notice_handler(collect)


# ---- Connections ---------------------------------------------------------------------------------

def is_pool(connect: Any) -> bool:
    """Of psycopg_pool, which need not be installed."""
    return callable(getattr(connect, 'connection', None)) and hasattr(connect, 'connection_class')


@contextmanager
def borrow(connect: Any) -> Iterator[Any]:
    """A connection for the work."""
    made = connect.connection() if is_pool(connect) else connect()
    # A connection's own context would commit at its end, and in psycopg2 not close it.
    with closing(made) if hasattr(made, 'cursor') else made as connection:
        try:
            yield connection
        except BaseException as error:
            # Ctrl-C, at whatever moment: the server must not go on waiting for a lock, nor this
            # session have it.
            if not isinstance(error, Exception):
                if status(connection) == ACTIVE:
                    connection.cancel()
                connection.close()
            raise


def open_own(connect: Any) -> ContextManager[Any]:
    """A connection beside those of the pool: with a pool that is used up, we would wait for those
    who wait for us.
    """
    if not is_pool(connect):
        return borrow(connect)
    conninfo, kwargs = (it() if callable(it) else it for it in (connect.conninfo, connect.kwargs))
    return closing(connect.connection_class.connect(conninfo, **(kwargs or {})))
