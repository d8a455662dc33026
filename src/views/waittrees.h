/*
 * views/waittrees.h
 *		Who waits for whom, as trees.
 *
 * Wording
 *		session		a lock group (a session with its parallel workers) or a prepared transaction
 *		wait		one session waiting for another that is in its way
 *		root		a session that others wait for, and that waits for nothing
 *		cycle		sessions that wait for each other: a deadlock not found yet
 *
 * Waits for locks of every type are followed, since who holds an advisory lock
 * may itself wait for somebody's row; but of the trees only the branches are
 * kept that lead to a waiter for an advisory lock.
 */
#pragma once

#include "server/locktable.h"

namespace advisory
{

/*
 * One line of a tree.
 *
 *					lock								blocker
 *		root		what it holds, and others wait		null
 *					for the longest
 *		waiter		what it waits for					what is in its way
 *		first of	the same							the same; the blocker is
 *		a cycle										further down the tree
 */
struct WaitLine
{
	const LockEntry *lock;
	const LockEntry *blocker;
	const WaitLine *parent;		/* the line above it; null at depth 0 */
	int			depth;
	bool		seen_above;		/* who waits for it stands under an earlier line */
};

/*
 * The lines (WaitLine *) of all trees, each followed by its branches: a waiter under every
 * session whose hold is in its way, or if there is none, under the nearest one ahead of it in
 * the queue.  Longest waits first, cycles last.  *has_prepared: are there prepared transactions
 * in the lock entries?  As of now, in the current memory context.  May ereport.
 */
List	   *read_wait_trees(bool *has_prepared);

}								/* namespace advisory */
