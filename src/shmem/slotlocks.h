/*
 * shmem/slotlocks.h
 *		Waits for slots of semaphores, and for leases, as one more kind of lock entries.
 *
 * To the server a session in a semaphore's queue (semaphore.h) holds the queue lock and waits
 * for nothing.  Here it waits: its entry is not granted, and is_head.  The first in the queue of a lease
 * (lease.h) holds the queue's lock, and blocks the others; its entry is granted, and waits_for_lease.
 */
#pragma once

#include "server/locktable.h"

namespace advisory
{

/*
 * Mark the sessions in semaphores' queues, and the first in leases' queues, as waiting, and fill in since when and
 * for how many slots, as far as they say it.  May ereport.
 */
void		mark_slot_waits(LockEntries *found);

/*
 * All that hold or await the lock of a key of this database, or a slot of its semaphore;
 * waits are marked.  May ereport.
 */
LockEntries read_lock_and_slots(Key key);

/*
 * As read_all_waits(), with every semaphore that somebody waits for: lock by lock all that
 * hold it, then its whole queue; a semaphore's locks stand together, the queue first.
 * May ereport.
 */
LockEntries read_all_waits_and_slots();

/*
 * Sort entries of semaphores (marked, see above): semaphore by semaphore, its queue in its
 * order, then its slots in theirs; the holders of each before its waiters.
 */
void		sort_slot_entries(LockEntries *found);

}								/* namespace advisory */
