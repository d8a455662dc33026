#!/usr/bin/env python3
"""A lease that is renewed in the background during the work. A holder that has lost it cannot write any more.

    with Lease('dbname=shop', 'leader', 'mailer', ttl=30) as lease:         # waits until it has it
        for letter in letters:
            lease.raise_if_lost()                       # before each step; lease.wait() instead of time.sleep()
            with connection, connection.cursor() as cursor:
                lease.check(cursor)                     # in each transaction that writes
                cursor.execute(…)
            write_fenced(directory, lease.token, text)  # everything outside the database compares tokens

As a program it shows that, with a report that has a line for each step, in a table and in a file. Start it several times, with
the name of the worker, the directory, the number of steps, how many seconds to sleep after each, the TTL if it is not 30, and how long
to wait for the lease:

    PGDATABASE=shop python3 lease.py worker-1 /var/tmp/report 100 2

Table: report (line bigint GENERATED ALWAYS AS IDENTITY, worker text, token bigint)
"""
import math
import os
import select
import signal
import sys
import threading
import time
from contextlib import closing, suppress
from datetime import timedelta

import psycopg2
from psycopg2.errors import ObjectNotInPrerequisiteState, ReadOnlySqlTransaction
from psycopg2.extensions import POLL_OK, POLL_READ


class LeaseLost(Exception):
    """Somebody else may have the lease: stop the work."""


class LeaseTaken(TimeoutError):
    """Somebody else had the lease for as long as we were willing to wait."""


class NotConfirmed(Exception):
    """The server has answered, but not without a warning."""


class Lease:
    """Held from the beginning to the end of a `with` block, or until LeaseLost says that it no longer is.

    A thread renews it on a connection of its own, at each third of its TTL. If that fails, it tries again on a new connection, until
    no renewal has succeeded for a whole TTL. That time begins before the call that succeeded, and is measured by the monotonic clock.

    Ctrl-C ends the block, and so the lease. Have SIGTERM do the same, as main() does.

    A block in which the lease was lost ends by LeaseLost, whatever else it raised. on_lost(error) is called at once, in whichever thread
    finds out; connection.cancel() of the connection that does the work is a good thing to do there.
    """

    def __init__(self, dsn, namespace, name, ttl=30, timeout=None, owner=None, on_lost=None):
        """ttl and timeout are in seconds. A timeout is how long to wait for the lease, and ends by LeaseTaken."""
        self._dsn, self._name, self._ttl, self._owner = dsn, (namespace, name), ttl, owner
        self._timeout = math.inf if timeout is None else timeout
        self._on_lost = on_lost
        self.token = None

    def __enter__(self):
        self._connection = None
        self._lost = None               # the LeaseLost, when it is
        self._losing = threading.Lock()
        self._wake = threading.Event()  # for those who sleep in wait()
        self._stop = threading.Event()
        warning = self._take()
        if warning:
            self._end()
            raise LeaseLost(f'the grant is not confirmed: {warning}')
        self._thread = threading.Thread(target=self._keep, name='lease', daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind, error, trace):
        self._stop.set()
        self._thread.join()             # not for longer than a third of the TTL
        self.is_lost()                  # as of now, not of when the server has answered
        self._end()
        if self._lost not in (None, error) and (kind is None or issubclass(kind, Exception)):
            raise self._lost from error

    # ---- For the work ----------------------------------------------------------------------------------------------

    def is_lost(self):
        # Not only the thread looks at the clock: if the process was stopped, the work may go on before the thread does.
        if self._lost is None and time.monotonic() >= self._until:
            self._lose(LeaseLost(f'no renewal has succeeded for {self._ttl} s'))
        return self._lost is not None

    def raise_if_lost(self):
        if self.is_lost():
            raise self._lost

    def wait(self, seconds):
        """As time.sleep(), but ends by LeaseLost as soon as the lease is lost."""
        self._wake.wait(seconds)
        self.raise_if_lost()

    def check(self, cursor):
        """In a transaction that writes: LeaseLost, or nobody else gets the lease before the transaction has ended."""
        self.raise_if_lost()
        try:
            cursor.execute('SELECT advisory.check_lease(%s, %s, %s)', (*self._name, self.token))
        except ObjectNotInPrerequisiteState as error:
            self._lose(LeaseLost(error.diag.message_primary))
            raise self._lost from error

    # ---- Behind it -------------------------------------------------------------------------------------------------

    def _take(self):
        """Waits in several short calls. The TTL of one that waited for long could be over by the time that it began.

        If the connection is lost meanwhile, or the server restarts or fails over, it goes on with a new connection. (If the answer was lost
        that we have the lease, it is free again when its TTL is over.) But if the server cannot be reached to begin with, the error comes out.
        """
        third = self._ttl / 3
        give_up = time.monotonic() + self._timeout
        has_answered = False
        while True:
            before = time.monotonic()
            wait = max(0, min(third, give_up - before))
            try:
                (self.token, _), warning = self._ask(wait + third, 'SELECT * FROM advisory.try_lease(%s, %s, %s, %s, %s)', *self._name,
                                                     timedelta(seconds=self._ttl), timedelta(seconds=wait), self._owner)
            except (psycopg2.OperationalError, psycopg2.InterfaceError, ReadOnlySqlTransaction, TimeoutError):
                if not has_answered or time.monotonic() >= give_up:
                    raise
                time.sleep(self._ttl / 30)
                continue
            has_answered = True
            self._until = before + self._ttl
            if self.token is not None:
                return warning
            if time.monotonic() >= give_up:
                self._disconnect()
                raise LeaseTaken('somebody else has the lease')

    def _lose(self, error):
        with self._losing:
            if self._lost is not None:
                return
            self._lost = error
        self._wake.set()
        if self._on_lost:
            self._on_lost(error)

    def _keep(self):
        pause = self._ttl / 3
        while not self._stop.wait(pause):
            try:
                self._renew()
                pause = max(0, self._until - self._ttl * 2 / 3 - time.monotonic())
            except LeaseLost as lost:
                self._lose(lost)
            except (psycopg2.Error, NotConfirmed, TimeoutError):
                pause = self._ttl / 30          # then again, on a new connection if it was lost
            if self.is_lost():
                return

    def _renew(self):
        before = time.monotonic()
        (expires_at,), warning = self._ask(min(self._ttl / 3, self._until - before),
                                           'SELECT advisory.renew_lease(%s, %s, %s)', *self._name, self.token)
        if expires_at is None:
            raise LeaseLost('it was ended, or somebody else has it')
        if warning:
            raise NotConfirmed(warning)
        self._until = before + self._ttl

    def _end(self):
        """If the server does not answer, the lease ends by itself when its TTL is over."""
        try:
            (ended,), _ = self._ask(self._ttl / 3, 'SELECT advisory.end_lease(%s, %s, %s)', *self._name, self.token)
            if not ended:
                self._lose(LeaseLost('it was no longer ours at the end'))
        except (psycopg2.Error, TimeoutError):
            pass
        self._disconnect()

    def _ask(self, seconds, statement, *values):
        """The row, if it comes within this time, and what the server warned of. After any error the next call makes a new connection.

        If somebody cancels a COMMIT that waits for the synchronous standby, the server reports success, and a WARNING. Its SQLSTATE is
        01000, as of others, and its text is in the server's language. So any warning is taken for that one.
        """
        until = time.monotonic() + seconds
        try:
            if self._connection is None:
                # Asynchronous, so that a server that does not answer keeps us no longer than we want.
                self._connection = psycopg2.connect(self._dsn, async_=True)
                self._wait_for_server(until)
            cursor = self._connection.cursor()
            del self._connection.notices[:]
            cursor.execute(statement, values)
            self._wait_for_server(until)
            return cursor.fetchone(), ''.join(self._connection.notices)
        except BaseException:
            self._disconnect()
            raise

    def _wait_for_server(self, until):
        while (state := self._connection.poll()) != POLL_OK:
            sockets = [self._connection]
            reads, writes = (sockets, []) if state == POLL_READ else ([], sockets)
            if select.select(reads, writes, [], max(0, until - time.monotonic())) == ([], [], []):
                raise TimeoutError('the server does not answer')

    def _disconnect(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None


# ---- Outside the database ------------------------------------------------------------------------------------------

DIGITS = 19


class StaleToken(Exception):
    """Somebody with a greater token was here before."""


def write_fenced(directory, token, content):
    """Makes this the content, or raises StaleToken.

    The directory has a file for each token. That of the greatest one is the content, so what comes late with a smaller one changes
    nothing. No lock is needed, and a write is there as a whole, or not at all, also after a crash.
    """
    path = os.path.join(directory, f'{token:0{DIGITS}}')
    _refuse_if_stale(directory, token)
    with open(f'{path}.new', 'w', encoding='utf-8') as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    with suppress(FileNotFoundError):           # a greater token may have cleared it away
        os.rename(f'{path}.new', path)
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    try:
        _refuse_if_stale(directory, token)      # once more: only now all who come later see ours
    except StaleToken:
        with suppress(FileNotFoundError):
            os.unlink(path)
        raise
    for other in os.listdir(directory):
        if _token_of(other) < token:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(directory, other))


