/*
 * core/await.h
 *		Waiting for a lock without keeping a snapshot.
 *
 * A session that waits inside a query keeps its snapshot and so its xmin.  CREATE INDEX
 * CONCURRENTLY then waits for the session, and vacuum cannot remove rows that it might still see.
 * A procedure can release its snapshots, as for COMMIT, and take a new one after the wait.
 */
#pragma once

#include "core/acquire.h"
#include "core/namecache.h"
#include "server/vxidlock.h"

namespace advisory
{

/*
 * Before a wait for the lock of this name: ask for the name, and unset the session's xmin, or raise
 * 25001 if that is impossible here.  procedure is the name for messages.  name_end() and
 * EnsurePortalSnapshotExists() must follow the wait.
 */
NameHandle	release_snapshots(const LockName &name, const char *procedure);

/* Run take(), which may wait; asleep, this transaction does not hold its virtual-XID lock. */
template <typename Take>
Outcome
without_vxid_lock(Take take)
{
	volatile Outcome outcome = Outcome::not_free;

	sleeps_without_vxid_lock = true;
	PG_TRY();
	{
		outcome = take();
	}
	PG_FINALLY();
	{
		sleeps_without_vxid_lock = false;
	}
	PG_END_TRY();
	return outcome;
}

/*
 * Take the lock, or a slot, or raise an error, with the session's xmin and transaction ID
 * unset while it waits.  Returns the slot.  If that is impossible here, raises 25001 before it
 * takes or waits for anything, even if the lock is free.
 */
int			await_lock(const LockRequest &request, Timeout timeout, const char *procedure);

/*
 * As lock_take(), but without a snapshot while it waits if that is possible here.  The caller must
 * then call EnsurePortalSnapshotExists() or refresh_snapshot(), which can fail while the lock is
 * held.
 */
Outcome		await_if_possible(const LockRequest &request, Timeout timeout, int *slot);

/*
 * Give the portal a new snapshot if that is possible here; otherwise make sure that it
 * has one.  For statements that run with the portal's snapshot.
 */
void		refresh_snapshot();

}								/* namespace advisory */
