/*
 * core/wait.cpp
 *		Getting a lock or a slot from the lock manager, or a lease: at once, or after a wait.
 *
 * How a wait ends
 *
 * A lock that is free is taken without waiting, and nothing else happens.
 * Otherwise the lock manager itself queues, detects deadlocks, logs, and ends
 * the wait.  If a timeout may end the wait, it runs in an internal subtransaction
 * with lock_timeout set to the shorter of the user's setting and the caller's
 * timeout.  Rolling the subtransaction back makes the transaction usable again.
 * Without a timeout there is no subtransaction: every error is passed on anyway,
 * and inside a subtransaction a standby could not cancel the query without ending
 * the session.
 *
 * The lock can be granted before the waiter handles its timeout or cancel.  The
 * lock manager then keeps the lock but still raises the error, or even returns
 * with the interrupt still pending, so interrupts are checked immediately after
 * the wait.  Rolling the subtransaction back releases a transaction-level lock, but
 * not a session-level one.  So after every error the lock manager is asked whether
 * the session holds the lock.  If the wait's own timeout ended the wait, it counts
 * as granted; after any other error it is released.  This is exact, because a
 * session never waits for a mode that it already holds.
 */
#include "base/pg.h"

extern "C" {
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"
}

#include "base/errors.h"
#include "base/guc.h"
#include "core/errors.h"
#include "core/namecache.h"
#include "core/held.h"
#include "core/lease.h"
#include "core/wait.h"
#include "server/client.h"
#include "server/locallock.h"
#include "server/vxidlock.h"
#include "shmem/sessiontable.h"

