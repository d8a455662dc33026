/*
 * core/boundedwait.cpp
 *		A wait that a timeout may end.
 *
 * How a wait ends
 *
 * The lock manager itself queues, detects deadlocks, logs, and ends the wait.  If a timeout may end
 * the wait, it runs in an internal subtransaction with lock_timeout set to the shorter of the
 * user's setting and the caller's timeout.  Rolling the subtransaction back makes the transaction
 * usable again.  Without a timeout there is no subtransaction: every error is passed on anyway, and
 * inside a subtransaction a standby could not cancel the query without ending the session.
 *
 * The lock can be granted before the waiter handles its timeout or cancel.  The lock manager then
 * keeps the lock but still raises the error, or even returns with the interrupt still pending, so
 * interrupts are checked immediately after the wait.  Rolling the subtransaction back releases a
 * transaction-level lock, but not a session-level one.  So after every error the lock manager is
 * asked whether the session holds the lock.  If the wait's own timeout ended the wait, it counts as
 * granted; after any other error it is released.  This is exact, because a session never waits for
 * a mode that it already holds.
 */
#include "base/pg.h"

#include "base/errors.h"
#include "base/guc.h"
#include "base/stoppoint.h"
#include "core/boundedwait.h"
#include "core/deadlocks.h"
#include "core/held.h"
#include "server/latch.h"
#include "shmem/sessiontable.h"

namespace advisory
{

/*
 * Wait.  An interrupt that was pending when the lock was granted ends the wait, too, or a client
 * that is gone.
 */
static void
wait_and_check(Attempt *attempt)
{
	/* The snapshot of catalog look-ups must not hold back vacuum during the wait. */
	InvalidateCatalogSnapshot();
	attempt->routine.wait(attempt);
	check_client();
}

void
give_up_holds(Attempt *attempt)
{
	if (!attempt->routine.survived(attempt))
		return;
	for (auto *holds = static_cast<HoldAttempt *>(attempt); holds != nullptr; holds = holds->next)
	{
		const LockRequest &request = holds->request;

		for (int i = 0; i < request.wanted; i++)
		{
			if (i < holds->added)
				lock_give_up(request, holds->slot(i));
			else
				release_lock(request.granted_tag(holds->slot(i)), request.mode, Scope::session);
		}
	}
}

[[noreturn]] void
raise_lock_timeout()
{
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("canceling statement due to lock timeout")));
}

void
clean_up_wait() noexcept
{
	LWLockReleaseAll();
	LockErrorCleanup();
}

/*
 * Wait.  If milliseconds is greater than 0, wait no longer than that, in an internal
 * subtransaction.  Returns whether that time ended the wait; what was granted nevertheless is still
 * held then.  Another error is returned in *error, and must be raised; nothing is left of the wait.
 */
static bool
wait_no_longer(Attempt *attempt, int milliseconds, ErrorData *volatile *error)
{
	MemoryContext callers_context = CurrentMemoryContext;
	ResourceOwner callers_owner = CurrentResourceOwner;
	int			users_lock_timeout = LockTimeout;
	volatile bool timed_out = false;

	PG_TRY();
	{
		if (milliseconds > 0)
		{
			attempt->in_subtransaction = true;
			timed_out = !in_subtransaction([&]() {
				LockTimeout = milliseconds;
				wait_and_check(attempt);
				return true;
			}, ERRCODE_LOCK_NOT_AVAILABLE);
		}
		else
			wait_and_check(attempt);
	}
	PG_CATCH();
	{
		clean_up_wait();
		CurrentResourceOwner = callers_owner;
		LockTimeout = users_lock_timeout;
		withdraw_wait();
		attempt->routine.give_up(attempt);
		*error = catch_error(callers_context);
	}
	PG_END_TRY();
	LockTimeout = users_lock_timeout;
	withdraw_wait();
	return timed_out;
}

/*
 * If several interrupts are pending, the server reports only one, and a lock timeout before the
 * others.  A statement must not outlive its statement_timeout because of that.  (A cancel by
 * another session cannot be told from the lock timeout's own.)
 */
static void
check_statement_timeout(Attempt *attempt, bool was_running)
{
	if (!was_running || get_timeout_active(STATEMENT_TIMEOUT))
		return;
	attempt->routine.give_up(attempt);
	ereport(ERROR,
			(errcode(ERRCODE_QUERY_CANCELED),
			 errmsg("canceling statement due to statement timeout")));
}

void
count_event(const CachedName *name, Event event) noexcept
{
	if (NameStats *stats = stats_of_name(name))
	{
		stats_count(stats, event, 1);
		if (event == Event::skipped)
			raise_to(&stats->last_skipped_at, GetCurrentTimestamp());
	}
}

void
log_wait(const Attempt &attempt, const char *end)
{
	TimestampTz waited = attempt.wait_end - attempt.wait_start;
	char	   *what;

	if (attempt.wait_start == 0 || setting::log_wait < 0 ||
		waited < setting::log_wait * INT64CONST(1000))
		return;

	what = attempt.routine.describe(attempt, display_lock(attempt.lacking->given));
	/* Not to the client, where sending it could fail. */
	ereport(LOG_SERVER_ONLY,
			(errmsg("session waited for %s for " INT64_FORMAT ".%03d ms %s",
					what, waited / 1000, static_cast<int>(waited % 1000), end)));
}

Outcome
bounded_wait(Attempt *attempt, Timeout timeout)
{
	const WaitRoutine &routine = attempt->routine;
	const Attempt &lacking = *attempt->lacking;
	/* Of the two timeouts, which one limits the wait: the caller's, or lock_timeout? */
	bool		is_callers = !timeout.is_forever() &&
		(LockTimeout == 0 || timeout.milliseconds <= LockTimeout);
	int			limit = is_callers ? timeout.milliseconds : LockTimeout;
	bool		statement_timeout = get_timeout_active(STATEMENT_TIMEOUT);
	ErrorData  *volatile error = nullptr;
	bool		timed_out = false;
	Outcome		outcome = Outcome::granted;

	attempt->wait_start = GetCurrentTimestamp();
	count_event(lacking.name, Event::contended);

	/* To look up the name of a key takes locks, so it is done before a message needs the text. */
	const LockName &given = lacking.given;
	const char *known = given.has_name() ? nullptr : display_lock(given);

	with_error_context([&]() {
		char	   *name = known != nullptr ? pstrdup(known) : display_name(given);
		char	   *what = routine.describe(*attempt, name);

		STOP_POINT("message from a wait");
		errcontext("while waiting for %s", what);
		pfree(what);
		pfree(name);
	}, [&]() {
		timed_out = wait_no_longer(attempt, limit, &error);
	});
	if (timed_out)
	{
		check_statement_timeout(attempt, statement_timeout);
		if (!routine.survived(attempt))
			outcome = is_callers ? Outcome::timeout : Outcome::lock_timeout;
	}
	attempt->wait_end = GetCurrentTimestamp();
	if (NameStats *stats = stats_of_name(lacking.name))
		stats_add(&stats->wait, attempt->wait_start, attempt->wait_end);
	if (error != nullptr)
	{
		log_wait(*attempt, "and did not obtain it");
		if (error->sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED && routine.deadlock_hint != nullptr)
			add_hint(error, routine.deadlock_hint(*attempt));
		raise_wait_error(error, given);
	}
	return outcome;
}

}								/* namespace advisory */
