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
 * that slot in the lock manager.  A caller with slots => 1 joins a queue only if it is not empty,
 * because others use the semaphore with more slots: it comes after them.
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

#include "core/boundedwait.h"
#include "core/semaphore.h"
#include "server/latch.h"
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
static constexpr long MIN_KEPT_SEMAPHORES = 16;

/*
 * How often a waiter checks slots that may be free without being marked, and, after the first time,
 * whether it is in a deadlock; and how often slots if they are never marked.
 */
static constexpr int LOOK_AFTER_MS = 1000;
static constexpr int POLL_AFTER_MS = 100;

/* Semaphore by key. */
static HTAB *known_semaphores = nullptr;
static long sweep_at = MIN_KEPT_SEMAPHORES;

/* ---- Ends ---- */

/* The lock of a slot was released: mark it. */
static void
mark_released(Semaphore *semaphore, int slot) noexcept
{
	/*
	 * The slot of a cursor can outlive the subtransaction that took it; then no session marks it as
	 * free later.
	 */
	LOCKTAG		tag = slot_tag(MyDatabaseId, semaphore->key, slot);

	mark_slot(&semaphore->seen, slot,
			  is_held_by_me(tag, Mode::exclusive) ? SlotMark::unverified : SlotMark::free);
}

void
semaphore_slot_ended(HeldLock *held, bool is_prepared) noexcept
{
	int			slot = decode_tag(held->tag).slot;

	if (is_prepared)
		return mark_slot(&held->semaphore->seen, slot, SlotMark::unverified);
	mark_released(held->semaphore, slot);
	wake_waiters(&held->semaphore->seen);
}

