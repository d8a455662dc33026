/*
 * core/semaphore.cpp
 *		Semaphores: the slots of this session, and how it waits for one.
 *
 * Slots are among the held locks (held.h), which notices when they are released without this
 * extension, and calls semaphore_slot_ended() when their locks are free.  Here the slot is marked
 * as free in the semaphore state (slotstate.h), and waiters are woken.
 *
 * A session that waits joins the queue in shared memory (slotstate.h), and sleeps until another
 * session that has freed a slot sets its latch.  Then it claims the slot that is set aside for it,
 * if there is one, and locks it.  A semaphore with one slot needs no queue: its waiters wait for
 * that slot in the lock manager.
 *
 * The queue lock
 *
 * A semaphore's queue is also a lock, which makes waiters visible to sessions that cannot read the
 * shared memory, in the views and elsewhere.  A queued session holds it in QUEUED_MODE, which does
 * not conflict with itself.  A session without shared memory cannot join the queue: it waits for
 * the lock in HEAD_MODE, which conflicts with all modes, and polls the slots when it has the lock.
 * Sessions that come after it wait for the lock until it leaves, and are then granted the lock all
 * at once.  If such a session only tries to take a slot, it takes the lock in TRYING_MODE, without
 * waiting.  That mode conflicts with waiters, but not with other sessions that try.
 *
 * Slots that no session marks as free
 *
 * No session marks the slots of a prepared transaction as free, or those that sessions without
 * shared memory release.  So once a second the first waiter tries to lock every slot that it can
 * use.  A waiter behind it tries only the slots that are beyond the number of slots of all waiters
 * ahead.
 */
#include "base/pg.h"

#include "core/semaphore.h"
#include "server/locallock.h"
#include "server/vxidlock.h"
#include "shmem/sessiontable.h"
#include "shmem/slotlocks.h"

