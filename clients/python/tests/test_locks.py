"""Locks, semaphores and claims."""
import pickle
import time
import unittest
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta, timezone
from unittest import mock

from support import (
    IS_PSYCOPG3, Case, LockNotAvailable, QueryCanceled, connect, driver, execute, wait_until)

from advisory_ext import Advisory, AdvisoryError, LockLost, NotAvailable
from advisory_ext._driver import interruptibly
from advisory_ext._errors import raise_if_taken


class Locks(Case):
    def setUp(self):
        super().setUp()
        execute(self.look, 'DROP TABLE IF EXISTS note')
        execute(self.look, 'CREATE TABLE note (text text)')

    def notes(self):
        return [text for text, in execute(self.look, 'SELECT text FROM note ORDER BY 1')]

    def test_transaction(self):
        with self.advisory.lock(self.namespace, 7) as connection:
            self.assertTrue(self.is_locked('7'))
            execute(connection, "INSERT INTO note VALUES ('committed')")
            self.assertEqual(self.notes(), [])
        self.assertFalse(self.is_locked('7'))
        self.assertEqual(self.notes(), ['committed'])
        self.assertTrue(connection.closed)

    def test_error_of_the_work(self):
        error = KeyError('mine')
        for scope in ('transaction', 'session'):
            with self.assertRaises(KeyError) as raised:
                with self.advisory.lock(self.namespace, 'job', scope=scope) as connection:
                    if scope == 'transaction':
                        execute(connection, "INSERT INTO note VALUES ('never')")
                    raise error
            self.assertIs(raised.exception, error)
            self.assertFalse(self.is_locked('job'))
            self.assertEqual(self.notes(), [])

    def test_not_available(self):
        other = Advisory(lambda: connect(application_name='an "odd", holds it in name'))
        for scope in ('transaction', 'session'):
            with other.lock(self.namespace, "it's", scope=scope) as connection:
                pid = connection.info.backend_pid
                with self.assertRaises(NotAvailable) as raised:
                    with self.advisory.lock(self.namespace, "it's"):
                        self.fail('both have it')
                error = raised.exception
                self.assertEqual((error.namespace, error.name), (self.namespace, "it's"))
                self.assertEqual(
                    error.holder[:3], (pid, connection.info.user, 'an "odd", holds it in name'))
                self.assertRegex(
                    error.holder.text, rf'\AProcess {pid} of role ".*, holds it in exclusive mode')
                self.assertEqual(
                    str(error), f'could not obtain advisory lock "{self.namespace}/it\'s" '
                    f'without waiting\n{error.holder.text}')
                self.assertEqual(
                    error.remedy, f"SELECT advisory.terminate_holder('{self.namespace}', 'it''s', "
                    f"{pid}, kind => 'lock')")
                self.assertIsInstance(error.__cause__, LockNotAvailable)
                self.assertIsInstance(error, AdvisoryError)

    def test_remedy(self):
        with self.assertRaises(driver.OperationalError if IS_PSYCOPG3 else driver.DatabaseError):
            with self.advisory.lock(self.namespace, 'job') as connection:
                with self.assertRaises(NotAvailable) as raised:
                    with self.advisory.lock(self.namespace, 'job'):
                        self.fail('both have it')
                self.assertTrue(self.ask(raised.exception.remedy))
                execute(connection, 'SELECT 1')
        self.assertFalse(self.is_locked('job'))

    def test_prepared_transaction_holds_it(self):
        gid = f"it's {self.ask('SELECT current_database()')}"       # they are of the server
        quoted = gid.replace("'", "''")
        execute(self.look, 'BEGIN')
        execute(self.look, 'SELECT advisory.xact_lock(%s, %s)', self.namespace, 'job')
        execute(self.look, f"PREPARE TRANSACTION '{quoted}'")
        with self.assertRaises(NotAvailable) as raised:
            with self.advisory.lock(self.namespace, 'job'):
                self.fail('both have it')
        self.assertEqual(raised.exception.holder[:3], (None, None, None))
        # (The portable edition does not know.)
        self.assertIn(raised.exception.remedy, (None, f"ROLLBACK PREPARED '{quoted}'"))
        execute(self.look, f"ROLLBACK PREPARED '{quoted}'")

    def test_shared(self):
        for scope in ('transaction', 'session'):
            with self.advisory.lock(self.namespace, 'job', shared=True, scope=scope), \
                    self.advisory.lock(self.namespace, 'job', shared=True, scope=scope):
                with self.assertRaises(NotAvailable):
                    with self.advisory.lock(self.namespace, 'job'):
                        self.fail('it is not free')
            self.assertFalse(self.is_locked('job'))

    def test_timeouts(self):
        with self.advisory.lock(self.namespace, 'job'):
            for timeout in (timedelta(milliseconds=200), 0.2, '200ms'):
                begun = time.monotonic()
                with self.assertRaisesRegex(NotAvailable, 'within 200 ms'):
                    with self.advisory.lock(self.namespace, 'job', timeout=timeout):
                        self.fail('both have it')
                self.assertGreater(time.monotonic() - begun, 0.19)
            self.assertRaises(TypeError, self.advisory.lock, self.namespace, 'job', timeout='5000')
            self.assertRaises(ValueError, self.advisory.lock, self.namespace, 'job', timeout=-1)

        def take(timeout):
            with self.advisory.lock(self.namespace, 'job', timeout=timeout):
                return 'had it'

        for timeout in (60, None):
            with self.advisory.lock(self.namespace, 'job'):
                waiter = self.in_thread(lambda: take(timeout))
                wait_until('it waits', self.waiters)
            self.assertEqual(waiter(), 'had it')

    def test_wrong_arguments(self):
        self.assertRaises(ValueError, self.advisory.lock, self.namespace, '')
        self.assertRaises(ValueError, self.advisory.lock, self.namespace, 'job', scope='sesion')
        self.assertRaises(TypeError, self.advisory.slot, self.namespace, 'job', '3')
        self.assertRaises(TypeError, Advisory, 'dbname=shop')
        with self.assertRaises(driver.Error) as raised:
            with self.advisory.slot(self.namespace, 'job', 0):
                self.fail('a semaphore without slots')
        self.assertNotIsInstance(raised.exception, AdvisoryError)

    def test_swallowed_error(self):
        with self.assertRaisesRegex(
                AdvisoryError, 'a statement of the work has failed: nothing is committed'):
            with self.advisory.lock(self.namespace, 'job') as connection:
                execute(connection, "INSERT INTO note VALUES ('never')")
                with self.assertRaises(driver.Error):
                    execute(connection, 'SELECT 1 / 0')
        self.assertEqual(self.notes(), [])

    def test_transaction_ended_by_the_work(self):
        for ends in ('COMMIT', 'ROLLBACK'):
            with self.assertRaises(LockLost):
                with self.advisory.lock(self.namespace, 'job') as connection:
                    execute(connection, ends)
        with self.assertRaises(driver.ProgrammingError if IS_PSYCOPG3 else LockLost):
            with self.advisory.lock(self.namespace, 'job') as connection:
                connection.commit()
                execute(connection, "INSERT INTO note VALUES ('never')")
        self.assertEqual(self.notes(), [])

    @unittest.skipUnless(IS_PSYCOPG3, 'psycopg2 has no Rollback')
    def test_rollback(self):
        with self.advisory.lock(self.namespace, 'job') as connection:
            execute(connection, "INSERT INTO note VALUES ('never')")
            raise driver.Rollback
        self.assertEqual(self.notes(), [])

    def test_session(self):
        with self.advisory.lock(self.namespace, 'job', scope='session') as connection:
            for step in range(3):
                self.assertTrue(self.is_locked('job'))
                execute(connection, 'INSERT INTO note VALUES (%s)', str(step))
                self.assertEqual(self.ask(
                    'SELECT state FROM pg_stat_activity WHERE pid = %s',
                    connection.info.backend_pid), 'idle')
                self.assertEqual(len(self.notes()), step + 1)
        self.assertFalse(self.is_locked('job'))

    def test_session_lost(self):
        with self.assertRaisesRegex(LockLost, 'no longer held at the end of the work'):
            with self.advisory.lock(self.namespace, 'job', scope='session') as connection:
                execute(connection, 'SELECT pg_advisory_unlock_all()')
        self.assertTrue(connection.closed)
        with self.assertRaisesRegex(
                LockLost, 'could not be released at the end of the work') as raised:
            with self.advisory.lock(self.namespace, 'job', scope='session') as connection:
                self.ask('SELECT pg_terminate_backend(%s)', connection.info.backend_pid)
        self.assertIsInstance(raised.exception.__cause__, driver.OperationalError)
        with self.assertRaises(KeyError):
            with self.advisory.lock(self.namespace, 'job', scope='session') as connection:
                execute(connection, 'SELECT pg_advisory_unlock_all()')
                raise KeyError('the error of the work comes first')

    def test_session_with_open_transaction(self):
        with self.assertRaisesRegex(AdvisoryError, 'left a transaction open'):
            with self.advisory.lock(self.namespace, 'job', scope='session') as connection:
                execute(connection, 'BEGIN')
                execute(connection, "INSERT INTO note VALUES ('never')")
        self.assertFalse(self.is_locked('job'))
        self.assertEqual(self.notes(), [])

        kept = connect()
        self.addCleanup(kept.close)
        with self.assertRaisesRegex(AdvisoryError, 'left a transaction open'):
            with Advisory(lambda: nullcontext(kept)).lock(self.namespace, 'job', scope='session'):
                execute(kept, 'BEGIN')
                execute(kept, "INSERT INTO note VALUES ('never')")
        self.assertFalse(self.is_locked('job'))
        self.assertEqual(execute(kept, 'SELECT text FROM note'), [])

        with self.assertRaises(driver.DataError):
            with self.advisory.lock(self.namespace, 'job', scope='session') as connection:
                execute(connection, 'BEGIN')
                execute(connection, 'SELECT 1 / 0')
        self.assertFalse(self.is_locked('job'))

    def test_lent_connection(self):
        """A context manager that keeps its connection: it comes back as it was."""
        kept = connect()
        self.addCleanup(kept.close)

        @contextmanager
        def lend():
            yield kept

        for autocommit in (False, True):
            kept.autocommit = autocommit
            for _ in range(8):
                with Advisory(lend).lock(self.namespace, 'job'), self.assertRaises(NotAvailable):
                    with self.advisory.lock(self.namespace, 'job'):
                        self.fail('both have it')
                held = Advisory(lend).slot(self.namespace, 'job', 2, scope='session')
                with held as (connection, _):
                    self.assertIs(connection, kept)
                    self.assertTrue(kept.autocommit)
                self.assertEqual(kept.autocommit, autocommit)
        self.assertEqual(execute(kept, 'SELECT count(*) FROM pg_prepared_statements')[0][0], 0)
        self.assertEqual(execute(
            kept, 'SELECT count(*) FROM pg_locks WHERE locktype = %s AND pid = pg_backend_pid()',
            'advisory')[0][0], 0)

    def test_connection_in_a_transaction(self):
        """What is done by it could neither be committed at the end, nor release the lock."""
        def make():
            connection = connect()
            self.addCleanup(connection.close)
            execute(connection, "SET statement_timeout = '1min'")
            return connection

        for scope in ('transaction', 'session'):
            with self.assertRaises(driver.ProgrammingError):
                with Advisory(make).lock(self.namespace, 'job', scope=scope):
                    self.fail('nothing would be committed')
            self.assertFalse(self.is_locked('job'))
        self.assertRaises(
            driver.ProgrammingError, Advisory(make).claim, self.namespace, 'job', '1 day')
        self.assertIsNotNone(self.advisory.claim(self.namespace, 'job', '1 day'))

    @unittest.skipUnless(IS_PSYCOPG3, 'rows are dictionaries in psycopg 3 only')
    def test_other_rows(self):
        from psycopg import ClientCursor
        from psycopg.rows import dict_row
        advisory = Advisory(lambda: connect(row_factory=dict_row, cursor_factory=ClientCursor))
        with advisory.slot(self.namespace, 'job', 2) as (connection, slot):
            self.assertEqual(slot, 1)
            self.assertEqual(connection.execute('SELECT 1 AS one').fetchone(), {'one': 1})
        with advisory.lease(self.namespace, 'job', ttl=5) as lease:
            self.assertGreater(lease.token, 0)

    @unittest.skipUnless(IS_PSYCOPG3, 'psycopg_pool is of psycopg 3')
    def test_pool(self):
        from psycopg_pool import ConnectionPool
        with ConnectionPool('application_name=pooled', min_size=1, max_size=1) as pool:
            advisory = Advisory(pool)
            with advisory.lock(self.namespace, 'job') as connection:
                # The pool is used up, and yet the lease has its own connection.
                with advisory.lease(self.namespace, 'job', ttl=5):
                    self.assertEqual(self.ask(
                        'SELECT count(*) FROM advisory.leases WHERE namespace = %s',
                        self.namespace), 1)
                execute(connection, "INSERT INTO note VALUES ('committed')")
            with advisory.lock(self.namespace, 'job', scope='session'):
                self.assertTrue(self.is_locked('job'))
            with self.assertRaises(LockLost):
                with advisory.lock(self.namespace, 'job', scope='session') as connection:
                    execute(connection, 'SELECT pg_advisory_unlock_all()')
            with pool.connection() as other:
                self.assertIsNot(
                    other, connection, 'a connection that lost its lock does not come back')
                self.assertFalse(other.autocommit)
        self.assertEqual(self.notes(), ['committed'])

    def test_slots(self):
        for scope in ('transaction', 'session'):
            first, second = (self.advisory.slot(self.namespace, 'workers', 2, scope=scope)
                             for _ in range(2))
            with first as (connection, one), second as (_, two):
                self.assertEqual((one, two), (1, 2))
                with self.assertRaises(NotAvailable) as raised:
                    with self.advisory.slot(self.namespace, 'workers', 2):
                        self.fail('there are only two')
                self.assertEqual(raised.exception.holder[:3], (
                    connection.info.backend_pid, connection.info.user, 'work'))
                self.assertIn('has slot 1', raised.exception.holder.text)
                self.assertIn('terminate_holder', raised.exception.remedy)
            self.assertEqual(self.ask(
                'SELECT count(*) FROM advisory.locks WHERE namespace = %s', self.namespace), 0)
        with self.assertRaises(LockLost):
            held = self.advisory.slot(self.namespace, 'workers', 2, scope='session')
            with held as (connection, slot):
                execute(
                    connection, 'SELECT advisory.release(%s, %s, %s::integer)', self.namespace,
                    'workers', slot)

    def test_locked_table(self):
        """The same SQLSTATE, but it is not of a lock of ours."""
        execute(self.look, 'BEGIN')
        execute(self.look, 'LOCK TABLE note')
        with self.assertRaises(LockNotAvailable) as raised:
            with self.advisory.lock(self.namespace, 'job') as connection:
                execute(connection, 'LOCK TABLE note NOWAIT')
        self.assertIsNone(raise_if_taken(raised.exception))
        execute(self.look, 'ROLLBACK')

    def test_cancelled(self):
        def take():
            with self.advisory.lock(self.namespace, 'job', timeout=60):
                pass

        with self.advisory.lock(self.namespace, 'job'):
            waiter = self.in_thread(take)
            wait_until('it waits', self.waiters)
            for pid in self.waiters():
                self.ask('SELECT pg_cancel_backend(%s)', pid)
            self.assertRaises(QueryCanceled, waiter)
        take()

    def test_interrupted(self):
        for scope in ('transaction', 'session'):
            with self.advisory.lock(self.namespace, 'job'):
                waiter = self.program(
                    f"with advisory.lock({self.namespace!r}, 'job', timeout=None, scope={scope!r}):"
                    ' pass')
                wait_until('it waits', self.waiters)
                self.assertRegex(self.interrupt(waiter), r'KeyboardInterrupt\n\Z')
                wait_until('nobody waits', lambda: not self.waiters())
            self.assertFalse(self.is_locked('job'))

    def test_connection_is_lost_in_the_block(self):
        """And the block does not care: nothing is committed, so the end must not look like a good
        one.
        """
        with self.assertRaises(LockLost):
            with self.advisory.lock(self.namespace, 'job') as connection:
                self.ask('SELECT pg_terminate_backend(%s)', connection.info.backend_pid)
                with self.assertRaises(driver.Error):
                    execute(connection, 'SELECT 1')

    def test_pickled(self):
        """As on its way out of a process of a pool."""
        mine = self.advisory.lock(self.namespace, 'job')
        with mine, self.assertRaises(NotAvailable) as raised, \
                self.advisory.lock(self.namespace, 'job'):
            pass
        error = raised.exception
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(copy), copy.holder, copy.remedy, copy.name),
                         (str(error), error.holder, error.remedy, error.name))

    def test_cancelled_when_it_is_taken(self):
        """Before the answer is sent, which takes longer here."""
        kept = connect(options='-c statement_timeout=300')
        self.addCleanup(kept.close)
        def late(connection, *question):
            interruptibly(connection, *question)
            execute(connection, 'SELECT pg_sleep(60)')

        for scope in ('transaction', 'session'):
            with mock.patch('advisory_ext._advisory.interruptibly', late), \
                    self.assertRaises(QueryCanceled):
                with Advisory(lambda: nullcontext(kept)).lock(self.namespace, 'job', scope=scope):
                    self.fail('it is not known whether it is held')
            wait_until('it is free', lambda: not self.is_locked('job'))

    def test_migration(self):
        """Two replicas build an index under the lock: who waits for the lock is not in the way of
        the index.
        """
        for timeout in (20, None):
            execute(self.look, 'DROP TABLE IF EXISTS migrated')
            execute(self.look, 'CREATE TABLE migrated (id int)')

            def migrate():
                held = self.advisory.lock(
                    self.namespace, 'migration', scope='session', timeout=timeout)
                with held as connection:
                    time.sleep(0.2)         # the other one waits
                    execute(
                        connection,
                        'CREATE INDEX CONCURRENTLY IF NOT EXISTS migrated_id ON migrated (id)')

            for replica in [self.in_thread(migrate), self.in_thread(migrate)]:
                replica()
            self.assertTrue(self.ask(
                "SELECT indisvalid FROM pg_index WHERE indexrelid = 'migrated_id'::regclass"))

    def test_repeatable_read(self):
        """A session whose transactions are that by default waits, too."""
        advisory = Advisory(
            lambda: connect(options=r'-c default_transaction_isolation=repeatable\ read'))

        def take():
            with advisory.lock(self.namespace, 'job', scope='session', timeout=30):
                return 'at last'

        with self.advisory.lock(self.namespace, 'job', scope='session'):
            waiter = self.in_thread(take)
            time.sleep(0.5)                     # it waits
        self.assertEqual(waiter(), 'at last')
        with advisory.slot(self.namespace, 'job', 3, scope='session') as (_, slot):
            self.assertEqual(slot, 1)

    def test_time_zone_of_the_work(self):
        with self.advisory.lock(self.namespace, 'job') as connection:
            execute(connection, "SET LOCAL TIME ZONE 'Asia/Tokyo'")
            execute(connection, "SET LOCAL datestyle = 'SQL, DMY'")

    def test_waits_without_a_snapshot(self):
        for call, *arguments in ((self.advisory.lock,), (self.advisory.slot, 1)):
            def hold(**how):
                return call(self.namespace, 'job', *arguments, scope='session', **how)

            def take():
                with hold(timeout=None):
                    pass

            with hold():
                waiter = self.in_thread(take)
                wait_until('it waits', lambda: self.ask(
                    'SELECT count(*) FROM pg_stat_activity '
                    "WHERE query LIKE 'CALL advisory.await_%%' "
                    # The portable edition has one only for as long as it looks.
                    "AND (backend_xmin IS NULL OR advisory.edition() = 'portable') "
                    "AND backend_xid IS NULL AND state = 'active' "
                    'AND datname = current_database() AND pid <> %s', 0))
            waiter()

    def test_interrupted_at_the_end(self):
        """A connection that is kept does not come back with the lock."""
        kept = connect()
        self.addCleanup(kept.close)
        with mock.patch('advisory_ext._advisory._release', side_effect=KeyboardInterrupt), \
                self.assertRaises(KeyboardInterrupt):
            with Advisory(lambda: nullcontext(kept)).lock(self.namespace, 'job', scope='session'):
                self.assertTrue(self.is_locked('job'))
        wait_until('it is free', lambda: not self.is_locked('job'))

    def test_claims(self):
        def claim(**how):
            return self.advisory.claim(self.namespace, 'job', '1 day', **how)

        midnight = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
        with connect() as connection:
            self.assertIn(claim(connection=connection), (midnight, midnight + timedelta(days=1)))
            connection.rollback()
        self.assertIsNotNone(claim(), 'what was rolled back can be claimed again')
        self.assertIsNone(claim())
        noon = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
        self.assertIsNone(claim(window_start=noon), 'an older one')
        self.assertEqual(self.advisory.claim(
            self.namespace, 'other', timedelta(days=1), window_start=noon), noon)
        self.assertEqual(
            self.advisory.claim(self.namespace, 'text', 86400, window_start='2026-01-01 12:00+02'),
            noon - timedelta(hours=2))
        for _ in range(2):
            with self.assertRaises(ValueError):     # it has no datetime, and is not claimed
                self.advisory.claim(self.namespace, 'Caesar', '1 day', window_start='0044-03-15 BC')
        berlin = self.advisory.claim(
            self.namespace, 'zone', timedelta(days=1), time_zone='Etc/GMT-5')
        self.assertEqual((berlin.hour, berlin.minute), (19, 0))
        self.assertRaises(TypeError, claim, window_start=datetime(2026, 1, 1))
        self.assertRaises(TypeError, self.advisory.claim, self.namespace, 'job', '1')


if __name__ == '__main__':
    unittest.main()
