"""Whether a pooler would take a session-level lock from its holder."""
from __future__ import annotations

from typing import Any

from ._driver import ask
from ._errors import TransactionPooler
from ._line import Line, now

ROUNDS = 5
PATIENCE = 1.0      # seconds for all rounds: in session mode, the second connection may have to wait for a server

PROCESS = 'pg_catalog.pg_backend_pid()'


def refuse_transaction_pooler(connect: Any, connection: Any, namespace: str, name: str) -> None:
    """Refuses session-level locks behind a pooler in transaction mode: there the next transaction may run in another session.

    Whoever talks to the server itself pays one statement. The server tells each client the number of its process; a pooler invents that.
    If the two differ there is a pooler, but it may be in session mode. Then it is in transaction mode if two connections that are both
    open share a process, or if one of them has two. Each is asked when it has no transaction.
    """
    mine = {ask(connection, PROCESS)}
    if (connection.info.backend_pid,) not in mine and _is_shared(connect, connection, mine):
        raise TransactionPooler('a session-level lock cannot be held behind a pooler in transaction mode: leave scope out for a lock of a '
                                'transaction, or use lease(), or connect to the server itself', namespace, name)


def _is_shared(connect: Any, connection: Any, mine: set) -> bool:
    deadline = now() + PATIENCE
    other = Line(connect)
    try:
        for _ in range(ROUNDS):
            theirs = other.ask(deadline - now(), PROCESS).row
            # Twice, as a pooler that hands out its servers in turn could keep in step with us.
            mine |= {ask(connection, PROCESS)} | {ask(connection, PROCESS)}
            if len(mine) > 1 or theirs in mine:
                return True
        return False
    except Exception:                   # the other connection is not served: not proven, and unlock will tell
        return len(mine) > 1
    finally:
        other.close(is_broken=True)
