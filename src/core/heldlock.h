/*
 * core/heldlock.h
 *		One lock or slot that this session holds through this extension.
 */
#pragma once

#include "core/namecache.h"
#include "server/locallock.h"

namespace advisory
{

/* The members that every hold needs come first, so that a hold touches few cache lines. */
struct HeldLock
{
	LOCKTAG		tag;			/* hash key, with mode */
	Mode		mode;
	CachedName *name;			/* of the first hold, or of the first by name; never null */
	TimestampTz since;			/* when the first hold was granted */
	int64		session_count;	/* session-level holds */
	int64		session_by_name;	/* those of them that were taken by name */
	struct Semaphore *semaphore;	/* the semaphore of a slot, which core/semaphore sets; null for a lock */
	int			xact_level;		/* nesting level of the (sub)transaction that took the first of the transaction-level holds */
	int64		xact_count;		/* transaction-level holds; too many if a savepoint was rolled back */
	int			place;			/* its place in the session table */
	bool		has_acquirer;	/* false: the transaction that took it has not ended yet */
	bool		is_logged;		/* already logged as a long hold, before the commit */
	TimestampTz ended_at;		/* when the last hold ended, if it was a long one that must still be logged; else 0 */
	dlist_node	list;			/* in the list of entries with session-level holds, or of ended holds to log */
	dlist_node	in_xact;		/* in the list of entries with transaction-level holds */
	dlist_node	in_semaphore;	/* of a slot: in the list of its semaphore, or of ended slots */

	bool		is_held() const noexcept
	{
		return session_count > 0 || xact_count > 0;
	}
};

/* The entry that contains this list node at this offset. */
inline HeldLock *
held_of(dlist_node *node, size_t offset) noexcept
{
	return reinterpret_cast<HeldLock *>(reinterpret_cast<char *>(node) - offset);
}

}								/* namespace advisory */
