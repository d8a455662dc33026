#!/usr/bin/env python3
"""Webhooks, each handled once. The sender delivers an event again until it gets an answer, perhaps while the first delivery is still being
handled. The answer to the second delivery comes when the first one is done.

    PGDATABASE=shop python3 webhook.py evt_1 7 12.50            # event evt_1: 12.50 paid into account 7

A lock means "not at the same time", not "only once". So the same transaction writes a row for the event, and the program looks for that row under
the lock. To see what was committed meanwhile, it needs the isolation level READ COMMITTED, the default.

Tables: webhook_event (id text PRIMARY KEY), account (id bigint, balance numeric)
"""
import sys
from contextlib import closing

import psycopg2
from psycopg2.errors import LockNotAvailable


def handle(connection, event, account, amount):
    """True if we handled it, False if somebody had before; LockNotAvailable if somebody is at it for too long."""
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT advisory.xact_lock('webhook', %s, '10s')", (event,))
        cursor.execute('SELECT FROM webhook_event WHERE id = %s', (event,))
        if cursor.rowcount:
            return False
        cursor.execute('UPDATE account SET balance = balance + %s WHERE id = %s', (amount, account))
        cursor.execute('INSERT INTO webhook_event (id) VALUES (%s)', (event,))
        return True


def main():
    event, account, amount = sys.argv[1:]
    with closing(psycopg2.connect('', application_name='webhook')) as connection:
        try:
            print('handled' if handle(connection, event, account, amount) else 'handled before')
        except LockNotAvailable as busy:
            sys.exit(f'503, try again later: {busy.diag.message_primary}')


if __name__ == '__main__':
    main()
