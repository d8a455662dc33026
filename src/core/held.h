/*
 * core/held.h
 *		The locks and slots that this session holds through this extension.
 *
 * There is one entry for each lock tag and mode.  The lock manager is the truth: the built-in
 * functions, pg_advisory_unlock_all() and DISCARD ALL release locks without the extension.
 * So before an entry is used or increased, it is compared with the lock manager, and the
 * smaller number of holds counts.  The end of a statement notices if all session-level locks
 * are gone.  When there are many entries, all of them are compared.  A lock that the built-in
 * functions release and take again in between looks as if it had been held all the time.
 *
 * The entries determine what other sessions see (heldpublish.h), the statistics of the names,
 * and the log.
 */
#pragma once

extern "C" {
#include "lib/ilist.h"
#include "storage/lock.h"
}

#include "core/namecache.h"
#include "server/locallock.h"

namespace advisory
{

/* The members that every hold needs come first, so that a hold touches few cache lines. */
struct HeldLock
{
	LOCKTAG		tag;			/* hash key, with mode */
	Mode		mode;
	uint32		hash;			/* of both */
	CachedName *name;			/* of the first hold, or of the first by name; never null */
	TimestampTz since;			/* when the first hold was granted */
	int64		session_count;	/* session-level holds */
	int64		session_by_name;	/* those of them that were taken by name */
	struct Semaphore *semaphore;	/* the semaphore of a slot; null for a lock */
	int			slots;			/* the number of slots that the caller gave; 0 for a lock */
	int			newest_xact_hold;	/* place in the list of transaction-level holds; NO_PLACE if there is none */
	int			place;			/* its place in the session table */
	bool		has_acquirer;	/* false: the transaction that took it has not ended yet */
	bool		is_logged;		/* already logged as a long hold, before the commit */
	bool		wants_log;		/* it has ended, and was a long hold */
	TimestampTz ended_at;		/* when the last hold ended */
	dlist_node	list;			/* in the list of entries with session-level holds, or of ended holds to log */
	dlist_node	in_semaphore;	/* of a slot: in the list of its semaphore, or of ended slots */

	bool		is_held() const noexcept
	{
		return session_count > 0 || newest_xact_hold >= 0;
	}
};

/* The entry that contains this list node at this offset. */
inline HeldLock *
held_of(dlist_node *node, size_t offset) noexcept
{
	return reinterpret_cast<HeldLock *>(reinterpret_cast<char *>(node) - offset);
}

/*
 * Call this before asking for a lock in this mode, or for a slot.  Gets memory for one more
 * hold, and compares an existing entry with the lock manager.  May ereport (out of memory).
 */
void		held_prepare(const LOCKTAG &tag, Mode mode);

/*
 * Add a hold that was just granted, after held_prepare() was called for it.  by_name: it was
 * requested by namespace and name.  slots: of a semaphore.  May ereport (out of memory), and
 * adds nothing then.
 */
HeldLock   *held_add(const LOCKTAG &tag, Mode mode, Scope scope, CachedName *name, bool by_name, int slots = 0);

/* The entry of a lock in this mode, not compared with the lock manager; null if there is none. */
HeldLock   *held_find(const LOCKTAG &tag, Mode mode) noexcept;

/*
 * Compare an entry with the lock manager.  Returns it, or null if no hold of it is left.
 * May ereport (out of memory).
 */
HeldLock   *held_refresh(HeldLock *held);

/*
 * Remove count session-level holds that were just released; by_name: those that were taken by
 * name first.  A hold that ends counts in the statistics.  Null does nothing.
 */
void		held_remove(HeldLock *held, int64 count, bool by_name) noexcept;

/*
 * Remove all session-level holds if pg_advisory_unlock_all() or DISCARD ALL has released them.
 * Usually looks at two entries only.
 */
void		held_notice_lost() noexcept;

/* Remove session-level holds that were released without the extension, at an unknown time. */
void		held_forget_session_holds(HeldLock *held) noexcept;

/*
 * Turn a session-level hold into a transaction-level one, after held_prepare() was called for
 * it.  This counts as one hold, not as two.
 */
void		held_keep_for_transaction(HeldLock *held) noexcept;

/* How many holds the entry has in both scopes. */
int64		held_count(const HeldLock *held) noexcept;

/* How many entries there are: a lock that is held in both modes has two. */
int			held_entry_count() noexcept;

/*
 * How many locks and slots this session holds through this extension, each once, as the
 * lock manager confirms.  Looks at every one.  May ereport (out of memory).
 */
int			held_count_locks();

/* The entries with session-level holds, linked by HeldLock.list. */
dlist_head *held_session_holds() noexcept;

/* Called from _PG_init: registers callbacks for the ends of transactions. */
void		held_init();

}								/* namespace advisory */
