/*
 * shmem/waiters.h
 *		What each session says of the lock, or of the semaphore, that it waits for.
 *
 * One entry for each process of the server, since a process waits for one thing at a
 * time.  The lock table says who waits for a lock; this adds what it does not know: under
 * which role's name, and for one of how many slots.  An entry that the lock table does not
 * confirm is out of date and is to be ignored.
 *
 * The entry is also the process's place in the queue of a semaphore (slotstate.h).
 */
#pragma once

extern "C" {
#include "storage/lock.h"
}

#include "base/locktag.h"

namespace advisory
{

/* What a session says of what it waits for. */
struct PublishedWait
{
	int			pid;
	LOCKTAG		tag;			/* of a semaphore its queue, or its only slot */
	int			slots;			/* of the semaphore; 0: a lock */
	TimestampTz since;
	Oid			role;			/* that named it; invalid if it was not by name */
	bool		is_leaving;		/* it is about to give up, or may have got what it waits for */
};

/* A process in the queue of a semaphore; the lock of that semaphore's state protects it. */
struct QueueLink
{
	int			next;			/* process number, or NO_PROCESS */
	int			slots;			/* it waits for one of so many; 0 while it is in no queue */
	uint64		position;
};

constexpr int NO_PROCESS = -1;

/* Is the array there?  Maps it into this session if possible.  May ereport for a cancel. */
bool		attach_waiters();

/* The link of the process with this number.  Only after attach_waiters() has returned true. */
QueueLink  *queue_link(int proc_number) noexcept;

/* The number of this process. */
int			my_process_number() noexcept;

/*
 * This session begins to wait for a lock, or for one of so many slots.  by_name: the
 * current user named it by what the name table has.  Does nothing if there is no shared
 * memory for it.  May ereport for a cancel.
 */
void		publish_wait(const LOCKTAG &tag, int slots, bool by_name);

/* It has stopped waiting.  Does nothing if it did not wait. */
void		withdraw_wait() noexcept;

/* It is about to give up waiting, or to have what it waits for; or it is not.  Does nothing if it did not wait. */
void		publish_leaving(bool is_leaving) noexcept;

/* What the process with this number says; false if it says nothing.  May ereport for a cancel. */
bool		read_wait(int proc_number, PublishedWait *wait);

/* Does any session say that it waits for a slot, or for a lease?  May ereport for a cancel. */
bool		anybody_is_queued();

/* All sessions that say that they wait for a slot; palloc'd, *count of them.  May ereport. */
PublishedWait *read_slot_waits(int *count);

}								/* namespace advisory */
