/*
 * views/waittree.h
 *		Who waits for whom, as trees.
 *
 * Wording
 *		session		a lock group (a session with its parallel workers) or a prepared transaction
 *		root		a session that others wait for, and that waits for no session
 *		cycle		sessions that wait for each other: a deadlock not found yet
 *
 * Each session stands once.  A waiter stands under one of the sessions that are in its way:
 *
 *		it waits for a slot		the holder that has had its slot longest, as far as that is known.  But
 *								because any slot ends the wait, a holder that itself waits for the
 *								waiter only counts if all holders do.
 *		it waits for a lock		the holder that came first
 *		nobody holds it			the nearest waiter ahead of it in the queue
 *
 * The trees follow waits for locks of every type, because the holder of an advisory lock may itself wait
 * for a row.  But they contain only branches that lead to a session that waits for an advisory lock, or
 * that holds one.
 */
#pragma once

#include "server/locktable.h"

namespace advisory
{

/*
 * A session in a tree.
 *
 *					lock								blocker
 *		root		the lock that it holds with the		null
 *					longest wait of others for it
 *		waiter		the lock that it waits for			the hold or wait of the session above that
 *													is in its way
 *		first of	the same							the same; the blocker is further down the tree
 *		a cycle
 *
 * A session that waits for a lease, or for a lock that was released meanwhile, is a root with the lock that it waits for.
 */
struct WaitLine
{
	const LockEntry *lock;
	const LockEntry *blocker;
	const WaitLine *above;		/* null at depth 0 */
	int			depth;
	int			place;			/* among the waiters under the same session, from 0 */
};

struct WaitTrees
{
	LockEntries entries;		/* the lines point into them */
	WaitLine   *lines;			/* each tree from its root down; a session is followed by its waiters, longest waits first */
	int			count;
};

/* A wait whose start is not known yet has only just begun. */
inline TimestampTz
start_of_wait(const LockEntry &wait) noexcept
{
	return wait.wait_start != 0 ? wait.wait_start : DT_NOEND;
}

/* The trees of the whole server, the one with the longest wait first.  May ereport. */
WaitTrees	read_wait_trees();

/* How many sessions hold what a waiter waits for, and are in its way.  May ereport. */
int			count_holders(const LockEntries &entries, const LockEntry &waiter);

}								/* namespace advisory */