void
semaphores_detach() noexcept
{
	HASH_SEQ_STATUS scan;

	if (known_semaphores == nullptr)
		return;
	hash_seq_init(&scan, known_semaphores);
	while (auto *semaphore = static_cast<Semaphore *>(hash_seq_search(&scan)))
		detach_slot_state(&semaphore->seen);
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
		detach_slot_state(&semaphore->seen);
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
		known_semaphores = hash_create("advisory_ext semaphores", MIN_KEPT_SEMAPHORES, &control,
									   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	if (hash_get_num_entries(known_semaphores) >= sweep_at)
		forget_unused();
	semaphore = static_cast<Semaphore *>(hash_search(known_semaphores, &key, HASH_ENTER, nullptr));
	semaphore->state = nullptr;
	semaphore->seen = {};
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

/*
 * Find the semaphore of a request.  Raises a WARNING, once per session and semaphore, if another
 * session uses it at the moment with another number of slots.
 */
static void
open_semaphore(Attempt *attempt)
{
	const LockRequest &request = attempt->request;
	Key			key = request.name.key;
	Semaphore  *semaphore = find_semaphore(key);
	int			pid;
	int			other;

	if (semaphore == nullptr)
		semaphore = add_semaphore(key);
	attempt->semaphore = semaphore;
	semaphore->state = attach_slot_state(&semaphore->seen, key, request.slots)
		? &semaphore->seen : nullptr;
	if (semaphore->state == nullptr || semaphore->disagreement_reported ||
		agree_on_slots(semaphore->state, request.slots, false))
		return;
	pid = find_other_slots(key, request.slots, &other);
	if (pid == 0)
	{
		agree_on_slots(semaphore->state, request.slots, true);
		return;
	}
	semaphore->disagreement_reported = true;
	ereport(WARNING,
			(errmsg("semaphore \"%s\" is used with different numbers of slots",
					display_name(request.name)),
			 errdetail("The number of slots is %d in this session, but in process %d it is %d.",
					   request.slots, pid, other),
			 errhint("Use the same number everywhere. A session with a smaller number uses fewer "
					 "slots; a session with a larger number can get a slot in addition to all "
					 "others.")));
}

/* ---- Taking a slot ---- */

static LOCKTAG
tag_of(const Attempt *attempt, int slot) noexcept
{
	return slot_tag(MyDatabaseId, attempt->request.name.key, slot);
}

static bool
is_mine(const Attempt *attempt, int slot) noexcept
{
	return is_held_by_me(tag_of(attempt, slot), Mode::exclusive);
}

/* Add the slot, whose lock was granted, to the held locks, unless they contain it. */
static HeldLock *
add_slot(const Attempt &attempt)
{
	const LockRequest &request = attempt.request;
	Semaphore  *semaphore = attempt.semaphore;
	LOCKTAG		tag = tag_of(&attempt, attempt.slot);
	HeldLock   *held = held_find(tag, Mode::exclusive);

	if (held != nullptr && (held->session_count > 0 || request.scope == Scope::transaction))
		return held;
	held = held_add(tag, Mode::exclusive, request.scope, attempt.name, request.name.by_name(),
					request.slots);
	if (held->semaphore == nullptr)
		dlist_push_tail(&semaphore->slots, &held->in_semaphore);
	held->semaphore = semaphore;
	mark_slot(&semaphore->seen, attempt.slot, SlotMark::taken);
	return held;
}

/*
 * Lock a slot, mark it and add it to the held locks.  False if another session or this one already
 * has it.  is_claimed: claim_slot() gave it to this session.  May ereport (53200), and then marks a
 * slot that was claimed as free.
 */
static bool
take_slot(Attempt *attempt, int slot, bool is_claimed)
{
	SemaphoreState *state = attempt->semaphore->state;
	LOCKTAG		tag = tag_of(attempt, slot);
	volatile bool is_granted = false;

	if (is_mine(attempt, slot))
		return false;
	/* Otherwise this session would seem to wait for a slot that it has itself. */
	publish_leaving(true);
	PG_TRY();
	{
		is_granted = take_lock(tag, Mode::exclusive, attempt->request.scope, true) ==
			LOCKACQUIRE_OK;
		if (is_granted)
		{
			attempt->slot = slot;
			add_slot(*attempt);
		}
	}
	PG_CATCH();
	{
		attempt->slot = NO_SLOT;
		if (is_granted && attempt->request.scope == Scope::session)
			release_session_lock(tag, Mode::exclusive);
		if (is_claimed)
		{
			mark_released(attempt->semaphore, slot);
			wake_waiters(state);
		}
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (is_granted)
		return true;
	if (is_claimed)
		mark_slot(state, slot, SlotMark::unverified);
	publish_leaving(false);
	return false;
}

/*
 * Take one of the slots that no waiter ahead of this session can use, however it is marked; or only
 * an unverified one.
 */
static bool
take_unclaimed_slot(Attempt *attempt, bool unverified_only)
{
	SemaphoreState *state = attempt->semaphore->state;
	int			slots = attempt->request.slots;

	for (int slot = state != nullptr ? most_slots_ahead(state, slots) + 1 : 1; slot <= slots;
		 slot++)
	{
		if (unverified_only && (slot = next_unverified(state, slot, slots)) == NO_SLOT)
			break;
		CHECK_FOR_INTERRUPTS();
		if (take_slot(attempt, slot, false))
			return true;
	}
	return false;
}

/*
 * Take a slot that is marked as free, if it is not set aside for a waiter ahead.  Only with shared
 * memory.
 */
static bool
take_free_slot(Attempt *attempt, bool is_queued)
{
	SemaphoreState *state = attempt->semaphore->state;
	int			slots = attempt->request.slots;
	int			slot;

	while ((slot = claim_slot(state, slots)) != NO_SLOT)
	{
		if (take_slot(attempt, slot, true))
			return true;
		if (is_queued)
			join_queue(state, slots, true);
	}
	return take_unclaimed_slot(attempt, true);
}

/* Is it a request for the only slot, whose order is the lock manager's? */
static bool
has_no_queue(const Attempt *attempt)
{
	SemaphoreState *state = attempt->semaphore->state;

	return attempt->request.slots == 1 && (state == nullptr || most_slots_ahead(state, 1) == 0);
}

/*
 * Take a free slot, if there is one that no waiter will get.  A slot that this session already has
 * is not free.
 */
static bool
try_slot_now(Attempt *attempt)
{
	LOCKTAG		queue = queue_tag(MyDatabaseId, attempt->request.name.key);
	bool		is_taken;

	if (has_no_queue(attempt))
		return take_slot(attempt, 1, false);
	if (attempt->semaphore->state != nullptr)
		return take_free_slot(attempt, false);
	/* While this session holds the queue lock no session can be waiting. */
	if (LockAcquire(&queue, TRYING_MODE, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	is_taken = take_unclaimed_slot(attempt, false);
	LockRelease(&queue, TRYING_MODE, false);
	return is_taken;
}

/* ---- Waiting ---- */

/* As a member of the queue, wait until a slot is taken. */
static void
wait_in_queue(Attempt *attempt, Deadline deadline)
{
	int			slots = attempt->request.slots;
	bool		is_woken = attempt->semaphore->state != nullptr;
	Deadline	look(Timeout{is_woken ? LOOK_AFTER_MS : 0});
	Deadline	check(Timeout{DeadlockTimeout});

	while (!is_woken || !take_free_slot(attempt, true))
	{
		if (deadline.is_over())
			ereport(ERROR,		/* as the server does */
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("canceling statement due to lock timeout")));
		if (look.is_over() || check.is_over())
		{
			if (take_unclaimed_slot(attempt, false))
				return;
			look = Deadline(Timeout{is_woken ? LOOK_AFTER_MS : POLL_AFTER_MS});
		}
		if (check.is_over())
		{
			check_slot_deadlock(attempt->request.name.key, slots);
			check = Deadline(Timeout{LOOK_AFTER_MS});
		}

		int			most = deadline.most(look.most(check.most(INT_MAX)));

		sleeping([=]() { sleep_until_woken(most, PG_WAIT_LOCK | LOCKTAG_ADVISORY); });
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Wait for a slot, and take it.  lock_timeout counts from here.  40P01 if none of the sessions that
 * have the slots could ever release theirs.
 */
static void
wait_for_slot(Attempt *attempt)
{
	const LockRequest &request = attempt->request;
	SemaphoreState *state = attempt->semaphore->state;
	LOCKTAG		queue = queue_tag(MyDatabaseId, request.name.key);
	Deadline	deadline(Timeout{LockTimeout > 0 ? LockTimeout : -1});
	bool		is_queued = is_mine(attempt, 1) || !has_no_queue(attempt);

	publish_wait(is_queued ? queue : request.tag(), request.slots, attempt->name->used());
	if (!is_queued)
	{
		sleeping([&]() { take_lock(tag_of(attempt, 1), Mode::exclusive, request.scope, false); });
		attempt->slot = 1;
		add_slot(*attempt);
		return;
	}
	if (state != nullptr)
		join_queue(state, request.slots, false);
	/* After an error bounded_wait() leaves the queue. */
	sleeping([&]() {
		if (state == nullptr)
			LockAcquire(&queue, HEAD_MODE, false, false);
		LockAcquire(&queue, QUEUED_MODE, false, false);
	});
	wait_in_queue(attempt, deadline);
	leave_queue();
	LockRelease(&queue, QUEUED_MODE, false);
	if (state == nullptr)
		LockRelease(&queue, HEAD_MODE, false);
}

/*
 * A slot among the held locks has survived.  Only the lock manager can grant the only slot while
 * the wait is being ended, or grant it before adding it to the held locks fails.
 */
static bool
has_slot_survived(Attempt *attempt)
{
	if (attempt->slot == NO_SLOT && attempt->request.slots == 1 && is_mine(attempt, 1) &&
		held_find(tag_of(attempt, 1), Mode::exclusive) == nullptr)
		attempt->slot = 1;
	return attempt->slot != NO_SLOT;
}

static char *
describe_slot(const LockRequest &, const char *name)
{
	return psprintf("a slot of semaphore \"%s\"", name);
}

const WaitRoutine SLOT_ROUTINE = {
	true, open_semaphore, try_slot_now, nullptr, wait_for_slot, has_slot_survived, add_slot,
	describe_slot};

/* ---- What this session has ---- */

int
semaphore_find_slot(Key key, int slot)
{
	Semaphore  *semaphore;

	held_notice_lost();
	semaphore = find_semaphore(key);
	if (semaphore == nullptr || dlist_is_empty(&semaphore->slots))
		return NO_SLOT;
	for (dlist_node *node = dlist_tail_node(&semaphore->slots); node != &semaphore->slots.head;
		 node = node->prev)
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
