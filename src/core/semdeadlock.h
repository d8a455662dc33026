/*
 * core/semdeadlock.h
 *		Deadlocks over the slots of semaphores.
 *
 * The server's own detector does not see them, since the front row of a semaphore's line
 * waits for no lock in particular.
 *
 * Wording
 *		live	can go on some day, as far as locks decide it
 *		dead	not live
 *
 * Who waits for nothing is live; who waits for a lock is, if all in its way are; who waits
 * for a slot is, if one is free or has a live holder.  What does not follow from
 * this is dead.
 */
#ifndef ADVISORY_EXT_CORE_SEMDEADLOCK_H
#define ADVISORY_EXT_CORE_SEMDEADLOCK_H

#include "base/locktag.h"

namespace advisory
{

/*
 * This session is in the front row of a semaphore of this database and wants one of
 * so many slots.  Raises 40P01, with a DETAIL that names the circle, if it is dead.  Of
 * several that are dead together one gives up, if there is shared memory to tell
 * the others.  False if somebody else is checking at the moment: then it is to be tried
 * again soon.
 */
bool		check_slot_deadlock(Key key, int slots);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_CORE_SEMDEADLOCK_H */
