/*
 * core/held.h
 *		The locks and slots that this session holds through this extension.
 *
 * There is one hold for each lock tag, mode and scope (hold.h).  The lock manager is the truth: the
 * built-in functions, pg_advisory_unlock_all() and DISCARD ALL release locks without the extension.
 * So before a hold is used or increased, it is compared with the lock manager, and the smaller
 * number counts.  The end of a statement notices if all session-level locks are gone.  When there
 * are many holds, all of them are compared.
 *
 * The holds determine what other sessions see (sessiontable.h), the statistics of the names, and
 * the log.
 */
#pragma once

#include "core/hold.h"
#include "core/request.h"

namespace advisory
{

/*
 * Call this before asking for a lock or for a slot.  Notices holds that have ended without the
 * extension, and gets room for one more, and to publish it.  May ereport (out of memory).
 */
void		held_prepare();

/*
 * Add a hold that was just granted, after held_prepare() was called for it.  by_name: it was
 * requested by namespace and name.  slots: of a semaphore.  May ereport (out of memory), and adds
 * nothing then.
 */
Hold	   *held_add(const LOCKTAG &tag, Mode mode, Scope scope, CachedName *name, bool by_name,
					 int slots = 0);

/*
 * This hold, not compared with the lock manager; null if there is none.  name: under which it was
 * perhaps granted last, so that it is found at once; or null.
 */
Hold	   *held_find(const LOCKTAG &tag, Mode mode, Scope scope,
					  const CachedName *name = nullptr) noexcept;

/* Compare a hold with the lock manager.  Returns it, or null if nothing of it is left. */
Hold	   *held_compare(Hold *hold) noexcept;

/*
 * Has the transaction written since it took the session-level hold, or since it began, if the
 * session had it then?  What has locked rows, or a sequence, counts as well.
 */
bool		has_written_since(const Hold *hold) noexcept;

/*
 * Release a lock or slot so often as the session has it in that scope, or less often: count.  hold:
 * the hold with this key, or null.  by_name: those that were taken by name first.  A hold that ends
 * counts in the statistics.  Allocates nothing before the release, because the caller may have run
 * out of memory.
 */
void		held_release(Hold *hold, const HoldKey &key, int64 count, bool by_name);

/*
 * Release the lock or slot of a request once, if this session has it.  In transaction scope only
 * in the statement that took it, and not after an error.
 */
void		lock_give_up(const LockRequest &request, int slot);

/*
 * If this session has the lock or slot in session scope: make one of its holds a transaction-level
 * one; the lock is free at no time.  May ereport (out of memory), and then the session has its hold
 * as before.
 */
void		held_pass_to_transaction(const LOCKTAG &tag, Mode mode);

/*
 * Remove all session-level holds if pg_advisory_unlock_all() or DISCARD ALL has released them.
 * Usually looks at two holds only.
 */
void		held_notice_lost() noexcept;

/*
 * Log the long holds that have ended and could not be logged then (advisory_ext.log_hold).  May
 * ereport.
 */
void		log_ended_holds();

/* Is there a hold in this state? */
bool		held_has_any(HoldState state) noexcept;

/* How many holds there are: a lock can have one in each mode and scope. */
int			held_count() noexcept;

/*
 * How many locks and slots this session holds through this extension, each once, as the lock
 * manager confirms.  Looks at every one.
 */
int			held_count_locks() noexcept;

/*
 * What the modules above this one want to know.  The functions are called at ends of statements,
 * transactions and sessions, so they allocate and raise nothing, and take no lock of a dshash.
 */
struct HeldHooks
{
	/*
	 * The hold of a slot: its lock was released, or is_prepared: a prepared transaction keeps it.
	 */
	void		(*slot_ended) (Hold *slot, bool is_prepared) noexcept;
	/* Before and after a commit, after an abort. */
	void		(*transaction_ends) (XactEvent event) noexcept;
	void		(*transaction_released) () noexcept;	/* a transaction has released its locks */
	void		(*session_ended) () noexcept;	/* the session holds nothing any more */
};

/* Called from _PG_init: registers callbacks for the ends of transactions (heldends.cpp). */
void		held_init(const HeldHooks &others);

/* ---- Between held.cpp and heldends.cpp ---- */

extern HeldHooks held_hooks;

/* How a hold ended. */
enum class HoldEnd
{
	released,					/* now */
	lost,						/* without the extension, at an unknown time */
	prepared					/* not at all: a prepared transaction keeps it */
};

/* Remove a hold.  Do not use it after this. */
void		end_hold(Hold *hold, HoldEnd end, TimestampTz now) noexcept;

/*
 * The transaction-level holds of this nesting level and of deeper ones, the oldest first.  A loop
 * may end the present one.
 */
compat::ObjectsOnList<Hold, dlist_node> holds_from_level(int level) noexcept;

/* The locks of ended slots are released now. */
void		free_ended_slots() noexcept;

/* Compare all session-level holds with the lock manager. */
void		end_lost_holds(HoldEnd end) noexcept;

/*
 * The same for those whose lock the transaction holds, too, so that the lock manager does not say
 * to others that they are lost.
 */
void		end_lost_twins() noexcept;

/*
 * The session ends, while shared memory is still available.  Its transaction has ended before, as
 * in the server's ShutdownPostgres(), which is called later: no lock is free while its rows are
 * still locked, and nothing is marked as free, and nobody woken, before the locks are released.
 */
void		end_all_holds() noexcept;

}								/* namespace advisory */
