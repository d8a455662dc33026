/*
 * shmem/waiters.cpp
 *		What each session publishes about the lock, slot or lease that it waits for.
 *
 * Locking
 *
 * Each entry has a lock of its own.  Its process holds the lock exclusively to write, and
 * readers hold it shared.  is_leaving is one byte and is written without the lock.  The
 * link in a queue belongs to slotstate.cpp, which says how it is protected.
 */
#include "base/pg.h"

extern "C" {
#include "port/atomics.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/timestamp.h"
}

#include "shmem/root.h"
#include "shmem/waiters.h"

namespace advisory
{

namespace
{

struct SharedWaiter
{
	LWLock		lock;
	PublishedWait wait;			/* pid is 0 while the process waits for nothing */
	QueueLink	link;
};

}								/* anonymous namespace */

/* Null until it is first needed. */
static SharedWaiter *all_waiters = nullptr;

/* This session's entry while it publishes a wait, else null. */
static SharedWaiter *my_waiter = nullptr;

static int
process_count() noexcept
{
	return static_cast<int>(ProcGlobal->allProcCount);
}

bool
attach_waiters()
{
	if (all_waiters == nullptr)
		all_waiters = static_cast<SharedWaiter *>(
			shared_part(&SharedRoot::waiters, sizeof(SharedWaiter) * process_count(), [](SharedRoot *root, void *made) {
				for (int i = 0; i < process_count(); i++)
					LWLockInitialize(&static_cast<SharedWaiter *>(made)[i].lock, root->tranche);
			}));
	return all_waiters != nullptr;
}

QueueLink *
queue_link(int proc_number) noexcept
{
	return &all_waiters[proc_number].link;
}

int
my_process_number() noexcept
{
	return static_cast<int>(MyProc - ProcGlobal->allProcs);
}

void
publish_wait(const LOCKTAG &tag, int slots, const UsedName &used)
{
	if (!attach_waiters())
		return;
	my_waiter = &all_waiters[my_process_number()];
	LWLockAcquire(&my_waiter->lock, LW_EXCLUSIVE);
	my_waiter->wait = PublishedWait{MyProcPid, tag, slots, GetCurrentTimestamp(), used, false};
	LWLockRelease(&my_waiter->lock);
}

void
publish_leaving(bool is_leaving) noexcept
{
	if (my_waiter == nullptr)
		return;
	my_waiter->wait.is_leaving = is_leaving;
	pg_memory_barrier();
}

void
withdraw_wait() noexcept
{
	if (my_waiter == nullptr)
		return;
	LWLockAcquire(&my_waiter->lock, LW_EXCLUSIVE);
	my_waiter->wait = PublishedWait{};
	LWLockRelease(&my_waiter->lock);
	my_waiter = nullptr;
}

bool
read_wait(int proc_number, PublishedWait *wait)
{
	*wait = PublishedWait{};
	if (!attach_waiters() || proc_number >= process_count())
		return false;
	LWLockAcquire(&all_waiters[proc_number].lock, LW_SHARED);
	*wait = all_waiters[proc_number].wait;
	LWLockRelease(&all_waiters[proc_number].lock);
	return wait->pid != 0;
}

bool
anybody_is_queued()
{
	for (int i = 0; i < process_count() && attach_waiters(); i++)
	{
		PublishedWait wait;

		CHECK_FOR_INTERRUPTS();
		if (all_waiters[i].wait.pid != 0 && read_wait(i, &wait) && (wait.slots > 0 || is_of_lease_queue(wait.tag)))
			return true;
	}
	return false;
}

PublishedWait *
read_slot_waits(int *count)
{
	auto	   *waits = static_cast<PublishedWait *>(palloc_extended(sizeof(PublishedWait) * process_count(),
																	  MCXT_ALLOC_HUGE));

	*count = 0;
	for (int i = 0; i < process_count() && attach_waiters(); i++)
	{
		CHECK_FOR_INTERRUPTS();
		/* Most processes do not wait for a slot; a look without the lock is enough to see that. */
		if (all_waiters[i].wait.slots > 0 && read_wait(i, &waits[*count]) && waits[*count].slots > 0)
			(*count)++;
	}
	return waits;
}

}								/* namespace advisory */
