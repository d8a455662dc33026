/*
 * core/hold.h
 *		One hold: a lock or slot that this session has taken through this extension, in one scope.
 *
 * A session can hold a lock in both scopes, and in both modes: each of these is a hold of its own.
 * A hold is on the list of its state, and on no other one:
 *
 *		session			held in session scope.  First come slots, beginning with the newest, then
 *						locks, ending with the newest.
 *		transaction		held in transaction scope, the newest last, so that those of the deepest
 *						subtransactions are at the end
 *		ended			a slot that has ended, while its lock is perhaps not released yet
 *		to_log			its lock is released; it was held for long and must be logged
 *
 *		held_add()			nothing -> session, transaction
 *		released, lost		session, transaction -> ended (slots), to_log (long holds), nothing
 *		a job ends			session -> transaction
 *		locks are released	ended -> to_log, nothing
 *		it is logged		to_log -> nothing
 */
#pragma once

#include "core/namecache.h"
#include "server/locallock.h"

namespace advisory
{

enum class HoldState : uint8
{
	session,
	transaction,
	ended,
	to_log
};

struct HoldKey
{
	LOCKTAG		tag;
	Mode		mode;
	Scope		scope;
};

/* The members that every hold needs come first, so that a hold touches few cache lines. */
struct Hold
{
	HoldKey		key;
	HoldState	state;
	LOCALLOCK  *local;			/* what the lock manager knows of it (see count_of()) */
	CachedName *name;			/* of the first hold, or of the first by name; never null */
	TimestampTz since;			/* since when the lock is held */
	int64		count;			/* how often it was taken; too many after ROLLBACK TO */
	int64		count_by_name;	/* of session scope: how often by name */
	dlist_node	node;			/* in the list of its state */
	int			place;			/* its place in the session table */
	Hold	   *twin;			/* the same lock and mode, held in the other scope; or null */
	struct Semaphore *semaphore;	/* of a slot, set by core/semaphore; null for a lock */
	dlist_node	in_semaphore;	/* in the list of a semaphore's slots, while it is held */

	/* Of transaction scope. */
	int			level;			/* an abort of a (sub)transaction at this level may end it */
	bool		is_logged;		/* already logged as a long hold, before the commit */

	/* Of session scope. */
	bool		has_acquirer;	/* false: the transaction that took it has not ended yet */
	CommandId	taken_after;	/* the command of the transaction after which it was taken;
								 * InvalidCommandId if that had not written yet */
	TimestampTz ended_at;		/* in the states ended and to_log: when; 0 if it is not logged */
};

/*
 * The holds in one state, from the first on; with &dlist_node::prev from the last one back.
 * A loop may end the present one.
 */
compat::ObjectsOnList<Hold, dlist_node> holds_in(HoldState state,
												 dlist_node *dlist_node::*link =
													 &dlist_node::next) noexcept;

/* How often the session really has it, in its scope, as the lock manager says. */
inline int64
count_of(const Hold *hold) noexcept
{
	LockCounts	counts = local_counts(hold->local, hold->key.tag, hold->key.mode);

	return hold->key.scope == Scope::session ? counts.session : counts.transaction;
}

/* Does the lock manager say that the session does not have it? */
inline bool
is_lost(const Hold *hold) noexcept
{
	return count_of(hold) == 0;
}

}								/* namespace advisory */
