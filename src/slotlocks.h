/*
 * slotlocks.h
 *		Who waits for slots of semaphores, as one more kind of lock entries.
 *
 * In the server's eyes the head of a semaphore's line has the queue's lock and waits for
 * nothing.  Here it waits, as those behind it do: its entry is not granted, and the
 * first of its queue.
 */
#ifndef ADVISORY_EXT_SLOTLOCKS_H
#define ADVISORY_EXT_SLOTLOCKS_H

#include "locktable.h"

namespace advisory
{

/*
 * Mark the heads among these entries as waiting, and note since when and for how many
 * slots all that wait for slots do so, as far as they say it.  May ereport.
 */
void		mark_slot_waits(LockEntries *found);

/*
 * As read_all_waits(), with every semaphore that somebody waits for: lock by lock all that
 * hold it, then its whole queue; a semaphore's locks stand together, the queue first.
 * May ereport.
 */
LockEntries read_all_waits_and_slots();

/* Does this entry hold a slot that is in the way of one that waits for a slot? */
bool		is_slot_in_the_way(const LockEntry &holder, const LockEntry &waiter) noexcept;

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_SLOTLOCKS_H */
