"""Once a day, for a job that takes longer than a transaction should: exports all customers.

    PGDATABASE=shop python3 daily_export.py customers.csv        # from cron, every hour

Also behind PgBouncer. The lease keeps others out while it works. The day is claimed at the end, so
that a job that died is done again.

Tables: customer (id bigint, name text)
"""
import csv
import sys

import psycopg

from advisory_ext import Advisory, NotAvailable

advisory = Advisory(lambda: psycopg.connect('', application_name='daily-export'))


def main(path):
    try:
        with advisory.lease('export', 'daily', ttl='1 min') as lease, \
                psycopg.connect('', autocommit=True) as connection:
            # Only to see whether it is done.
            with connection.transaction(force_rollback=True):
                if advisory.claim('export', 'daily', '1 day', connection=connection) is None:
                    return print('skipped: it is done')
            with open(path, 'w', encoding='utf-8', newline='') as file:
                for customer in connection.execute('SELECT id, name FROM customer ORDER BY id'):
                    lease.check()           # LeaseLost, if somebody else may be at it
                    csv.writer(file).writerow(customer)
            with connection.transaction():
                connection.execute(
                    'SELECT advisory.check_lease(%s, %s, %s)', ['export', 'daily', lease.token])
                advisory.claim('export', 'daily', '1 day', connection=connection)
            print('exported')
    except NotAvailable as error:
        print(f'skipped: {error.holder.text}')


if __name__ == '__main__':
    main(sys.argv[1])
