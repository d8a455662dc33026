/*
 * core/held.h
 *		The locks and slots that this session holds through this extension.
 *
 * There is one entry for each lock tag and mode.  The lock manager is the truth: the built-in
 * functions, pg_advisory_unlock_all() and DISCARD ALL release locks without the extension.  So
 * before an entry is used or increased, it is compared with the lock manager, and the smaller
 * number of holds counts.  The end of a statement notices if all session-level locks are gone.
 * When there are many entries, all of them are compared.  A lock that the built-in functions
 * release and take again in between looks as if it had been held all the time.
 *
 * The entries determine what other sessions see (sessiontable.h), the statistics of the names, and
 * the log.
 */
#pragma once

#include "core/heldlock.h"
#include "core/request.h"

namespace advisory
{

/*
 * Call this before asking for a lock in this mode, or for a slot.  Notices holds that have ended
 * without the extension, and reserves room to publish one more.  May ereport (out of memory).
 */
void		held_prepare(const LOCKTAG &tag, Mode mode);

/*
 * Add a hold that was just granted, after held_prepare() was called for it.  by_name: it was
 * requested by namespace and name.  slots: of a semaphore.  May ereport (out of memory), and adds
 * nothing then.
 */
HeldLock   *held_add(const LOCKTAG &tag, Mode mode, Scope scope, CachedName *name, bool by_name,
					 int slots = 0);

/* The entry of a lock in this mode, not compared with the lock manager; null if there is none. */
HeldLock   *held_find(const LOCKTAG &tag, Mode mode) noexcept;

/*
 * Compare an entry with the lock manager.  Returns it, or null if no hold of it is left.  May
 * ereport (out of memory).
 */
HeldLock   *held_refresh(HeldLock *held);

/*
 * Has the transaction written since it took the session-level lock, or since it began, if the
 * session had the lock then?  What has locked rows, or a sequence, counts as well.
 */
bool		has_written_since(const HeldLock *held) noexcept;

/*
 * Remove count session-level holds that were just released; by_name: those that were taken by
 * name first.  A hold that ends counts in the statistics.  Null does nothing.
 */
void		held_remove(HeldLock *held, int64 count, bool by_name) noexcept;

/*
 * Release this many session-level holds, which this session has, and remove them.  Returns count.
 * Allocates nothing before the release, because the caller may have run out of memory.
 */
int64		held_release(const LOCKTAG &tag, Mode mode, int64 count, bool by_name);

/* The same for the session-level lock or slot of a request, if this session has it. */
void		lock_give_up(const LockRequest &request, int slot);

/*
 * Remove all session-level holds if pg_advisory_unlock_all() or DISCARD ALL has released them.
 * Usually looks at two entries only.
 */
void		held_notice_lost() noexcept;

/*
 * Log the long holds that have ended and could not be logged then (advisory_ext.log_hold).  May
 * ereport.
 */
void		log_ended_holds();

/*
 * Turn a session-level hold into a transaction-level one, after held_prepare() was called for it.
 * This counts as one hold, not as two.
 */
void		held_keep_for_transaction(HeldLock *held) noexcept;

/*
 * How many entries there are: a lock that is held in both modes has two.  Holds that have ended and
 * must still be logged count, too.
 */
int			held_entry_count() noexcept;

/*
 * How many locks and slots this session holds through this extension, each once, as the
 * lock manager confirms.  Looks at every one.  May ereport (out of memory).
 */
int			held_count_locks();

/*
 * What the modules above this one want to know.  The functions are called at ends of statements,
 * transactions and sessions, so they allocate and raise nothing, and take no lock of a dshash.
 */
struct HeldHooks
{
	/*
	 * An entry with a semaphore: its lock was released, or is_prepared: a prepared transaction
	 * keeps it.
	 */
	void		(*slot_ended) (HeldLock *slot, bool is_prepared) noexcept;
	/* Before and after a commit, after an abort. */
	void		(*transaction_ends) (XactEvent event) noexcept;
	void		(*transaction_released) () noexcept;	/* a transaction has released its locks */
	void		(*session_ended) () noexcept;	/* the session holds nothing any more */
};

extern HeldHooks held_hooks;

/* Called from _PG_init: registers callbacks for the ends of transactions. */
void		held_init(const HeldHooks &others);

}								/* namespace advisory */
