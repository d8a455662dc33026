"""Leases that are renewed in the background."""
from __future__ import annotations

import math
import time
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from threading import Event, Thread
from typing import Any, Iterator

from ._errors import AdvisoryError, LeaseLost, is_taken, raise_if_taken
from ._line import Answer, Line, is_of_connection, now
from ._values import NAMES, in_seconds

PATIENCE = 10.0     # seconds for one answer, if the lease has so long

# A lease, or one of so many slots. The last argument is one that only this form has.
TAKE = (f"token, {in_seconds('expires_at')}, {{}} FROM advisory.{{}}({NAMES}, ttl => %s::interval, "
        'timeout => %s::interval, owner => %s::text, max_hold => %s::interval, {})')
TAKE_LEASE = TAKE.format('NULL', 'lease', 'lock_delay => %s::interval')
TAKE_SLOT = TAKE.format('slot', 'lease_slot', 'slots => %s::integer')


class Lease:
    """What the work gets to see of its lease.

    token is greater than those of all earlier holders: whatever is written outside the database is
    to compare it. expires_at is when the server would let others have it, unless it is renewed once
    more. slot is which one of several it has, from 1 on, or None. lost is set when the lease is
    lost, or not renewed for too long, and at the end of the block: sleep by lost.wait(seconds).
    """

    token: int
    expires_at: datetime
    slot: int | None
    lost: Event

    def check(self) -> None:
        """Raises LeaseLost if it is lost, and after the block. Unlike the event, it also knows at
        once when the process was stopped.
        """


@contextmanager
def hold_lease(keeper: Keeper) -> Iterator[Lease]:
    """The block has the lease. If it was lost, LeaseLost is raised at the end, whatever the block
    raised, which is its cause.
    """
    try:
        keeper.take()
        try:
            keeper.check()
            keeper.thread.start()
            yield keeper
        except BaseException as error:
            keeper.end()
            if keeper.loss and isinstance(error, Exception) and repr(error) != repr(keeper.error()):
                raise keeper.error() from error
            raise
        keeper.end()
        if keeper.loss:
            raise keeper.error()
    finally:
        if keeper.line:
            keeper.line.close()


