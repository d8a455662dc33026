/*
 * core/semaphore.cpp
 *		Semaphores: the slots of this session.
 *
 * Slots are among the held locks (held.h), which notices when they are released without this
 * extension, and calls semaphore_slot_is_free() when their locks are free.  Here the slot is
 * marked as free in the semaphore state (slotstate.h), and waiters are woken.
 */
#include "base/pg.h"

#include "core/held.h"
#include "core/semaphore.h"
#include "core/semqueue.h"
#include "server/locallock.h"
#include "shmem/heldread.h"

namespace advisory
{

/* This many semaphores are remembered at least, although the session has no slot of them. */
static constexpr int MIN_KEPT_SEMAPHORES = 64;

static constexpr int FIRST_SEMAPHORES = 16;

namespace
{

struct SemaphoreByKey
{
	int64		key;
	Semaphore  *semaphore;
	char		status;
};

#define SH_PREFIX semaphores
#define SH_ELEMENT_TYPE SemaphoreByKey
#define SH_KEY_TYPE int64
#define SH_KEY key
#define SH_HASH_KEY(table, key) hash_of_key(key, 0)
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

}								/* anonymous namespace */

static semaphores_hash *known_semaphores = nullptr;
static uint32 sweep_at = MIN_KEPT_SEMAPHORES;

/* The slot that was taken last by the present call, or NO_SLOT. */
static int	slot_taken = NO_SLOT;

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

/* ---- For core/held ---- */

void
semaphore_add_slot(Semaphore *semaphore, HeldLock *held) noexcept
{
	held->semaphore = semaphore;
	dlist_push_tail(&semaphore->slots, &held->in_semaphore);
}

void
semaphore_remove_slot(HeldLock *held) noexcept
{
	dlist_delete(&held->in_semaphore);
}

void
semaphore_slot_is_free(Semaphore *semaphore, int slot, bool others_follow) noexcept
{
	/* A cursor's slot can outlive the subtransaction that took it; then nobody will tell. */
	if (is_mine(semaphore, slot))
		mark_unverified(semaphore->state, slot);
	else
		mark_free(semaphore->state, slot);
	if (!others_follow)
		wake_waiters(semaphore->state);
}

void
semaphore_slot_is_prepared(Semaphore *semaphore, int slot) noexcept
{
	mark_unverified(semaphore->state, slot);
}

void
semaphore_stop_waiting() noexcept
{
	stop_waiting_in_queue();
}

void
semaphores_detach() noexcept
{
	semaphores_iterator iterator;

	if (known_semaphores == nullptr)
		return;
	semaphores_start_iterate(known_semaphores, &iterator);
	while (SemaphoreByKey *known = semaphores_iterate(known_semaphores, &iterator))
		detach_slot_state(&known->semaphore->state);
	known_semaphores = nullptr;
}

/* ---- Opening ---- */

static void
forget_unused()
{
	semaphores_iterator iterator;

	semaphores_start_iterate(known_semaphores, &iterator);
	while (SemaphoreByKey *known = semaphores_iterate(known_semaphores, &iterator))
	{
		Semaphore  *semaphore = known->semaphore;

		if (!dlist_is_empty(&semaphore->slots))
			continue;
		semaphores_delete_item(known_semaphores, known);
		detach_slot_state(&semaphore->state);
		pfree(semaphore);
	}
	sweep_at = Max(2 * known_semaphores->members, static_cast<uint32>(MIN_KEPT_SEMAPHORES));
}

static Semaphore *
find_semaphore(Key key) noexcept
{
	SemaphoreByKey *known = known_semaphores != nullptr ? semaphores_lookup(known_semaphores, key.value) : nullptr;

	return known != nullptr ? known->semaphore : nullptr;
}

static Semaphore *
add_semaphore(Key key)
{
	Semaphore  *semaphore;
	bool		found;

	if (known_semaphores == nullptr)
		known_semaphores = semaphores_create(TopMemoryContext, FIRST_SEMAPHORES, nullptr);
	if (known_semaphores->members >= sweep_at)
		forget_unused();
	semaphore = static_cast<Semaphore *>(MemoryContextAllocZero(TopMemoryContext, sizeof(Semaphore)));
	semaphore->key = key;
	dlist_init(&semaphore->slots);
	semaphores_insert(known_semaphores, key.value, &found)->semaphore = semaphore;
	return semaphore;
}

static void
check_agreement(Semaphore *semaphore, const LockName &name, int slots)
{
	int			agreed = agree_on_slots(semaphore->state, slots);
	OtherSlots	other;

	if (agreed == 0 || agreed == slots || semaphore->disagreement_reported)
		return;
	if (!find_other_slots(semaphore->key, slots, &other))
		return set_agreed_slots(semaphore->state, slots);
	semaphore->disagreement_reported = true;
	ereport(WARNING,
			(errmsg("semaphore \"%s\" is used with different numbers of slots", display_name(name)),
			 errdetail("This session says that it has %d, process %d that it has %d.", slots, other.pid, other.slots),
			 errhint("Let all use the same number: who says less uses fewer slots, who says more can be let in beside all others.")));
}

Semaphore *
semaphore_open(const LockName &name, CachedName *cached, int slots)
{
	Semaphore  *semaphore = find_semaphore(name.key);

	if (semaphore == nullptr)
		semaphore = add_semaphore(name.key);
	semaphore->name = cached;
	semaphore->by_name = name.by_name();
	semaphore->asked_slots = slots;
	slot_taken = NO_SLOT;
	attach_slot_state(&semaphore->state, name.key, slots);
	if (semaphore->state.shared != nullptr)
		check_agreement(semaphore, name, slots);
	return semaphore;
}

/* ---- Taking a slot ---- */

/* The lock of a slot was granted: add it to the held locks.  A session-level one is released if that fails. */
static void
add_slot(Semaphore *semaphore, int slot, Scope scope)
{
	LOCKTAG		tag = tag_of(semaphore, slot);

	PG_TRY();
	{
		/* An entry can be left if the lock was released without the extension. */
		if (HeldLock *stale = held_find(tag, Mode::exclusive))
			held_forget_session_holds(stale);
		semaphore_add_slot(semaphore, held_add(tag, Mode::exclusive, scope, semaphore->name, semaphore->by_name,
											   semaphore->asked_slots));
	}
	PG_CATCH();
	{
		if (scope == Scope::session)
			release_session_lock(tag, Mode::exclusive);
		PG_RE_THROW();
	}
	PG_END_TRY();
	slot_taken = slot;
}

/* Lock a slot, if it is free and this session does not have it already. */
static bool
lock_slot(Semaphore *semaphore, int slot, Scope scope)
{
	LOCKTAG		tag = tag_of(semaphore, slot);
	LockAcquireResult result = take_lock(tag, Mode::exclusive, scope, true);

	if (result == LOCKACQUIRE_ALREADY_HELD)
		LockRelease(&tag, ExclusiveLock, scope == Scope::session);
	if (result != LOCKACQUIRE_OK)
		return false;
	add_slot(semaphore, slot, scope);
	return true;
}

bool
take_claimed_slot(Semaphore *semaphore, int slot, Scope scope)
{
	volatile bool is_taken = false;

	PG_TRY();
	{
		is_taken = lock_slot(semaphore, slot, scope);
	}
	PG_CATCH();
	{
		mark_free(semaphore->state, slot);
		wake_waiters(semaphore->state);
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (!is_taken && !is_mine(semaphore, slot))
		mark_unverified(semaphore->state, slot);
	return is_taken;
}

static bool
take_slot(Semaphore *semaphore, int slot, Scope scope)
{
	if (!lock_slot(semaphore, slot, scope))
		return false;
	mark_taken(semaphore->state, slot);
	return true;
}

int
take_unverified_slot(Semaphore *semaphore, int first, int last, Scope scope)
{
	for (int slot = first; (slot = next_unverified(semaphore->state, slot, last)) != NO_SLOT; slot++)
	{
		CHECK_FOR_INTERRUPTS();
		if (take_slot(semaphore, slot, scope))
			return slot;
	}
	return NO_SLOT;
}

int
take_any_slot(Semaphore *semaphore, int first, int last, Scope scope)
{
	for (int slot = first; slot <= last; slot++)
	{
		CHECK_FOR_INTERRUPTS();
		if (take_slot(semaphore, slot, scope))
			return slot;
	}
	return NO_SLOT;
}

/* Without shared memory: hold the queue lock, so that nobody can be waiting. */
static int
try_beside_queue_lock(Semaphore *semaphore, int slots, Scope scope)
{
	LOCKTAG		queue = queue_tag(MyDatabaseId, semaphore->key);
	int			slot;

	if (LockAcquire(&queue, TRYING_MODE, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return NO_SLOT;
	slot = take_any_slot(semaphore, 1, slots, scope);
	LockRelease(&queue, TRYING_MODE, false);
	return slot;
}

int
semaphore_try(Semaphore *semaphore, int slots, Scope scope)
{
	const SlotState &state = semaphore->state;
	int			slot;

	/* Of the only slot the lock manager knows who waits for it. */
	if (slots == 1)
		return take_any_slot(semaphore, 1, 1, scope);
	if (state.shared == nullptr)
		return try_beside_queue_lock(semaphore, slots, scope);
	while ((slot = claim_slot(state, slots)) != NO_SLOT)
	{
		if (take_claimed_slot(semaphore, slot, scope))
			return slot;
	}
	if (!has_bits_of(state, slots))
		return most_slots_ahead(state, slots) > 0 ? NO_SLOT : take_any_slot(semaphore, 1, slots, scope);
	if (next_unverified(state, 1, slots) == NO_SLOT)
		return NO_SLOT;
	return take_unverified_slot(semaphore, most_slots_ahead(state, slots) + 1, slots, scope);
}

int
semaphore_wait(Semaphore *semaphore, int slots, Scope scope)
{
	if (slots > 1 || is_mine(semaphore, 1))
		return wait_in_queue(semaphore, slots, scope);

	take_lock(tag_of(semaphore, 1), Mode::exclusive, scope, false);
	add_slot(semaphore, 1, scope);
	mark_taken(semaphore->state, 1);
	return 1;
}

int
semaphore_survivor(Semaphore *semaphore, int slots) noexcept
{
	if (slot_taken != NO_SLOT || slots > 1)
		return slot_taken;
	/* The lock manager granted the only slot while the wait was being ended. */
	return is_mine(semaphore, 1) && held_find(tag_of(semaphore, 1), Mode::exclusive) == nullptr ? 1 : NO_SLOT;
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
