"""Load on a cluster that fails over, and what became of it. Used by failover.t.

    failover.py PORT…      works on the members on these ports of loopback until it gets SIGTERM,
                           waits for the primary that is left, and prints its figures, one a line:
                           name, a tab, number

With EDITION=portable in the environment, the cluster has the portable edition. There tokens of
locks need PostgreSQL 17, and a lease is not checked in READ ONLY transactions.

Every worker connects to any member that is a primary, also to one that has been superseded and does
not know it yet. It takes locks with tokens, and writes under the fence of these tokens: into
tables, or into a storage outside of the database (here, in memory). Now and then it writes what it
should have written earlier. Others take leases, and claim windows. The figures:

    grants           tokens that were given
    superseded       of these, given after a successor had given some
    not growing      of these, not greater than they should be, see not_growing()
    writes           accepted by a fence, in what is left
    refused          writes that a fence refused
    stale accepted   writes accepted after one of a later holder
    commits          acknowledged ones, of writes into tables
    lost             of these, not there on the primary that is left
    leases           granted
    carried          of these, renewed on a later timeline
    held by two      pairs of leases of one name whose holders relied on them at the same time
    slots            leases of a slot that were granted
    slots carried    of these, renewed on a later timeline
    slots at once    most owners of one name that relied on their slots at the same time
    slot held by two pairs of leases of one slot whose holders relied on them at the same time
    beyond max_hold  slots that were renewed when their max_hold was over
    windows          claimed
    run twice        of these, claimed before
    checks           leases that a READ ONLY transaction found unchanged
    checked late     of these, after a successor had given the lease to somebody else
    held after all   leases that a superseded primary called lost, and that its successor renewed
    guarded          acknowledged writes after check_lease()
    guarded, lost    of these, not there on the primary that is left
    guarded, stale   of those that are there, after one of a later holder
    used twice       timelines on which two servers wrote, as old versions of Patroni permit
    unordered        tokens that do not grow because of that
    unordered writes the same of writes

A check is a class with set_up(session), step(worker, session) and figures(session); CHECKS says
which run.
"""
import collections
import itertools
import math
import os
import random
import signal
import sys
import threading
import time

import psycopg2
import psycopg2.errors

PORTS = [int(port) for port in sys.argv[1:]]
# More than workers, or most could be locked by workers that hang in a commit.
NAMES = [f'resource {number}' for number in range(16)]
NAMESPACE = 'failover'
IS_PORTABLE = os.environ.get('EDITION') == 'portable'

stopping = threading.Event()
# All that were had, for whatever.
grants = []
# The servers that were seen as the primary of each timeline.
primaries = collections.defaultdict(set)


def used_twice():
    return {timeline for timeline, servers in primaries.items() if len(servers) > 1}


def of_good_timelines(some):
    bad = used_twice()
    return [grant for grant in some if grant.timeline not in bad]


class Grant(collections.namedtuple('Grant', 'asked returned timeline name token')):
    """A lock that was had, and its token. The times are of this process's monotonic clock, around
    asking for both."""

    def precedes(self, other):
        """Whether its holder is an earlier one: its token had been returned before the other was
        asked for. What a superseded primary grants after its successor is not a later holder's:
        fences are to refuse it."""
        return self.returned < other.asked and self.timeline <= other.timeline


class Session:
    """A connection to a primary, and the timeline on which that one writes."""

    def __init__(self, port):
        self.connection = psycopg2.connect(
            host='127.0.0.1', port=port, user='postgres', dbname='postgres', connect_timeout=2)
        self.connection.autocommit = True
        # Not in a transaction that a caller would have to end.
        if self.value('SELECT pg_is_in_recovery()'):
            self.close()
            raise psycopg2.OperationalError('a standby')
        timeline = self.value('SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)')
        self.timeline = int(timeline, 16)
        # The file says where the timeline began. The same server can have been promoted to it
        # twice.
        history = self.value(
            'SELECT pg_read_file(%s, 0, 1000000, true)', f'pg_wal/{timeline}.history')
        primaries[self.timeline].add((port, history))

    def rows(self, sql, *values):
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetchall() if cursor.description else []

    def value(self, sql, *values):
        return self.rows(sql, *values)[0][0]

    def is_replicated(self):
        """Whether the last commit counts: not if its wait for the synchronous standby was
        cancelled, which is a warning."""
        unsure = any('replicated' in notice for notice in self.connection.notices)
        del self.connection.notices[:]
        return not unsure

    def close(self):
        self.connection.close()


