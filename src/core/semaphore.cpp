/*
 * core/semaphore.cpp
 *		Semaphores: the slots of this session, and how it waits for one.
 *
 * Slots are among the held locks (held.h), which notices when they are released without this
 * extension, and calls semaphore_slot_ended() when their locks are free.  Here the slot is marked
 * as free in the semaphore state (slotstate.h), and waiters are woken.
 *
 * A session that waits joins the queue in shared memory (slotstate.h), or those of all semaphores
 * of which it wants a slot, and sleeps until another session that has freed a slot sets its latch.
 * Then it claims the slots that are set aside for it, if there are enough, and locks them.  A
 * semaphore with one slot needs no queue: its waiters wait for that slot in the lock manager.  A
 * caller with slots => 1 joins a queue only if it is not empty, because others use the semaphore
 * with more slots, or wait for several semaphores: it comes after them.
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
 * shared memory release.  So once a second the first waiter looks at the locks of all slots that it
 * can use, and marks those as free that nobody holds.  A waiter behind it looks only at the slots
 * that are beyond the number of slots of all waiters ahead.
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

/* Semaphore by key; and the one that was used last, or null. */
static HTAB *known_semaphores = nullptr;
static Semaphore *last_semaphore = nullptr;
static long sweep_at = MIN_KEPT_SEMAPHORES;

/* ---- Ends ---- */

void
semaphore_slot_ended(Hold *slot, bool is_prepared) noexcept
{
	SemaphoreState *state = &slot->semaphore->seen;

	if (dlist_is_empty(&slot->semaphore->slots))
		note_unknown_slots(state, false);
	/* If this session has just got it again, add_slot() marks it as taken after this. */
	mark_slot(state, slot_of(slot->key.tag), is_prepared ? SlotMark::unverified : SlotMark::free);
	if (!is_prepared)
		wake_waiters(state);
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
	last_semaphore = nullptr;
}

/* ---- Opening ---- */

static void
forget_unused()
{
	HASH_SEQ_STATUS scan;

	last_semaphore = nullptr;
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
	if (last_semaphore != nullptr && last_semaphore->key == key)
		return last_semaphore;
	if (known_semaphores == nullptr)
		return nullptr;
	return static_cast<Semaphore *>(hash_search(known_semaphores, &key, HASH_FIND, nullptr));
}

static Semaphore *
find_or_add_semaphore(Key key)
{
	Semaphore  *semaphore = find_semaphore(key);

	if (semaphore != nullptr)
		return semaphore;
	if (known_semaphores == nullptr)
		known_semaphores = make_hash_table<Key, Semaphore>(
			"advisory_ext semaphores", MIN_KEPT_SEMAPHORES, TopMemoryContext);
	semaphore = static_cast<Semaphore *>(hash_search(known_semaphores, &key, HASH_ENTER, nullptr));
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

		*other = slots_given(entry, holds.find(entry));
		if (*other != 0 && *other != slots)
			return entry.pid;
	}
	return 0;
}

/*
 * Raise a WARNING, once per session and semaphore, if another session uses it at the moment with
 * another number of slots.
 */
static void
check_agreement(const SlotAttempt *attempt)
{
	const LockRequest &request = attempt->request;
	SemaphoreState *state = attempt->claim.state;
	int			pid;
	int			other;

	if (state == nullptr || attempt->semaphore->disagreement_reported ||
		agree_on_slots(state, request.slots, false))
		return;
	pid = find_other_slots(request.name.key, request.slots, &other);
	if (pid == 0)
	{
		agree_on_slots(state, request.slots, true);
		return;
	}
	attempt->semaphore->disagreement_reported = true;
	ereport(WARNING,
			(errmsg("semaphore \"%s\" is used with different numbers of slots",
					display_name(request.name)),
			 errdetail("The number of slots is %d in this session, but in process %d it is %d.",
					   request.slots, pid, other),
			 errhint("Use the same number everywhere. A session with a smaller number uses fewer "
					 "slots; a session with a larger number can get a slot in addition to all "
					 "others.")));
}

