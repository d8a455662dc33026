/*
 * await.h
 *		Waiting for a lock without keeping a snapshot.
 *
 * A session that waits inside a query keeps its snapshot, and with it its xmin:
 * CREATE INDEX CONCURRENTLY waits for it, and vacuum cannot remove what it might
 * still see.  A procedure can put its snapshots away, as it does for COMMIT,
 * and take new ones after the wait.
 */
#ifndef ADVISORY_EXT_AWAIT_H
#define ADVISORY_EXT_AWAIT_H

#include "lock.h"

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
 * waits where that can be, else with it.
 */
Outcome		await_if_possible(const LockRequest &request, Timeout timeout, int *slot);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_AWAIT_H */
