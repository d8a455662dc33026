/*
 * server/locallock.cpp
 *		What the lock manager says that this session holds.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "server/locallock.h"

namespace advisory
{

bool
is_held_by_me(const LOCKTAG &tag, Mode mode) noexcept
{
	return compat::lock_held_by_me(&tag, lockmode_of(mode));
}

bool
is_held_by_me(const LOCKTAG &tag) noexcept
{
	return is_held_by_me(tag, Mode::exclusive) || is_held_by_me(tag, Mode::shared);
}

LockCounts
lock_counts(const LOCKTAG &tag, Mode mode)
{
	LockCounts	counts = {};
	LOCKMODE	lockmode = lockmode_of(mode);
	LOCALLOCK  *local = nullptr;

	if (!is_held_by_me(tag, mode))
		return counts;

	/*
	 * The session's local lock table is not open to extensions, but taking
	 * the lock once more hands out its entry.  A mode that is held already is
	 * only counted up, without looking at shared memory or waiting.
	 */
	compat::lock_acquire_extended(&tag, lockmode, true, true, true, &local);
	for (int i = 0; i < local->numLockOwners; i++)
	{
		if (local->lockOwners[i].owner == nullptr)
			counts.session += local->lockOwners[i].nLocks;
		else
			counts.transaction += local->lockOwners[i].nLocks;
	}
	counts.session--;
	LockRelease(&tag, lockmode, true);
	return counts;
}

LockAcquireResult
take_lock(const LOCKTAG &tag, Mode mode, Scope scope, bool dont_wait)
{
	return LockAcquire(&tag, lockmode_of(mode), scope == Scope::session, dont_wait);
}

void
release_session_lock(const LOCKTAG &tag, Mode mode)
{
	LockRelease(&tag, lockmode_of(mode), true);
}

}								/* namespace advisory */
