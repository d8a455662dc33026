/*
 * core/heldends.cpp
 *		The ends of transactions, savepoints and sessions, for the locks that this session holds.
 *
 * The callbacks below run at a time when an error would end the server.  So they allocate nothing,
 * and take only LWLocks that are held for a moment: of this session's part of the session table, of
 * a semaphore's queue, and of one partition of the lock table, to wake waiters.  Logging can
 * fail, so a hold that ends with a commit is logged before the commit.  A hold that ends in another
 * way is logged by log_ended_holds(): when the release function returns, at the next request for a
 * lock, at the next commit or at the end of the session, whichever comes first.
 */
#include "base/pg.h"

#include "base/guc.h"
#include "core/held.h"
#include "core/longholds.h"
#include "shmem/sessiontable.h"
#include "shmem/slotstate.h"

namespace advisory
{

/* All transaction-level holds have ended. */
static void
end_xact_holds(HoldEnd end) noexcept
{
	TimestampTz now = 0;

	for (Hold *hold : holds_in(HoldState::transaction))
	{
		if (now == 0)
			now = GetCurrentTimestamp();
		end_hold(hold, end, now);
	}
}

/* The nesting level of a subtransaction that aborts, until its locks are released; else 0. */
static int	aborted_level = 0;

/*
 * A subtransaction has aborted, and its locks are released.  A cursor that is older keeps the locks
 * that it took in the subtransaction: they belong to the parent from now on, as far as it matters.
 */
static void
end_aborted_holds() noexcept
{
	for (Hold *hold : holds_from_level(aborted_level))
	{
		if (is_lost(hold))
			end_hold(hold, HoldEnd::released, GetCurrentTimestamp());
		else
			hold->level = aborted_level - 1;
	}
	aborted_level = 0;
}

/* A subtransaction of this nesting level has succeeded: its parent takes over its holds. */
static void
pass_xact_holds_to_parent(int level) noexcept
{
	for (Hold *hold : holds_in(HoldState::transaction, &dlist_node::prev))
	{
		if (hold->level < level)
			break;
		hold->level = level - 1;
	}
}

/* Log the long holds that will end with the commit.  May ereport. */
static void
log_before_commit()
{
	TimestampTz now;

	if (setting::log_hold < 0 || !held_has_any(HoldState::transaction))
		return;
	now = GetCurrentTimestamp();
	for (Hold *hold : holds_in(HoldState::transaction))
	{
		if (hold->twin != nullptr || hold->is_logged || !is_long_hold(hold, now))
			continue;
		hold->is_logged = true;
		log_hold(hold, now);
	}
}

/* The session-level holds at one end of the list that have no acquirer yet have this one. */
static void
set_acquirer(int acquirer, dlist_node *dlist_node::*link) noexcept
{
	for (Hold *hold : holds_in(HoldState::session, link))
	{
		if (hold->has_acquirer)
			break;
		hold->has_acquirer = true;
		publish_acquirer(hold->place, acquirer);
	}
}

static bool calls_after_transaction = false;

/*
 * Settings of the transaction have been undone by now, so the present role and application are
 * those that took the locks.
 */
static void
after_transaction(void *is_abort)
{
	int			acquirer;

	calls_after_transaction = false;
	if (!held_has_any(HoldState::session))
		return;
	idle_holder_start_timer(is_abort != nullptr);
	acquirer = publish_present_role();
	/*
	 * Locks that were taken in this transaction are at the end of the list, and slots at the
	 * beginning.
	 */
	set_acquirer(acquirer, &dlist_node::prev);
	set_acquirer(acquirer, &dlist_node::next);
}

static void
at_xact_end(XactEvent event, void *)
{
	static MemoryContextCallback callback;

	held_hooks.transaction_ends(event);
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			idle_holder_check();
			log_ended_holds();
			log_before_commit();
			break;
		case XACT_EVENT_PRE_PREPARE:
			log_ended_holds();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			name_end_all(0);
			withdraw_wait();
			end_xact_holds(event == XACT_EVENT_PREPARE ? HoldEnd::prepared : HoldEnd::released);
			if (!held_has_any(HoldState::session) || calls_after_transaction)
				break;
			calls_after_transaction = true;
			/*
			 * Call it when everything else of the transaction is over.  The registration allocates
			 * nothing.
			 */
			callback.func = after_transaction;
			callback.arg = event == XACT_EVENT_ABORT ? &callback : nullptr;
			MemoryContextRegisterResetCallback(TopTransactionContext, &callback);
			break;
		default:
			break;
	}
}

static void
at_subxact_end(SubXactEvent event, SubTransactionId, SubTransactionId, void *)
{
	int			level = GetCurrentTransactionNestLevel();

	if (event == SUBXACT_EVENT_ABORT_SUB)
	{
		name_end_all(level);
		aborted_level = level;
	}
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		pass_xact_holds_to_parent(level);
}

/*
 * Called whenever a resource owner has released its locks: at the ends of statements,
 * subtransactions and transactions.
 */
static void
at_resource_release(ResourceReleasePhase phase, bool is_commit, bool is_top_level, void *)
{
	if (phase != RESOURCE_RELEASE_AFTER_LOCKS)
		return;
	if (is_top_level)
		held_hooks.transaction_released();
	if (aborted_level > 0)
		end_aborted_holds();
	free_ended_slots();
	held_notice_lost();
	/* Once for each statement, whose portal has an owner of its own. */
	if (!is_top_level && CurrentResourceOwner != CurTransactionResourceOwner)
		end_lost_twins();
}

/* ---- The end of the session ---- */

void
end_all_holds() noexcept
{
	end_lost_holds(HoldEnd::lost);
	LockReleaseAll(USER_LOCKMETHOD, true);
	leave_queues();
	for (Hold *hold : holds_in(HoldState::session))
		end_hold(hold, HoldEnd::released, GetCurrentTimestamp());
	free_ended_slots();
	held_hooks.session_ended();
}

void
held_init(const HeldHooks &others)
{
	held_hooks = others;
	RegisterXactCallback(at_xact_end, nullptr);
	RegisterSubXactCallback(at_subxact_end, nullptr);
	RegisterResourceReleaseCallback(at_resource_release, nullptr);
}

}								/* namespace advisory */
