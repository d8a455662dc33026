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

/*
 * Fill in the blockers of each waiter, including the sessions ahead in a semaphore's queue.  May
 * ereport.
 */
void		find_all_blockers(LockEntries *found);

/*
 * Call visit(entry) for the entries that a waiter, one of them, waits for, until it returns false:
 * for a lock its holders, then the waiters ahead in the queue, the nearest first; for a semaphore
 * the holders of slots.  The entries are in the order of read_all_waits(); a semaphore's slots come
 * after its queue.
 */
template <typename Visit>
void
visit_blockers(const LockEntries &entries, const LockEntry &waiter, Visit visit)
{
	const LockEntry *end = entries.entries + entries.count;
	const LockEntry *first = &waiter;
	auto		go_on_after = [&](const LockEntry &other) {
		return !is_in_the_way(other, waiter) || visit(other);
	};

	if (waiter.is_head)
	{
		for (const LockEntry *slot = &waiter + 1;
			 slot < end && is_same_semaphore(slot->tag, waiter.tag); slot++)
		{
			if (slot->granted && !go_on_after(*slot))
				return;
		}
		return;
	}
	while (first > entries.entries && same_tag(first[-1].tag, waiter.tag))
		first--;
	for (const LockEntry *holder = first; holder < &waiter && holder->granted; holder++)
	{
		if (!go_on_after(*holder))
			return;
	}
	for (const LockEntry *behind = &waiter; behind > first && !behind[-1].granted; behind--)
	{
		if (!go_on_after(behind[-1]))
			return;
	}
}

}								/* namespace advisory */
