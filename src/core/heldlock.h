/*
 * core/heldlock.h
 *		One lock or slot that this session holds through this extension.
 */
#pragma once

#include "core/namecache.h"
#include "server/locallock.h"

namespace advisory
{

enum class HoldState : uint8
{
	held,						/* session_count or xact_count is greater than 0 */
	ended,						/* both are 0; a slot waits here until its lock is released */
	to_log						/* its lock is released; it was held for long and must be logged */
};

/* The members that every hold needs come first, so that a hold touches few cache lines. */
struct HeldLock
{
	LOCKTAG		tag;			/* hash key, with mode */
	Mode		mode;
	HoldState	state;
	CachedName *name;			/* of the first hold, or of the first by name; never null */
	TimestampTz since;			/* when the first hold was granted */
	int64		session_count;	/* session-level holds */
	int64		session_by_name;	/* those of them that were taken by name */
	struct Semaphore *semaphore;	/* of a slot, set by core/semaphore; null for a lock */
	int			xact_level;		/* nesting level of the (sub)transaction that the first of the
								 * transaction-level holds belongs to */
	int			owner_level;	/* that of a cursor which may outlive it; else the same or more */
	int64		xact_count;		/* transaction-level holds; too many after ROLLBACK TO */
	int			place;			/* its place in the session table */
	bool		has_acquirer;	/* false: the transaction that took it has not ended yet */
	CommandId	taken_after;	/* session-level: the command of the transaction after which it was
								 * taken; InvalidCommandId if that had not written yet */
	bool		is_logged;		/* already logged as a long hold, before the commit */
	TimestampTz ended_at;		/* when a hold that must be logged ended; else 0 */
	dlist_node	list;			/* session-level holds; in state to_log: holds to log */
	dlist_node	in_xact;		/* transaction-level holds */
	dlist_node	in_semaphore;	/* slots of a semaphore; in state ended: ended slots */

	bool		is_held() const noexcept
	{
		return state == HoldState::held;
	}
};

extern dlist_head session_holds;	/* entries with session-level holds (HeldLock.list) */

/* ---- Between core/held.cpp and core/heldends.cpp ---- */

/* How a hold ended. */
enum class HoldEnd
{
	released,					/* now */
	lost,						/* without the extension, at an unknown time */
	prepared					/* not at all: a prepared transaction keeps it */
};

extern dlist_head xact_holds;	/* entries with transaction-level holds (HeldLock.in_xact) */
extern bool some_doubly_held;	/* some of them have, or have had, session-level holds, too */

/* Does the lock manager say that this session does not hold it? */
inline bool
is_lost(const HeldLock *held) noexcept
{
	return !is_held_by_me(held->tag, held->mode);
}

/*
 * Keep this many session-level holds of an entry that has some; by_name: at most this many as taken
 * by name.  Returns the entry, or null if no hold of the lock is left in this mode.
 * free_ended_slots() must follow.
 */
HeldLock   *keep_session_holds(HeldLock *held, int64 count, int64 by_name, HoldEnd end) noexcept;

/* Remove an entry without holds.  Do not use it after this. */
void		end_entry(HeldLock *held, HoldEnd end, TimestampTz now) noexcept;

/* The locks of ended slots are released now. */
void		free_ended_slots() noexcept;

/* Compare all entries with session-level holds with the lock manager. */
void		end_lost_holds(HoldEnd end) noexcept;

/*
 * The session ends, while shared memory is still available.  Its transaction has ended before, as
 * in the server's ShutdownPostgres(), which is called later: no lock is free while its rows are
 * still locked, and nothing is marked as free, and nobody woken, before the locks are released.
 */
void		end_all_holds() noexcept;

/* The entry that contains this list node at this offset. */
inline HeldLock *
held_of(dlist_node *node, size_t offset) noexcept
{
	return reinterpret_cast<HeldLock *>(reinterpret_cast<char *>(node) - offset);
}

/* All entries of a list, whose nodes are at this offset, for a range-based for. */
inline compat::ObjectsOnList<HeldLock, dlist_node>
holds_on(dlist_head &list, size_t offset,
		 dlist_node *dlist_node::*link = &dlist_node::next) noexcept
{
	return {&list.head, offset, link};
}

}								/* namespace advisory */
