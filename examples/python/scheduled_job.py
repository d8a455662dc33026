#!/usr/bin/env python3
"""A scheduled job that must not overlap with itself: bills what customers used.

    PGDATABASE=shop python3 scheduled_job.py            # from cron, every few minutes, on as many machines as you like

If another process runs the job, this one says so and exits. The job commits for each customer, so the lock is session-level: it lasts until the
connection ends, whatever happens to the job. Do not connect through a transaction pooler.

Tables: usage (customer_id bigint, amount numeric, billed boolean), invoice (customer_id bigint, total numeric)
"""
from contextlib import closing

import psycopg2
from psycopg2.errors import LockNotAvailable


def bill_all(connection):
    with connection, connection.cursor() as cursor:
        cursor.execute('SELECT customer_id FROM usage WHERE NOT billed GROUP BY 1 ORDER BY 1')
        customers = [customer for (customer,) in cursor]
    for customer in customers:
        with connection, connection.cursor() as cursor:     # a transaction for each
            cursor.execute("""
                WITH new AS (UPDATE usage SET billed = true WHERE customer_id = %s AND NOT billed RETURNING amount)
                INSERT INTO invoice (customer_id, total) SELECT %s, sum(amount) FROM new
                """, (customer, customer))
    return len(customers)


def main():
    with closing(psycopg2.connect('', application_name='billing')) as connection:
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute("SELECT advisory.lock('billing', 'nightly', '0s')")      # now, or an error
        except LockNotAvailable as busy:
            print(f'skipped: {busy.diag.message_detail}')
            return
        print(f'billed {bill_all(connection)} customers')


if __name__ == '__main__':
    main()