def any_primary():
    """A session on one of the primaries, or nothing."""
    for port in random.sample(PORTS, len(PORTS)):
        try:
            return Session(port)
        except psycopg2.Error:
            pass
    return None


def newest_primary():
    """A session on the primary of the latest timeline, or nothing."""
    sessions = []
    for port in PORTS:
        try:
            sessions.append(Session(port))
        except psycopg2.Error:
            pass
    sessions.sort(key=lambda session: session.timeline)
    for session in sessions[:-1]:
        session.close()
    return sessions[-1] if sessions else None


# ---- What is checked -----------------------------------------------------------------------------


class Storage:
    """Something outside of the database that refuses smaller tokens, as a file server could."""

    def __init__(self):
        self.mutex = threading.Lock()
        self.highest = {}
        self.accepted = []

    def write(self, session, grant):
        with self.mutex:
            if grant.token < self.highest.get(grant.name, 0):
                return False
            self.highest[grant.name] = grant.token
            self.accepted.append(grant)
            return True

    def in_order(self, session):
        return self.accepted


class Table:
    """A table with a fence. Its rows count the writes to each name, so that the journal has their
    order."""

    acknowledged = set()
    ids = itertools.count(1)

    def __init__(self, name):
        self.name = name

    def set_up(self, session):
        session.rows(
            f'''CREATE TABLE {self.name} (
                    name text PRIMARY KEY, token bigint NOT NULL, writes bigint NOT NULL)
                WITH (fillfactor = 50)''')
        for name in NAMES:
            session.rows(f'INSERT INTO {self.name} VALUES (%s, 0, 0)', name)

    def write(self, session, grant):
        write_id = next(Table.ids)
        session.rows('BEGIN')
        try:
            self.pass_fence(session, grant)
            session.rows(f'''WITH written AS (UPDATE {self.name} SET token = %s, writes = writes + 1
                                             WHERE name = %s RETURNING writes)
                             INSERT INTO journal SELECT %s, %s, %s, writes, %s FROM written''',
                         grant.token, grant.name, write_id, self.name, grant.name, grant.token)
        # A superseded primary does not know the tokens of its successor.
        except (psycopg2.errors.ObjectNotInPrerequisiteState,
                psycopg2.errors.InvalidParameterValue):
            session.rows('ROLLBACK')
            return False
        session.rows('COMMIT')
        if session.is_replicated():
            Table.acknowledged.add(write_id)
        return True

    def in_order(self, session):
        by_token = {grant.token: grant for grant in grants}
        return [by_token[token] for token, in
                session.rows(
                    'SELECT token FROM journal WHERE target = %s ORDER BY name, number', self.name)]


class CheckedTable(Table):
    """The writer asks."""

    def pass_fence(self, session, grant):
        session.rows('SELECT advisory.check_token(%s, %s, %s)', NAMESPACE, grant.name, grant.token)


class FencedTable(Table):
    """The table's trigger asks."""

    def set_up(self, session):
        super().set_up(session)
        session.rows(f'''CREATE TRIGGER fence BEFORE INSERT OR UPDATE ON {self.name}
                         FOR EACH ROW EXECUTE FUNCTION advisory.fenced('token')''')

    def pass_fence(self, session, grant):
        pass


