/*
 * core/acquire.cpp
 *		Taking one lock, or one slot of a semaphore.
 *
 * The steps are: ask the guard of the lock table; register the name; notice holds that have been
 * lost; obey advisory_ext.reentrant; take the lock at once, or wait for it; add it to the held
 * locks.  The name is registered before the grant, so that others see it while this session waits.
 */
#include "base/pg.h"

#include "base/errors.h"
#include "base/guc.h"
#include "core/acquire.h"
#include "core/errors.h"
#include "core/held.h"
#include "core/lease.h"
#include "core/namecache.h"
#include "core/release.h"
#include "core/semaphore.h"
#include "server/client.h"
#include "server/locallock.h"
#include "server/locktable.h"
#include "server/pool.h"
#include "server/vxidlock.h"
#include "shmem/sessiontable.h"

namespace advisory
{

/* ---- The guard of the lock table ---- */

/*
 * The guard does not look at the table for each lock.  The emptier the table is, the more locks the
 * session may take before the next look, but never more than a small part of the room that is left,
 * because other sessions take locks, too. If the use of the table is not known, there is no guard.
 */

/* Between two looks a session may use 1/PART_OF_ROOM of the room that is left. */
static constexpr int64 PART_OF_ROOM = 16;
static constexpr int64 MOST_BETWEEN_LOOKS = 8;

static int64 until_look = 0;

void
check_pool_limit(const LockRequest &request)
{
	int			limit = setting::pool_limit;

	if (held_entry_count() + lease_lock_estimate() <= max_locks_per_xact || limit == 0 || until_look-- > 0)
		return;

	PoolState	pool = read_pool();
	int64		locks = pool.capacity.locks * limit / 100 - pool.use.locks;
	int64		holders = pool.capacity.holders * limit / 100 - pool.use.holders;
	int64		part = Max(Min(locks, holders), 0) / PART_OF_ROOM;

	until_look = Min(part, MOST_BETWEEN_LOOKS);
	if (pool_percent_used(pool) <= limit || (!request.is_for_slot() && is_held_by_me(request.tag())))
		return;

	/* The session may not have noticed yet that some of its locks were released. */
	int			held = held_count_locks() + count_my_lease_locks();

	if (held <= max_locks_per_xact)
		return;

	char	   *name = display_lock(request.name);

	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("cannot take advisory lock \"%s\" because the server's lock table is nearly full", name),
			 errdetail("The table is %.1f percent full (" INT64_FORMAT " of an estimated " INT64_FORMAT " locks), and "
					   "advisory_ext.pool_limit is %d. This session holds %d advisory locks, more than max_locks_per_transaction (%d).",
					   pool_percent_used(pool), pool.use.locks, pool.capacity.locks,
					   limit, held, max_locks_per_xact),
			 errhint("Release locks, or protect several things by one lock. "
					 "To hold this many locks, increase max_locks_per_transaction and restart the server."),
			 set_lock_fields(request.name)));
}

/* ---- Getting it at once, or after a wait ---- */

/*
 * How a wait ends
 *
 * A lock that is free is taken without waiting, and nothing else happens.  Otherwise the lock
 * manager itself queues, detects deadlocks, logs, and ends the wait.  If a timeout may end the
 * wait, it runs in an internal subtransaction with lock_timeout set to the shorter of the user's
 * setting and the caller's timeout.  Rolling the subtransaction back makes the transaction usable
 * again.  Without a timeout there is no subtransaction: every error is passed on anyway, and inside
 * a subtransaction a standby could not cancel the query without ending the session.
 *
 * The lock can be granted before the waiter handles its timeout or cancel.  The lock manager then
 * keeps the lock but still raises the error, or even returns with the interrupt still pending, so
 * interrupts are checked immediately after the wait.  Rolling the subtransaction back releases a
 * transaction-level lock, but not a session-level one.  So after every error the lock manager is
 * asked whether the session holds the lock.  If the wait's own timeout ended the wait, it counts as
 * granted; after any other error it is released.  This is exact, because a session never waits for
 * a mode that it already holds.
 */

namespace
{

/* An attempt to get a lock or a slot. */
struct Attempt
{
	LockRequest request;
	CachedName *name = nullptr;
	Semaphore  *semaphore = nullptr;	/* stays null for a lock */
	int			slot = NO_SLOT; /* the slot that was taken */
	TimestampTz wait_start = 0; /* 0 if it did not wait */
	TimestampTz wait_end = 0;
};

}								/* anonymous namespace */

/* Take the lock or slot without waiting, if it is free.  May ereport (53200). */
static bool
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

/*
 * Need this session not wait for the lock, because it is the only one that holds it, in the other
 * mode?  Then a wait ends at once, whoever else waits.
 */