/* Find the semaphore of each request.  If one has no state, they are used without. */
static void
open_semaphores(HoldAttempt *given)
{
	auto	   *attempt = static_cast<SlotAttempt *>(given);
	bool		have_states = true;
	int			place = 0;

	/* Not between two of them, of which no slot may be held. */
	if (known_semaphores != nullptr && hash_get_num_entries(known_semaphores) >= sweep_at)
		forget_unused();
	for (SlotAttempt *each = attempt; each != nullptr; each = each->following())
	{
		Key			key = each->request.name.key;

		each->semaphore = find_or_add_semaphore(key);
		last_semaphore = each->semaphore;
		have_states &= attach_slot_state(&each->semaphore->seen, key, each->request.slots);
	}
	for (SlotAttempt *each = attempt; each != nullptr; each = each->following())
	{
		each->claim = {have_states ? &each->semaphore->seen : nullptr, each->request.slots,
			each->request.wanted, each->slots,
			each->next != nullptr ? &each->following()->claim : nullptr, place++};
		check_agreement(each);
	}
}

/* ---- Taking slots ---- */

static LOCKTAG
tag_of(const SlotAttempt *attempt, int slot) noexcept
{
	return slot_tag(MyDatabaseId, attempt->request.name.key, slot);
}

static LOCKTAG
queue_of(const SlotAttempt *attempt) noexcept
{
	return queue_tag(MyDatabaseId, attempt->request.name.key);
}

static bool
is_mine(const SlotAttempt *attempt, int slot) noexcept
{
	return is_held_by_me(tag_of(attempt, slot), Mode::exclusive);
}

/* Add a slot, whose lock was granted, to the held locks. */
static void
add_slot(const SlotAttempt *attempt, int slot)
{
	const LockRequest &request = attempt->request;
	Semaphore  *semaphore = attempt->semaphore;
	Hold	   *hold;

	hold = held_add(tag_of(attempt, slot), Mode::exclusive, request.scope, attempt->name,
					request.name.by_name(), request.slots);
	hold->semaphore = semaphore;
	dlist_push_tail(&semaphore->slots, &hold->in_semaphore);
	mark_slot(&semaphore->seen, slot, SlotMark::taken);
}

/* Add the slots that are locked. */
static void
add_slots(HoldAttempt *attempt)
{
	for (HoldAttempt *each = attempt; each != nullptr; each = each->next)
	{
		for (; each->added < each->request.wanted; each->added = each->added + 1)
		{
			/* held_prepare() has made room for one. */
			if (each != attempt || each->added > 0)
				publish_reserve();
			add_slot(static_cast<SlotAttempt *>(each), each->slots[each->added]);
		}
	}
}

/*
 * Lock a slot without waiting.  False if another session has it, or this one has it already.  May
 * ereport (53200).
 */
static bool
lock_slot(const SlotAttempt *attempt, int slot)
{
	LOCKTAG		tag = tag_of(attempt, slot);
	Scope		scope = attempt->request.scope;
	LockAcquireResult result = take_lock(tag, Mode::exclusive, scope, true);

	if (result != LOCKACQUIRE_OK && result != LOCKACQUIRE_NOT_AVAIL)
		release_lock(tag, Mode::exclusive, scope);
	return result == LOCKACQUIRE_OK;
}

/*
 * Unlock the chosen slots of one semaphore from this place of the array up to those that are
 * locked, mark all that were claimed as free, and wake the waiters that get them now.  Another
 * session, or this one, has the slot in the place refused.
 */
static void
give_back(SlotAttempt *attempt, int first, bool is_claimed, int refused)
{
	const LockRequest &request = attempt->request;

	for (int i = first; i < request.wanted; i++)
	{
		if (i < attempt->locked)
			release_lock(tag_of(attempt, attempt->slots[i]), Mode::exclusive, request.scope);
		if (is_claimed)
			mark_slot(attempt->claim.state, attempt->slots[i],
					  i == refused ? SlotMark::unverified : SlotMark::free);
	}
	attempt->locked = 0;
	if (is_claimed && (request.wanted > 1 || refused < 0))
		wake_waiters(attempt->claim.state);
}

