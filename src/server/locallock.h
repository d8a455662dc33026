/*
 * server/locallock.h
 *		What this session holds, according to the lock manager.
 *
 * Reads only the session's own memory, not shared memory.
 *
 * The lock manager has an entry for each lock and mode that this session holds, in a table that is
 * not open to extensions.  But a request returns the entry.  It stays where it is as long as the
 * lock is held in this mode.  Its memory is never given back: afterwards it has no owners, or is
 * the entry of another lock.  So a kept pointer can be checked (local_counts()).
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

/* Is this entry, which was that of the lock and mode, still theirs, if it has owners? */
inline bool
is_entry_of(const LOCALLOCK *local, const LOCKTAG &tag, Mode mode) noexcept
{
	return local->tag.mode == lockmode_of(mode) && same_tag(local->tag.lock, tag);
}

/* The same for an entry that was that of this lock and mode; zeros if it no longer is. */
inline LockCounts
local_counts(const LOCALLOCK *local, const LOCKTAG &tag, Mode mode) noexcept
{
	LockCounts	counts = {};

	if (!is_entry_of(local, tag, mode))
		return counts;
	for (int i = 0; i < local->numLockOwners; i++)
	{
		const LOCALLOCKOWNER &holder = local->lockOwners[i];

		(holder.owner == nullptr ? counts.session : counts.transaction) += holder.nLocks;
	}
	return counts;
}

/* The entry of the lock that was taken last, or null. */
inline LOCALLOCK *last_local = nullptr;

/* Take a lock, waiting for it unless dont_wait. */
inline LockAcquireResult
take_lock(const LOCKTAG &tag, Mode mode, Scope scope, bool dont_wait)
{
	return compat::lock_acquire_extended(&tag, lockmode_of(mode), scope == Scope::session,
										 dont_wait, &last_local);
}

/*
 * The same for a lock that this entry may still be of: true if its owner is the same, too, and the
 * lock was granted.  It is what LockAcquire() does then, without looking the entry up.
 */
inline bool
take_lock_again(LOCALLOCK *local, const LOCKTAG &tag, Mode mode, Scope scope) noexcept
{
	ResourceOwner owner = scope == Scope::session ? nullptr : CurrentResourceOwner;

	if (local->numLockOwners == 0 || local->lockOwners[0].owner != owner ||
		!is_entry_of(local, tag, mode))
		return false;
	local->nLocks++;
	local->lockOwners[0].nLocks++;
	last_local = local;
	return true;
}

/* Release a lock once. */
inline void
release_lock(const LOCKTAG &tag, Mode mode, Scope scope)
{
	LockRelease(&tag, lockmode_of(mode), scope == Scope::session);
}

/*
 * The entry of a lock that this session holds in this mode.  If it was not taken last, taking it
 * once more only counts it up.  May ereport (out of memory), changing nothing.
 */
inline LOCALLOCK *
local_lock(const LOCKTAG &tag, Mode mode)
{
	if (last_local == nullptr || last_local->numLockOwners == 0 ||
		!is_entry_of(last_local, tag, mode))
	{
		take_lock(tag, mode, Scope::session, true);
		release_lock(tag, mode, Scope::session);
	}
	return last_local;
}

/* How often this session holds a lock in this mode.  May ereport (out of memory). */
inline LockCounts
lock_counts(const LOCKTAG &tag, Mode mode)
{
	return is_held_by_me(tag, mode)
		? local_counts(local_lock(tag, mode), tag, mode) : LockCounts{};
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
	release_lock(tag, mode, Scope::transaction);
	CurrentResourceOwner = portal;
}

}								/* namespace advisory */