class Tokens:
    """Locks with tokens, and writes under their fence. Half of the workers write to the storage
    only: with tables alone, all workers of a primary without a standby would soon wait in a commit,
    and none would ask for tokens."""

    def __init__(self):
        self.storage = Storage()
        self.tables = [CheckedTable('checked'), FencedTable('fenced')]
        self.refused = collections.Counter()

    def set_up(self, session):
        session.rows(
            '''CREATE TABLE journal (
                   id bigint PRIMARY KEY, target text NOT NULL, name text NOT NULL,
                   number bigint NOT NULL, token bigint NOT NULL)''')
        for table in self.tables:
            table.set_up(session)

    def step(self, worker, session):
        target = self.storage if worker.number % 2 else random.choice(self.tables)
        late = worker.late
        if late and random.random() < 0.1:
            self.write(target, session, late.pop(0))
        name = random.choice(NAMES)
        asked = time.monotonic()
        if not session.value("SELECT advisory.try_lock(%s, %s, '200ms')", NAMESPACE, name):
            return
        token = session.value('SELECT advisory.token(%s, %s)', NAMESPACE, name)
        grant = Grant(asked, time.monotonic(), session.timeline, name, token)
        grants.append(grant)
        if len(late) < 3:
            late.append(grant)
        else:
            self.write(target, session, grant)
        session.rows('SELECT advisory.unlock(%s, %s)', NAMESPACE, name)

    def write(self, target, session, grant):
        if not target.write(session, grant):
            self.refused[type(target)] += 1

    def figures(self, session):
        present = {row[0] for row in session.rows('SELECT id FROM journal')}
        accepted = [target.in_order(session) for target in [self.storage, *self.tables]]
        wrong_writes = sum(stale(of_good_timelines(order)) for order in accepted)
        return {
            'unordered writes': sum(map(stale, accepted)) - wrong_writes,
            'writes': sum(map(len, accepted)),
            'refused': sum(self.refused.values()),
            'stale accepted': wrong_writes,
            'commits': len(Table.acknowledged),
            'lost': len(Table.acknowledged - present),
        }


def all_grants():
    """Figures of all tokens, of locks and leases."""
    wrong = not_growing(of_good_timelines(grants))
    return {
        'used twice': len(used_twice()),
        'unordered': not_growing(grants) - wrong,
        'grants': len(grants),
        'superseded': superseded(),
        'not growing': wrong,
    }


def not_growing(grants):
    """How many tokens are not greater than all that were returned before, of whatever lock, on the
    same or an earlier timeline; or not smaller than all of later timelines, whenever given; or were
    given twice."""
    wrong = sum(
        times - 1 for times in collections.Counter(grant.token for grant in grants).values())
    highest, lowest = {}, {}
    returned = sorted(grants, key=lambda grant: grant.returned)
    seen = 0
    for grant in grants:
        lowest[grant.timeline] = min(grant.token, lowest.get(grant.timeline, grant.token))
    for grant in sorted(grants, key=lambda grant: grant.asked):
        while seen < len(returned) and returned[seen].returned < grant.asked:
            before = returned[seen]
            highest[before.timeline] = max(before.token, highest.get(before.timeline, 0))
            seen += 1
        wrong += (any(token >= grant.token for timeline, token in highest.items()
                      if timeline <= grant.timeline)
                  or any(token <= grant.token for timeline, token in lowest.items()
                         if timeline > grant.timeline))
    return wrong


def superseded():
    """How many tokens were asked for after a grant on a later timeline."""
    first = {}
    for grant in grants:
        first[grant.timeline] = min(grant.returned, first.get(grant.timeline, grant.returned))
    return sum(any(timeline > grant.timeline and returned < grant.asked
                   for timeline, returned in first.items())
               for grant in grants)


def stale(order):
    """How many of these, in the order in which they were accepted, came after a later holder's, or
    after a greater token."""
    wrong = 0
    for name in NAMES:
        highest, latest = 0, {}
        for grant in (grant for grant in order if grant.name == name):
            wrong += grant.token < highest or any(
                grant.precedes(later) for later in latest.values())
            highest = max(highest, grant.token)
            if grant.timeline not in latest or latest[grant.timeline].asked < grant.asked:
                latest[grant.timeline] = grant
    return wrong


