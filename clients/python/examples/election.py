"""An election: of all that run this, one leads, and starts the jobs that are due. If it dies, or
loses its network, another one leads as soon as its lease is over.

    PGDATABASE=shop python3 election.py ann

Table: job (id bigint, due_at timestamptz, started_by text)
"""
import sys
import time

import psycopg

from advisory_ext import Advisory, AdvisoryError


def lead(name, lease):
    while not lease.lost.wait(0.2):
        with psycopg.connect('', application_name=f'{name}-work') as connection:
            # Nobody else leads before this transaction ends.
            connection.execute(
                'SELECT advisory.check_lease(%s, %s, %s)', ['leader', 'scheduler', lease.token])
            connection.execute(
                'UPDATE job SET started_by = %s WHERE started_by IS NULL AND due_at <= now()',
                [name])


def main(name):
    advisory = Advisory(lambda: psycopg.connect('', application_name=name, connect_timeout=2))
    while True:
        try:
            with advisory.lease('leader', 'scheduler', ttl=3, timeout=None, owner=name) as lease:
                print(f'{name} leads, token {lease.token}', flush=True)
                lead(name, lease)
        except (AdvisoryError, psycopg.Error) as error:
            print(f'{name} leads no more: {error}', flush=True)
            time.sleep(0.5)


if __name__ == '__main__':
    main(sys.argv[1])
