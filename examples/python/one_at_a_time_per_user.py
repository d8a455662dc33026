#!/usr/bin/env python3
"""One export at a time for each user. A second request fails, and says who makes the export.

    PGDATABASE=shop python3 one_at_a_time_per_user.py 7         # the orders of user 7, as CSV

The lock ends with the transaction, so there is nothing to release, also behind a transaction pooler. The program recognizes the error by its
SQLSTATE, 55P03, and by the namespace and name that it carries.

Tables: orders (id bigint, user_id bigint, amount numeric), app_user (id bigint, exports integer)
"""
import sys
from contextlib import closing

import psycopg2
from psycopg2.errors import LockNotAvailable


class Busy(Exception):
    """To the user: 409 Conflict, or 429 with Retry-After."""


def export(connection, user, out):
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute("SELECT advisory.xact_lock('export', %s, '0s')", (user,))     # 7 is a name, as '7' is
            orders = cursor.mogrify('SELECT id, amount FROM orders WHERE user_id = %s ORDER BY id', (user,)).decode()
            cursor.copy_expert(f'COPY ({orders}) TO STDOUT (FORMAT csv, HEADER)', out)
            cursor.execute('UPDATE app_user SET exports = exports + 1 WHERE id = %s', (user,))
    except LockNotAvailable as error:
        if (error.diag.schema_name, error.diag.constraint_name) != ('export', str(user)):
            raise                                               # a table's lock, after lock_timeout
        raise Busy(f'an export of user {user} is under way: {error.diag.message_detail}') from error


def main():
    with closing(psycopg2.connect('', application_name='exporter')) as connection:
        try:
            export(connection, int(sys.argv[1]), sys.stdout)
        except Busy as busy:
            sys.exit(str(busy))


if __name__ == '__main__':
    main()
