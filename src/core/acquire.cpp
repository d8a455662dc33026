/*
 * core/acquire.cpp
 *		Taking one lock, or slots of semaphores.
 *
 * The steps are: ask the guard of the lock table; register the name; notice holds that have been
 * lost; obey advisory_ext.reentrant; take the lock at once, or wait for it; add it to the held
 * locks.  The name is registered before the grant, so that others see it while this session waits.
 */
#include "base/pg.h"

#include "base/guc.h"
#include "base/stoppoint.h"
#include "core/acquire.h"
#include "core/boundedwait.h"
#include "core/held.h"
#include "core/notavailable.h"
#include "core/poolguard.h"
#include "core/semaphore.h"
#include "server/locallock.h"
#include "server/locktable.h"
#include "server/standby.h"
#include "server/vxidlock.h"
#include "shmem/sessiontable.h"

namespace advisory
{

/* ---- A lock ---- */

static bool
try_lock_now(Attempt *attempt)
{
	const LockRequest &request = static_cast<HoldAttempt *>(attempt)->request;
	LOCKTAG		tag = request.tag();
	const Hold *hold = attempt->name->hold;

	return (hold != nullptr && take_lock_again(hold->local, tag, request.mode, request.scope)) ||
		take_lock(tag, request.mode, request.scope, true) != LOCKACQUIRE_NOT_AVAIL;
}

/* Is this session the only one that holds the lock, in the other mode?  Then others may wait. */
static bool
is_only_holder(const LockRequest &request)
{
	return !compat::no_wait_passes_waiters &&
		is_held_by_me(request.tag(), other_mode(request.mode)) && !is_held_by_others(request.tag());
}

static void
wait_for_lock(Attempt *attempt)
{
	const LockRequest &request = static_cast<HoldAttempt *>(attempt)->request;
	UsedName	used = attempt->name->used();

	if (OidIsValid(used.role))
		publish_wait(request.tag(), 0, 0, used);
	sleeping([&]() { take_lock(request.tag(), request.mode, request.scope, false); });
}

/* It waited because it did not hold the lock in this mode. */
static bool
has_lock_survived(Attempt *attempt)
{
	const LockRequest &request = static_cast<HoldAttempt *>(attempt)->request;

	return request.scope == Scope::session && is_held_by_me(request.tag(), request.mode);
}

static char *
describe_lock(const Attempt &attempt, const char *name)
{
	Mode		mode = static_cast<const HoldAttempt &>(attempt).request.mode;

	return psprintf("advisory lock \"%s\" in %s mode", name, mode_name(mode));
}

static void
add_lock(HoldAttempt *attempt)
{
	const LockRequest &request = attempt->request;

	held_add(request.tag(), request.mode, request.scope, attempt->name, request.name.by_name());
	attempt->added = 1;
}

/* Two sessions that change from shared to exclusive mode are always in a deadlock. */
static char *
upgrade_hint(const Attempt &attempt)
{
	const LockRequest &request = static_cast<const HoldAttempt &>(attempt).request;

	if (request.mode != Mode::exclusive || !is_held_by_me(request.tag(), Mode::shared))
		return nullptr;
	return psprintf("Two sessions that hold a lock in shared mode cannot both wait for exclusive "
					"mode. Release the shared hold first, or take exclusive mode from the start "
					"and change to shared mode later, or take a second lock, such as "
					"\"%s intent\", in exclusive mode before the shared one.",
					display_lock(request.name));
}

static const WaitRoutine LOCK_ROUTINE = {
	try_lock_now, wait_for_lock, has_lock_survived, give_up_holds, describe_lock,
	nullptr, is_only_holder, add_lock, upgrade_hint};

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
	bool		is_refused = setting::standby_locks == ALLOWED_OFF;