/* Lock the chosen slots.  Returns the attempt of which one is refused, or null. */
static SlotAttempt *
lock_slots(SlotAttempt *attempt)
{
	for (SlotAttempt *each = attempt; each != nullptr; each = each->following())
	{
		for (; each->locked < each->request.wanted; each->locked++)
		{
			if (!lock_slot(each, each->slots[each->locked]))
				return each;
		}
	}
	return nullptr;
}

/*
 * Lock the chosen slots, and add them to the held locks: all or none.  False if another session or
 * this one already has one of them.  is_claimed: claim_slots() has chosen them; those that are not
 * taken are marked as free again.  is_queued: the session waits, and is in the queues again before
 * that.  May ereport (53200).
 */
static bool
take_slots(SlotAttempt *attempt, bool is_claimed, bool is_queued)
{
	SlotAttempt *volatile refused = nullptr;

	/* Otherwise this session would seem to wait for a slot that it has itself. */
	publish_leaving(true);
	PG_TRY();
	{
		refused = lock_slots(attempt);
		if (refused == nullptr)
			add_slots(attempt);
	}
	PG_CATCH();
	{
		for (SlotAttempt *each = attempt; each != nullptr; each = each->following())
		{
			/* The abort ends transaction-level holds. */
			for (int i = 0; each->request.scope == Scope::session && i < each->added; i++)
				lock_give_up(each->request, each->slots[i]);
			give_back(each, each->added, is_claimed, -1);
		}
		PG_RE_THROW();
	}
	PG_END_TRY();
	attempt->has_slots = refused == nullptr;
	if (attempt->has_slots)
		return true;
	/* Nobody behind this session gets what it gives back. */
	if (is_queued && attempt->claim.state != nullptr)
		join_queues(&attempt->claim, true);
	for (SlotAttempt *each = attempt; each != nullptr; each = each->following())
		give_back(each, 0, is_claimed, each == refused ? each->locked : -1);
	attempt->lacking = refused;
	publish_leaving(false);
	return false;
}

/* Without shared memory: choose slots that nobody has.  False if they are fewer than wanted. */
static bool
choose_unlocked(SlotAttempt *attempt)
{
	int			count = 0;

	for (int slot = 1; slot <= attempt->request.slots && count < attempt->request.wanted; slot++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!is_held_by_anybody(tag_of(attempt, slot)))
			attempt->slots[count++] = slot;
	}
	return count == attempt->request.wanted;
}

/*
 * Choose slots that are free and, with shared memory, not set aside for a waiter ahead; claim them.
 * False if they are fewer than wanted.
 */
static bool
choose_slots(SlotAttempt *attempt)
{
	bool		has_state = attempt->claim.state != nullptr;
	const SlotRequest *lacking = has_state ? claim_slots(&attempt->claim) : nullptr;
	SlotAttempt *each = attempt;

	while (each != nullptr && (has_state ? &each->claim != lacking : choose_unlocked(each)))
		each = each->following();
	if (each == nullptr)
		return true;
	attempt->lacking = each;
	publish_lacking(queue_of(each), each->request.slots, each->name->used());
	return false;
}

/*
 * Look at the slots that no waiter ahead of this session can use, and mark those as free that
 * nobody holds; only at unverified ones, or at all.  Returns whether there was one.  A slot that
 * another session has claimed, and will lock next, can be among them: then one of the two finds it
 * locked.
 */
