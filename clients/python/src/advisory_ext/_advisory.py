"""The entry: locks, semaphores, leases and claims."""
from __future__ import annotations

from collections import namedtuple
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime, timezone
from typing import Any, Callable, ContextManager, Iterator, overload

from ._driver import (
    IDLE, IN_ERROR, LOST, ask, autocommit, borrow, interruptibly, is_pool, sqlstate, status,
    transaction)
from ._errors import AdvisoryError, LockLost, raise_if_taken
from ._lease import TAKE_LEASE, TAKE_SLOT, Keeper, Lease, hold_lease
from ._line import refuse_transaction_pooler
from ._values import NAMES, Name, Time, check_name, check_time, check_timeout, in_seconds


class Advisory:
    """Advisory(pool), or Advisory(connect).

    pool is a psycopg_pool.ConnectionPool. connect is a function that returns a new connection of
    psycopg 3 or psycopg2, which is closed after use, or a context manager that lends one, such as
    that of another pool.
    """

    def __init__(self, connect: Any):
        if not is_pool(connect) and not callable(connect):
            raise TypeError(
                'Advisory() needs a ConnectionPool, or a function that returns a connection')
        self._connect = connect

    def lock(self, namespace: Name, name: Name, *, timeout: Time | None = 0, shared: bool = False,
             scope: str = 'transaction') -> ContextManager[Any]:
        """with advisory.lock('billing', 'invoice:42') as connection: the block has the lock, and
        the connection that holds it.

        By default in a transaction, whose COMMIT or ROLLBACK releases the lock: what the block
        changes by this connection is visible when the next one gets the lock. With scope='session',
        without a transaction.
        """
        mode = '_shared' if shared else ''
        lock = _Lock(_names(namespace, name), f'{_taking(scope)}_lock{mode}({NAMES}, %s::interval)',
                     (check_timeout(timeout),), f'unlock{mode}({NAMES})')
        return self._hold(lock, scope, lambda connection, _: connection)

    @overload
    def slot(self, namespace: Name, name: Name, slots: int, *, timeout: Time | None = 0,
             scope: str = 'transaction') -> ContextManager[tuple[Any, int]]: ...

    @overload
    def slot(self, namespace: Name, name: Name, slots: int, *, ttl: Time, timeout: Time | None = 0,
             owner: str | None = None, max_hold: Time | None = None) -> ContextManager[Lease]: ...

    def slot(self, namespace: Name, name: Name, slots: int, *, ttl: Any = None, timeout: Any = 0,
             scope: str = 'transaction', owner: Any = None, max_hold: Any = None) -> Any:
        """with advisory.slot('workers', 'embedding', 4) as (connection, slot): the same with one of
        so many slots, from 1 on.

        with advisory.slot('workers', 'embedding', 4, ttl=30) as lease: the slot is lease.slot, and
        outlives the session, as a lease does.
        """
        if isinstance(slots, bool) or not isinstance(slots, int):
            raise TypeError(f'slots is an int, not {slots!r}')
        if ttl is not None:
            if scope != 'transaction':
                raise TypeError('a slot with a ttl has no scope')
            return self._lease(
                namespace, name, TAKE_SLOT, ttl, timeout, owner, max_hold, slots)
        if (owner, max_hold) != (None, None):
            raise TypeError('owner and max_hold are for a slot with a ttl')
        lock = _Lock(_names(namespace, name),
                     f'{_taking(scope)}_acquire({NAMES}, %s::integer, %s::interval)',
                     (slots, check_timeout(timeout)), f'release({NAMES}, %s::integer)')
        return self._hold(lock, scope, lambda connection, slot: (connection, slot))

    def lease(self, namespace: Name, name: Name, *, ttl: Time, timeout: Time | None = 0,
              owner: str | None = None, lock_delay: Time = 0,
              max_hold: Time | None = None) -> ContextManager[Lease]:
        """with advisory.lease('leader', 'mailer', ttl=30) as lease: for work that takes long, or
        that is not SQL.

        A thread renews it, on a connection of its own. Leaving the block raises LeaseLost if it was
        lost.
        """
        return self._lease(namespace, name, TAKE_LEASE, ttl, timeout, owner, max_hold,
                           check_time(lock_delay, 'lock_delay'))

    def _lease(self, namespace: Name, name: Name, take: str, ttl: Time, timeout: Time | None,
               owner: str | None, max_hold: Time | None, argument: Any) -> ContextManager[Lease]:
        options = (check_time(ttl, 'ttl'), check_timeout(timeout), owner,
                   check_timeout(max_hold, 'max_hold'), argument)
        return hold_lease(Keeper(self._connect, _names(namespace, name), take, options))

    def claim(self, namespace: Name, name: Name, every: Time, *,
              window_start: datetime | str | None = None, time_zone: str | None = None,
              connection: Any = None) -> datetime | None:
        """Claims the present window of time, such as this day: when it begins, in UTC; or None if
        it is claimed already.

        With connection, in its transaction: if that rolls back, the window can be claimed again.
        """
        if isinstance(window_start, datetime) and window_start.tzinfo is None:
            raise TypeError(f'window_start has a time zone, unlike {window_start!r}')
        values = (*_names(namespace, name), check_time(every, 'every'), window_start, time_zone)
        claimed = f'advisory.claim({NAMES}, %s::interval, %s::timestamptz, %s::text)'
        with self._transaction() if connection is None else nullcontext(connection) as its:
            [began] = ask(its, in_seconds(claimed), values)
            return None if began is None else datetime.fromtimestamp(began, timezone.utc)

    # ---- Both ways of holding --------------------------------------------------------------------

    @contextmanager
    def _hold(self, lock: _Lock, scope: str, lent: Callable[[Any, Any], Any]) -> Iterator[Any]:
        if scope == 'transaction':
            with self._transaction() as connection, _in_transaction(connection, lock) as value:
                yield lent(connection, value)
            return
        # Not in a transaction, which would hold back vacuum, and which a time limit could end.
        with borrow(self._connect) as connection, autocommit(connection, True):
            refuse_transaction_pooler(self._connect, connection, *lock.names)
            with _in_session(connection, lock) as value:
                yield lent(connection, value)

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with borrow(self._connect) as connection, transaction(connection):
            yield connection


