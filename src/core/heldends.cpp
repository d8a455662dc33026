/*
 * core/heldends.cpp
 *		The ends of transactions, savepoints and sessions, for the locks that this session holds.
 *
 * The callbacks below run at a time when an error would end the server.  So they allocate nothing,
 * and take no lock except the short one on this session's part of the session table.  Logging can
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

/* The transaction-level holds of an entry have ended. */
static void
end_xact_hold(HeldLock *held, HoldEnd end, TimestampTz now) noexcept
{
	dlist_delete(&held->in_xact);
	held->xact_count = 0;
	if (held->session_count == 0)
		end_entry(held, end, now);
}

/* All transaction-level holds have ended. */
static void
end_xact_holds(HoldEnd end) noexcept
{
	TimestampTz now = dlist_is_empty(&xact_holds) ? 0 : GetCurrentTimestamp();

	while (!dlist_is_empty(&xact_holds))
		end_xact_hold(held_of(dlist_head_node(&xact_holds), offsetof(HeldLock, in_xact)), end, now);
	some_doubly_held = false;
}

/* The nesting level of a subtransaction that aborts, until its locks are released; else 0. */
static int	aborted_level = 0;

/*
 * A cursor keeps this hold of an aborted subtransaction.  It belongs to the level of the cursor, so
 * that the ends of those in between need not look at it, and goes behind the holds of that level.
 */
static void
pass_to_cursor(HeldLock *held) noexcept
{
	dlist_node *node = held->in_xact.prev;

	held->xact_level = Min(held->owner_level, aborted_level - 1);
	while (node != &xact_holds.head &&
		   held_of(node, offsetof(HeldLock, in_xact))->xact_level > held->xact_level)
		node = node->prev;
	dlist_delete(&held->in_xact);
	dlist_insert_after(node, &held->in_xact);
}

/*
 * A subtransaction has aborted, and its locks are released.  A cursor that is older keeps the locks
 * that it took in the subtransaction.
 */
static void
end_aborted_holds() noexcept
{
	TimestampTz now = dlist_is_empty(&xact_holds) ? 0 : GetCurrentTimestamp();
	dlist_node *node = xact_holds.head.prev;

	while (node != &xact_holds.head &&
		   held_of(node, offsetof(HeldLock, in_xact))->xact_level >= aborted_level)
		node = node->prev;
	for (dlist_node *next = node->next; next != &xact_holds.head;)
	{
		HeldLock   *held = held_of(next, offsetof(HeldLock, in_xact));

		next = next->next;
		if (is_lost(held))
			end_xact_hold(held, HoldEnd::released, now);
		else
			pass_to_cursor(held);
	}
	aborted_level = 0;
}

/* A subtransaction of this nesting level has succeeded: its parent takes over its holds. */
static void
pass_xact_holds_to_parent(int level) noexcept
{
	for (HeldLock *held : holds_on(xact_holds, offsetof(HeldLock, in_xact), &dlist_node::prev))
	{
		if (held->xact_level < level)
			break;
		held->xact_level = level - 1;
	}
}

/* Log the long holds that will end with the commit.  May ereport. */
static void
log_before_commit()
{
	TimestampTz now = GetCurrentTimestamp();

	for (HeldLock *held : holds_on(xact_holds, offsetof(HeldLock, in_xact)))
	{
		if (held->session_count > 0 || held->is_logged || !is_long_hold(held, now))
			continue;
		held->is_logged = true;
		log_hold(held, now);
	}
}

/* The session-level holds at one end of the list that have no acquirer yet have this one. */
static void
set_acquirer(int acquirer, dlist_node *dlist_node::*next) noexcept
{
	for (HeldLock *held : holds_on(session_holds, offsetof(HeldLock, list), next))
	{
		if (held->has_acquirer)
			break;
		held->has_acquirer = true;
		publish_acquirer(held->place, acquirer);
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
	if (dlist_is_empty(&session_holds))
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
			idle_holder_check(session_holds);
			log_ended_holds();
			if (setting::log_hold >= 0 && !dlist_is_empty(&xact_holds))
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
			if (dlist_is_empty(&session_holds) || calls_after_transaction)
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
 * pg_advisory_unlock() may have released session-level holds of locks that the transaction holds,
 * too; the lock manager does not say that such a hold is lost.  May ereport (out of memory).
 */
static void
refresh_doubly_held()
{
	/* A hold that is refreshed may leave the list. */
	for (HeldLock *held : holds_on(xact_holds, offsetof(HeldLock, in_xact)))
		held_refresh(held);
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
	/*
	 * It may fail, so only where a statement has succeeded, whose portal has an owner of its own;
	 * not at the end of a subtransaction.
	 */
	if (some_doubly_held && is_commit && !is_top_level &&
		CurrentResourceOwner != CurTransactionResourceOwner)
		refresh_doubly_held();
}

/* ---- The end of the session ---- */

void
end_all_holds() noexcept
{
	end_lost_holds(HoldEnd::lost);
	LockReleaseAll(USER_LOCKMETHOD, true);
	leave_queue();
	while (!dlist_is_empty(&session_holds))
		keep_session_holds(held_of(dlist_head_node(&session_holds), offsetof(HeldLock, list)), 0, 0,
						   HoldEnd::released);
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
