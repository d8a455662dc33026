"""One export at a time for each user. A second request fails, and says who makes the export.

    PGDATABASE=shop python3 one_at_a_time.py 7          # the orders of user 7

Tables: orders (id bigint, user_id bigint, amount numeric), app_user (id bigint, exports integer)
"""
import sys

import psycopg

from advisory_ext import Advisory, NotAvailable

advisory = Advisory(lambda: psycopg.connect('', application_name='exporter'))


def export(user):
    with advisory.lock('export', user) as connection:       # until COMMIT
        orders = connection.execute(
            'SELECT id, amount FROM orders WHERE user_id = %s ORDER BY id', [user]).fetchall()
        connection.execute('UPDATE app_user SET exports = exports + 1 WHERE id = %s', [user])
    return orders


def main(user):
    try:
        for order in export(user):
            print(*order, sep=',')
    except NotAvailable as error:       # to the user: 409 Conflict, or 429 with Retry-After
        holder = error.holder
        sys.exit(f'an export of user {user} is under way, '
                 f'by {holder.application}, process {holder.pid}')


if __name__ == '__main__':
    main(int(sys.argv[1]))
