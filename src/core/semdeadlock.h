/*
 * core/semdeadlock.h
 *		Deadlocks over the slots of semaphores.
 *
 * The server's own detector does not see them, since a session in a semaphore's queue waits
 * for no lock in particular.
 *
 * Wording
 *		live	can go on some day, as far as locks decide it
 *		dead	not live
 *
 * A session that waits for nothing is live.  One that waits for a lock is live if all that it
 * waits for are.  One that waits for a slot is live if a slot is free or has a live holder.  A
 * prepared transaction is live.  What does not follow from this is dead.
 */
#pragma once

#include "base/locktag.h"

namespace advisory
{

/*
 * This session is in the queue of a semaphore of this database and wants one of this many
 * slots.  Raises 40P01, with a DETAIL that names the cycle, if it is dead and part of a cycle.
 * Of several that are dead together one gives up, if there is shared memory to tell
 * the others.  To be called again and again while the wait lasts: as a rule it looks at a few locks only.
 * May ereport (out of memory, cancellation).
 */
void		check_slot_deadlock(Key key, int slots);

}								/* namespace advisory */