static bool
passes_waiters(const LockRequest &request)
{
	Mode		other = request.mode == Mode::exclusive ? Mode::shared : Mode::exclusive;

	return !compat::no_wait_passes_waiters && !request.is_for_slot() && !request.is_for_lease() &&
		is_held_by_me(request.tag(), other) && !is_held_by_others(request.tag());
}

/* What the session waits for, for messages; palloc'd. */
static char *
describe(const LockRequest &request)
{
	char	   *what = describe_request(request);

	return request.is_for_slot() || request.is_for_lease() ? what : psprintf("%s in %s mode", what, mode_name(request.mode));
}

/*
 * Publish the wait, which the caller withdraws, and wait.  An interrupt that was pending when the
 * lock was granted ends the wait, too, or a client that is gone.
 */
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
		lock_give_up(attempt->request, attempt->slot);
}

/*
 * Wait for the lock.  If milliseconds is greater than 0, wait no longer than that, in an internal
 * subtransaction.  Returns whether that time ended the wait; a lock that was granted nevertheless
 * is still held then.  Another error is returned in *error, and must be raised; nothing is left of
 * the wait.
 */
static bool
wait_for_lock(Attempt *attempt, int milliseconds, ErrorData *volatile *error)
{
	MemoryContext callers_context = CurrentMemoryContext;
	ResourceOwner callers_owner = CurrentResourceOwner;
	int			users_lock_timeout = LockTimeout;
	volatile bool timed_out = false;

	/* An error may have come in semaphore_wait(). */
	auto		end_wait = [=]() {
		LockTimeout = users_lock_timeout;
		leave_queue();
		withdraw_wait();
	};

	PG_TRY();
	{
		if (milliseconds > 0)
		{
			const LockRequest &request = attempt->request;

			timed_out = !in_subtransaction([&]() {
				LockTimeout = milliseconds;
				wait_and_check(attempt);
				return true;
			}, ERRCODE_LOCK_NOT_AVAILABLE);
			if (!timed_out && request.scope == Scope::transaction && !request.is_for_lease())
				give_to_portal(request.granted_tag(attempt->slot), request.mode);
		}
		else
			wait_and_check(attempt);
	}
	PG_CATCH();
	{
		/*
		 * Do what an abort does, and do it before anything that allocates, because memory may have
		 * run out.
		 */
		LWLockReleaseAll();
		LockErrorCleanup();
		CurrentResourceOwner = callers_owner;
		end_wait();
		release_survivor(attempt);
		*error = catch_error(callers_context);
	}
	PG_END_TRY();
	end_wait();
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
	release_survivor(attempt);
	ereport(ERROR,
			(errcode(ERRCODE_QUERY_CANCELED),
			 errmsg("canceling statement due to statement timeout")));
}

static void
count_event(const CachedName *name, Event event) noexcept
{
	if (NameStats *stats = stats_of_name(name))
		stats_count(stats, event, 1);
}

/* Log a wait that was longer than log_wait.  May ereport. */
static void
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

/*
 * Wait for it, as long as the timeout and lock_timeout allow.  Other sessions see that this one
 * waits.
 */
static Outcome
wait_for_grant(Attempt *attempt, Timeout timeout)
{
	bool		statement_timeout = get_timeout_active(STATEMENT_TIMEOUT);
	ErrorData  *volatile error = nullptr;
	/* Which of the two timeouts limits the wait: the caller's, or lock_timeout? */
	bool		is_callers = !timeout.is_forever() && (LockTimeout == 0 || timeout.milliseconds <= LockTimeout);
	bool		timed_out = false;
	Outcome		outcome = Outcome::granted;

	attempt->wait_start = GetCurrentTimestamp();
	count_event(attempt->name, Event::contended);
	with_error_context(psprintf("while waiting for %s", describe(attempt->request)), [&]() {
		timed_out = wait_for_lock(attempt, is_callers ? timeout.milliseconds : LockTimeout, &error);
	});
	if (timed_out)
	{
		check_statement_timeout(attempt, statement_timeout);
		if (!survived(attempt))
			outcome = is_callers ? Outcome::timeout : Outcome::lock_timeout;
	}
	attempt->wait_end = GetCurrentTimestamp();
	/* As lock_take() does. */
	if (attempt->request.is_for_lease())
		attempt->name = name_ask(attempt->request.name);
	if (NameStats *stats = stats_of_name(attempt->name))
		stats_add(&stats->wait, attempt->wait_start, attempt->wait_end);
	if (error != nullptr)
	{
		log_wait(*attempt, "and did not obtain it");
		raise_wait_error(error, attempt->request);
	}
	return outcome;
}

/* ---- Asking ---- */

