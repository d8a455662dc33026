/*
 * core/await.h
 *		Waiting for a lock without keeping a snapshot.
 *
 * A session that waits inside a query keeps its snapshot, and with it its xmin:
 * CREATE INDEX CONCURRENTLY waits for it, and vacuum cannot remove what it might
 * still see.  A procedure can put its snapshots away, as it does for COMMIT,
 * and take new ones after the wait.
 */
#ifndef ADVISORY_EXT_CORE_AWAIT_H
#define ADVISORY_EXT_CORE_AWAIT_H

#include "core/acquire.h"

namespace advisory
{

/*
 * As lock_must (and slot_must, whose slot it returns), for a procedure named in messages, with the session's xmin and
 * transaction id unset while it waits.  Raises 25001, before it takes or waits
 * for anything, where that cannot be; this does not depend on whether the lock
 * is free.
 */
int			await_lock(const LockRequest &request, Timeout timeout, const char *procedure);

/*
 * As lock_take, for a procedure that may be called anywhere: without a snapshot while it
 * waits where that can be, else with it.  Before anything else the caller has
 * EnsurePortalSnapshotExists() to call, or refresh_snapshot(), which can fail with the lock held.
 */
Outcome		await_if_possible(const LockRequest &request, Timeout timeout, int *slot);

/*
 * See that a snapshot is there, a new one where that can be: for what is executed with the snapshot of
 * the statement around it.  May ereport (out of memory).
 */
void		refresh_snapshot();

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_CORE_AWAIT_H */