class Keeper(Lease):
    """Takes, renews and ends a lease, all on a connection of its own.

    The lease is renewed after a third of its TTL. If that fails it is tried again, on a new
    connection, until the TTL is over. The TTL counts from before the last call was sent that
    succeeded, and max_hold from before the first one, so that we never believe in the lease for
    longer than the server does.
    """

    # Why it is lost; why the last renewal failed; when the next one is due.
    loss, _failure, _due = '', '', 0.0
    slot = None

    def __init__(self, connect: Any, names: tuple, take: str, options: tuple):
        self.lost = Event()
        self._connect = connect
        self._names = names
        self._take = take
        self._options = options
        self.line: Line | None = None
        self._done = Event()
        self.thread = Thread(target=self._keep, name='advisory_ext lease', daemon=True)

    def is_lost(self) -> bool:
        if now() >= self._until:
            self._lose('it was held for as long as max_hold allows' if self._until == self._last
                       else f'no renewal has succeeded for {self._ttl:.3g} s{self._failure}')
        return self.loss != ''

    def check(self) -> None:
        if self.is_lost() or self._done.is_set():
            raise self.error()

    def error(self) -> LeaseLost:
        slot = f'slot {self.slot} of ' if self.slot else ''
        return LeaseLost(
            f'{slot}lease "{"/".join(self._names)}" is lost: {self.loss or "its block has ended"}',
            *self._names)

    def take(self) -> None:
        """Waits in several short calls: of the TTL of one that waited for long, little could be
        left when it returns.

        So it also goes on when the connection is lost meanwhile, or the server restarts or fails
        over. But if the server cannot be reached to begin with, or is a standby, the error comes
        out.
        """
        ttl, timeout, owner, max_hold, argument = self._options
        (self._ttl, seconds, most), *_ = self._ask(
            PATIENCE, ', '.join([in_seconds('%s::interval')] * 3), ttl, timeout, max_hold)
        give_up = math.inf if seconds is None else now() + seconds
        limit = f'within {seconds:.6g} s' if seconds else 'without waiting'
        while True:
            wait = max(0, min(int(1000 * self._ttl / 3), int(1000 * min(give_up - now(), 1e6))))
            try:
                answer = self._ask(wait / 1000 + PATIENCE, self._take,
                                   *self._names, ttl, f'{wait} ms', owner, max_hold, argument)
                break
            except Exception as error:
                if now() >= give_up or not (is_taken(error) or (
                        it := is_of_connection(error)) and (self._failure or it[0] != '25006')):
                    raise_if_taken(error, limit)
                    raise
                self._failure = str(error)
                time.sleep(0 if is_taken(error) else min(1, self._ttl / 30))
        self.token, expires_at, self.slot = answer.row
        self._last = math.inf if most is None else answer.sent_at + most
        self._held(answer, expires_at)
        # The server answers so if the wait for its standby was cancelled: then a failover could
        # give the lease to somebody else.
        if answer.warnings:
            self._lose(f'the grant is not confirmed: {answer.warnings[0]}')

    def end(self) -> None:
        """Never fails, so that it does not hide an error of the work: if the server does not
        answer, the lease ends with its TTL.
        """
        self.is_lost()                      # as of now, not of when the server has answered
        self._done.set()
        self.lost.set()                     # for threads of the work that go on
        if self.thread.is_alive():
            self.thread.join()             # not for longer than one answer may take
        give_up = now() + min(PATIENCE, self._ttl / 3)
        for is_first in (True, False):      # the connection may have died since the last renewal
            with suppress(Exception):
                answer = self._ask(give_up - now(), f'advisory.end_lease({NAMES}, %s::bigint)',
                                   *self._names, self.token)
                # The second time it says nothing: the first call may have ended it.
                if is_first and answer.row == (False,):
                    self._lose('it was no longer ours at the end')
                return

    def _keep(self) -> None:
        """The thread. It waits for nothing that could keep it from noticing in time that the TTL is
        over.
        """
        while not self._done.wait(max(0.0, self._due - now())) and not self.is_lost():
            try:
                self._renew()
            except Exception as error:
                self._failure = f': {error}'.rstrip()
                self._due = min(now() + min(PATIENCE, self._ttl / 30), self._until)

    def _renew(self) -> None:
        answer = self._ask(min(PATIENCE, self._ttl / 3, self._until - now()),
                           in_seconds(f'advisory.renew_lease({NAMES}, %s::bigint)'),
                           *self._names, self.token)
        if answer.row == (None,):
            self.is_lost()                  # so says the server when max_hold is over, too
            self._lose('it was ended, or somebody else has it')
        elif answer.warnings:
            raise AdvisoryError(answer.warnings[0])
        else:
            self._held(answer, *answer.row)

    def _held(self, answer: Answer, expires_at: float) -> None:
        self.expires_at = datetime.fromtimestamp(expires_at, timezone.utc)
        self._until = min(answer.sent_at + self._ttl, self._last)
        self._due = min(answer.sent_at + self._ttl / 3, self._until)
        self._failure = ''

    def _lose(self, reason: str) -> None:
        self.loss = self.loss or reason
        self.lost.set()

    def _ask(self, seconds: float, expression: str, *values: Any) -> Answer:
        """After an error, or if no answer comes in time, the next call makes a new connection."""
        self.line = self.line or Line(self._connect)
        try:
            if seconds <= 0:
                raise AdvisoryError('it is too late to ask the server')
            return self.line.get(self.line.send(expression, *values), seconds)
        except Exception as error:
            if not is_taken(error):
                self.line.close(is_broken=True)
                self.line = None
            raise
        except BaseException:               # Ctrl-C
            self.line.cancel()
            raise
