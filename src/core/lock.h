/*
 * core/lock.h
 *		Taking and releasing named advisory locks.
 *
 * Whatever happens, in every race: true means held; false or an error means
 * not held (unless it was held before).
 */
#ifndef ADVISORY_EXT_CORE_LOCK_H
#define ADVISORY_EXT_CORE_LOCK_H

#include "core/request.h"

namespace advisory
{

/* What came of asking for a lock. */
enum class Outcome
{
	granted,
	not_free,					/* and it was not to be waited for */
	timeout,					/* the caller's timeout ended the wait */
	lock_timeout				/* the setting lock_timeout did */
};

/*
 * Take a lock or a slot, waiting at most as long as the timeout or lock_timeout says.
 *
 *		granted							Outcome::granted
 *		not to be had in time			one of the others; the transaction goes on
 *		deadlock						error 40P01, with a hint where locks of
 *										this session survive it
 *		cancelled, statement_timeout	error 57014
 *		lock table full					error 53200
 *		lock table nearly full, and this
 *		session holds many locks		error 53400 (poolguard.h)
 *		in a parallel worker			error 25000
 *
 * A lock that was granted while a timeout was ending the wait counts as granted,
 * if it is a session-level one, and is released before any other error.  Where a
 * timeout is to end it, the wait runs in an internal subtransaction.  *slot is the
 * slot that was taken.
 */
Outcome		lock_take(const LockRequest &request, Timeout timeout, int *slot = nullptr);

/* Is it granted? */
bool		lock_try(const LockRequest &request, Timeout timeout);

/* The same, but unless it is granted error 55P03, which says who is in the way. */
void		lock_must(const LockRequest &request, Timeout timeout);

/* The same for a slot of a semaphore: which one, or NO_SLOT; or error 55P03 instead. */
int			slot_try(const LockRequest &request, Timeout timeout);
int			slot_must(const LockRequest &request, Timeout timeout);

/* That error, for an outcome; limit is the timeout that the caller asked for. */
[[noreturn]] void lock_raise_not_available(const LockRequest &request, Outcome outcome, Timeout limit);

/*
 * Take several locks or none, one after the other in the order of their keys
 * (each once), within one timeout.  As lock_try and lock_must for each.
 */
bool		lock_try_all(const LockNames &names, Mode mode, Scope scope, Timeout timeout);
void		lock_must_all(const LockNames &names, Mode mode, Scope scope, Timeout timeout);

/*
 * Take up to wanted of the locks that are free, in the given order, looking at
 * each once.  Calls report(index in names) for each that was taken; if that or
 * anything else ereports, those are released again that a transaction's end
 * would not release.
 */
void		lock_try_any(const LockNames &names, Mode mode, Scope scope, int wanted,
						 void (*report) (int index, void *argument), void *argument);

/*
 * Release one session-level hold.  False, with a WARNING that names the lock,
 * if this session has none in this mode.
 */
bool		lock_release(const LockName &name, Mode mode);

/*
 * Give back one session-level slot, the one that was taken last if it is NO_SLOT.
 * False, with a WARNING, if this session has none, or not this one.
 */
bool		slot_release(const LockName &name, int slot);

/*
 * Have a session-level lock, or the slot with this number, until the end of the transaction
 * instead, without letting go of it.  False if this session has none.  May ereport (53200),
 * with the session-level one as it was.
 */
bool		lock_keep_for_transaction(const LockRequest &request, int slot);

/*
 * Release the session-level lock, or slot, of a request if this session has it; allocates nothing
 * before it has, for who has run out of memory.
 */
void		lock_give_up(const LockRequest &request, int slot);

/*
 * A session-level lock that is given up if an error ends what goes on under it, and what was
 * so already when that began.  Until lock_set_passing() is called with outer again, which who
 * began it must do, a deadlock's hint does not count it among what outlives the error.
 */
struct PassingLock
{
	LOCKTAG		tag;
	const PassingLock *outer;
};

/* The lock, or the slot, of a request; *passing must live until lock_set_passing(passing->outer). */
void		lock_begin_passing(PassingLock *passing, const LockRequest &request, int slot) noexcept;
void		lock_set_passing(const PassingLock *passing) noexcept;

/* It was asked for in vain, and what was to be done under it is left undone: for the statistics. */
void		lock_count_skipped(const LockName &name);

/* Release every session-level hold in both modes, however taken; how many there were. */
int64		lock_release_all(const LockName &name);

/*
 * Release every session-level hold and slot that this session took by name in the
 * namespace through this extension; how many there were.
 */
int64		lock_release_namespace(std::string_view ns);

/* How often does this session hold the lock through this extension, in any mode and scope? */
int64		lock_my_count(Key key);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_CORE_LOCK_H */
