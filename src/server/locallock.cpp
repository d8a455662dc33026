/*
 * server/locallock.cpp
 *		What the lock manager says that this session holds.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "server/locallock.h"

namespace advisory
{

LockCounts
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
		(local->lockOwners[i].owner == nullptr ? counts.session : counts.transaction) += local->lockOwners[i].nLocks;
	counts.session--;
	LockRelease(&tag, lockmode, true);
	return counts;
}

}								/* namespace advisory */