static bool
find_unmarked(const SlotAttempt *attempt, bool unverified_only)
{
	SemaphoreState *state = attempt->claim.state;
	int			slots = attempt->request.slots;
	bool		is_found = false;

	for (int slot = most_slots_ahead(state, slots) + 1; slot <= slots; slot++)
	{
		if (unverified_only && (slot = next_unverified(state, slot, slots)) == NO_SLOT)
			break;
		CHECK_FOR_INTERRUPTS();
		if (is_held_by_anybody(tag_of(attempt, slot)))
			continue;
		mark_slot(state, slot, SlotMark::free);
		wake_waiters(state);
		is_found = true;
	}
	return is_found;
}

/*
 * Take as many slots as are wanted, if they are free and not set aside for a waiter ahead.
 * looks_at_all: also those that nobody holds though they are marked as taken.
 */
static bool
take_free_slots(SlotAttempt *attempt, bool is_queued, bool looks_at_all)
{
	bool		has_state = attempt->claim.state != nullptr;

	for (bool has_looked = !has_state;; has_looked = true)
	{
		while (choose_slots(attempt))
		{
			if (take_slots(attempt, has_state, is_queued))
				return true;
		}
		if (has_looked)
			return false;

		bool		is_found = false;

		for (SlotAttempt *each = attempt; each != nullptr; each = each->following())
			is_found |= find_unmarked(each, !looks_at_all);
		if (!is_found)
			return false;
	}
}

/* Is it a request for the only slot, whose order is the lock manager's? */
static bool
has_no_queue(const SlotAttempt *attempt)
{
	SemaphoreState *state = attempt->claim.state;

	return attempt->next == nullptr && attempt->request.slots == 1 &&
		(state == nullptr || most_slots_ahead(state, 1) == 0);
}

/* Lock the queues of an attempt.  Returns the attempt whose queue could not be locked, or null. */
static SlotAttempt *
lock_queues(SlotAttempt *attempt, LOCKMODE mode, bool at_once)
{
	for (SlotAttempt *each = attempt; each != nullptr; each = each->following())
	{
		LOCKTAG		queue = queue_of(each);

		if (LockAcquire(&queue, mode, false, at_once) == LOCKACQUIRE_NOT_AVAIL)
			return each;
	}
	return nullptr;
}

/* Unlock them, up to this one. */
static void
unlock_queues(SlotAttempt *attempt, LOCKMODE mode, const SlotAttempt *end)
{
	for (SlotAttempt *each = attempt; each != end; each = each->following())
	{
		LOCKTAG		queue = queue_of(each);

		LockRelease(&queue, mode, false);
	}
}

/*
 * Take free slots, if there are enough that no waiter will get.  A slot that this session already
 * has is not free.
 */
static bool
try_slots_now(Attempt *given)
{
	auto	   *attempt = static_cast<SlotAttempt *>(given);
	SlotAttempt *refused;
	bool		is_taken;

	attempt->slots[0] = 1;
	if (has_no_queue(attempt))
		return take_slots(attempt, false, false);
	if (attempt->claim.state != nullptr)
		return take_free_slots(attempt, false, false);
	/* While this session holds the queue locks no session can be waiting. */
	refused = lock_queues(attempt, TRYING_MODE, true);
	if (refused != nullptr)
		attempt->lacking = refused;
	is_taken = refused == nullptr && take_free_slots(attempt, false, false);
	unlock_queues(attempt, TRYING_MODE, refused);
	return is_taken;
}

/* ---- Waiting ---- */