# A lock or a semaphore: the calls that take and release it. Its names come first in their
# arguments.
_Lock = namedtuple('_Lock', 'names take values release')


@contextmanager
def _in_transaction(lent: Any, lock: _Lock) -> Iterator[Any]:
    value, at = _take(lent, lock)
    yield value
    if status(lent) == IN_ERROR:
        raise AdvisoryError('a statement of the work has failed: nothing is committed', *lock.names)
    # After a COMMIT, or COMMIT AND CHAIN, there may be another transaction already. One whose
    # connection is lost would end without an error, and without a commit.
    if status(lent) in {IDLE, LOST} or ask(lent, NOW) != (at,):
        raise LockLost('the transaction that held the lock has ended before the work', *lock.names)


@contextmanager
def _in_session(connection: Any, lock: _Lock) -> Iterator[Any]:
    value, _ = _take(connection, lock)
    try:
        yield value
    except BaseException:
        with suppress(AdvisoryError):       # the error of the work comes first
            _release(connection, lock, value)
        raise
    _release(connection, lock, value)


# Of the present transaction; in every time zone the same.
NOW = 'extract(epoch FROM pg_catalog.now())::text'


def _take(connection: Any, lock: _Lock) -> tuple:
    """The slot, if there is one, and the time at which the transaction began, if there is one."""
    in_session = lock.take.startswith('await_')
    try:
        if not in_session:
            return interruptibly(
                connection, f'advisory.{lock.take}, {NOW}', lock.names + lock.values)
        try:
            slot = interruptibly(
                connection, f'advisory.{lock.take}', lock.names + lock.values, 'CALL')
        except Exception as error:
            # Where transactions are REPEATABLE READ by default, nothing but a function can wait.
            if sqlstate(error) != '25001':
                raise
            slot = interruptibly(
                connection, f'advisory.{lock.take.replace("await_", "")}', lock.names + lock.values)
        return (slot or (True,))[0], None
    except Exception as error:
        raise_if_taken(error)
        # A cancel, or a time limit, may come between the lock and its answer. A transaction would
        # end with the error.
        if in_session:
            connection.close()
        raise


def _release(connection: Any, lock: _Lock, value: Any) -> None:
    """If the work has left a transaction open, it ends before the lock is free. If in doubt the
    session ends.
    """
    was_open = status(connection) != IDLE
    try:
        if was_open:
            # With autocommit, rollback() of psycopg2 does nothing.
            connection.cursor().execute('ROLLBACK')
        slot = () if isinstance(value, bool) else (value,)
        [was_held] = ask(connection, f'advisory.{lock.release}', lock.names + slot)
    except Exception as error:
        connection.close()
        raise LockLost(
            f'the lock could not be released at the end of the work: {error}'.rstrip(),
            *lock.names) from error
    if not was_held:
        connection.close()
        raise LockLost('the lock was no longer held at the end of the work', *lock.names)
    if was_open:
        raise AdvisoryError('the work has left a transaction open: it is rolled back', *lock.names)


def _names(*names: Name) -> tuple:
    return tuple(map(check_name, names))


def _taking(scope: str) -> str:
    """How the routine begins that takes a lock or slot.

    In session scope a procedure, which waits without a snapshot: a function would be in the way of
    what the work of its holder may be, such as CREATE INDEX CONCURRENTLY.
    """
    if scope not in ('transaction', 'session'):
        raise ValueError(f"scope is 'transaction' or 'session', not {scope!r}")
    return 'xact' if scope == 'transaction' else 'await'
