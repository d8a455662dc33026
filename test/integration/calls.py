"""What psycopg2 sends, and what comes of it. Used by python.t: each line says what was tried, what
came, what should. The argument is the list of calls that other drivers make, too."""
import datetime
import hashlib
import sys
import threading
import time
import uuid

import psycopg2
import psycopg2.errors
import psycopg2.extras
from psycopg2.extensions import TRANSACTION_STATUS_IDLE, TRANSACTION_STATUS_INTRANS

psycopg2.extras.register_uuid()
connection = psycopg2.connect('', application_name='calls')
watcher = psycopg2.connect('', application_name='watcher')
watcher.autocommit = True


def key(name, namespace='py'):
    """README's line."""
    return int.from_bytes(
        hashlib.sha256((namespace + '\0' + str(name)).encode()).digest()[:8], 'big', signed=True)


def report(what, got, expected):
    print(what, got, expected, sep='\t')


def call(sql, *values):
    """The first column's values, or the SQLSTATE."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            return [row[0] for row in cursor] if cursor.description else []
    except psycopg2.Error as error:
        return error.pgcode


def held():
    """The bigint keys that the connection holds, as another one sees them in the server's own
    view."""
    with watcher.cursor() as cursor:
        cursor.execute("""SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks
                          WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND pid = %s""",
                       (connection.info.backend_pid,))
        return sorted(row[0] for row in cursor)


def let_go():
    connection.rollback()
    call('SELECT pg_advisory_unlock_all()')
    connection.rollback()


def try_locks(form, sql, values, result, names):
    report(f'{form}: result', call(sql, *values), result)
    report(f'{form}: those locks', held(), sorted(map(key, names)))
    let_go()


def value_of(text):
    """A value of the list, as a program has it."""
    kind, text = text.split(':', 1)
    if kind.endswith('[]'):
        return [value_of(f'{kind[:-2]}:{element}') for element in text.split(',') if element]
    if kind == 'interval':
        number, unit = text.split()
        return datetime.timedelta(**{{'s': 'seconds', 'min': 'minutes'}[unit]: int(number)})
    return {'null': lambda _: None, 'text': str, 'integer': int, 'bigint': int,
            'uuid': uuid.UUID}[kind](text)


def as_text(result):
    if not isinstance(result, list):
        return result
    return ' '.join('t' if value is True else str(value) for value in result)


def takes_values(path):
    with open(path, encoding='utf-8') as lines:
        for line in lines:
            if line.startswith('= '):
                functions = line[2:].split()
            elif not line.startswith('#'):
                what, sql, expected, names, *values = line.rstrip('\n').split('\t')
                is_call = sql.startswith('CALL')
                connection.autocommit = is_call
                for function in functions:
                    result = call(sql.replace('F(', f'{function}(').replace('?', '%s'),
                                  *map(value_of, values))
                    report(f'{function}, {what}', 'done' if is_call and result == []
                           else as_text(result), expected)
                    report(f'{function}, {what}: those locks', held(),
                           sorted(key(name, 'calls') for name in names.split(',') if name))
                    let_go()
    connection.autocommit = False


def takes_other_values():
    try_locks('a timedelta with a fraction', "SELECT advisory.lock('py', 'a', %s)",
              [datetime.timedelta(milliseconds=1500)], [True], ['a'])
    try_locks('a string as the timeout', "SELECT advisory.lock('py', 'a', %s)", ['1s'], [True],
              ['a'])
    try_locks('a bare number is no timeout', "SELECT advisory.lock('py', 'a', %s)", [5000],
              '42883', [])
    try_locks('a list is no name', "SELECT advisory.lock('py', %s)", [['a', 'b']], '42883', [])
    try_locks('by named arguments',
              "SELECT advisory.lock(namespace => 'py', name => %s, timeout => %s)", ['a', '1s'],
              [True], ['a'])
    call("SELECT advisory.lock_all('py', %s)", ['a', 'b', 'c'])
    report('unlock_all of a list', call("SELECT advisory.unlock_all('py', %s)", ['a', 'b']), [2])
    report('and what it left', held(), [key('c')])
    # An empty list is the literal '{}', which has no type, so it is a name; it releases nothing in
    # either case.
    report('unlock_all of an empty list', call("SELECT advisory.unlock_all('py', %s)", []), [0])
    report('unlock_all of an empty text[]',
           call("SELECT advisory.unlock_all('py', %s::text[])", []), [0])
    let_go()


def gives_values():
    for sql, value in (("SELECT advisory.is_locked('py', 'none')", False),
                       ("SELECT advisory.key('billing', 'invoice:42')", 1572001551135567388),
                       ("SELECT interval '1.5 s'", datetime.timedelta(seconds=1.5)),
                       ('SELECT NULL::integer', None),
                       ("SELECT 1 WHERE advisory.try_lock('py', 'a')", 1),
                       ("CALL advisory.await_acquire('py', 'slots', 3)", 1)):
        report(sql, repr(call(sql)), repr([value]))
    let_go()


def ends_with_transactions():
    call("SELECT advisory.xact_lock('py', 'xact')")
    call("SELECT advisory.lock('py', 'session')")
    connection.rollback()
    report('after a rollback the session-level lock is there', held(), [key('session')])
    let_go()
    connection.autocommit = True
    call("SELECT advisory.xact_lock('py', 'xact')")
    report('with autocommit, a transaction-level lock is gone at once', held(), [])
    call("SELECT advisory.lock('py', 'session')")
    report('a session-level one is not', held(), [key('session')])
    call("SELECT advisory.unlock('py', 'session')")
    del connection.notices[:]
    report('unlock of what is not held', call("SELECT advisory.unlock('py', 'session')"), [False])
    report('has a warning with its name',
           [notice[:8] for notice in connection.notices if '"py/session"' in notice], ['WARNING:'])
    # `with connection` is a transaction also with autocommit, from psycopg2 2.9 on.
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT advisory.xact_lock('py', 'xact')")
        report('in `with connection`', held(), [key('xact')])
    report('and after it', held(), [])
    connection.autocommit = False


def fails_as_a_program_expects():
    with watcher.cursor() as cursor:
        cursor.execute("SELECT advisory.lock('py', 'taken')")
        for function in ('lock', 'xact_lock', 'lock_shared'):
            for timeout in ('0s', datetime.timedelta(milliseconds=20)):
                try:
                    connection.cursor().execute(
                        f"SELECT advisory.{function}('py', 'taken', %s)", (timeout,))
                    report(f'{function} of what is taken', 'nothing was raised', '')
                except psycopg2.errors.LockNotAvailable as error:
                    diag = error.diag
                    report(f'{function}: fields',
                           (error.pgcode, diag.severity, diag.schema_name, diag.constraint_name,
                            diag.table_name), ('55P03', 'ERROR', 'py', 'taken', None))
                    holder = watcher.info.backend_pid
                    for part, text in (
                            (f'Process {holder} of role', diag.message_detail),
                            ('application "watcher"', diag.message_detail),
                            (f"advisory.terminate_holder('py', 'taken', {holder}, kind => 'lock')",
                             diag.message_hint)):
                        report(f'{function} says {part}', part in text, True)
                connection.rollback()
        try_locks('lock_all of one that is taken', "SELECT advisory.lock_all('py', %s, '0s')",
                  [['free', 'taken']], '55P03', [])
        report('try_lock is false', call("SELECT advisory.try_lock('py', 'taken')"), [False])
        report('and the transaction goes on',
               connection.info.transaction_status == TRANSACTION_STATUS_INTRANS, True)
        report('with a timeout, too',
               call("SELECT advisory.try_lock('py', 'taken', %s)",
                    datetime.timedelta(milliseconds=20)), [False])
        report('still', call('SELECT 1'), [1])
        connection.rollback()
        call("SET statement_timeout = '50ms'")
        report('statement_timeout', call("SELECT advisory.lock('py', 'taken')"), '57014')
        connection.rollback()
        cursor.execute("SELECT advisory.unlock('py', 'taken')")


def try_await(form, error=None):
    try_locks(form, "CALL advisory.await_lock('py', 'a', '1s')", [], error or [],
              [] if error else ['a'])


def awaits():
    connection.autocommit = True
    with connection.cursor() as cursor:
        # psycopg2's callproc is SELECT * FROM.
        cursor.callproc('advisory.try_lock', ('py', 'proc'))
        report('callproc of a function', cursor.fetchall(), [(True,)])
        try:
            cursor.callproc('advisory.await_lock', ('py', 'proc'))
        except psycopg2.Error as error:
            report('callproc of a procedure', error.pgcode, '42809')
    let_go()
    report('outside a transaction',
           connection.info.transaction_status == TRANSACTION_STATUS_IDLE, True)
    connection.autocommit = False

    # psycopg2 sends BEGIN first: that is fine, too.
    try_await('await_lock in a transaction')
    call('SELECT count(*) FROM pg_class')
    try_await('await_lock after a query')
    call('CREATE TEMPORARY TABLE written ()')
    try_await('await_lock after writing', '25001')
    connection.cursor('named').execute('SELECT * FROM pg_class')
    try_await('await_lock beside a named cursor', '25001')
    for level in ('REPEATABLE READ', 'SERIALIZABLE'):
        connection.set_session(isolation_level=level)
        try_await(f'await_lock in {level}', '25001')
        connection.set_session(isolation_level='DEFAULT')
    connection.set_session(isolation_level='SERIALIZABLE', autocommit=True)
    try_await('await_lock, SERIALIZABLE and autocommit', '25001')
    connection.set_session(isolation_level='DEFAULT', autocommit=True)

    with watcher.cursor() as cursor:
        cursor.execute("SELECT advisory.lock('py', 'taken')")
        try:
            connection.cursor().execute("CALL advisory.await_lock('py', 'taken', '20ms')")
        except psycopg2.errors.LockNotAvailable as error:
            report('await_lock of what is taken',
                   (error.diag.schema_name, error.diag.constraint_name), ('py', 'taken'))
        report('and nothing is held', held(), [])
        cursor.execute("SELECT advisory.unlock('py', 'taken')")


def has_snapshot(cursor, sql):
    """Does the session, while it waits, have one, which would be in the way of CREATE INDEX
    CONCURRENTLY?"""
    cursor.execute("SELECT advisory.lock('py', 'taken')")
    waiter = threading.Thread(target=call, args=(sql,))
    waiter.start()
    waits = has = None
    while waiter.is_alive() and not waits:
        time.sleep(0.005)
        cursor.execute("""SELECT wait_event = 'advisory' AND wait_event_type = 'Lock',
                                 backend_xmin IS NOT NULL OR backend_xid IS NOT NULL
                          FROM pg_stat_activity WHERE pid = %s""", (connection.info.backend_pid,))
        waits, has = cursor.fetchone()
    cursor.execute("SELECT advisory.unlock('py', 'taken')")
    waiter.join()
    report(f'{sql} has waited', (waits, held()), (True, [key('taken')]))
    let_go()
    return has


def waits_without_snapshot():
    with watcher.cursor() as cursor:
        for autocommit in (True, False):
            connection.autocommit = autocommit
            form = 'autocommit' if autocommit else 'in a transaction'
            report(f'lock, {form}: waits with a snapshot',
                   has_snapshot(cursor, "SELECT advisory.lock('py', 'taken')"), True)
            report(f'await_lock, {form}: waits without',
                   has_snapshot(cursor, "CALL advisory.await_lock('py', 'taken')"), False)


if __name__ == '__main__':
    sys.stdout.reconfigure(encoding='utf-8')
    takes_values(sys.argv[1])
    takes_other_values()
    gives_values()
    ends_with_transactions()
    fails_as_a_program_expects()
    awaits()
    waits_without_snapshot()
    print('end')
