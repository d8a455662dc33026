/*
 * shmem/waiters.h
 *		What each session publishes about the lock, slot or lease that it waits for.
 *
 * A process waits for one thing at a time, so its place in the session table has one wait.  The lock
 * table shows which sessions wait for a lock.  The published wait adds what the lock table does not
 * contain: the name that the session used, and the number of slots.  Ignore a wait that the lock table
 * does not confirm, because it is out of date.
 *
 * The place is also that of the process in the queue of a semaphore (slotstate.h).
 */
#pragma once

#include "shmem/sessiontable.h"

namespace advisory
{

/* The link of the process with this number.  Only after all_sessions() has returned the table. */
QueueLink  *queue_link(int proc_number) noexcept;

/*
 * Publish that this session begins to wait for a lock, or for one of this many slots.
 * used: its name or label.  Does nothing without shared memory.  May ereport for a cancel.
 */
void		publish_wait(const LOCKTAG &tag, int slots, const UsedName &used);

/* Remove the published wait.  Does nothing if there is none. */
void		withdraw_wait() noexcept;

/* Run body() with a published wait. */
template <typename Body>
inline void
with_published_wait(const LOCKTAG &tag, const UsedName &used, Body body)
{
	publish_wait(tag, 0, used);
	PG_TRY();
	body();
	PG_FINALLY();
	withdraw_wait();
	PG_END_TRY();
}

/* Publish whether this session is about to give up, or about to get what it waits for.  Does nothing without a published wait. */
void		publish_leaving(bool is_leaving) noexcept;

/* The wait that the process with this number publishes; false if there is none.  May ereport for a cancel. */
bool		read_wait(int proc_number, PublishedWait *wait);

/* Does any session publish a wait for a slot or a lease?  May ereport for a cancel. */
bool		anybody_is_queued();

/* All published waits for slots; palloc'd, *count of them.  May ereport. */
PublishedWait *read_slot_waits(int *count);

}								/* namespace advisory */
