"""A file that refuses what a former holder of a lease writes late: a token that is smaller than
that of the newest content.

    with advisory.lease('report', 'daily', ttl=30) as lease:
        write('/var/lib/report', lease.token, text)

The directory has a file for each token; that of the greatest is the content. So no lock is needed,
and a write is there as a whole or not.
"""
import os
import sys
from contextlib import suppress


def write(directory, token, content):
    tokens = refuse_if_stale(directory, token)
    path = os.path.join(directory, f'{token:019}')
    with open(f'{path}.new', 'w', encoding='utf-8') as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(f'{path}.new', path)
    folder = os.open(directory, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    refuse_if_stale(directory, token)           # once more: all who come later see ours
    for old in tokens - {token}:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, f'{old:019}'))


def refuse_if_stale(directory, token):
    tokens = {int(name) for name in os.listdir(directory) if name.isdigit()}
    if tokens and max(tokens) > token:
        raise PermissionError(f'token {token} is stale, {max(tokens)} was here')
    return tokens


if __name__ == '__main__':
    write(sys.argv[1], int(sys.argv[2]), sys.argv[3])
