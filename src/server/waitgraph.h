/*
 * server/waitgraph.h
 *		Who waits for whom.
 *
 * A session that waits for a lock waits for the sessions that hold it in a conflicting mode, and
 * for those ahead in the lock's queue that request a conflicting mode, as in pg_blocking_pids().
 * The members of a lock group do not wait for each other.
 *
 * A session that waits for a slot of a semaphore (is_head) waits for the holders of the slots that
 * it could use.  The sessions ahead of it in the queue wait for the same holders, so the graph does
 * not contain waits for them.
 *
 * The first in the queue of lease slots waits for the transactions that have locked one of them, as
 * far as the lock manager knows.  It also waits for the end of leases, which no session holds.
 */
#pragma once

#include "server/locktable.h"

namespace advisory
{

/*
 * Does other block the waiter?  other holds the same lock, a slot of the semaphore that the waiter
 * waits for, or is ahead in the queue.  A session that holds several conflicting modes counts once,
 * with the first of them; a session that holds the lock and also waits counts as a holder only.
 */
bool		is_in_the_way(const LockEntry &other, const LockEntry &waiter);

/* The same, also if other is of the waiter's own lock group. */
bool		conflicts_with(const LockEntry &other, const LockEntry &waiter);

/*
 * Fill in the blockers of each waiter, including the sessions ahead in a semaphore's queue; each
 * session once.  May ereport.
 */
void		find_all_blockers(LockEntries *found);

/*
 * Call visit(entry) for the entries that hold what a waiter, one of them, waits for, and conflict
 * with it, also those of its own lock group, until it returns false.  The entries are in the order
 * of read_all_waits(); slots come after their queue.  A session can hold many slots.
 */
template <typename Visit>
void
visit_holders(const LockEntries &entries, const LockEntry &waiter, Visit visit)
{
	const LockEntry *end = entries.entries + entries.count;
	const LockEntry *holder = &waiter;

	if (!waiter.waits_for_slot())
	{
		while (holder > entries.entries && same_tag(holder[-1].tag, waiter.tag))
			holder--;
		end = &waiter;
	}
	for (; holder < end && (waiter.is_head ? is_same_semaphore(holder->tag, waiter.tag) :
							waiter.waits_for_slot() ? is_same_key(holder->tag, waiter.tag) :
							holder->granted);
		 holder++)
	{
		if (holder->granted && conflicts_with(*holder, waiter) && !visit(*holder))
			return;
	}
}

/* The same for the waiters ahead of one in the queue of a lock, the nearest first. */
template <typename Visit>
void
visit_ahead(const LockEntries &entries, const LockEntry &waiter, Visit visit)
{
	for (const LockEntry *other = &waiter; other > entries.entries; )
	{
		other--;
		if (other->granted || !same_tag(other->tag, waiter.tag) ||
			(is_in_the_way(*other, waiter) && !visit(*other)))
			return;
	}
}

}								/* namespace advisory */
