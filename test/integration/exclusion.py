"""Sessions that take random locks. Used by portable.t, as node/exclusion.js, which does the same.

    exclusion.py NAMES OPERATIONS KIND...

Each KIND is a session: portable calls the edition's functions, keys computes the keys itself and
calls the built-in functions, slots takes slots of a semaphore. A second connection of each session
records who is in, so that the record does not depend on any lock.
"""
import hashlib
import json
import os
import random
import sys
import threading
import time
import traceback
from collections import Counter

import psycopg2

names = json.load(open(sys.argv[1], encoding='utf-8'))
operations = int(sys.argv[2])
tally = Counter()


def key(ns, name):
    """README's line."""
    return int.from_bytes(
        hashlib.sha256((ns + '\0' + name).encode()).digest()[:8], 'big', signed=True)


class Session(threading.Thread):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.locks, self.record = (
            psycopg2.connect('', application_name=use) for use in ('locks', 'record'))
        self.locks.autocommit = self.record.autocommit = True
        self.pid = self.locks.info.backend_pid

    def run(self):
        try:
            for _ in range(operations):
                self.operate()
        except BaseException:
            # Nobody shall wait for a lock of this session.
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)

    def sql(self, text, *values, connection=None):
        with (connection or self.locks).cursor() as cursor:
            cursor.execute(text, values)
            return cursor.fetchone()[0] if cursor.description else True

    def say(self, text, *values):
        return self.sql(text, *values, connection=self.record)

    def surely(self, text):
        """A cancel can come late."""
        while True:
            try:
                return self.sql(text)
            except psycopg2.errors.QueryCanceled:
                tally['late'] += 1

    def operate(self):
        ns, name, form = random.choice(names)
        is_try, is_xact, is_shared = (random.random() < 0.5 for _ in range(3))
        timeout = random.choice((0, 0, 1, 5, 30, None))
        interval = None if timeout is None else f'{timeout} ms'
        prefix = ('try_' if is_try else '') + ('xact_' if is_xact else '')
        suffix = '_shared' if is_shared else ''
        what, got, is_cancelled = ns + '/' + name, False, False
        try:
            if is_xact:
                self.sql('BEGIN')
            if self.kind == 'slots':
                got = self.sql(f"SELECT advisory.{prefix}acquire('slots', 'é', 2, %s)", interval)
                what, is_shared = f'slot {got}', False
                unlock = "SELECT advisory.release('slots', 'é', %s)", got
            elif self.kind == 'keys':
                self.sql('SET lock_timeout = %s', timeout or 0)
                builtin = ('pg_' + ('try_' if is_try else '') + 'advisory_'
                           + ('xact_' if is_xact else '') + 'lock' + suffix)
                got = self.sql(f'SELECT {builtin}(%s)', key(ns, name)) is not False
                unlock = f'SELECT pg_advisory_unlock{suffix}(%s)', key(ns, name)
            elif random.random() < 0.2:
                got = self.sql(
                    f'SELECT advisory.{prefix}lock{suffix}_key(%s, %s)', key(ns, name), interval)
                unlock = f'SELECT advisory.unlock{suffix}_key(%s)', key(ns, name)
            else:
                is_await = not is_xact and not is_try and random.random() < 0.5
                call = (f'CALL advisory.await_lock{suffix}' if is_await
                        else f'SELECT advisory.{prefix}lock{suffix}')
                got = self.sql(f'{call}(%s, %s::{form}, %s)', ns, name, interval)
                unlock = f'SELECT advisory.unlock{suffix}(%s, %s::{form})', ns, name
        except (psycopg2.errors.LockNotAvailable, psycopg2.errors.QueryCanceled) as error:
            is_cancelled = error.pgcode == '57014'
        if not got:
            tally[self.kind + (' cancelled' if is_cancelled else ' refused')] += 1
            if is_xact:
                self.surely('ROLLBACK')
            if is_cancelled or self.kind == 'keys':
                # A cancel can come after the grant, and after the error of lock_timeout a built-in
                # function's lock can be held.
                self.surely('SELECT pg_advisory_unlock_all()')
            else:
                self.say('CALL holds_nothing(%s)', self.pid)
            return
        tally[self.kind + ' taken'] += 1
        self.say('CALL enter(%s, %s, %s)', self.pid, what, is_shared)
        time.sleep(random.random() * 0.002)
        self.say('DELETE FROM inside WHERE pid = %s', self.pid)
        try:
            if is_xact:
                self.sql('COMMIT')
            elif not self.sql(*unlock):
                self.say('INSERT INTO wrong VALUES (%s)', f'{self.kind}: {what} was not held')
        except psycopg2.errors.QueryCanceled:
            tally['late'] += 1
            self.surely('ROLLBACK')
            self.surely('SELECT pg_advisory_unlock_all()')


def main():
    sessions = [Session(kind) for kind in sys.argv[3:]]
    for session in sessions:
        session.start()
    for session in sessions:
        session.join()
    print(json.dumps(tally))


if __name__ == '__main__':
    main()