class Lease:
    """What a holder knows of its lease, or of its slot. It relies on it from each answer until the
    TTL after it asked, or until max_hold after it asked first."""

    def __init__(self, name, ttl, token, timeline, asked, slot=None, max_hold=math.inf):
        self.name, self.ttl, self.token, self.timeline = name, ttl, token, timeline
        self.slot = slot
        self.spans = []
        self.is_carried, self.is_beyond = False, False
        self.leave = asked + ttl + random.uniform(1, 15)
        self.last, self.over = asked + max_hold, time.monotonic() + max_hold
        self.extend(asked, timeline)

    def extend(self, asked, timeline):
        self.until = min(asked + self.ttl, self.last)
        self.spans.append((time.monotonic(), self.until))
        self.is_carried |= timeline != self.timeline
        self.is_beyond |= asked > self.over

    def end(self):
        now = time.monotonic()
        self.spans = [(begin, min(end, now)) for begin, end in self.spans]

    def times(self):
        """The spans, those that overlap made one: it may also have been without an answer for
        longer than the TTL, and have renewed it after all."""
        times = []
        for begin, end in self.spans:
            if times and begin <= times[-1][1]:
                times[-1] = (times[-1][0], max(end, times[-1][1]))
            elif begin < end:
                times.append((begin, end))
        return times

    def overlaps(self, other):
        return any(max(begin, begin_of_other) < min(end, end_of_other)
                   for begin, end in self.spans for begin_of_other, end_of_other in other.spans)


class Leases:
    """Leases that are renewed, on whatever primary there is, and then are ended or simply left."""

    NAMES = [f'lease {number}' for number in range(6)]
    # In seconds. Shorter than the time between failovers, each of which gives every lease its whole
    # TTL again.
    TTLS = (1, 4, 8)

    def __init__(self):
        self.granted = []

    def set_up(self, session):
        pass

    def step(self, worker, session):
        lease, now = worker.lease, time.monotonic()
        if not lease:
            worker.lease = self.take(session)
        # Also the last thing before it leaves: a failover may take longer than it stays.
        elif now > lease.until - lease.ttl * 0.6:
            self.renew(worker, session)
        elif now > lease.leave:
            worker.lease = None
            lease.end()
            if random.random() < 0.7:
                session.rows(
                    'SELECT advisory.end_lease(%s, %s, %s)', NAMESPACE, lease.name, lease.token)
        time.sleep(0.05)

    def take(self, session):
        name, ttl = random.choice(self.NAMES), random.choice(self.TTLS)
        asked = time.monotonic()
        token = session.value(
            'SELECT token FROM advisory.try_lease(%s, %s, make_interval(secs => %s))',
            NAMESPACE, name, ttl)
        if token is None or not session.is_replicated():
            return None
        grants.append(Grant(asked, time.monotonic(), session.timeline, name, token))
        self.granted.append(Lease(name, ttl, token, session.timeline, asked))
        return self.granted[-1]

    def renew(self, worker, session):
        """Where there is no answer, the worker's next primary is asked."""
        lease, asked = worker.lease, time.monotonic()
        if not session.value(
                'SELECT advisory.renew_lease(%s, %s, %s)', NAMESPACE, lease.name, lease.token):
            lease.end()
            worker.lease = None
        elif session.is_replicated():
            lease.extend(asked, session.timeline)

    def figures(self, session):
        return {
            'leases': len(self.granted),
            'carried': sum(lease.is_carried for lease in self.granted),
            'held by two': sum(one.name == other.name and one.overlaps(other)
                               for one, other in itertools.combinations(self.granted, 2)),
        }


def most_at_once(leases):
    """How many of them were relied on at the same time."""
    ends = [event for lease in leases for begin, end in lease.times()
            for event in ((begin, 1), (end, -1))]
    return max(itertools.accumulate(step for _, step in sorted(ends)), default=0)


