"""A connection that keeps nobody waiting, beside that of the work: for leases, and to find out a
pooler.
"""
from __future__ import annotations

import re
import time
from collections import namedtuple
from concurrent.futures import Future, TimeoutError as FutureTimeout, wait
from contextlib import suppress
from queue import SimpleQueue
from socket import AF_INET, SHUT_RDWR, SOCK_STREAM, fromfd, socket
from threading import Thread
from typing import Any

from ._driver import ask, autocommit, collect_warnings, open_own, sqlstate
from ._errors import AdvisoryError, TransactionPooler


def now() -> float:
    """Seconds of the monotonic clock: where there is one, of that which goes on while the machine
    sleeps.
    """
    if hasattr(time, 'CLOCK_BOOTTIME'):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


Answer = namedtuple('Answer', 'row sent_at warnings')

# What the extension warns of at a grant that is as good as any: other numbers of slots, and another
# name of the key. These texts have no translations.
HARMLESS = re.compile(r'(?:\S+:\s+)?the (?:slots of lease|key of advisory lock) "')


class Line:
    """A connection of its own with a thread of its own, so that no answer is awaited for longer
    than one wants to.

    The drivers cannot limit that: a server that is frozen, or a network that is gone, keeps a
    thread in the middle of a call.
    """

    def __init__(self, connect: Any):
        self._connect = connect
        self._questions: SimpleQueue = SimpleQueue()
        self.connection: Any = None         # when it is open
        self._socket: socket | None = None
        self._thread = Thread(target=self._run, name='advisory_ext line', daemon=True)
        self._thread.start()

    def send(self, expression: str, *values: Any) -> Future:
        answer: Future = Future()
        self._questions.put((answer, expression, values))
        return answer

    def get(self, answer: Future, seconds: float) -> Answer:
        """After an error of the connection, or if no answer comes in time, close the line, and open
        another one.
        """
        try:
            return answer.result(max(0.0, seconds))
        except FutureTimeout:
            if answer.done():
                return answer.result()
            raise AdvisoryError(f'the server has not answered for {seconds:.3g} s') from None
        finally:
            # A connection that is open at last must not ask what nobody wants to know any more.
            answer.cancel()

    def close(self, is_broken: bool = False) -> None:
        """Never waits for long. What hangs on the network then fails, and its thread ends."""
        self._questions.put(is_broken)
        if is_broken and self._socket:
            with suppress(OSError):
                self._socket.shutdown(SHUT_RDWR)
        elif not is_broken:
            self._thread.join(1)

    def cancel(self) -> None:
        """What the server is at: it would go on, and have taken what nobody wants any more. Does
        not wait for that.
        """
        if self.connection:
            Thread(target=self.connection.cancel, name='advisory_ext cancel', daemon=True).start()

    def _run(self) -> None:
        question = self._questions.get()
        try:
            with open_own(self._connect) as connection, autocommit(connection, True), \
                    collect_warnings(connection) as warnings, \
                    fromfd(connection.fileno(), AF_INET, SOCK_STREAM) as self._socket:
                self.connection = connection
                while not isinstance(question, bool):
                    answer, *asked = question
                    if answer.set_running_or_notify_cancel():
                        warnings.clear()
                        sent_at = now()
                        try:
                            row = ask(connection, *asked)
                            answer.set_result(Answer(row, sent_at, [
                                it for it in warnings if not HARMLESS.match(it)]))
                        except BaseException as error:
                            answer.set_exception(error)
                    question = self._questions.get()
                if question:
                    connection.close()      # whoever has lent it gets it back as what it is
        except BaseException as error:
            if not isinstance(question, bool) and question[0].set_running_or_notify_cancel():
                question[0].set_exception(error)            # of connecting


def is_of_connection(error: BaseException) -> re.Match[str] | None:
    """Of the network, or of a server that ends, starts, has no connection left, or is a standby
    now.
    """
    # psycopg2 has DatabaseError itself, too.
    what = sqlstate(error) or ' '.join(kind.__name__ for kind in type(error).__mro__)
    return re.search('^(08|53|57P|25006|DatabaseE)|(Advisory|OS|Operational|Interface)Error', what)


# ---- Whether a pooler would take a session-level lock from its holder ----------------------------

# Seconds: in session mode, the second connection may have to wait for a server.
PATIENCE = 1.0

PROCESS = 'pg_catalog.pg_backend_pid()'


def refuse_transaction_pooler(connect: Any, connection: Any, namespace: str, name: str) -> None:
    """Refuses session-level locks behind a pooler in transaction mode: there the next transaction
    may run in another session.

    Whoever talks to the server itself pays one statement. The server tells each client the number
    of its process; a pooler invents that. If the two differ there is a pooler, but it may be in
    session mode. Then it is in transaction mode if two connections that are both open share a
    process, or if one of them has two. Each is asked when it has no transaction.
    """
    mine = {ask(connection, PROCESS)}
    if (connection.info.backend_pid,) not in mine and _is_shared(connect, connection, mine):
        raise TransactionPooler('a session-level lock cannot be held behind a pooler in '
                                'transaction mode: leave scope out for a lock of a transaction, '
                                'or use lease(), or connect to the server itself', namespace, name)


def _is_shared(connect: Any, connection: Any, mine: set) -> bool:
    other = Line(connect)
    try:
        for _ in range(5):
            theirs = other.send(PROCESS)
            is_open = wait([theirs], PATIENCE) and other.connection     # as of before we ask
            # Twice, as a pooler that hands out its servers in turn could keep in step with us.
            mine |= {ask(connection, PROCESS)} | {ask(connection, PROCESS)}
            # In transaction mode those who wait for a server get it in turn: who has asked before
            # us is served before us.
            if len(mine) == 1 and is_open and wait([theirs], PATIENCE / 4).not_done:
                return False
            # If the other one cannot connect, nothing is proven, and its error comes out.
            if len(mine) > 1 or other.get(theirs, PATIENCE).row in mine:
                return True
        return False
    finally:
        other.close(is_broken=not theirs.done())
