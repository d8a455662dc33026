/*
 * server/locallock.h
 *		What this session holds, according to the lock manager.
 *
 * Reads only the session's own memory, not shared memory.
 */
#pragma once

#include "base/compat.h"
#include "base/locktag.h"

namespace advisory
{

/* Does this session hold the lock, in this mode or in any, in whatever scope and however taken? */
inline bool
is_held_by_me(const LOCKTAG &tag, Mode mode) noexcept
{
	return compat::lock_held_by_me(&tag, lockmode_of(mode));
}

inline bool
is_held_by_me(const LOCKTAG &tag) noexcept
{
	return is_held_by_me(tag, Mode::exclusive) || is_held_by_me(tag, Mode::shared);
}

/* How often this session holds a lock in one mode, however taken. */
struct LockCounts
{
	int64		session;
	int64		transaction;
};

/* May ereport (out of memory), changing nothing. */
inline LockCounts
lock_counts(const LOCKTAG &tag, Mode mode)
{
	LockCounts	counts = {};
	LOCKMODE	lockmode = lockmode_of(mode);
	LOCALLOCK  *local = nullptr;

	if (!is_held_by_me(tag, mode))
		return counts;

	/*
	 * The session's local lock table is not open to extensions, but taking the lock
	 * once more returns its entry, and only counts up a mode that is held already.
	 */
	compat::lock_acquire_extended(&tag, lockmode, &local);
	for (int i = 0; i < local->numLockOwners; i++)
	{
		const LOCALLOCKOWNER &holder = local->lockOwners[i];

		(holder.owner == nullptr ? counts.session : counts.transaction) += holder.nLocks;
	}
	counts.session--;
	LockRelease(&tag, lockmode, true);
	return counts;
}

/* Take a lock, waiting for it unless dont_wait. */
inline LockAcquireResult
take_lock(const LOCKTAG &tag, Mode mode, Scope scope, bool dont_wait)
{
	return LockAcquire(&tag, lockmode_of(mode), scope == Scope::session, dont_wait);
}

/*
 * A subtransaction that has succeeded has left this transaction-level lock to the transaction.
 * Give it to the portal of the statement instead, which LockAcquire() outside of a subtransaction
 * gives it to: so a rollback to a savepoint releases it or not, however it was taken.  May ereport
 * (out of memory), changing nothing.
 */
inline void
give_to_portal(const LOCKTAG &tag, Mode mode)
{
	ResourceOwner portal = CurrentResourceOwner;

	if (portal == CurTransactionResourceOwner)
		return;
	take_lock(tag, mode, Scope::transaction, true);
	CurrentResourceOwner = CurTransactionResourceOwner;
	LockRelease(&tag, lockmode_of(mode), false);
	CurrentResourceOwner = portal;
}

/* Release a session-level hold. */
inline void
release_session_lock(const LOCKTAG &tag, Mode mode)
{
	LockRelease(&tag, lockmode_of(mode), true);
}

}								/* namespace advisory */