	if (!RecoveryInProgress() || !(is_refused || is_to_be_told(OnStandby::takes_locks)))
		return;
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
add_granted(HoldAttempt *attempt)
{
	bool		is_to_give = attempt->in_subtransaction &&
		attempt->request.scope == Scope::transaction;

	for (HoldAttempt *each = attempt; is_to_give && each != nullptr; each = each->next)
	{
		for (int i = 0; i < each->request.wanted; i++)
			give_to_portal(each->request.granted_tag(each->slot(i)), each->request.mode);
	}
	attempt->routine.add(attempt);
	log_wait(*attempt, "and obtained it");
	CHECK_FOR_INTERRUPTS();
}

/*
 * The same.  An error ends a transaction-level hold, but not a session-level one: give that up.
 * There is no error if it was granted at once, since held_prepare() has made room for one hold, and
 * slots are among the held locks already.
 */
static void
add_or_give_up(HoldAttempt *attempt)
{
	STOP_POINT("granted");
	if (attempt->wait_start == 0 && !InterruptPending)
		return attempt->routine.add(attempt);
	if (attempt->request.scope == Scope::transaction)
		return add_granted(attempt);
	PG_TRY();
	{
		add_granted(attempt);
	}
	PG_CATCH();
	{
		attempt->routine.give_up(attempt);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

/* The steps, which are the same for a lock and for slots. */
static Outcome
take(HoldAttempt *attempt, Timeout timeout)
{
	const LockRequest &request = attempt->request;
	const WaitRoutine &routine = attempt->routine;
	Outcome		outcome = Outcome::granted;

	check_not_parallel_worker();
	check_standby();
	CHECK_FOR_INTERRUPTS();
	for (HoldAttempt *each = attempt; each != nullptr; each = each->next)
	{
		check_pool_limit(each->request.name, &each->request);
		each->name = name_ask(each->request.name);
	}
	held_prepare();
	if (routine.prepare != nullptr)
		routine.prepare(attempt);
	if (is_refused_as_mine(request))
		outcome = Outcome::mine_already;
	else if (!routine.try_now(attempt))
	{
		if (timeout.is_immediate() && routine.comes_first != nullptr &&
			routine.comes_first(request))
			timeout = Timeout{1};	/* it is expected to be granted at once */
		outcome = timeout.is_immediate() ? Outcome::not_free : bounded_wait(attempt, timeout);
	}
	if (outcome == Outcome::granted)
		add_or_give_up(attempt);
	else
	{
		count_event(attempt->lacking->name,
					attempt->wait_start == 0 ? Event::failed : Event::timed_out);
		log_wait(*attempt, "and timed out");
	}
	for (HoldAttempt *each = attempt; each != nullptr; each = each->next)
		name_end(each->name);
	return outcome;
}

Outcome
lock_take(const LockRequest &request, Timeout timeout, int *slots)
{
	if (request.is_for_slot())
	{
		SlotAttempt attempt = {{{SLOT_ROUTINE, request.name}, request, slots}};

		return take(&attempt, timeout);
	}

	HoldAttempt attempt = {{LOCK_ROUTINE, request.name}, request};

	return take(&attempt, timeout);
}

Outcome
slots_take_all(const LockRequest *requests, int count, Timeout timeout, int *slots, int *lacking)
{
	HoldAttempt *first = nullptr;
	Outcome		outcome;
	int			i = 0;

	/* In the order of the keys, in which the states of the semaphores are locked. */
	do
	{
		auto	   *attempt = new (palloc(sizeof(SlotAttempt)))
			SlotAttempt{{{SLOT_ROUTINE, requests[i].name}, requests[i], &slots[i]}};
		HoldAttempt **place = &first;

		while (*place != nullptr &&
			   (*place)->request.name.key.value < attempt->request.name.key.value)
			place = &(*place)->next;
		attempt->next = *place;
		*place = attempt;
	} while (++i < count);
	outcome = take(first, timeout);
	*lacking = static_cast<int>(&static_cast<SlotAttempt *>(first)->lacking_request() - requests);
	return outcome;
}

}								/* namespace advisory */
