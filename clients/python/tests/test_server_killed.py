"""The server is stopped in the middle of the work, and starts again."""
import os
import shlex
import subprocess
import time
import unittest

from support import IS_PSYCOPG3, PATIENCE, Case, connect, driver, execute, wait_until

from advisory_ext import Advisory, LeaseLost, LockLost

# psycopg2 also raises the base class of them.
BROKEN = (driver.OperationalError, driver.InterfaceError) if IS_PSYCOPG3 else driver.DatabaseError

CTL = shlex.split(os.environ.get('ADVISORY_TEST_CTL', ''))


@unittest.skipUnless(CTL, 'ADVISORY_TEST_CTL is not set')
class ServerKilled(Case):
    def setUp(self):
        super().setUp()
        self.advisory = Advisory(lambda: connect(application_name='killed'))
        execute(self.look, 'DROP TABLE IF EXISTS note')
        execute(self.look, 'CREATE TABLE note (text text)')

    def kill(self):
        subprocess.run([*CTL, 'stop', '-m', 'immediate'], check=True, stdout=subprocess.DEVNULL)

    def start(self):
        subprocess.run([*CTL, 'start'], check=True, stdout=subprocess.DEVNULL)
        self.look = connect(application_name='look')
        self.look.autocommit = True
        self.addCleanup(self.look.close)

    def restart(self):
        self.kill()
        self.start()

    def sessions(self):
        return [pid for pid, in execute(
            self.look, "SELECT pid FROM pg_stat_activity WHERE application_name = 'killed'")]

    def test_locks(self):
        for scope in ('transaction', 'session'):
            with self.assertRaises(BROKEN):
                with self.advisory.lock(self.namespace, 'job', scope=scope) as connection:
                    if scope == 'transaction':
                        execute(connection, "INSERT INTO note VALUES ('never')")
                    self.restart()
                    execute(connection, "INSERT INTO note VALUES ('never')")
            self.assertFalse(self.is_locked('job'))
        self.assertEqual(execute(self.look, 'SELECT text FROM note'), [])

    def test_work_that_does_not_notice(self):
        with self.assertRaises(BROKEN):
            with self.advisory.lock(self.namespace, 'job'):
                self.restart()
        with self.assertRaises(LockLost):
            with self.advisory.slot(self.namespace, 'job', 2, scope='session'):
                self.restart()

    def test_waiting_for_a_lock(self):
        def take():
            with self.advisory.lock(self.namespace, 'job', timeout=60):
                pass

        execute(self.look, 'SELECT advisory.lock(%s, %s)', self.namespace, 'job')
        waiter = self.in_thread(take)
        wait_until('it waits', lambda: self.waiters('killed'))
        self.restart()
        self.assertRaises(BROKEN, waiter)

    def test_lease_survives(self):
        """So does a wait for it."""
        def take():
            with self.advisory.lease(self.namespace, 'job', ttl=3, timeout=None) as lease:
                return lease.token

        with self.advisory.lease(self.namespace, 'job', ttl=12) as lease:
            waiter = self.in_thread(take)
            wait_until('one has it, one waits', lambda: len(self.sessions()) == 2 and self.ask(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE application_name = 'killed' AND state = 'active'"))
            time.sleep(0.2)
            self.restart()
            wait_until('one has it, one waits, again', lambda: len(self.sessions()) == 2)
            wait_until('it is renewed', lambda: self.ask(
                'SELECT max(renewals) FROM advisory.leases WHERE namespace = %s',
                self.namespace) > 0)
            lease.check()
        self.assertGreater(waiter(), lease.token)

    def test_lease_is_over(self):
        try:
            # A busy machine may take so long to say that nobody listens there that it counts as no
            # answer.
            with self.assertRaisesRegex(
                    LeaseLost, 'no renewal has succeeded for 1.5 s: .*(connect|not answered)'):
                with self.advisory.lease(self.namespace, 'job', ttl=1.5) as lease:
                    self.kill()
                    killed = time.monotonic()       # no renewal succeeds any more
                    lease.lost.wait(PATIENCE)
                    held = time.monotonic() - killed
        finally:
            self.start()
        self.assertLess(held, 1.5 + 0.7)

    def test_unconfirmed(self):
        """Somebody cancels the wait for the synchronous standby: a failover could lose such a
        grant, or such a renewal.
        """
        def standby(name):
            execute(self.look, f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
            execute(self.look, 'SELECT pg_reload_conf()')
            wait_until('it is so', lambda: self.ask('SHOW synchronous_standby_names') == name)

        def cancel():
            execute(
                self.look,
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")

        def take():
            with self.advisory.lease(self.namespace, 'job', ttl=3):
                return 'had it'

        execute(self.look, 'SET synchronous_commit = local')
        self.addCleanup(standby, '')
        for when in ('grant', 'renewal'):
            said = 'the grant is not confirmed' if when == 'grant' else 'no renewal has succeeded'
            with self.assertRaisesRegex(LeaseLost, said):
                if when == 'grant':
                    standby('nobody')
                    taker = self.in_thread(take)
                    wait_until('it is over', lambda: cancel() or not taker.is_running())
                    taker()
                else:
                    with self.advisory.lease(self.namespace, 'job', ttl=3) as lease:
                        standby('nobody')
                        wait_until('it is lost', lambda: cancel() or lease.lost.is_set())
                        standby('')
            standby('')
        self.assertEqual(take(), 'had it')


if __name__ == '__main__':
    unittest.main()