class LeaseSlots(Leases):
    """The same with slots, of which each name has three; some are not to be held for long."""

    NAMES = [f'slots {number}' for number in range(2)]
    SLOTS = 3
    MAX_HOLDS = (None, 3, 10)

    def take(self, session):
        name, ttl = random.choice(self.NAMES), random.choice(self.TTLS)
        max_hold = random.choice(self.MAX_HOLDS)
        asked = time.monotonic()
        [[slot, token]] = session.rows(
            '''SELECT slot, token FROM advisory.try_lease_slot(
                   %s, %s, %s, make_interval(secs => %s), max_hold => make_interval(secs => %s))''',
            NAMESPACE, name, self.SLOTS, ttl, max_hold)
        if token is None or not session.is_replicated():
            return None
        grants.append(Grant(asked, time.monotonic(), session.timeline, name, token))
        self.granted.append(Lease(
            name, ttl, token, session.timeline, asked, slot, max_hold or math.inf))
        return self.granted[-1]

    def figures(self, session):
        return {
            'slots': len(self.granted),
            'slots carried': sum(lease.is_carried for lease in self.granted),
            'slots at once': max(most_at_once([lease for lease in self.granted
                                               if lease.name == name]) for name in self.NAMES),
            'slot held by two': sum(
                (one.name, one.slot) == (other.name, other.slot) and one.overlaps(other)
                for one, other in itertools.combinations(self.granted, 2)),
            'beyond max_hold': sum(lease.is_beyond for lease in self.granted),
        }


class Windows:
    """Jobs that several schedulers want to run, once in every window."""

    def __init__(self):
        self.claimed = []

    def set_up(self, session):
        pass

    def step(self, worker, session):
        job = f'job {random.randrange(3)}'
        session.rows('BEGIN')
        window = session.value("SELECT advisory.claim(%s, %s, '1s')", NAMESPACE, job)
        session.rows('COMMIT')
        if window and session.is_replicated():
            self.claimed.append((job, window))
        time.sleep(0.1)

    def figures(self, session):
        return {'windows': len(self.claimed),
                'run twice': len(self.claimed) - len(set(self.claimed))}


Checked = collections.namedtuple('Checked', 'asked timeline name token')


class Guarded:
    """Leases that are checked by clients who stay with their primary, also after it was superseded.
    Some of them only read: without its standby, the primary of a synchronous cluster confirms no
    write. Others always go to the newest primary."""

    NAMES = [f'guarded {number}' for number in range(3)]

    def stays(self, worker):
        return worker.number % 3 < 2

    def __init__(self):
        self.granted, self.checked = [], []
        self.acknowledged = set()
        self.held_after_all = 0
        self.ids = itertools.count(1)

    def set_up(self, session):
        session.rows(
            '''CREATE TABLE guarded (
                   name text NOT NULL, number bigint NOT NULL, token bigint NOT NULL,
                   id bigint NOT NULL, PRIMARY KEY (name, number))''')

    def step(self, worker, session):
        time.sleep(0.05)
        self.ask_again(worker, session)
        if not worker.lease:
            worker.lease = self.take(session)
            return
        name, token = worker.lease
        try:
            self.check(session, name, token)
            if worker.number % 3 == 0:
                return
            self.write(session, name, token)
            if not session.value('SELECT advisory.renew_lease(%s, %s, %s)', NAMESPACE, name, token):
                self.lose(worker, session)
        except psycopg2.errors.ObjectNotInPrerequisiteState:
            session.rows('ROLLBACK')
            self.lose(worker, session)
        else:
            if random.random() < 0.05:
                session.rows('SELECT advisory.end_lease(%s, %s, %s)', NAMESPACE, name, token)
                worker.lease = None

    def take(self, session):
        name, asked = random.choice(self.NAMES), time.monotonic()
        token = session.value("SELECT token FROM advisory.try_lease(%s, %s, '1s')", NAMESPACE, name)
        if token is None or not session.is_replicated():
            return None
        grants.append(Grant(asked, time.monotonic(), session.timeline, name, token))
        self.granted.append(grants[-1])
        return name, token

    def check(self, session, name, token):
        asked = time.monotonic()
        session.rows('BEGIN' if IS_PORTABLE else 'BEGIN READ ONLY')
        session.rows('SELECT advisory.check_lease(%s, %s, %s)', NAMESPACE, name, token)
        session.rows('ROLLBACK' if IS_PORTABLE else 'COMMIT')
        self.checked.append(Checked(asked, session.timeline, name, token))

    def write(self, session, name, token):
        write_id = next(self.ids)
        session.rows('BEGIN')
        session.rows('SELECT advisory.check_lease(%s, %s, %s)', NAMESPACE, name, token)
        session.rows(
            'INSERT INTO guarded SELECT %s, count(*) + 1, %s, %s FROM guarded WHERE name = %s',
            name, token, write_id, name)
        session.rows('COMMIT')
        if session.is_replicated():
            self.acknowledged.add(write_id)

    def lose(self, worker, session):
        """What a superseded primary says is not the last word."""
        worker.lost.append((session.timeline, *worker.lease))
        worker.lease = None

    def ask_again(self, worker, session):
        for lost in [lost for lost in worker.lost if lost[0] < session.timeline]:
            worker.lost.remove(lost)
            if session.value('SELECT advisory.renew_lease(%s, %s, %s)', NAMESPACE, *lost[1:]):
                self.held_after_all += 1
                session.rows('SELECT advisory.end_lease(%s, %s, %s)', NAMESPACE, *lost[1:])

    def figures(self, session):
        left = session.rows('SELECT name, token, id FROM guarded ORDER BY name, number')
        highest, stale_writes = collections.Counter(), 0
        for name, token, _ in left:
            stale_writes += token < highest[name]
            highest[name] = max(token, highest[name])
        late = sum(any(grant.name == check.name and grant.timeline > check.timeline
                       and grant.token != check.token and grant.returned < check.asked
                       for grant in self.granted)
                   for check in self.checked)
        return {
            'checks': len(self.checked),
            'checked late': late,
            'held after all': self.held_after_all,
            'guarded': len(self.acknowledged),
            'guarded, lost': len(self.acknowledged - {write_id for _, _, write_id in left}),
            'guarded, stale': stale_writes,
        }


