"""Webhooks, each handled once, also if the sender delivers one again while it is being handled.

    PGDATABASE=shop python3 webhook.py evt_1 7 12.50    # event evt_1: 12.50 paid into account 7

A lock means "not at the same time", not "only once". So the same transaction writes a row for the
event, and the program looks for that row under the lock. To see what was committed meanwhile, it
needs the isolation level READ COMMITTED, the default.

Tables: webhook_event (id text PRIMARY KEY), account (id bigint, balance numeric)
"""
import sys

import psycopg

from advisory_ext import Advisory, NotAvailable

advisory = Advisory(lambda: psycopg.connect('', application_name='webhook'))


def handle(event, account, amount):
    """True if we handled it, False if somebody had before."""
    with advisory.lock('webhook', event, timeout=10) as connection:
        if connection.execute('SELECT FROM webhook_event WHERE id = %s', [event]).rowcount:
            return False
        connection.execute(
            'UPDATE account SET balance = balance + %s::numeric WHERE id = %s', [amount, account])
        connection.execute('INSERT INTO webhook_event (id) VALUES (%s)', [event])
        return True


if __name__ == '__main__':
    try:
        print('handled' if handle(*sys.argv[1:]) else 'handled before')
    except NotAvailable as busy:
        sys.exit(f'503, try again later: {busy}')