/* As a member of the queue, wait until slots are taken. */
static void
wait_in_queue(SlotAttempt *attempt, Deadline deadline)
{
	bool		is_woken = attempt->claim.state != nullptr;
	Deadline	look(Timeout{is_woken ? LOOK_AFTER_MS : 0});
	Deadline	check(Timeout{DeadlockTimeout});

	while (true)
	{
		bool		is_due = look.is_over() || check.is_over();

		if ((is_woken || is_due) && take_free_slots(attempt, true, is_due))
			return;
		if (deadline.is_over())
			raise_lock_timeout();
		if (is_due)
			look = Deadline(Timeout{is_woken ? LOOK_AFTER_MS : POLL_AFTER_MS});
		if (check.is_over())
		{
			check_slot_deadlock(attempt->lacking_request());
			check = Deadline(Timeout{LOOK_AFTER_MS});
		}

		int			most = deadline.most(look.most(check.most(INT_MAX)));

		sleeping([=]() { sleep_until_woken(most, PG_WAIT_LOCK | LOCKTAG_ADVISORY); });
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Wait for slots, and take them.  lock_timeout counts from here.  40P01 if too few of the sessions
 * that have the slots could ever release theirs.
 */
static void
wait_for_slots(Attempt *given)
{
	auto	   *attempt = static_cast<SlotAttempt *>(given);
	const LockRequest &request = attempt->lacking_request();
	bool		has_state = attempt->claim.state != nullptr;
	LOCKMODE	mode = has_state ? QUEUED_MODE : HEAD_MODE;
	Deadline	deadline(Timeout{LockTimeout > 0 ? LockTimeout : -1});
	bool		is_queued = is_mine(attempt, 1) || !has_no_queue(attempt);

	publish_wait(is_queued ? queue_tag(MyDatabaseId, request.name.key) : request.tag(),
				 request.slots, request.wanted, attempt->lacking->name->used());
	if (!is_queued)
	{
		attempt->slots[0] = 1;
		attempt->awaits_lock = true;
		sleeping([&]() { take_lock(tag_of(attempt, 1), Mode::exclusive, request.scope, false); });
		attempt->has_slots = true;
		add_slots(attempt);
		return;
	}
	if (has_state)
		join_queues(&attempt->claim, false);
	/* After an error the queues are left by have_slots_survived(). */
	sleeping([&]() { lock_queues(attempt, mode, false); });
	wait_in_queue(attempt, deadline);
	leave_queues();
	unlock_queues(attempt, mode, nullptr);
}

/*
 * The lock manager can grant the only slot while the wait is being ended.  The session waited there
 * because it did not have that slot in any scope.
 */
static bool
have_slots_survived(Attempt *given)
{
	auto	   *attempt = static_cast<SlotAttempt *>(given);

	leave_queues();
	if (attempt->request.scope == Scope::transaction)
		return false;
	attempt->has_slots |= attempt->awaits_lock && is_mine(attempt, 1);
	return attempt->has_slots;
}

static char *
describe_slots(const Attempt &given, const char *name)
{
	int			wanted = static_cast<const SlotAttempt &>(given).request.wanted;

	return psprintf("%s of semaphore \"%s\"", slots_text(wanted), name);
}

const WaitRoutine SLOT_ROUTINE = {
	try_slots_now, wait_for_slots, have_slots_survived, give_up_holds, describe_slots,
	open_semaphores, nullptr, add_slots, nullptr};

/* ---- What this session has ---- */

/* The hold of this session-level slot, or for NO_SLOT of the one that was taken last; or null. */
static Hold *
find_session_slot(Key key, int slot) noexcept
{
	Semaphore  *semaphore;

	if (slot != NO_SLOT)
		return held_find(slot_tag(MyDatabaseId, key, slot), Mode::exclusive, Scope::session);
	semaphore = find_semaphore(key);
	if (semaphore == nullptr)
		return nullptr;
	/* From the last one back. */
	for (Hold *hold : compat::ObjectsOnList<Hold, dlist_node>{
			&semaphore->slots.head, offsetof(Hold, in_semaphore), &dlist_node::prev})
	{
		if (hold->state == HoldState::session)
			return hold;
	}
	return nullptr;
}

Hold *
semaphore_find_slot(Key key, int slot) noexcept
{
	Hold	   *hold = find_session_slot(key, slot);

	/* Only pg_advisory_unlock_all() and DISCARD ALL release slots without the extension. */
	if (hold != nullptr && is_lost(hold))
	{
		held_notice_lost();
		hold = find_session_slot(key, slot);
	}
	return hold;
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
