/*
 * shmem/waiters.cpp
 *		What each session says of the lock, or of the semaphore, that it waits for.
 *
 * Locking
 *
 * Each entry has a lock of its own.  Its process writes with the lock held exclusively;
 * readers hold it shared.  is_leaving is one byte and is written without the lock.  The
 * link in a queue is slotstate.cpp's, which says how it is protected.
 */
#include "base/pg.h"

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

/* Both null until they are first needed. */
static SharedWaiter *all_waiters = nullptr;
static SharedWaiter *my_waiter = nullptr;
static bool is_waiting = false;

static int
process_count() noexcept
{
	return static_cast<int>(ProcGlobal->allProcCount);
}

/* With the root's lock held. */
static void
make_waiters(SharedRoot *root)
{
	dsa_pointer place = dsa_allocate_extended(shared_area(), sizeof(SharedWaiter) * process_count(),
											  DSA_ALLOC_HUGE | DSA_ALLOC_ZERO);
	auto	   *made = static_cast<SharedWaiter *>(dsa_get_address(shared_area(), place));

	for (int i = 0; i < process_count(); i++)
		LWLockInitialize(&made[i].lock, root->tranche);
	root->waiters = place;
}

static void
map_waiters(SharedRoot *root)
{
	LWLockAcquire(&root->lock, LW_EXCLUSIVE);
	if (root->waiters == InvalidDsaPointer)
		make_waiters(root);
	LWLockRelease(&root->lock);
	all_waiters = static_cast<SharedWaiter *>(dsa_get_address(shared_area(), root->waiters));
}

bool
attach_waiters()
{
	if (all_waiters != nullptr)
		return true;

	SharedRoot *root = shared_root();

	return root != nullptr && !shared_is_short() && shared_attempt([root]() { map_waiters(root); });
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

static void
set_wait(const PublishedWait &wait) noexcept
{
	LWLockAcquire(&my_waiter->lock, LW_EXCLUSIVE);
	my_waiter->wait = wait;
	LWLockRelease(&my_waiter->lock);
}

void
publish_wait(const LOCKTAG &tag, int slots, bool by_name)
{
	int			number = my_process_number();

	if (!attach_waiters())
		return;
	my_waiter = &all_waiters[number];
	set_wait(PublishedWait{number, MyProcPid, tag, slots, GetCurrentTimestamp(),
						   by_name ? GetUserId() : InvalidOid, false});
	is_waiting = true;
}

void
publish_leaving(bool is_leaving) noexcept
{
	if (is_waiting)
		my_waiter->wait.is_leaving = is_leaving;
	pg_memory_barrier();
}

void
withdraw_wait() noexcept
{
	if (!is_waiting)
		return;
	is_waiting = false;
	set_wait(PublishedWait{});
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

PublishedWait *
read_slot_waits(int *count)
{
	auto	   *waits = static_cast<PublishedWait *>(palloc_extended(sizeof(PublishedWait) * process_count(),
																	  MCXT_ALLOC_HUGE));

	*count = 0;
	if (!attach_waiters())
		return waits;
	for (int i = 0; i < process_count(); i++)
	{
		CHECK_FOR_INTERRUPTS();
		/* Most wait for nothing, which a look without the lock can tell. */
		if (all_waiters[i].wait.slots > 0 && read_wait(i, &waits[*count]) && waits[*count].slots > 0)
			(*count)++;
	}
	return waits;
}

}								/* namespace advisory */
