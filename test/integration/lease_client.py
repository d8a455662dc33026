"""A worker that holds a lease by clients/python, for lease_clients.t: a report with a line for each
step. The arguments are its name, the number of steps, how many seconds to sleep after each, the
TTL, and how long to wait for the lease.
"""
import signal
import sys
import threading
from contextlib import closing

import psycopg2
from advisory_ext import Advisory, AdvisoryError, NotAvailable


def add_line(connection, lease, worker):
    lease.check()
    with connection, connection.cursor() as cursor:
        cursor.execute('SELECT advisory.check_lease(%s, %s, %s)', ('report', 'daily', lease.token))
        cursor.execute('INSERT INTO report (worker, token) VALUES (%s, %s)', (worker, lease.token))


def report_loss(lease, worker, has_ended):
    lease.lost.wait()       # it is also set when the block ends
    if not has_ended.is_set():
        print(f'{worker}: the lease is lost', flush=True)


def main(worker, steps, pause, ttl='30', timeout=None):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('ended by SIGTERM'))
    advisory = Advisory(lambda: psycopg2.connect('', application_name=f'{worker}-lease'))
    try:
        held = advisory.lease('report', 'daily', ttl=float(ttl),
                              timeout=timeout and float(timeout), owner=worker)
        with held as lease:
            print(f'{worker} has the lease, token {lease.token}', flush=True)
            has_ended = threading.Event()
            reporter = threading.Thread(
                target=report_loss, args=(lease, worker, has_ended), daemon=True)
            reporter.start()
            with closing(psycopg2.connect('', application_name=worker)) as connection:
                for _ in range(int(steps)):
                    add_line(connection, lease, worker)
                    if lease.lost.wait(float(pause)):
                        reporter.join()
                        lease.check()
            has_ended.set()
        print(f'{worker} is done')
    except NotAvailable:
        sys.exit(f'{worker} does not begin: somebody else has the lease')
    except AdvisoryError as error:
        sys.exit(f'{worker} stops: {error}'.replace('lease "report/daily" is lost: ', ''))


if __name__ == '__main__':
    main(*sys.argv[1:])