# And how many workers for each.
CHECKS = {Tokens(): 8, Leases(): 9, LeaseSlots(): 9, Windows(): 3, Guarded(): 6}


# ---- Workers -------------------------------------------------------------------------------------


class Worker(threading.Thread):
    """Goes to another primary, if there is one, now and then, unless its check stays with one. It
    does not keep the process from ending: it may hang in a commit that no standby confirms."""

    def __init__(self, check, number):
        super().__init__(daemon=True)
        self.check = check
        self.number = number
        self.late = []
        self.lost = []
        self.lease = None

    def run(self):
        while not stopping.is_set():
            is_guarded = isinstance(self.check, Guarded)
            stays = is_guarded and self.check.stays(self)
            session = newest_primary() if is_guarded and not stays else any_primary()
            if not session:
                time.sleep(0.05)
                continue
            try:
                steps = range(1 if is_guarded else random.randint(50, 200))
                for _ in itertools.count() if stays else steps:
                    if stopping.is_set():
                        break
                    self.check.step(self, session)
            except psycopg2.Error as error:
                complain(error)
            session.close()


# What a connection may say when its server goes away; anything else is told.
EXPECTED = (
    psycopg2.OperationalError, psycopg2.InterfaceError, psycopg2.errors.ReadOnlySqlTransaction)
complaints = collections.Counter()


def complain(error):
    if not isinstance(error, EXPECTED):
        complaints[f'{type(error).__name__}: {error}'.strip()] += 1


def main():
    session = any_primary()
    if IS_PORTABLE and session.connection.server_version < 170000:
        del CHECKS[next(check for check in CHECKS if isinstance(check, Tokens))]
    for check in CHECKS:
        check.set_up(session)
    session.close()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    workers = [Worker(check, number) for check, many in CHECKS.items() for number in range(many)]
    for worker in workers:
        worker.start()
    print('ready', flush=True)
    stopping.wait()
    for worker in workers:
        worker.join(timeout=10)
    session = any_primary()
    for figures in [all_grants(), *(check.figures(session) for check in CHECKS)]:
        for name, number in figures.items():
            print(name, number, sep='\t')
    for timeline in sorted(used_twice()):
        for port, history in sorted(primaries[timeline], key=str):
            began = (history or '').strip().splitlines()[-1:]
            print(f'# timeline {timeline} on port {port} began: {began}')
    for complaint, times in complaints.items():
        print(f'# {times} times: {complaint}')
    print('unexpected errors', sum(complaints.values()), sep='\t')


main()
