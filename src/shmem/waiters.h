/*
 * shmem/waiters.h
 *		What each session publishes about the lock, slot or lease that it waits for.
 *
 * There is one entry for each process of the server, because a process waits for one thing
 * at a time.  The lock table shows which sessions wait for a lock.  The entry adds what the
 * lock table does not contain: the name that the session used, and the number of slots.  Ignore
 * an entry that the lock table does not confirm, because it is out of date.
 *
 * The entry is also the process's place in the queue of a semaphore (slotstate.h).
 */
#pragma once

extern "C" {
#include "storage/lock.h"
}

#include "base/locktag.h"
#include "shmem/nametable.h"

namespace advisory
{

/* A wait as a session publishes it. */
struct PublishedWait
{
	int			pid;
	LOCKTAG		tag;			/* of a semaphore its queue, or its only slot */
	int			slots;			/* of the semaphore; 0: a lock */
	TimestampTz since;
	UsedName	used;			/* its name or label */
	bool		is_leaving;		/* the session is about to give up, or may have got what it waits for */
};

/* A process in the queue of a semaphore; the lock of that semaphore's state protects it. */
struct QueueLink
{
	int			next;			/* process number, or NO_PROCESS */
	int			slots;			/* it waits for one of this many slots; 0 while it is not in a queue */
	uint64		position;
};

constexpr int NO_PROCESS = -1;

/* Is the array available?  Maps it into this session if possible.  May ereport for a cancel. */
bool		attach_waiters();

/* The link of the process with this number.  Only after attach_waiters() has returned true. */
QueueLink  *queue_link(int proc_number) noexcept;

/* The number of this process. */
int			my_process_number() noexcept;

/*
 * Publish that this session begins to wait for a lock, or for one of this many slots.
 * used: its name or label.  Does nothing without shared memory.  May ereport for a cancel.
 */
void		publish_wait(const LOCKTAG &tag, int slots, const UsedName &used);

/* Remove the published wait.  Does nothing if there is none. */
void		withdraw_wait() noexcept;

/* Publish whether this session is about to give up, or about to get what it waits for.  Does nothing without a published wait. */
void		publish_leaving(bool is_leaving) noexcept;

/* The wait that the process with this number publishes; false if there is none.  May ereport for a cancel. */
bool		read_wait(int proc_number, PublishedWait *wait);

/* Does any session publish a wait for a slot or a lease?  May ereport for a cancel. */
bool		anybody_is_queued();

/* All published waits for slots; palloc'd, *count of them.  May ereport. */
PublishedWait *read_slot_waits(int *count);

}								/* namespace advisory */
