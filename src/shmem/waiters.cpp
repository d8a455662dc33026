/*
 * shmem/waiters.cpp
 *		What each session publishes about the lock, slot or lease that it waits for.
 */
#include "base/pg.h"

#include "shmem/sessiontable.h"

namespace advisory
{

/* This session's part of the table while it publishes a wait, else null. */
static SharedSession *my_waiter = nullptr;

QueueLink *
queue_link(int proc_number) noexcept
{
	return &all_sessions()[proc_number].link;
}

void
publish_wait(const LOCKTAG &tag, int slots, const UsedName &used)
{
	SharedSession *sessions = all_sessions();

	if (sessions == nullptr)
		return;
	my_waiter = &sessions[my_process_number()];
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
	SharedSession *sessions = all_sessions();

	*wait = PublishedWait{};
	if (sessions == nullptr || proc_number >= process_count())
		return false;
	LWLockAcquire(&sessions[proc_number].lock, LW_SHARED);
	*wait = sessions[proc_number].wait;
	LWLockRelease(&sessions[proc_number].lock);
	return wait->pid != 0;
}

bool
anybody_is_queued()
{
	const SharedSession *sessions = all_sessions();

	for (int i = 0; sessions != nullptr && i < process_count(); i++)
	{
		PublishedWait wait;

		CHECK_FOR_INTERRUPTS();
		if (sessions[i].wait.pid != 0 && read_wait(i, &wait) && (wait.slots > 0 || is_of_lease_queue(wait.tag)))
			return true;
	}
	return false;
}

PublishedWait *
read_slot_waits(int *count)
{
	auto	   *waits = static_cast<PublishedWait *>(palloc_extended(sizeof(PublishedWait) * process_count(), MCXT_ALLOC_HUGE));

	const SharedSession *sessions = all_sessions();

	*count = 0;
	for (int i = 0; sessions != nullptr && i < process_count(); i++)
	{
		CHECK_FOR_INTERRUPTS();
		/* Most processes do not wait for a slot; a look without the lock is enough to see that. */
		if (sessions[i].wait.slots > 0 && read_wait(i, &waits[*count]) && waits[*count].slots > 0)
			(*count)++;
	}
	return waits;
}

}								/* namespace advisory */
