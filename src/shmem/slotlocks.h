/*
 * shmem/slotlocks.h
 *		What sessions wait for: locks, slots of semaphores, and leases, as entries of locks.
 *
 * For the server, a session in a semaphore's queue (semaphore.h) holds the queue lock and does not
 * wait.  Here it waits: granted is false in its entry, and is_head is true.  The first in the queue
 * of a lease (lease.h) holds the lock of the queue and blocks the others.  In its entry granted and
 * waits_for_lease are true.
 */
#pragma once

#include "server/locktable.h"

namespace advisory
{

/*
 * Mark the sessions in semaphores' queues, and the first in leases' queues, as waiting.  Fill in
 * since when they wait, and for how many slots, if they publish that.  May ereport.
 */
void		mark_slot_waits(LockEntries *found);

/*
 * What the process with this number waits for: a lock; a slot of a semaphore, whose queue is then
 * the tag of *wait, and slots in *wait is not 0; or, as the first in its queue, a lease, and then
 * waits_for_lease is true.  Leader and held modes are filled in for a lock only.  False if it waits
 * for nothing, if it has announced that it is about to stop waiting, or if that is unknown.  May
 * ereport.
 */
bool		read_session_wait(int proc_number, LockEntry *wait);

/*
 * All holders and waiters of the lock of a key of this database, and of the slots of its semaphore.
 * Waits are marked.  May ereport.
 */
LockEntries read_lock_and_slots(Key key);

/*
 * If this session waits in claim() for a transaction that claims a window: the wait as if it were
 * for the lock of that name, palloc'd; else null.  May ereport.
 */
const LockEntry *claim_of(const LockEntry &wait);

/*
 * As read_all_waits(), and also every semaphore that a session waits for: for each lock first its
 * holders, then its whole queue.  The locks of a semaphore stand together, its queue first.  May
 * ereport.
 */
LockEntries read_all_waits_and_slots();

/*
 * Sort entries of semaphores whose waits are marked: semaphore by semaphore, for each its queue
 * in its order, then its slots by number, and for each slot its holder before its waiters.
 */
void		sort_slot_entries(LockEntries *found);

}								/* namespace advisory */