static void
check_not_parallel_worker()
{
	if (IsParallelWorker())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot take advisory locks in a parallel worker"),
				 errdetail("The lock would be released when the worker ends."),
				 errhint("Mark the calling function PARALLEL UNSAFE.")));
}

/*
 * Does advisory_ext.reentrant refuse the request, because this session holds the lock in exclusive
 * mode, in either scope?
 */
static bool
is_refused_as_mine(const LockRequest &request)
{
	if (setting::reentrant == ALLOWED_ON || request.is_for_slot() || request.is_for_lease() ||
		request.mode != Mode::exclusive || !is_held_by_me(request.tag(), Mode::exclusive))
		return false;
	if (setting::reentrant == ALLOWED_OFF)
		return true;

	char	   *name = display_lock(request.name);

	ereport(WARNING,
			(errmsg("this session already holds advisory lock \"%s\"", name),
			 set_lock_fields(request.name)));
	return false;
}

/*
 * Add the granted lock or slot to the held locks.  Then check for interrupts once more, because an
 * interrupt that comes later ends the statement with the lock held.  *added is the entry that was
 * added, if any.
 */
static void
add_granted(const Attempt &attempt, HeldLock *volatile *added)
{
	const LockRequest &request = attempt.request;

	if (request.is_for_slot())
		semaphore_add_slot(attempt.semaphore, attempt.slot);
	else if (request.is_for_lease())
	{
		const Lease &lease = *request.lease;

		count_event(attempt.name, Event::acquired);
		if (NameStats *stats = stats_of_name(attempt.name))
		{
			stats_note_acquired(stats, GetCurrentTimestamp());
			/* The lease before it had expired.  If there was none this adds nothing. */
			stats_add(&stats->hold, Max(lease.before.acquired_at, stats_reset_at(stats)), lease.before.ends_at);
		}
	}
	else
		*added = held_add(request.tag(), request.mode, request.scope, attempt.name, request.name.by_name());
	log_wait(attempt, "and obtained it");
	CHECK_FOR_INTERRUPTS();
}

static void
add_or_release(const Attempt &attempt)
{
	const LockRequest &request = attempt.request;
	LOCKTAG		tag = request.granted_tag(attempt.slot);
	HeldLock   *volatile added = nullptr;

	/* An error ends the (sub)transaction that a transaction-level lock belongs to. */
	if (request.scope == Scope::transaction)
		return add_granted(attempt, &added);

	PG_TRY();
	{
		add_granted(attempt, &added);
	}
	PG_CATCH();
	{
		/*
		 * A session-level lock would survive it.  A slot is one that the session did not have;
		 * other holds of a lock stay.
		 */
		if (request.is_for_slot())
			added = held_find(tag, request.mode);
		release_session_lock(tag, request.mode);
		held_remove(added, 1, request.name.by_name());
		PG_RE_THROW();
	}
	PG_END_TRY();
}

Outcome
lock_take(const LockRequest &request, Timeout timeout, int *slot)
{
	Attempt		attempt = {request};
	Outcome		outcome = Outcome::granted;

	check_not_parallel_worker();
	CHECK_FOR_INTERRUPTS();
	check_pool_limit(request);
	attempt.name = name_ask(request.name);
	held_prepare(request.tag(), request.mode);
	if (request.is_for_slot())
		attempt.semaphore = semaphore_open(request, attempt.name);

	bool		is_refused = is_refused_as_mine(request);
	bool		is_free = !is_refused && take_if_free(&attempt);

	/*
	 * The statements on the table of leases may have called functions that asked for other locks:
	 * ask for the name again.
	 */
	if (request.is_for_lease())
		attempt.name = name_ask(request.name);
	if (!is_free && !is_refused && timeout.is_immediate() && passes_waiters(request))
		timeout = Timeout{1};
	if (!is_free)
		outcome = is_refused ? Outcome::mine_already : timeout.is_immediate() ? Outcome::not_free : wait_for_grant(&attempt, timeout);
	if (outcome == Outcome::granted)
		add_or_release(attempt);
	else
	{
		count_event(attempt.name, attempt.wait_start == 0 ? Event::failed : Event::timed_out);
		log_wait(attempt, "and timed out");
	}
	name_end_asking();
	if (slot != nullptr)
		*slot = attempt.slot;
	return outcome;
}

bool
lock_try(const LockRequest &request, Timeout timeout, int *slot)
{
	return lock_take(request, timeout, slot) == Outcome::granted;
}

int
lock_must(const LockRequest &request, Timeout timeout)
{
	int			slot;
	Outcome		outcome = lock_take(request, timeout, &slot);

	if (outcome != Outcome::granted)
		raise_not_available(request, outcome, timeout);
	return slot;
}

}								/* namespace advisory */
