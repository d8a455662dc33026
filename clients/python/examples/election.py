"""An election: of all that run this, one leads. If it dies, or loses its network, another one leads when its lease is over.

    PGDATABASE=shop python3 election.py ann

Whatever the leader does elsewhere carries the token, so that what a former leader does late can be refused.
"""
import sys

import psycopg

from advisory_ext import Advisory, LeaseLost


def lead(name, lease):
    """Until it is lost: what only one may do, once a second."""
    print(f'{name} leads, token {lease.token}', flush=True)
    while not lease.lost.wait(1):
        pass                                            # e.g. look for jobs that are due, and start them


def main(name):
    advisory = Advisory(lambda: psycopg.connect('', application_name=name, connect_timeout=2))
    while True:
        try:
            with advisory.lease('leader', 'scheduler', ttl=3, timeout=None, owner=name) as lease:
                lead(name, lease)
        except LeaseLost as error:
            print(f'{name} leads no more: {error}', flush=True)


if __name__ == '__main__':
    main(sys.argv[1])
