"""Behind PgBouncer, in transaction and in session mode."""
import json
import os
import threading
import time
import unittest

from support import IS_PSYCOPG3, Case, connect, execute, wait_until

from advisory_ext import Advisory, LockLost, NotAvailable, TransactionPooler

POOLERS = json.loads(os.environ.get('ADVISORY_TEST_POOLERS', '{}'))


@unittest.skipUnless(POOLERS, 'ADVISORY_TEST_POOLERS is not set')
class Poolers(Case):
    def behind(self, pooler, application='pooled'):
        """Counts the connections that it makes."""
        self.opened = 0

        def make():
            self.opened += 1
            return connect(POOLERS[pooler], application_name=application)

        return Advisory(make)

    def test_transaction_level_works(self):
        """Eight at once, over few server connections, count up without losing anything."""
        execute(self.look, 'DROP TABLE IF EXISTS counter')
        execute(self.look, 'CREATE TABLE counter AS SELECT 0 AS value')
        advisory = self.behind('transaction')

        def count_up():
            for _ in range(5):
                with advisory.lock(self.namespace, 'counter', timeout=60) as connection:
                    [[value]] = execute(connection, 'SELECT value FROM counter')
                    time.sleep(0.002)
                    execute(connection, 'UPDATE counter SET value = %s', value + 1)
                with advisory.slot(self.namespace, 'slots', 3, timeout=60) as (connection, slot):
                    self.assertIn(slot, (1, 2, 3))
            return advisory.claim(
                self.namespace, 'day', '1 day', window_start='2026-01-01 00:00+00')

        claims = [one() for one in [self.in_thread(count_up) for _ in range(8)]]
        self.assertEqual(self.ask('SELECT value FROM counter'), 40)
        self.assertEqual(len([claim for claim in claims if claim]), 1)

    def test_lock_is_not_available(self):
        with self.advisory.lock(self.namespace, 'job') as connection:
            with self.assertRaises(NotAvailable) as raised:
                with self.behind('transaction').lock(self.namespace, 'job'):
                    self.fail('both have it')
            self.assertEqual(raised.exception.holder.pid, connection.info.backend_pid)

    def test_slot_of_a_lease_works(self):
        advisory = self.behind('transaction')
        with advisory.slot(self.namespace, 'job', 2, ttl=3) as lease:
            with advisory.slot(self.namespace, 'job', 2, ttl=9) as other:
                self.assertEqual([lease.slot, other.slot], [1, 2])
            wait_until('it is renewed', lambda: self.ask(
                'SELECT max(renewals) FROM advisory.leases WHERE namespace = %s',
                self.namespace) >= 3)
            lease.check()

    def test_lease_works(self):
        advisory = self.behind('transaction')
        with advisory.lease(self.namespace, 'job', ttl=0.9) as lease:
            wait_until('it is renewed', lambda: self.ask(
                'SELECT max(renewals) FROM advisory.leases WHERE namespace = %s',
                self.namespace) >= 3)
            with self.assertRaises(NotAvailable):
                with advisory.lease(self.namespace, 'job', ttl=0.9):
                    self.fail('both have it')
            lease.check()

    def test_session_level_is_refused(self):
        for pooler in ('transaction', 'one server', 'in turn'):
            for kind in ('lock', 'slot'):
                advisory = self.behind(pooler)
                with self.assertRaisesRegex(
                        TransactionPooler, r'leave scope out .* or use lease\(\)') as raised:
                    with (advisory.lock(self.namespace, 'job', scope='session') if kind == 'lock'
                          else advisory.slot(self.namespace, 'job', 2, scope='session')):
                        self.fail(f'a session-level {kind} behind the pooler "{pooler}"')
                self.assertEqual(
                    (raised.exception.namespace, raised.exception.name), (self.namespace, 'job'))
        self.assertEqual(
            self.ask('SELECT count(*) FROM advisory.locks WHERE namespace = %s', self.namespace), 0)

    def test_refused_while_the_pooler_is_busy(self):
        """The second connection waits for a server, as it also does in session mode."""
        keeps = threading.Event()
        self.addCleanup(keeps.set)

        def keep_busy():
            with connect(POOLERS['one server'], application_name='busy') as other:
                while not keeps.is_set():
                    execute(other, 'SELECT pg_sleep(1.5)')
                    other.rollback()

        busy = [self.in_thread(keep_busy) for _ in range(2)]
        wait_until('it is busy', lambda: self.ask(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'busy' "
            "AND datname = current_database() AND state = 'active'"))
        with self.assertRaises(TransactionPooler):
            with self.behind('one server').lock(self.namespace, 'job', scope='session'):
                self.fail('a session-level lock')
        keeps.set()
        for one in busy:
            one()

    def test_second_connection_is_refused(self):
        """Then it is not known which mode it is, and nothing is locked."""
        advisory = self.behind('transaction')
        make = advisory._connect

        def make_one():
            if self.opened:
                raise KeyError('no connection left')
            return make()

        with self.assertRaisesRegex(KeyError, 'no connection left'):
            with Advisory(make_one).lock(self.namespace, 'job', scope='session'):
                self.fail('a session-level lock')
        self.assertFalse(self.is_locked('job'))

    def test_session_mode(self):
        for pooler in ('session', 'one session'):
            with self.behind(pooler).lock(self.namespace, 'job', scope='session') as connection:
                self.assertTrue(self.is_locked('job'), pooler)
                with self.assertRaises(NotAvailable):
                    with self.advisory.lock(self.namespace, 'job'):
                        self.fail('both have it')
                execute(connection, 'SELECT 1')
            self.assertEqual(self.opened, 2, 'the connection, and one to compare it with')
            self.assertFalse(self.is_locked('job'))
        with self.assertRaises(LockLost):
            with self.behind('session').lock(self.namespace, 'job', scope='session') as connection:
                execute(connection, 'SELECT pg_advisory_unlock_all()')

    def test_no_pooler(self):
        """The check costs no second connection."""
        opened = []
        advisory = Advisory(lambda: opened.append(1) or connect())
        with advisory.lock(self.namespace, 'job', scope='session'):
            self.assertEqual(len(opened), 1)

    @unittest.skipUnless(IS_PSYCOPG3, 'psycopg_pool is of psycopg 3')
    def test_pool_before_the_pooler(self):
        from psycopg_pool import ConnectionPool
        with ConnectionPool(POOLERS['transaction'], min_size=1, max_size=1) as pool:
            for _ in range(8):
                with Advisory(pool).lock(self.namespace, 'job'):
                    pass
            with self.assertRaises(TransactionPooler):
                with Advisory(pool).lock(self.namespace, 'job', scope='session'):
                    self.fail('a session-level lock')

    def test_refused_by_the_server(self):
        """The error of advisory_ext.session_locks comes through. (The portable edition has no
        settings.)
        """
        if self.ask("SELECT count(*) FROM pg_extension WHERE extname = 'advisory_ext'") == 0:
            return
        advisory = Advisory(lambda: connect(options='-c advisory_ext.session_locks=off'))
        with self.assertRaisesRegex(Exception, 'turned off by "advisory_ext.session_locks"'):
            with advisory.lock(self.namespace, 'job', scope='session'):
                self.fail('a session-level lock')


if __name__ == '__main__':
    unittest.main()
