/*
 * core/semqueue.cpp
 *		Waiting in the queue of a semaphore.
 *
 * A session that waits joins the queue in shared memory (slotstate.h), and sleeps until
 * another session that has freed a slot sets its latch.  Then it claims the slot that is
 * for it, if there is one, and locks it.
 *
 * The queue lock
 *
 * A semaphore's queue is also a lock, which makes waiters visible to sessions that cannot
 * read the shared memory, in the views and elsewhere.  A queued session holds it in
 * QUEUED_MODE, which does not conflict with itself.  A session without shared memory
 * cannot join the queue: it waits for the lock in HEAD_MODE, which conflicts with all
 * modes, and when it has it polls the slots.  Sessions that come after it wait for the
 * lock until it leaves, and are then granted the lock all at once.  Where such a session
 * only tries to take a slot, it takes the lock in TRYING_MODE, without waiting: that
 * conflicts with waiters, but not with others that try.
 *
 * Slots that nobody marks as free
 *
 * Nobody marks the slots of a prepared transaction as free, or those that sessions without
 * shared memory release.  So once a second the first waiter tries to lock every slot that
 * it can use; a waiter behind it does so too with those that are beyond the number of
 * slots of all waiters ahead.
 */
#include "base/pg.h"

#include "core/semdeadlock.h"
#include "core/semqueue.h"
#include "shmem/waiters.h"

namespace advisory
{

/* How often slots are looked at that nobody may have marked as free; more often where no slot is ever marked. */
static constexpr int LOOK_AFTER_MS = 1000;
static constexpr int POLL_AFTER_MS = 100;

/* How often a session checks whether it is in a deadlock, after the first time. */
static constexpr int CHECK_AFTER_MS = 1000;

namespace
{

/* A wait. */
struct QueueWait
{
	Semaphore  *semaphore;
	int			slots;
	Scope		scope;
	TimestampTz deadline;		/* DT_NOEND if there is none */
	TimestampTz look_at;
	TimestampTz check_at;
};

}								/* anonymous namespace */

/* The semaphore that this session waits for. */
static Semaphore *awaited = nullptr;

void
stop_waiting_in_queue() noexcept
{
	Semaphore  *semaphore = awaited;

	if (semaphore == nullptr)
		return;
	awaited = nullptr;
	leave_queue();
	/* If this session gives up, another gets the slot that was for it. */
	wake_waiters(semaphore->state);
}

/*
 * Call take(), which may take a slot, while others are told that this session may have what
 * it waits for.  Otherwise it would seem to wait for a slot that it has itself.
 */
template <typename Take>
static int
take_openly(Take take)
{
	int			slot;

	publish_leaving(true);
	slot = take();
	if (slot == NO_SLOT)
		publish_leaving(false);
	return slot;
}

/* Take a slot that is free as far as is known, if it is for this session. */
static int
take_free_slot(const QueueWait &wait)
{
	const SlotState &state = wait.semaphore->state;
	int			slot;

	while ((slot = claim_slot(state, wait.slots)) != NO_SLOT)
	{
		if (take_openly([&]() { return take_claimed_slot(wait.semaphore, slot, wait.scope) ? slot : NO_SLOT; }))
			return slot;
		return_to_queue(state);
	}
	if (next_unverified(state, 1, wait.slots) == NO_SLOT)
		return NO_SLOT;

	int			first = most_slots_ahead(state, wait.slots) + 1;

	return take_openly([&]() { return take_unverified_slot(wait.semaphore, first, wait.slots, wait.scope); });
}

/* Try to lock the slots that this session is the first to wait for, whatever is known of them. */
static int
take_any_free_slot(const QueueWait &wait)
{
	const SlotState &state = wait.semaphore->state;
	int			first = state.shared != nullptr ? most_slots_ahead(state, wait.slots) + 1 : 1;

	if (first > wait.slots)
		return NO_SLOT;
	return take_openly([&]() { return take_any_slot(wait.semaphore, first, wait.slots, wait.scope); });
}

/* What has to be done from time to time. */
static int
look_again(QueueWait *wait, TimestampTz now)
{
	bool		is_woken = has_bits_of(wait->semaphore->state, wait->slots);
	int			slot = take_any_free_slot(*wait);

	if (slot == NO_SLOT && now >= wait->check_at)
	{
		check_slot_deadlock(wait->semaphore->key, wait->slots);
		wait->check_at = TimestampTzPlusMilliseconds(now, CHECK_AFTER_MS);
	}
	wait->look_at = TimestampTzPlusMilliseconds(now, is_woken ? LOOK_AFTER_MS : POLL_AFTER_MS);
	return slot;
}

static int
wait_for_slot(QueueWait *wait)
{
	for (;;)
	{
		int			slot = wait->semaphore->state.shared != nullptr ? take_free_slot(*wait) : NO_SLOT;
		TimestampTz now;
		TimestampTz wake_at;

		if (slot != NO_SLOT)
			return slot;
		now = GetCurrentTimestamp();
		if (now >= wait->deadline)
			ereport(ERROR,		/* as the server does */
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("canceling statement due to lock timeout")));
		if (now >= wait->look_at || now >= wait->check_at)
			slot = look_again(wait, now);
		if (slot != NO_SLOT)
			return slot;
		wake_at = Min(Min(wait->look_at, wait->check_at), wait->deadline);
		WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
				  TimestampDifferenceMilliseconds(now, wake_at), PG_WAIT_LOCK | LOCKTAG_ADVISORY);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

int
wait_in_queue(Semaphore *semaphore, int slots, Scope scope)
{
	bool		is_queued = semaphore->state.shared != nullptr;
	LOCKTAG		queue = queue_tag(MyDatabaseId, semaphore->key);
	TimestampTz now = GetCurrentTimestamp();
	QueueWait	wait = {semaphore, slots, scope};
	volatile int slot = NO_SLOT;

	wait.deadline = LockTimeout > 0 ? TimestampTzPlusMilliseconds(now, LockTimeout) : DT_NOEND;
	wait.check_at = TimestampTzPlusMilliseconds(now, DeadlockTimeout);
	wait.look_at = has_bits_of(semaphore->state, slots) ? TimestampTzPlusMilliseconds(now, LOOK_AFTER_MS) : now;
	awaited = semaphore;
	if (is_queued)
		join_queue(semaphore->state, slots);
	PG_TRY();
	{
		if (!is_queued)
			LockAcquire(&queue, HEAD_MODE, false, false);
		LockAcquire(&queue, QUEUED_MODE, false, false);
		slot = wait_for_slot(&wait);
	}
	PG_CATCH();
	{
		/* The error may have come while waiting for the queue lock, or while holding an LWLock. */
		LWLockReleaseAll();
		LockErrorCleanup();
		stop_waiting_in_queue();
		PG_RE_THROW();
	}
	PG_END_TRY();
	stop_waiting_in_queue();
	LockRelease(&queue, QUEUED_MODE, false);
	if (!is_queued)
		LockRelease(&queue, HEAD_MODE, false);
	return slot;
}

}								/* namespace advisory */