namespace advisory
{

bool
take_if_free(Attempt *attempt)
{
	const LockRequest &request = attempt->request;

	if (request.is_for_lease())
		return lease_take_if_free(request);
	if (!request.is_for_slot())
		return take_lock(request.tag(), request.mode, request.scope, true) != LOCKACQUIRE_NOT_AVAIL;
	attempt->slot = semaphore_try(attempt->semaphore);
	return attempt->slot != NO_SLOT;
}

void
release_granted(const Attempt &attempt)
{
	const LockRequest &request = attempt.request;

	release_session_lock(attempt.granted_tag(), request.mode);
	if (request.is_for_slot())
		held_remove(held_find(attempt.granted_tag(), request.mode), 1, request.name.by_name());
}

/* What the session waits for, for messages; palloc'd. */
static char *
describe(const LockRequest &request)
{
	char	   *name = display_lock(request.name);

	if (request.is_for_lease())
		return psprintf("lease \"%s\"", name);
	if (request.is_for_slot())
		return psprintf("a slot of semaphore \"%s\"", name);
	return psprintf("advisory lock \"%s\" in %s mode", name, mode_name(request.mode));
}

/* The shorter of the user's lock_timeout and the caller's timeout, in milliseconds; 0 for none. */
static int
effective_lock_timeout(Timeout timeout) noexcept
{
	if (timeout.is_forever())
		return LockTimeout;
	if (LockTimeout > 0)
		return Min(LockTimeout, timeout.milliseconds);
	return timeout.milliseconds;
}

/* Publish the wait, and wait.  An interrupt that was pending when the lock was granted ends the wait, too, or a client that is gone. */
static void
wait_and_check(Attempt *attempt)
{
	const LockRequest &request = attempt->request;
	UsedName	used = attempt->name->used();

	if (OidIsValid(used.role) || request.is_for_slot() || request.is_for_lease())
		publish_wait(request.tag(), request.slots, used);
	/* The snapshot of catalog look-ups must not hold back vacuum during the wait. */
	InvalidateCatalogSnapshot();
	if (request.is_for_slot())
		attempt->slot = semaphore_wait(attempt->semaphore);
	else if (request.is_for_lease())
		lease_wait(request);
	else
		sleeping([&]() { take_lock(request.tag(), request.mode, request.scope, false); });
	check_client();
	withdraw_wait();
}

/* After an error that ended a wait: was the lock granted nevertheless? */
static bool
survived(Attempt *attempt)
{
	const LockRequest &request = attempt->request;

	if (request.scope != Scope::session)
		return false;
	if (!request.is_for_slot())
		return is_held_by_me(request.tag(), request.mode);
	if (attempt->slot == NO_SLOT)
		attempt->slot = semaphore_survivor(attempt->semaphore);
	return attempt->slot != NO_SLOT;
}

/* Release a lock that was granted while the wait was being ended. */
static void
release_survivor(Attempt *attempt)
{
	if (survived(attempt))
		release_granted(*attempt);
}

/* How a wait ended. */
enum class WaitEnd
{
	granted,
	timeout,					/* its own timeout; a lock that was granted nevertheless is still held */
	error						/* another error, which must be raised; nothing is left of the wait */
};

/* Wait for the lock.  If milliseconds is greater than 0, wait no longer than that, in an internal subtransaction. */
static WaitEnd
wait_for_lock(Attempt *attempt, int milliseconds, ErrorData *volatile *error)
{
	MemoryContext callers_context = CurrentMemoryContext;
	ResourceOwner callers_owner = CurrentResourceOwner;
	Oid			user;
	int			security_context;
	int			users_lock_timeout = LockTimeout;
	volatile WaitEnd end = WaitEnd::granted;

	GetUserIdAndSecContext(&user, &security_context);
	if (milliseconds > 0)
		BeginInternalSubTransaction(nullptr);
	MemoryContextSwitchTo(callers_context);
	PG_TRY();
	{
		if (milliseconds > 0)
			LockTimeout = milliseconds;
		wait_and_check(attempt);
		LockTimeout = users_lock_timeout;
		if (milliseconds > 0)
			ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		LockTimeout = users_lock_timeout;
		if (milliseconds > 0)
			RollbackAndReleaseCurrentSubTransaction();
		else
		{
			/* Do what an abort does, and do it before anything that allocates, because memory may have run out. */
			LWLockReleaseAll();
			LockErrorCleanup();
			/* The table of leases is read and written as its owner, who may see other names than the caller. */
			SetUserIdAndSecContext(user, security_context);
		}
		withdraw_wait();
		CurrentResourceOwner = callers_owner;
		if (milliseconds > 0 && geterrcode() == ERRCODE_LOCK_NOT_AVAILABLE)
		{
			MemoryContextSwitchTo(callers_context);
			FlushErrorState();
			end = WaitEnd::timeout;
		}
		else
		{
			release_survivor(attempt);
			*error = catch_error(callers_context);
			end = WaitEnd::error;
		}
	}
	PG_END_TRY();
	MemoryContextSwitchTo(callers_context);
	CurrentResourceOwner = callers_owner;
	return end;
}

/* Which of the two timeouts is the shorter one, and so ends the wait. */
static Outcome
outcome_of_timeout(Timeout timeout) noexcept
{
	if (timeout.is_forever() || effective_lock_timeout(timeout) < timeout.milliseconds)
		return Outcome::lock_timeout;
	return Outcome::timeout;
}

/*
 * If several interrupts are pending, the server reports only one, and a lock timeout
 * before the others.  A statement must not outlive its statement_timeout because of
 * that.  (A cancel by another session cannot be told from the lock timeout's own.)
 */
static void
check_statement_timeout(Attempt *attempt, bool was_running)
{
	if (!was_running || get_timeout_active(STATEMENT_TIMEOUT))
		return;
	release_survivor(attempt);
	ereport(ERROR,
			(errcode(ERRCODE_QUERY_CANCELED),
			 errmsg("canceling statement due to statement timeout")));
}

Outcome
wait_for_grant(Attempt *attempt, Timeout timeout, ErrorData **error)
{
	NameStats  *stats = stats_of_name(attempt->name);
	bool		statement_timeout = get_timeout_active(STATEMENT_TIMEOUT);
	ErrorData  *volatile ended_by = nullptr;
	volatile WaitEnd end = WaitEnd::granted;
	Outcome		outcome = Outcome::granted;

	attempt->wait_start = GetCurrentTimestamp();
	if (stats != nullptr)
		stats_count(stats, Event::contended, 1);
	with_error_context(psprintf("while waiting for %s", describe(attempt->request)), [&]() {
		end = wait_for_lock(attempt, effective_lock_timeout(timeout), &ended_by);
	});
	if (end == WaitEnd::timeout)
	{
		check_statement_timeout(attempt, statement_timeout);
		outcome = survived(attempt) ? Outcome::granted : outcome_of_timeout(timeout);
	}
	else if (end == WaitEnd::error)
	{
		/* A program finds the lock by these fields, as it does when a timeout ends the wait. */
		ended_by->schema_name = field_namespace(attempt->request.name);
		ended_by->constraint_name = field_name(attempt->request.name);
		add_upgrade_hint(ended_by, attempt->request);
		outcome = Outcome::not_free;
	}
	*error = ended_by;
	attempt->wait_end = GetCurrentTimestamp();
	/* As lock_take_or_hand_over() does. */
	if (attempt->request.is_for_lease())
	{
		attempt->name = name_ask(attempt->request.name);
		stats = stats_of_name(attempt->name);
	}
	if (stats != nullptr)
		stats_add(&stats->wait, attempt->wait_start, attempt->wait_end);
	return outcome;
}

void
log_wait(const Attempt &attempt, const char *end)
{
	const LockRequest &request = attempt.request;
	TimestampTz waited = attempt.wait_end - attempt.wait_start;

	if (attempt.wait_start == 0 || setting::log_wait < 0 || waited < setting::log_wait * INT64CONST(1000))
		return;

	/* Not to the client, where sending it could fail. */
	ereport(LOG_SERVER_ONLY,
			(errmsg("session waited for %s for " INT64_FORMAT ".%03d ms %s",
					describe(request), waited / 1000, static_cast<int>(waited % 1000), end)));
}

}								/* namespace advisory */
