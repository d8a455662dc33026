/*
 * shmem/waiters.h
 *		What each session says of the lock, or of the semaphore, that it waits for.
 *
 * One entry for each process of the server, since a process waits for one thing at a
 * time.  The lock table says who waits for a lock; this adds what it does not know: under
 * which role's name, and for one of how many slots.  An entry that the lock table does not
 * confirm is out of date and is to be ignored.
 */
#ifndef ADVISORY_EXT_SHMEM_WAITERS_H
#define ADVISORY_EXT_SHMEM_WAITERS_H

#include "base/locktag.h"

namespace advisory
{

/* What a session says of what it waits for. */
struct PublishedWait
{
	int			proc_number;
	int			pid;
	LOCKTAG		tag;			/* of a semaphore its queue, or its only slot */
	int			slots;			/* of the semaphore; 0: a lock */
	TimestampTz since;
	Oid			role;			/* that named it; invalid if it was not by name */
	bool		is_leaving;		/* it is about to give up, or may have got what it waits for */
};

/*
 * This session begins to wait for a lock, or for one of so many slots.  by_name: the
 * current user named it by what the name table has.  Does nothing where shared memory
 * is not to be had.  May ereport for a cancel.
 */
void		publish_wait(const LOCKTAG &tag, int slots, bool by_name);

/* It has stopped waiting.  Does nothing if it did not wait. */
void		withdraw_wait() noexcept;

/* It is about to give up waiting, or to have what it waits for; or it is not. */
void		publish_leaving(bool is_leaving) noexcept;

/*
 * What the process with this number says; false if it says nothing.  Touches no other
 * entry.  May ereport for a cancel.
 */
bool		read_wait(int proc_number, PublishedWait *wait);

/* All sessions that say that they wait for a slot; palloc'd, *count of them.  May ereport. */
PublishedWait *read_slot_waits(int *count);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_SHMEM_WAITERS_H */
