/*
 * core/acquire.cpp
 *		Taking one lock, or slots of a semaphore.
 *
 * The steps are: ask the guard of the lock table; register the name; notice holds that have been
 * lost; obey advisory_ext.reentrant; take the lock at once, or wait for it; add it to the held
 * locks.  The name is registered before the grant, so that others see it while this session waits.
 */
#include "base/pg.h"

#include "base/guc.h"
#include "core/acquire.h"
#include "core/boundedwait.h"
#include "core/errors.h"
#include "core/held.h"
#include "core/lease.h"
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
check_pool_limit(const LockName &name, const LockRequest *request)
{
	int			limit = setting::pool_limit;
	int			wanted = request != nullptr ? request->wanted : 1;

	if (held_entry_count() + lease_locks_taken + wanted - 1 <= max_locks_per_xact || limit == 0 ||
		(until_look -= wanted) >= 0)
		return;

	PoolState	pool = read_pool();

	until_look = Min(pool_room(pool, limit) / PART_OF_ROOM, MOST_BETWEEN_LOOKS);
	if (pool_percent_used(pool) <= limit && wanted - 1 <= pool_room(pool, limit))
		return;
	if (request != nullptr &&
		(request->is_mine(Mode::exclusive) || request->is_mine(Mode::shared)))
		return;

	/* The session may not have noticed yet that some of its locks were released. */
	int			held = held_count_locks() + count_my_lease_locks() + wanted - 1;

	if (held <= max_locks_per_xact)
		return;

	char	   *what = request != nullptr
		? describe_request(*request) : psprintf("lease \"%s\"", display_lock(name));

	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("cannot take %s because the server's lock table %s nearly full",
					what, pool_percent_used(pool) > limit ? "is" : "would be"),
			 errdetail("The table is %.1f percent full (" INT64_FORMAT " of an estimated "
					   INT64_FORMAT " locks), and advisory_ext.pool_limit is %d. This session "
					   "%s %d advisory locks, more than max_locks_per_transaction (%d).",
					   pool_percent_used(pool), pool.use.locks, pool.capacity.locks, limit,
					   wanted > 1 ? "would hold" : "holds", held + (wanted > 1),
					   max_locks_per_xact),
			 errhint("Release locks, or protect several things by one lock. To hold this many "
					 "locks, increase max_locks_per_transaction and restart the server."),
			 set_lock_fields(name)));
}

int64
pool_limit_room(const PoolState &pool)
{
	int			held = held_count_locks() + count_my_lease_locks();

	if (setting::pool_limit == 0)
		return PG_INT64_MAX;
	return Max(max_locks_per_xact - held, pool_room(pool, setting::pool_limit));
}

/* ---- A lock ---- */

static bool
try_lock_now(Attempt *attempt)
{
	const LockRequest &request = attempt->request;

	return take_lock(request.tag(), request.mode, request.scope, true) != LOCKACQUIRE_NOT_AVAIL;
}

/* Is this session the only one that holds the lock, in the other mode?  Then others may wait. */
static bool
is_only_holder(const LockRequest &request)
{
	Mode		other = request.mode == Mode::exclusive ? Mode::shared : Mode::exclusive;

	return !compat::no_wait_passes_waiters && is_held_by_me(request.tag(), other) &&
		!is_held_by_others(request.tag());
}

static void
wait_for_lock(Attempt *attempt)
{
	const LockRequest &request = attempt->request;
	UsedName	used = attempt->name->used();

	if (OidIsValid(used.role))
		publish_wait(request.tag(), 0, 0, used);
	sleeping([&]() { take_lock(request.tag(), request.mode, request.scope, false); });
}

static bool
has_lock_survived(Attempt *attempt)
{
	return is_held_by_me(attempt->request.tag(), attempt->request.mode);
}

static void
add_lock(const Attempt &attempt)
{
	const LockRequest &request = attempt.request;

	held_add(request.tag(), request.mode, request.scope, attempt.name, request.name.by_name());
}

const WaitRoutine LOCK_ROUTINE = {
	true, nullptr, try_lock_now, is_only_holder, wait_for_lock, has_lock_survived, add_lock,
	"advisory lock \"%s\" in %s mode"};

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

/* Obey advisory_ext.standby_locks. */
static void
check_standby()
{
	static bool is_warned = false;
	bool		is_refused = setting::standby_locks == ALLOWED_OFF;

	if (setting::standby_locks == ALLOWED_ON || (is_warned && !is_refused) || !RecoveryInProgress())
		return;
	is_warned |= !is_refused;
	ereport(is_refused ? ERROR : WARNING,
			(errcode(is_refused ? ERRCODE_READ_ONLY_SQL_TRANSACTION : ERRCODE_WARNING),
			 is_refused
			 ? errmsg("cannot take advisory locks during recovery")
			 : errmsg("locks on a standby do not exclude sessions of the primary"),
			 is_refused
			 ? errdetail("Locks on a standby do not exclude sessions of the primary, and "
						 "\"advisory_ext.standby_locks\" is \"off\".") : 0,
			 errhint("Take the lock on the primary. If it is meant for sessions of this standby "
					 "only, SET advisory_ext.standby_locks = on.")));
}

/* Does advisory_ext.reentrant refuse the request, because this session holds the lock already? */
static bool
is_refused_as_mine(const LockRequest &request)
{
	if (setting::reentrant == ALLOWED_ON || request.mode != Mode::exclusive ||
		!request.is_mine(Mode::exclusive))
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
 * Add what was granted to the held locks.  Then check for interrupts once more, because an
 * interrupt that comes later ends the statement with the lock held.
 */
static void
add_or_release(const WaitRoutine &routine, const Attempt &attempt)
{
	const LockRequest &request = attempt.request;
	volatile bool is_added = false;

	PG_TRY();
	{
		routine.add(attempt);
		is_added = true;
		log_wait(routine, attempt, "and obtained it");
		CHECK_FOR_INTERRUPTS();
	}
	PG_CATCH();
	{
		/* An error ends a transaction-level hold, but not this one.  Others of the lock stay. */
		for (int i = 0; request.scope == Scope::session && i < request.wanted; i++)
		{
			if (is_added)
				lock_give_up(request, attempt.slot(i));
			else
				release_session_lock(request.granted_tag(attempt.slot(i)), request.mode);
		}
		PG_RE_THROW();
	}
	PG_END_TRY();
}

Outcome
lock_take(const LockRequest &request, Timeout timeout, int *slots)
{
	const WaitRoutine &routine = request.routine();
	Attempt		attempt = {request, {}, slots};
	Outcome		outcome = Outcome::granted;

	check_not_parallel_worker();
	check_standby();
	CHECK_FOR_INTERRUPTS();
	check_pool_limit(request.name, &request);
	attempt.name = name_ask(request.name);
	held_prepare(request.tag(), request.mode);
	if (routine.prepare != nullptr)
		routine.prepare(&attempt);
	if (is_refused_as_mine(request))
		outcome = Outcome::mine_already;
	else if (!routine.try_now(&attempt))
	{
		if (timeout.is_immediate() && routine.comes_first != nullptr &&
			routine.comes_first(request))
			timeout = Timeout{1};	/* it is expected to be granted at once */
		outcome = timeout.is_immediate()
			? Outcome::not_free : bounded_wait(routine, &attempt, timeout);
	}
	if (outcome == Outcome::granted)
		add_or_release(routine, attempt);
	else
	{
		count_event(attempt.name, attempt.wait_start == 0 ? Event::failed : Event::timed_out);
		log_wait(routine, attempt, "and timed out");
	}
	name_end(attempt.name);
	return outcome;
}

}								/* namespace advisory */
