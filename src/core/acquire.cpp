/*
 * core/acquire.cpp
 *		Taking one lock, or one slot of a semaphore.
 *
 * The steps are: ask the guard of the lock table; register the name; get memory for one more held lock;
 * obey advisory_ext.reentrant; take the lock at once, or wait for it (wait.h); add it to the held locks.  The name is
 * registered before the grant, so that others see it while this session waits.
 */
#include "base/pg.h"

extern "C" {
#include "access/parallel.h"
}

#include "base/guc.h"
#include "core/acquire.h"
#include "core/errors.h"
#include "core/held.h"
#include "core/lease.h"
#include "core/semaphore.h"
#include "core/wait.h"
#include "server/locktable.h"
#include "server/pool.h"

namespace advisory
{

/* ---- The guard of the lock table ---- */

/*
 * The guard does not look at the table for each lock.  The emptier the table is, the more locks the session may take before the
 * next look, but never more than a small part of the room that is left, because other sessions take locks, too.
 */

/* Between two looks a session may use 1/PART_OF_ROOM of the room that is left. */
static constexpr int64 PART_OF_ROOM = 16;
static constexpr int64 MOST_BETWEEN_LOOKS = 8;

/* If a look has to count all locks. */
static constexpr int64 LEAST_BETWEEN_COUNTS = 64;
static constexpr int64 MOST_BETWEEN_COUNTS = 4096;

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

	until_look = pool.is_counted
		? Max(Min(part, MOST_BETWEEN_COUNTS), LEAST_BETWEEN_COUNTS) : Min(part, MOST_BETWEEN_LOOKS);
	if (pool_percent_used(pool) <= limit ||
		(!request.is_for_slot() && is_held_by_me(request.tag())))
		return;

	/* The session may not have noticed yet that some of its locks were released. */
	int			held = held_count_locks() + count_my_lease_locks();

	if (held <= max_locks_per_xact)
		return;

	char	   *name = display_lock(request.name);

	until_look = 0;

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

/* Does advisory_ext.reentrant refuse the request, because this session holds the lock in exclusive mode, in either scope? */
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

static void
count_event(const CachedName *name, Event event) noexcept
{
	if (NameStats *stats = stats_of_name(name))
		stats_count(stats, event, 1);
}

/*
 * Add the granted lock or slot to the held locks.  Then check for interrupts once more, because
 * an interrupt that comes later ends the statement with the lock held.  *added is the entry that
 * was added, if any.
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
			stats_add(&stats->hold, Max(lease.replaced_from, stats_reset_at(stats)), lease.replaced_until);
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
	HeldLock   *volatile added = nullptr;

	/* An error ends the (sub)transaction that a transaction-level lock belongs to. */
	if (attempt.request.scope == Scope::transaction)
		return add_granted(attempt, &added);

	PG_TRY();
	{
		add_granted(attempt, &added);
	}
	PG_CATCH();
	{
		/* A session-level lock would survive it. */
		release_granted(attempt);
		held_remove(added, 1, attempt.request.name.by_name());
		PG_RE_THROW();
	}
	PG_END_TRY();
}

Outcome
lock_take_or_hand_over(const LockRequest &request, Timeout timeout, int *slot, ErrorData **error)
{
	Attempt		attempt = {request};
	Outcome		outcome = Outcome::granted;

	*error = nullptr;
	check_not_parallel_worker();
	CHECK_FOR_INTERRUPTS();
	check_pool_limit(request);
	attempt.name = name_ask(request.name);
	held_prepare(request.tag(), request.mode);
	if (request.is_for_slot())
		attempt.semaphore = semaphore_open(request, attempt.name);

	bool		is_refused = is_refused_as_mine(request);
	bool		is_free = !is_refused && take_if_free(&attempt);

	/* The statements on the table of leases may have called functions that asked for other locks: ask for the name again. */
	if (request.is_for_lease())
		attempt.name = name_ask(request.name);
	if (!is_free)
		outcome = is_refused ? Outcome::mine_already : timeout.is_immediate() ? Outcome::not_free : wait_for_grant(&attempt, timeout, error);
	if (outcome == Outcome::granted)
		add_or_release(attempt);
	else
	{
		if (*error == nullptr)
			count_event(attempt.name, attempt.wait_start == 0 ? Event::failed : Event::timed_out);
		log_wait(attempt, *error == nullptr ? "and timed out" : "and did not obtain it");
	}
	name_end_asking();
	if (slot != nullptr)
		*slot = attempt.slot;
	return outcome;
}

Outcome
lock_take(const LockRequest &request, Timeout timeout, int *slot)
{
	ErrorData  *error;
	Outcome		outcome = lock_take_or_hand_over(request, timeout, slot, &error);

	if (error != nullptr)
		raise_wait_error(error);
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

void
lock_count_skipped(const LockName &name)
{
	count_event(name_ask(name), Event::skipped);
	name_end_asking();
}

}								/* namespace advisory */
