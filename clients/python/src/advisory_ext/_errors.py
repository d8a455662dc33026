"""What this package raises. Every other error is the driver's or the work's own, and comes through
unchanged.
"""
from __future__ import annotations

import re
from typing import Any, NamedTuple

from ._driver import sqlstate


class AdvisoryError(Exception):
    """Has the namespace and the name of the lock, semaphore or lease."""

    def __init__(self, message: str, namespace: str | None = None, name: str | None = None):
        super().__init__(message)
        self.namespace = namespace
        self.name = name


class Holder(NamedTuple):
    """The first of those who hold it. None: not known, or there is none, as a prepared transaction
    has no process.
    """

    pid: int | None
    role: str | None
    application: str | None
    text: str       # what the server says of all that hold it or wait for it


class NotAvailable(AdvisoryError):
    """Somebody else has it, for as long as we were willing to wait. remedy is the statement that
    ends the holder, or None.
    """

    holder: Holder
    remedy: str | None

    def __str__(self) -> str:
        return '\n'.join(filter(None, (self.args[0], self.holder.text)))


class LockLost(AdvisoryError):
    """The work is done, but the lock was not held until its end: somebody else may have worked at
    the same time.
    """


class LeaseLost(AdvisoryError):
    """Somebody else may have the lease: the work has to stop, and what it did last may have to be
    undone.
    """


class TransactionPooler(AdvisoryError):
    """A session-level lock behind a pooler that gives each transaction another session."""


# Whoever holds it comes first in DETAIL, and after that those who wait. A line for each.
_HOLDER = re.compile(
    r'^Process (\d+)(?: of role "(.*?)")?(?:, application "(.*)",)? '
    r'(?:holds it in|has slot|has locked it in) ', re.M)

_REMEDY = re.compile(
    r': (SELECT advisory\.terminate_holder(?:_key)?\(.*\))\.$'
    r'| COMMIT PREPARED (.*) or (ROLLBACK PREPARED \2)\.$', re.S)


def is_taken(error: Any) -> bool:
    """The driver's error of something that somebody else has, and not of a table that is locked."""
    return sqlstate(error) == '55P03' and bool(error.diag.constraint_name)


def raise_if_taken(error: Any, limit: str = r'\1') -> None:
    """Raises NotAvailable if the driver's error says that. limit is how long we have waited in all;
    by default, what the server says.
    """
    if not is_taken(error):
        return
    diag = error.diag
    text, hint = diag.message_detail or '', diag.message_hint or ''
    found = _HOLDER.search(text)
    end = _REMEDY.search(hint)
    message = re.sub(r'(within [^"]*|without waiting)$', limit, diag.message_primary)
    # What its constructor needs more than the message could not be unpickled, and a pool of
    # processes would break.
    taken = NotAvailable(message, diag.schema_name, diag.constraint_name)
    taken.holder = Holder(
        *((int(found[1]), found[2], found[3]) if found else (None, None, None)), text)
    taken.remedy = (end[1] or end[3]) if end else None
    raise taken from error