namespace advisory
{

/* Modes of the lock on a semaphore's queue. */
static constexpr LOCKMODE QUEUED_MODE = RowExclusiveLock;
static constexpr LOCKMODE TRYING_MODE = ShareLock;
static constexpr LOCKMODE HEAD_MODE = ExclusiveLock;

/* At least this many semaphores are remembered, even if the session has no slot of them. */
static constexpr long MIN_KEPT_SEMAPHORES = 64;

/*
 * How often a waiter checks slots that may be free without being marked, and, after the first time,
 * whether it is in a deadlock; and how often slots if they are never marked.
 */
static constexpr int LOOK_AFTER_MS = 1000;
static constexpr int POLL_AFTER_MS = 100;

/* Semaphore by key. */
static HTAB *known_semaphores = nullptr;
static long sweep_at = MIN_KEPT_SEMAPHORES;

static LOCKTAG
tag_of(const Semaphore *semaphore, int slot) noexcept
{
	return slot_tag(MyDatabaseId, semaphore->key, slot);
}

static bool
is_mine(const Semaphore *semaphore, int slot) noexcept
{
	return is_held_by_me(tag_of(semaphore, slot), Mode::exclusive);
}

/* ---- Ends ---- */

/* The lock of a slot was released: mark it. */
static void
mark_released(const Semaphore *semaphore, int slot) noexcept
{
	/*
	 * The slot of a cursor can outlive the subtransaction that took it; then no session marks it as
	 * free later.
	 */
	mark_slot(semaphore->state, slot, is_mine(semaphore, slot) ? SlotMark::unverified : SlotMark::free);
}

void
semaphore_slot_ended(HeldLock *held, bool is_prepared) noexcept
{
	int			slot = decode_tag(held->tag).slot;

	if (is_prepared)
		return mark_slot(held->semaphore->state, slot, SlotMark::unverified);
	mark_released(held->semaphore, slot);
	wake_waiters(held->semaphore->state);
}

void
semaphores_detach() noexcept
{
	HASH_SEQ_STATUS scan;

	if (known_semaphores == nullptr)
		return;
	hash_seq_init(&scan, known_semaphores);
	while (auto *semaphore = static_cast<Semaphore *>(hash_seq_search(&scan)))
		detach_slot_state(semaphore->state);
	known_semaphores = nullptr;
}

/* ---- Opening ---- */

static void
forget_unused()
{
	HASH_SEQ_STATUS scan;

	hash_seq_init(&scan, known_semaphores);
	while (auto *semaphore = static_cast<Semaphore *>(hash_seq_search(&scan)))
	{
		if (!dlist_is_empty(&semaphore->slots))
			continue;
		detach_slot_state(semaphore->state);
		hash_search(known_semaphores, &semaphore->key, HASH_REMOVE, nullptr);
	}
	sweep_at = Max(2 * hash_get_num_entries(known_semaphores), MIN_KEPT_SEMAPHORES);
}

static Semaphore *
find_semaphore(Key key) noexcept
{
	if (known_semaphores == nullptr)
		return nullptr;
	return static_cast<Semaphore *>(hash_search(known_semaphores, &key, HASH_FIND, nullptr));
}

static Semaphore *
add_semaphore(Key key)
{
	Semaphore  *semaphore;

	if (known_semaphores == nullptr)
	{
		HASHCTL		control = {};

		control.keysize = sizeof(Key);
		control.entrysize = sizeof(Semaphore);
		control.hcxt = TopMemoryContext;
		known_semaphores = hash_create("advisory_ext semaphores", MIN_KEPT_SEMAPHORES, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	if (hash_get_num_entries(known_semaphores) >= sweep_at)
		forget_unused();
	semaphore = static_cast<Semaphore *>(hash_search(known_semaphores, &key, HASH_ENTER, nullptr));
	semaphore->state = nullptr;
	dlist_init(&semaphore->slots);
	semaphore->disagreement_reported = false;
	return semaphore;
}

/*
 * The pid of a session that has a slot of the semaphore, or waits for one, and gave another number
 * of slots: *other.  0: there is none.
 */
static int
find_other_slots(Key key, int slots, int *other)
{
	LockEntries found = read_lock_and_slots(key);
	HoldReader	holds;

	for (int i = 0; i < found.count; i++)
	{
		const LockEntry &entry = found.entries[i];

		*other = entry.granted ? holds.find(entry).hold.slots : entry.slots;
		if (*other != 0 && *other != slots)
			return entry.pid;
	}
	return 0;
}

Semaphore *
semaphore_open(const LockRequest &request, CachedName *name)
{
	Key			key = request.name.key;
	Semaphore  *semaphore = find_semaphore(key);
	int			pid;
	int			other;

	if (semaphore == nullptr)
		semaphore = add_semaphore(key);
	semaphore->request = &request;
	semaphore->name = name;
	if (semaphore->state == nullptr)
		semaphore->state = attach_slot_state(key);
	if (semaphore->state == nullptr || semaphore->disagreement_reported || agree_on_slots(semaphore->state, request.slots, false))
		return semaphore;
	pid = find_other_slots(key, request.slots, &other);
	if (pid == 0)
	{
		agree_on_slots(semaphore->state, request.slots, true);
		return semaphore;
	}
	semaphore->disagreement_reported = true;
	ereport(WARNING,
			(errmsg("semaphore \"%s\" is used with different numbers of slots", display_name(request.name)),
			 errdetail("The number of slots is %d in this session, but in process %d it is %d.",
					   request.slots, pid, other),
			 errhint("Use the same number everywhere. A session with a smaller number uses fewer slots; "
					 "a session with a larger number can get a slot in addition to all others.")));
	return semaphore;
}

/* ---- Taking a slot ---- */

void
semaphore_add_slot(Semaphore *semaphore, int slot)
{
	const LockRequest *request = semaphore->request;
	LOCKTAG		tag = tag_of(semaphore, slot);
	HeldLock   *held = held_find(tag, Mode::exclusive);

	if (held != nullptr && (held->session_count > 0 || request->scope == Scope::transaction))
		return;
	held = held_add(tag, Mode::exclusive, request->scope, semaphore->name, request->name.by_name(), request->slots);
	if (held->semaphore == nullptr)
		dlist_push_tail(&semaphore->slots, &held->in_semaphore);
	held->semaphore = semaphore;
	mark_slot(semaphore->state, slot, SlotMark::taken);
}

/*
 * Lock a slot, mark it and add it to the held locks.  False if another session or this one already
 * has it.  is_claimed: claim_slot() gave it to this session.  May ereport (53200), and then marks a
 * slot that was claimed as free.
 */
static bool
take_slot(Semaphore *semaphore, int slot, bool is_claimed)
{
	const LockRequest *request = semaphore->request;
	LOCKTAG		tag = tag_of(semaphore, slot);
	volatile bool is_granted = false;

	if (is_mine(semaphore, slot))
		return false;
	/* Otherwise this session would seem to wait for a slot that it has itself. */
	publish_leaving(true);
	PG_TRY();
	{
		is_granted = take_lock(tag, Mode::exclusive, request->scope, true) == LOCKACQUIRE_OK;
		if (is_granted)
			semaphore_add_slot(semaphore, slot);
	}
	PG_CATCH();
	{
		if (is_granted && request->scope == Scope::session)
			release_session_lock(tag, Mode::exclusive);
		if (is_claimed)
		{
			mark_released(semaphore, slot);
			wake_waiters(semaphore->state);
		}
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (is_granted)
		return true;
	if (is_claimed)
		mark_slot(semaphore->state, slot, SlotMark::unverified);
	publish_leaving(false);
	return false;
}

/*
 * Take one of the slots that no waiter ahead of this session can use, however it is marked; or only
 * an unverified one.
 */
static int
take_unclaimed_slot(Semaphore *semaphore, bool unverified_only)
{
	SemaphoreState *state = semaphore->state;
	int			slots = semaphore->request->slots;

	for (int slot = state != nullptr ? most_slots_ahead(state, slots) + 1 : 1; slot <= slots; slot++)
	{
		if (unverified_only && (slot = next_unverified(state, slot, slots)) == NO_SLOT)
			break;
		CHECK_FOR_INTERRUPTS();
		if (take_slot(semaphore, slot, false))
			return slot;
	}
	return NO_SLOT;
}

/*
 * Take a slot that is marked as free, if it is not set aside for a waiter ahead.  Only with shared
 * memory.
 */
static int
take_free_slot(Semaphore *semaphore, bool is_queued)
{
	int			slots = semaphore->request->slots;
	int			slot;

	while ((slot = claim_slot(semaphore->state, slots)) != NO_SLOT)
	{
		if (take_slot(semaphore, slot, true))
			return slot;
		if (is_queued)
			join_queue(semaphore->state, slots, true);
	}
	return take_unclaimed_slot(semaphore, true);
}

int
semaphore_try(Semaphore *semaphore)
{
	LOCKTAG		queue = queue_tag(MyDatabaseId, semaphore->key);
	int			slot;

	if (semaphore->request->slots == 1)
		return take_slot(semaphore, 1, false) ? 1 : NO_SLOT;
	if (semaphore->state != nullptr)
		return take_free_slot(semaphore, false);
	/* While this session holds the queue lock no session can be waiting. */
	if (LockAcquire(&queue, TRYING_MODE, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return NO_SLOT;
	slot = take_unclaimed_slot(semaphore, false);
	LockRelease(&queue, TRYING_MODE, false);
	return slot;
}

/* ---- Waiting ---- */

/*
 * As a member of the queue, wait until a slot is taken, and return it.  start: when the wait began.
 */
static int
wait_for_slot(Semaphore *semaphore, TimestampTz start)
{
	int			slots = semaphore->request->slots;
	bool		is_woken = semaphore->state != nullptr;
	TimestampTz deadline = LockTimeout > 0 ? TimestampTzPlusMilliseconds(start, LockTimeout) : DT_NOEND;
	TimestampTz check_at = TimestampTzPlusMilliseconds(start, DeadlockTimeout);
	TimestampTz look_at = is_woken ? TimestampTzPlusMilliseconds(start, LOOK_AFTER_MS) : start;

	for (;;)
	{
		int			slot = is_woken ? take_free_slot(semaphore, true) : NO_SLOT;
		TimestampTz now;

		if (slot != NO_SLOT)
			return slot;
		now = GetCurrentTimestamp();
		if (now >= deadline)
			ereport(ERROR,		/* as the server does */
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("canceling statement due to lock timeout")));
		if (now >= Min(look_at, check_at))
		{
			slot = take_unclaimed_slot(semaphore, false);
			if (slot != NO_SLOT)
				return slot;
			look_at = TimestampTzPlusMilliseconds(now, is_woken ? LOOK_AFTER_MS : POLL_AFTER_MS);
		}
		if (now >= check_at)
		{
			check_slot_deadlock(semaphore->key, slots);
			check_at = TimestampTzPlusMilliseconds(now, LOOK_AFTER_MS);
		}
		sleeping([=]() {
			WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					  TimestampDifferenceMilliseconds(now, Min(Min(look_at, check_at), deadline)),
					  PG_WAIT_LOCK | LOCKTAG_ADVISORY);
		});
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

int
semaphore_wait(Semaphore *semaphore)
{
	const LockRequest *request = semaphore->request;
	bool		is_queued = semaphore->state != nullptr;
	LOCKTAG		queue = queue_tag(MyDatabaseId, semaphore->key);
	TimestampTz start = GetCurrentTimestamp();
	int			slot;

	if (request->slots == 1 && !is_mine(semaphore, 1))
	{
		sleeping([&]() { take_lock(tag_of(semaphore, 1), Mode::exclusive, request->scope, false); });
		semaphore_add_slot(semaphore, 1);
		return 1;
	}
	if (is_queued)
		join_queue(semaphore->state, request->slots, false);
	/* After an error wait_for_lock() leaves the queue. */
	sleeping([&]() {
		if (!is_queued)
			LockAcquire(&queue, HEAD_MODE, false, false);
		LockAcquire(&queue, QUEUED_MODE, false, false);
	});
	slot = wait_for_slot(semaphore, start);
	leave_queue();
	LockRelease(&queue, QUEUED_MODE, false);
	if (!is_queued)
		LockRelease(&queue, HEAD_MODE, false);
	return slot;
}

int
semaphore_survivor(const Semaphore *semaphore) noexcept
{
	/*
	 * The lock manager can grant the only slot while the wait is being ended.  Or the slot was
	 * granted, and adding it to the held locks failed.
	 */
	return semaphore->request->slots == 1 && is_mine(semaphore, 1) &&
		held_find(tag_of(semaphore, 1), Mode::exclusive) == nullptr ? 1 : NO_SLOT;
}

/* ---- What this session has ---- */

int
semaphore_find_slot(Key key, int slot)
{
	Semaphore  *semaphore;

	held_notice_lost();
	semaphore = find_semaphore(key);
	if (semaphore == nullptr || dlist_is_empty(&semaphore->slots))
		return NO_SLOT;
	for (dlist_node *node = dlist_tail_node(&semaphore->slots); node != &semaphore->slots.head; node = node->prev)
	{
		const HeldLock *held = held_of(node, offsetof(HeldLock, in_semaphore));
		int			number = decode_tag(held->tag).slot;

		if (held->session_count > 0 && (slot == NO_SLOT || number == slot))
			return number;
	}
	return NO_SLOT;
}

bool
semaphore_has_slot(Key key)
{
	Semaphore  *semaphore;

	held_notice_lost();
	semaphore = find_semaphore(key);
	return semaphore != nullptr && !dlist_is_empty(&semaphore->slots);
}

}								/* namespace advisory */
