"""Leases: renewed, lost, late, and left."""
import signal
import threading
import time
import unittest
from contextlib import nullcontext
from datetime import datetime, timezone
from unittest import mock

from support import PATIENCE, Case, Proxy, connect, driver, execute, wait_until

from advisory_ext import Advisory, AdvisoryError, LeaseLost, NotAvailable
from advisory_ext._line import Line

SLACK = 0.7         # seconds that a busy machine may take longer


class Leases(Case):
    def setUp(self):
        super().setUp()
        self.application = self.id().rpartition('.')[2]
        self.advisory = Advisory(lambda: connect(application_name=self.application))

    def lease(self, **how):
        return self.advisory.lease(self.namespace, 'job', **{'ttl': 60, **how})

    def row(self, column):
        """Of the lease; None if there is none."""
        rows = execute(
            self.look, f'SELECT {column} FROM advisory.leases WHERE namespace = %s', self.namespace)
        return rows[0][0] if rows else None

    def sessions(self, application=None):
        return [pid for pid, in execute(
            self.look, 'SELECT pid FROM pg_stat_activity '
            'WHERE application_name = %s AND datname = current_database()',
            application or self.application)]

    def behind_proxy(self):
        proxy = Proxy(self.look.info.host, self.look.info.port)
        self.addCleanup(proxy.close)
        return proxy, Advisory(
            lambda: connect(host='127.0.0.1', port=proxy.port, application_name=self.application))

    def test_renewed(self):
        with self.lease(ttl=0.9, owner='me') as lease:
            token = self.row('token')
            self.assertEqual((lease.token, self.row('owner')), (token, 'me'))
            first = lease.expires_at
            wait_until('it is renewed', lambda: self.row('renewals') >= 5)
            lease.check()
            self.assertFalse(lease.lost.is_set())
            self.assertGreater(lease.expires_at, first)
            self.assertEqual(lease.expires_at.tzinfo, timezone.utc)
            self.assertLess(abs((lease.expires_at - datetime.now(timezone.utc)).total_seconds()), 5)
            self.assertEqual((self.row('token'), self.row('state')), (token, 'held'))
            with self.assertRaises(NotAvailable) as raised:
                with self.lease():
                    self.fail('both have it')
            error = raised.exception
            self.assertEqual((error.namespace, error.name, error.holder[:3], error.remedy),
                             (self.namespace, 'job', (None, None, None), None))
            self.assertRegex(
                str(error), '(?s)could not obtain lease .* without waiting\n"me" holds it until ')
        self.assertIsNone(self.row('token'))
        wait_until('its sessions are gone', lambda: not self.sessions())

    def test_pace(self):
        """Renewed after a third of the TTL, not more often."""
        with self.lease(ttl='3 s'):
            time.sleep(2.5)
            self.assertIn(self.row('renewals'), (1, 2))

    def test_error_of_the_work(self):
        with self.assertRaises(KeyError):
            with self.lease():
                raise KeyError('mine')
        self.assertIsNone(self.row('token'))

    def test_wrong_arguments(self):
        for wrong in ({'ttl': '5'}, {'lock_delay': None}, {'timeout': '5'}):
            self.assertRaises(TypeError, self.lease, **wrong)
        with self.assertRaises(driver.Error) as raised:
            with self.lease(ttl=0):
                self.fail('a lease without a TTL')
        self.assertNotIsInstance(raised.exception, AdvisoryError)
        with self.assertRaises(driver.OperationalError):
            with Advisory(lambda: connect(port=1)).lease(
                    self.namespace, 'job', ttl=5, timeout=None):
                self.fail('there is no server')

    def test_name_in_message(self):
        self.namespace += ' within reach'
        with self.lease():
            for how, limit in (({}, 'without waiting'), ({'timeout': 0.1}, r'within 0\.1 s')):
                with self.assertRaisesRegex(
                        NotAvailable, rf'\Acould not obtain lease ".* within reach/job" {limit}\n'):
                    with self.lease(**how):
                        self.fail('both have it')

    def test_after_the_block(self):
        """A thread that goes on must not believe in the lease any more."""
        with self.lease() as lease:
            lease.check()
        self.assertTrue(lease.lost.is_set())
        with self.assertRaisesRegex(LeaseLost, 'its block has ended'):
            lease.check()

    def test_connection_is_gone_at_the_end(self):
        with self.lease():
            [pid] = self.sessions()
            self.ask('SELECT pg_terminate_backend(%s)', pid)
        self.assertIsNone(self.row('token'))

    def test_lent_connection(self):
        """It comes back as it was, or closed if it is broken."""
        kept = connect()
        self.addCleanup(kept.close)
        with Advisory(lambda: nullcontext(kept)).lease(self.namespace, 'job', ttl=60):
            self.assertIsNotNone(self.row('token'))
        self.assertFalse(kept.autocommit)
        self.assertFalse(getattr(kept, '_notice_handlers', []))
        line = Line(lambda: nullcontext(kept))
        line.get(line.send('1'), PATIENCE)
        line.close(is_broken=True)
        wait_until('it is closed', lambda: kept.closed)

    def test_standby(self):
        """Who begins at one is at the wrong address, and who waits already goes on until there is a
        primary.
        """
        is_standby = ['on']
        made = []

        def make():
            made.append(connect(
                application_name=self.application,
                options=f'-c default_transaction_read_only={is_standby[-1]}'))
            return made[-1]

        def take(timeout=None):
            with Advisory(make).lease(self.namespace, 'job', ttl=3, timeout=timeout) as lease:
                return lease.token

        with self.assertRaises(driver.Error) as raised:
            self.in_thread(take)()
        self.assertIn('25006', (
            getattr(raised.exception, 'sqlstate', None), getattr(raised.exception, 'pgcode', None)))
        is_standby.append('off')
        with self.lease() as lease:
            waiter = self.in_thread(take)
            waiting = ('FROM pg_stat_activity WHERE application_name = %s AND state = %s '
                       'AND datname = current_database() AND query LIKE %s',
                       self.application, 'active', '%advisory.lease(%')
            wait_until('it waits', lambda: self.ask(f'SELECT count(*) {waiting[0]}', *waiting[1:]))
            is_standby.append('on')
            self.ask(f'SELECT pg_terminate_backend(pid) {waiting[0]}', *waiting[1:])
            before = len(made)
            wait_until('it asks a standby, several times', lambda: len(made) > before + 2)
            is_standby.append('off')
        self.assertGreater(waiter(), lease.token)

    def test_late_connection(self):
        """What it was to ask is asked no more."""
        opens = threading.Event()
        line = Line(lambda: opens.wait() and connect())
        take = f"token FROM advisory.lease('{self.namespace}', 'job', '60s', '0s')"
        with self.assertRaisesRegex(AdvisoryError, 'the server has not answered for 0.1 s'):
            line.get(line.send(take), 0.1)
        opens.set()
        line.get(line.send('1'), PATIENCE)
        line.close()
        self.assertIsNone(self.row('token'))

    def test_errors_of_connecting(self):
        """Whatever they are: the first one comes out, later ones are tried again soon."""
        def refuse():
            raise SystemExit('no configuration')

        with self.assertRaises(SystemExit):
            with Advisory(refuse).lease(self.namespace, 'job', ttl=60):
                self.fail('there is no connection')
        errors = []

        def make():
            if errors:
                raise errors.pop()
            return connect(application_name=self.application)

        with Advisory(make).lease(self.namespace, 'job', ttl=3) as lease:
            errors += map(KeyError, 'abcd')
            self.ask('SELECT pg_terminate_backend(%s)', *self.sessions())
            wait_until('it is renewed', lambda: self.row('renewals') > 0 or lease.lost.is_set())
            lease.check()

    def test_broken(self):
        with self.assertRaisesRegex(LeaseLost, 'it was ended, or somebody else has it') as raised:
            with self.lease(ttl=3) as lease:
                self.ask('SELECT advisory.break_lease(%s, %s)', self.namespace, 'job')
                begun = time.monotonic()
                lease.lost.wait(PATIENCE)
                told = time.monotonic() - begun
                raise KeyError('the work stops')
        self.assertLess(told, 1 + SLACK)
        self.assertIsInstance(raised.exception.__cause__, KeyError)
        self.assertEqual(
            (raised.exception.namespace, raised.exception.name), (self.namespace, 'job'))
        with self.assertRaises(LeaseLost) as raised:
            with self.lease(ttl=1) as lease:
                self.ask('SELECT advisory.break_lease(%s, %s)', self.namespace, 'job')
                lease.lost.wait(PATIENCE)
                lease.check()
        self.assertIsNone(raised.exception.__cause__)
        with self.assertRaises(LeaseLost) as raised:
            with self.lease(ttl=1) as lease:
                self.ask('SELECT advisory.break_lease(%s, %s)', self.namespace, 'job')
                lease.lost.wait(PATIENCE)
                try:
                    lease.check()
                except LeaseLost as error:
                    raise KeyError('of it') from error
        chain = []
        while raised.exception and len(chain) < 4:
            chain.append(type(raised.exception))
            raised.exception = raised.exception.__cause__
        self.assertEqual(chain, [LeaseLost, KeyError, LeaseLost], 'it ends')

    def test_broken_before_the_first_renewal(self):
        with self.assertRaisesRegex(LeaseLost, 'no longer ours at the end'):
            with self.lease():
                self.ask('SELECT advisory.break_lease(%s, %s)', self.namespace, 'job')
        with self.assertRaises(SystemExit):
            with self.lease():
                self.ask('SELECT advisory.break_lease(%s, %s)', self.namespace, 'job')
                raise SystemExit('is no error of the work, and comes through')

    def test_session_killed(self):
        with self.lease(ttl=2) as lease:
            [before] = self.sessions()
            self.ask('SELECT pg_terminate_backend(%s)', before)
            wait_until('it is renewed on another connection',
                       lambda: self.row('renewals') > 0
                       and [pid for pid in self.sessions() if pid != before])
            lease.check()

    def test_connection_hangs(self):
        proxy, advisory = self.behind_proxy()
        with advisory.lease(self.namespace, 'job', ttl=3) as lease:
            proxy.freeze(new_ones_too=False)
            wait_until('it is renewed on another connection', lambda: self.row('renewals') > 0)
            time.sleep(3)
            lease.check()
            self.assertGreater(self.row('renewals'), 1)

    def test_network_is_gone(self):
        proxy, advisory = self.behind_proxy()
        with self.assertRaisesRegex(
                LeaseLost, 'no renewal has succeeded for 2 s: the server has not answered'):
            with advisory.lease(self.namespace, 'job', ttl=2) as lease:
                wait_until('it is renewed', lambda: self.row('renewals') > 0)
                proxy.freeze(new_ones_too=True)
                frozen = time.monotonic()
                lease.lost.wait(PATIENCE)
                lost = time.monotonic()
                remaining = float(self.row('extract(epoch FROM expires_at - clock_timestamp())'))
                left = time.monotonic()
        self.assertLess(
            time.monotonic() - left, 2 / 3 + SLACK, 'leaving takes no longer than one answer may')
        # Here the clocks are the same: not later than the server, but for the time to ask it, and
        # not much earlier.
        self.assertGreater(remaining, -0.2)
        self.assertLess(remaining, SLACK)
        self.assertGreater(lost - frozen, 2 * 2 / 3 - SLACK)

    def test_renewal_that_succeeds_late(self):
        """The TTL counts from before the call: another session has the row, and the renewal waits
        for that.
        """
        def lock_row():
            execute(self.look, 'BEGIN')
            execute(
                self.look, 'SELECT FROM advisory._leases WHERE namespace = %s FOR UPDATE',
                self.namespace)

        with self.assertRaises(LeaseLost):
            with self.lease(ttl=3) as lease:
                lock_row()
                wait_until('the renewal waits', lambda: self.waiters(self.application))
                asked = time.monotonic()
                time.sleep(0.7)
                first = lease.expires_at
                execute(self.look, 'COMMIT')
                wait_until('it is renewed', lambda: lease.expires_at > first)
                lock_row()
                lease.lost.wait(PATIENCE)
                held = time.monotonic() - asked
                execute(self.look, 'COMMIT')
        self.assertGreater(held, 2.5)
        self.assertLess(held, 3.4)

    def test_process_stopped(self):
        program = self.program(f"""
with advisory.lease({self.namespace!r}, 'job', ttl=0.9) as lease:
    print('works')
    try:
        while True:
            lease.check()
    except advisory_ext.LeaseLost as error:
        print(error)
""")
        self.assertEqual(program.stdout.readline(), 'works\n')
        program.send_signal(signal.SIGSTOP)
        wait_until('it is over', lambda: self.row('state') == 'expired')
        program.send_signal(signal.SIGCONT)
        self.assertRegex(
            program.communicate(timeout=PATIENCE)[0],
            r'\Alease .* is lost: no renewal has succeeded(?s:.*)LeaseLost: .*\n\Z')

    def test_waits(self):
        def take(timeout):
            with self.lease(ttl=1.5, timeout=timeout) as lease:
                return lease.token

        with self.lease() as lease:
            begun = time.monotonic()
            with self.assertRaisesRegex(NotAvailable, r'could not obtain lease ".*" within 0\.8 s'):
                take(0.8)
            self.assertGreater(time.monotonic() - begun, 0.79)
            wait_until('its session is gone', lambda: len(self.sessions()) == 1)
            [holds] = self.sessions()
            waiter = self.in_thread(lambda: take(None))
            # (Not before that: an error to begin with would come out.)
            wait_until('it waits', lambda: self.ask(
                'SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND state = %s '
                'AND datname = current_database() AND query LIKE %s',
                self.application, 'active', '%advisory.lease(%'))
            [before] = [pid for pid in self.sessions() if pid != holds]
            self.ask('SELECT pg_terminate_backend(%s)', before)
            wait_until('it waits again, on another connection',
                       lambda: [pid for pid in self.sessions() if pid not in (before, holds)])
            time.sleep(2)                       # longer than its TTL
        self.assertGreater(waiter(), lease.token)

    def test_interrupted(self):
        with self.lease():
            waiter = self.program(
                f"with advisory.lease({self.namespace!r}, 'job', ttl=300, timeout=None): pass")
            wait_until('it waits', lambda: self.ask(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'work' "
                "AND datname = current_database() AND state = 'active' "
                "AND position('advisory.lease(' IN query) > 0"))
            self.assertRegex(self.interrupt(waiter), r'KeyboardInterrupt\n\Z')
        with self.lease(timeout=10):
            pass

    def test_interrupted_at_the_grant(self):
        """Nobody goes on renewing it."""
        class Interrupted(threading.Thread):
            def start(self):
                super().start()
                raise KeyboardInterrupt

        with mock.patch('advisory_ext._lease.Thread', Interrupted), \
                self.assertRaises(KeyboardInterrupt):
            with self.lease(ttl=0.9):
                self.fail('it is interrupted before')
        self.assertNotIn('advisory_ext lease', [thread.name for thread in threading.enumerate()])
        self.assertIsNone(self.row('token'))

    def test_terminated(self):
        """SIGTERM that is made an exit, as services do, ends the lease."""
        program = self.program(f"""
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
with advisory.lease({self.namespace!r}, 'job', ttl=300) as lease:
    print('works')
    lease.lost.wait()
""")
        self.assertEqual(program.stdout.readline(), 'works\n')
        program.terminate()
        self.assertEqual(program.communicate(timeout=PATIENCE)[0], '')
        self.assertIsNone(self.row('token'))

    def slot(self, slots=2, **how):
        return self.advisory.slot(self.namespace, 'workers', slots, **{'ttl': 60, **how})

    def test_slots(self):
        """Each has one of its own, and it is a lease."""
        with self.slot(owner='first') as first, self.slot(owner='second') as second:
            self.assertEqual([first.slot, second.slot], [1, 2])
            self.assertEqual(
                execute(self.look, 'SELECT slot, owner, token FROM advisory.leases '
                        'WHERE namespace = %s ORDER BY slot', self.namespace),
                [(1, 'first', first.token), (2, 'second', second.token)])
            second.check()
            with self.assertRaisesRegex(NotAvailable, r'within 0\.1 s\n(?s:.*)"first" holds '):
                with self.slot(timeout=0.1):
                    self.fail('three have two')
            with self.lease() as lease:
                self.assertIsNone(lease.slot)
        with self.slot() as third:
            self.assertEqual(third.slot, 1)
            self.assertGreater(third.token, second.token)
        self.assertIsNone(self.row('token'))

    def test_slot_in_time(self):
        """Waiters have it in their turn, and never more than there are."""
        inside, most = [], []

        def visit():
            with self.slot(timeout=PATIENCE) as lease:
                inside.append(lease.slot)
                most.append(len(inside))
                time.sleep(0.05)
                inside.remove(lease.slot)

        for visitor in [self.in_thread(visit) for _ in range(6)]:
            visitor()
        self.assertEqual(max(most), 2)

    def test_another_number_of_slots(self):
        """The extension warns of that, but the grant is as good as any."""
        with self.slot(2), self.slot(3) as lease:
            self.assertEqual(lease.slot, 2)
            lease.check()

    def test_slot_broken(self):
        with self.assertRaisesRegex(LeaseLost, r'\Aslot 1 of lease ".*/workers" is lost: it was e'):
            with self.slot(ttl=3) as lease:
                self.ask('SELECT advisory.break_lease(%s, %s, %s)', self.namespace, 'workers',
                         lease.token)
                lease.lost.wait(PATIENCE)

    def test_max_hold(self):
        """However often it is renewed, it is lost then, and not later than the server says."""
        for hold in (self.lease, self.slot):
            begun = time.monotonic()
            with self.assertRaisesRegex(LeaseLost, 'it was held for as long as max_hold allows'):
                with hold(ttl=1.5, max_hold='3 s') as lease:
                    wait_until('it is renewed', lambda: self.row('renewals') > 1)
                    lease.lost.wait(PATIENCE)
                    remaining = float(self.row(
                        'extract(epoch FROM expires_at - clock_timestamp())'))
                    lasted = time.monotonic() - begun
                    lease.check()
            self.assertGreater(lasted, 2.9)
            self.assertGreater(remaining, -0.2)
            with hold():
                pass

    def test_wrong_slots(self):
        for wrong in ({'ttl': '5'}, {'max_hold': '5'}, {'scope': 'session'}, {'slots': '2'},
                      {'ttl': None, 'owner': 'me'}, {'ttl': None, 'max_hold': 5}):
            self.assertRaises(TypeError, self.slot, **wrong)
        for wrong in ({'slots': 0}, {'max_hold': 0}):
            with self.assertRaises(driver.Error):
                with self.slot(**wrong):
                    self.fail('it is wrong')

    def test_lock_delay(self):
        with self.lease(ttl=0.5, lock_delay=60):
            self.assertEqual(self.ask(
                'SELECT count(*) FROM advisory._leases WHERE namespace = %s AND lock_delay = %s',
                                      self.namespace, '60s'), 1)


if __name__ == '__main__':
    unittest.main()