def read_newest(directory):
    """The content with the greatest token, or None."""
    while names := [name for name in os.listdir(directory) if not name.endswith('.new')]:
        with suppress(FileNotFoundError):       # a greater one may have come meanwhile
            with open(os.path.join(directory, max(names)), encoding='utf-8') as file:
                return file.read()
    return None


def _token_of(name):
    return int(name[:DIGITS])


def _refuse_if_stale(directory, token):
    greatest = max(map(_token_of, os.listdir(directory)), default=0)
    if greatest > token:
        raise StaleToken(f'token {token} is stale, {greatest} was here')


# ---- A program that uses both --------------------------------------------------------------------------------------

def add_line(connection, lease, worker, directory):
    with connection, connection.cursor() as cursor:
        lease.check(cursor)
        cursor.execute('INSERT INTO report (worker, token) VALUES (%s, %s)', (worker, lease.token))
        cursor.execute("SELECT string_agg(line || ' by ' || worker || E'\\n', '' ORDER BY line) FROM report")
        [report] = cursor.fetchone()
    write_fenced(directory, lease.token, report)


def main(worker, directory, steps, pause, ttl='30', timeout='inf'):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('ended by SIGTERM'))
    os.makedirs(directory, exist_ok=True)
    try:
        with Lease(f'application_name={worker}-lease', 'report', 'daily', ttl=float(ttl), timeout=float(timeout), owner=worker,
                   on_lost=lambda error: print(f'{worker}: the lease is lost', flush=True)) as lease, \
                closing(psycopg2.connect('', application_name=worker)) as connection:
            print(f'{worker} has the lease, token {lease.token}', flush=True)
            for _ in range(int(steps)):
                add_line(connection, lease, worker, directory)
                lease.wait(float(pause))
        print(f'{worker} is done')
    except LeaseTaken as error:
        sys.exit(f'{worker} does not begin: {error}')
    except (LeaseLost, StaleToken) as error:
        sys.exit(f'{worker} stops: {error}')


if __name__ == '__main__':
    main(*sys.argv[1:])
