/*
 * core/held.h
 *		The locks and slots that this session holds through this extension.
 *
 * One entry for each lock tag and mode.  The lock manager is the truth: the built-in
 * functions, pg_advisory_unlock_all() and DISCARD ALL release locks without the extension.
 * So before an entry is used or added to, it is compared with the lock manager, and the
 * smaller number stays; when a statement ends it is noticed that all session-level locks
 * are gone; and when there are many entries, all are compared.  A lock that the built-in
 * functions release and take again in between looks the same as one that was held all the
 * time.
 *
 * What other sessions see of it (heldpublish.h), the statistics of its name and the log
 * follow from what is added and removed here.
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

/* What every hold needs comes first, so that it touches few cache lines. */
struct HeldLock
{
	LOCKTAG		tag;			/* hash key, with mode */
	Mode		mode;
	uint32		hash;			/* of both */
	CachedName *name;			/* of the first hold, or of the first by name; never null */
	TimestampTz since;			/* when the first hold was granted */
	int64		session_count;	/* session-level holds */
	int64		session_by_name;	/* those of them that were taken by name */
	struct Semaphore *semaphore;	/* that a slot belongs to; null for a lock */
	int			slots;			/* of the semaphore, as the caller said; 0 for a lock */
	int			newest_xact_hold;	/* place in the list of transaction-level holds; NO_PLACE if there is none */
	int			place;			/* where it is published */
	bool		has_acquirer;	/* else its transaction has not ended yet */
	bool		is_logged;		/* as a long hold, before the commit */
	bool		wants_log;		/* it has ended, and was a long one */
	TimestampTz ended_at;		/* when nothing of it was held any more */
	dlist_node	list;			/* entries with session-level holds; or those to be logged */
	dlist_node	in_semaphore;	/* of a slot: in the list of its semaphore; or slots that have ended */

	bool		is_held() const noexcept
	{
		return session_count > 0 || newest_xact_hold >= 0;
	}
};

/* The entry whose list node, at this offset, this is. */
inline HeldLock *
held_of(dlist_node *node, size_t offset) noexcept
{
	return reinterpret_cast<HeldLock *>(reinterpret_cast<char *>(node) - offset);
}

/*
 * A lock in this mode, or a slot, is about to be asked for: get memory for one more hold,
 * and compare what is known of it with the lock manager.  May ereport (out of memory).
 */
void		held_prepare(const LOCKTAG &tag, Mode mode);

/*
 * Add a hold that was just granted, and for which held_prepare() was called.  by_name: it
 * was asked for by namespace and name.  slots: of a semaphore.  May ereport (out of memory);
 * nothing is added then.
 */
HeldLock   *held_add(const LOCKTAG &tag, Mode mode, Scope scope, CachedName *name, bool by_name, int slots = 0);

/* The entry of a lock in this mode, as it was last known; null if there is none. */
HeldLock   *held_find(const LOCKTAG &tag, Mode mode) noexcept;

/*
 * Compare an entry with the lock manager.  Returns it, or null if nothing of it is left.
 * May ereport (out of memory).
 */
HeldLock   *held_refresh(HeldLock *held);

/*
 * So many session-level holds were just released; by_name: those that were taken by name are
 * removed first.  A hold that ends counts in the statistics.  Null does nothing.
 */
void		held_remove(HeldLock *held, int64 count, bool by_name) noexcept;

/*
 * Has somebody called pg_advisory_unlock_all() or DISCARD ALL?  Then nothing is left of the
 * session-level holds.  Looks at two entries as a rule.
 */
void		held_notice_lost() noexcept;

/* The session-level holds were released without the extension, nobody knows when. */
void		held_forget_session_holds(HeldLock *held) noexcept;

/*
 * A session-level hold, which is about to be released, goes on as one of the transaction:
 * held_prepare() was called for it.  That counts as one hold, not as two.
 */
void		held_keep_for_transaction(HeldLock *held) noexcept;

/* How many holds there are in both scopes, as far as they are known. */
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

/* Called from _PG_init: hears about the ends of transactions. */
void		held_init();

}								/* namespace advisory */
