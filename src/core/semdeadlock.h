/*
 * core/semdeadlock.h
 *		Deadlocks over the slots of semaphores.
 *
 * The server's own detector does not see them, because a session in a semaphore's queue does not wait for one particular lock.
 *
 * Wording
 *		live	can go on some day, as far as locks decide it
 *		dead	not live
 *
 * A session that waits for nothing is live.  A session that waits for a lock is live if all sessions that it waits for are live.  A session
 * that waits for a slot is live if a slot is free or has a live holder.  A prepared transaction is live.  A session that is not live by
 * these rules is dead.
 */
#pragma once

#include "base/locktag.h"

namespace advisory
{

/*
 * Call this repeatedly while this session is in the queue of a semaphore of this database and waits for one of this many slots.  Raises
 * 40P01, with a DETAIL that names the cycle, if the session is dead and part of a cycle.  If several sessions are dead together, only one
 * of them gives up, provided that it can tell the others through shared memory.  Usually reads only a few locks.  May ereport (out of
 * memory, cancellation).
 */
void		check_slot_deadlock(Key key, int slots);

}								/* namespace advisory */
