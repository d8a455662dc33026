/*
 * core/semaphore.cpp
 *		Semaphores: the slots of this session.
 *
 * Noticing that a slot was released
 *
 * A session has a list of its slots.  Their locks are also released without this
 * extension: transaction-level ones at the end of the transaction or subtransaction,
 * session-level ones by pg_advisory_unlock_all() and DISCARD ALL, always all of them at
 * once.  So after the server has released the locks of some resource owner, the slots of a
 * transaction that has ended are removed from the list, and the session-level slot that was
 * taken first stands for all others: if it is held, so are they.  What was released is
 * marked as free in the semaphore state (slotstate.h), and waiters are woken, at the latest
 * when the statement ends.  A session that ends releases its slots a little earlier than
 * the server would, while it can still do that.
 *
 * The lock manager is asked before a slot is marked as free: the list may be wrong, and a
 * slot that a prepared transaction has is held by nobody.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "base/lockname.h"
#include "core/semaphore.h"
#include "core/semqueue.h"
#include "shmem/published.h"

namespace advisory
{

/* This many semaphores are remembered at least, although the session has no slot of them. */
static constexpr int MIN_KEPT_SEMAPHORES = 64;

static constexpr int FIRST_SLOTS = 16;
static constexpr int NONE = -1;

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

/* A slot that this session has. */
struct OwnSlot
{
	Semaphore  *semaphore;
	Hold	   *hold;			/* null until it is noted */
	int			slot;
	int			level;			/* of a transaction-level one: the nesting level of its transaction */
	int			place;			/* in the list of session-level holds, once it is noted */
};

/* In the order in which they were taken; so levels never fall. */
struct OwnSlots
{
	OwnSlot    *slots;
	int			count;
	int			capacity;
};

}								/* anonymous namespace */

static semaphores_hash *known_semaphores = nullptr;
static uint32 sweep_at = MIN_KEPT_SEMAPHORES;

static OwnSlots own_slots[SCOPES];
static OwnSlots *const session_slots = &own_slots[index_of(Scope::session)];
static OwnSlots *const xact_slots = &own_slots[index_of(Scope::transaction)];

/* Transactions from this nesting level on have ended, and their locks are being released; 0: none. */
static int	ended_level = 0;

LOCKTAG
tag_of_slot(const Semaphore *semaphore, int slot) noexcept
{
	return slot_tag(MyDatabaseId, semaphore->key, slot);
}

static bool
is_mine(const Semaphore *semaphore, int slot) noexcept
{
	LOCKTAG		tag = tag_of_slot(semaphore, slot);

	return compat::lock_held_by_me(&tag, ExclusiveLock);
}

/* ---- The list ---- */

/* Memory for one more. */
static void
reserve_own(Scope scope)
{
	OwnSlots   *own = &own_slots[index_of(scope)];
	int			capacity = Max(2 * own->capacity, FIRST_SLOTS);
	Size		bytes = sizeof(OwnSlot) * capacity;

	if (own->count < own->capacity)
		return;
	own->slots = static_cast<OwnSlot *>(own->slots == nullptr
										? MemoryContextAlloc(TopMemoryContext, bytes)
										: repalloc_huge(own->slots, bytes));
	own->capacity = capacity;
}

static OwnSlot *
add_own(Semaphore *semaphore, int slot, Scope scope) noexcept
{
	OwnSlots   *own = &own_slots[index_of(scope)];
	OwnSlot    *added = &own->slots[own->count++];

	*added = OwnSlot{semaphore, nullptr, slot, GetCurrentTransactionNestLevel(), NO_RECORD};
	semaphore->held++;
	return added;
}

static OwnSlot
remove_own(Scope scope, int index) noexcept
{
	OwnSlots   *own = &own_slots[index_of(scope)];
	OwnSlot		removed = own->slots[index];

	own->count--;
	memmove(&own->slots[index], &own->slots[index + 1], sizeof(OwnSlot) * (own->count - index));
	removed.semaphore->held--;
	return removed;
}

/* Where in the list a slot is, or the one taken last if it is NO_SLOT; NONE if it is not there. */
static int
find_own(Scope scope, Key key, int slot) noexcept
{
	const OwnSlots &own = own_slots[index_of(scope)];

	for (int i = own.count - 1; i >= 0; i--)
	{
		if (own.slots[i].semaphore->key == key && (slot == NO_SLOT || own.slots[i].slot == slot))
			return i;
	}
	return NONE;
}

/* Remove those that the lock manager does not confirm, from this index on; mark them as free, and wake waiters. */
static void
remove_lost(OwnSlots *own, int first)
{
	Semaphore  *freed = nullptr;
	int			kept = first;

	for (int i = first; i < own->count; i++)
	{
		const OwnSlot lost = own->slots[i];

		if (is_mine(lost.semaphore, lost.slot))
		{
			own->slots[kept++] = lost;
			continue;
		}
		/* All slots of a semaphore are marked before its waiters are woken. */
		if (freed != nullptr && freed != lost.semaphore)
			wake_waiters(freed->state);
		freed = lost.semaphore;
		freed->held--;
		mark_free(freed->state, lost.slot);
		if (lost.place != NO_RECORD)
			hold_strike_slot(lost.place, false);
	}
	own->count = kept;
	if (freed != nullptr)
		wake_waiters(freed->state);
}

/* ---- Locks that were released without this extension ---- */

static void
notice_lost_slots()
{
	if (session_slots->count > 0 && !is_mine(session_slots->slots[0].semaphore, session_slots->slots[0].slot))
		remove_lost(session_slots, 0);
}

/* The first one of this nesting level or of a deeper one. */
static int
first_of_level(int level) noexcept
{
	int			first = xact_slots->count;

	while (first > 0 && xact_slots->slots[first - 1].level >= level)
		first--;
	return first;
}

/* Those from this index on belong to a transaction of this level, at most. */
static void
limit_level(int first, int level) noexcept
{
	for (int i = first; i < xact_slots->count; i++)
		xact_slots->slots[i].level = Min(xact_slots->slots[i].level, level);
}

static void
remove_ended_slots()
{
	int			level = ended_level;
	int			first = first_of_level(level);

	ended_level = 0;
	remove_lost(xact_slots, first);
	/* A cursor of the outer transaction can have taken some, which stay. */
	limit_level(first, level - 1);
}

static void
at_resource_release(ResourceReleasePhase phase, bool, bool, void *)
{
	if (phase != RESOURCE_RELEASE_AFTER_LOCKS)
		return;
	if (ended_level > 0)
		remove_ended_slots();
	notice_lost_slots();
}

/* The slots go with the prepared transaction, and nobody will mark them as free. */
static void
leave_to_prepared_transaction() noexcept
{
	while (xact_slots->count > 0)
	{
		OwnSlot		left = remove_own(Scope::transaction, xact_slots->count - 1);

		mark_unverified(left.semaphore->state, left.slot);
	}
}

static void
at_xact_end(XactEvent event, void *)
{
	if (event == XACT_EVENT_PREPARE)
		leave_to_prepared_transaction();
	else if ((event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT) && xact_slots->count > 0)
		ended_level = 1;
}

static void
at_subxact_end(SubXactEvent event, SubTransactionId, SubTransactionId, void *)
{
	int			level = GetCurrentTransactionNestLevel();

	if (xact_slots->count == 0)
		return;
	if (event == SUBXACT_EVENT_ABORT_SUB)
		ended_level = level;
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		limit_level(first_of_level(level), level - 1);
}

static void
forget(Semaphore *semaphore)
{
	detach_slot_state(&semaphore->state);
	pfree(semaphore);
}

/*
 * The session ends.  Release now what the server would release soon, while waiters can
 * still be woken.
 */
static void
at_exit(int, Datum)
{
	semaphores_iterator iterator;

	LWLockReleaseAll();
	LockErrorCleanup();
	stop_waiting_in_queue();
	notice_lost_slots();
	if (xact_slots->count > 0)
	{
		LockReleaseAll(USER_LOCKMETHOD, false);
		remove_lost(xact_slots, 0);
	}
	while (session_slots->count > 0)
	{
		const OwnSlot &last = session_slots->slots[session_slots->count - 1];

		semaphore_release(last.semaphore->key, last.slot);
	}
	semaphores_start_iterate(known_semaphores, &iterator);
	while (SemaphoreByKey *known = semaphores_iterate(known_semaphores, &iterator))
		forget(known->semaphore);
	known_semaphores = nullptr;
}

/* ---- Opening ---- */

static void
sweep() noexcept
{
	semaphores_iterator iterator;

	semaphores_start_iterate(known_semaphores, &iterator);
	while (SemaphoreByKey *known = semaphores_iterate(known_semaphores, &iterator))
	{
		Semaphore  *semaphore = known->semaphore;

		if (semaphore->held > 0)
			continue;
		semaphores_delete_item(known_semaphores, known);
		forget(semaphore);
	}
	sweep_at = Max(2 * known_semaphores->members, static_cast<uint32>(MIN_KEPT_SEMAPHORES));
}

static Semaphore *
find_or_add_semaphore(Key key)
{
	SemaphoreByKey *known;
	Semaphore  *semaphore;
	bool		found;

	if (known_semaphores == nullptr)
	{
		known_semaphores = semaphores_create(TopMemoryContext, FIRST_SLOTS, nullptr);
		before_shmem_exit(at_exit, Datum(0));
	}
	known = semaphores_lookup(known_semaphores, key.value);
	if (known != nullptr)
		return known->semaphore;
	if (known_semaphores->members >= sweep_at)
		sweep();
	semaphore = static_cast<Semaphore *>(MemoryContextAllocZero(TopMemoryContext, sizeof(Semaphore)));
	semaphore->key = key;
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
semaphore_open(const LockName &name, int slots)
{
	Semaphore  *semaphore;

	/* So that no slot is taken which is still in the list. */
	notice_lost_slots();
	semaphore = find_or_add_semaphore(name.key);
	for (Scope scope : {Scope::session, Scope::transaction})
		reserve_own(scope);
	attach_slot_state(&semaphore->state, name.key, slots);
	if (semaphore->state.shared != nullptr)
		check_agreement(semaphore, name, slots);
	return semaphore;
}

/* ---- Taking a slot ---- */

/* Lock a slot, if it is free and this session does not have it already. */
static bool
lock_slot(Semaphore *semaphore, int slot, Scope scope)
{
	LOCKTAG		tag = tag_of_slot(semaphore, slot);
	bool		is_session = scope == Scope::session;
	LockAcquireResult result = LockAcquire(&tag, ExclusiveLock, is_session, true);

	if (result == LOCKACQUIRE_ALREADY_HELD)
		LockRelease(&tag, ExclusiveLock, is_session);
	if (result != LOCKACQUIRE_OK)
		return false;
	add_own(semaphore, slot, scope);
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
	if (!has_unverified(state, slots))
		return NO_SLOT;
	return take_unverified_slot(semaphore, most_slots_ahead(state, slots) + 1, slots, scope);
}

int
semaphore_wait(Semaphore *semaphore, int slots, Scope scope)
{
	LOCKTAG		tag = tag_of_slot(semaphore, 1);

	if (slots > 1 || is_mine(semaphore, 1))
		return wait_in_queue(semaphore, slots, scope);

	LockAcquire(&tag, ExclusiveLock, scope == Scope::session, false);
	add_own(semaphore, 1, scope);
	mark_taken(semaphore->state, 1);
	return 1;
}

int
semaphore_survivor(Semaphore *semaphore, int slots)
{
	const OwnSlot *last = session_slots->count > 0 ? &session_slots->slots[session_slots->count - 1] : nullptr;

	/* All slots that it had before are noted. */
	if (last != nullptr && last->semaphore == semaphore && last->hold == nullptr)
		return last->slot;
	if (slots > 1 || find_own(Scope::session, semaphore->key, 1) != NONE ||
		find_own(Scope::transaction, semaphore->key, 1) != NONE)
		return NO_SLOT;
	LockErrorCleanup();
	if (!is_mine(semaphore, 1))
		return NO_SLOT;
	add_own(semaphore, 1, Scope::session);
	return 1;
}

/* ---- Noting and releasing ---- */

void
semaphore_note(Semaphore *semaphore, const LockName &name, Hold *hold, int slot, int slots, Scope scope)
{
	OwnSlot    *own = &own_slots[index_of(scope)].slots[find_own(scope, semaphore->key, slot)];

	own->place = hold_note_slot(hold, name, slot, slots, scope);
	own->hold = hold;
}

void
semaphore_release(Key key, int slot)
{
	OwnSlot		own = remove_own(Scope::session, find_own(Scope::session, key, slot));
	LOCKTAG		tag = tag_of_slot(own.semaphore, slot);

	LockRelease(&tag, ExclusiveLock, true);
	mark_free(own.semaphore->state, slot);
	wake_waiters(own.semaphore->state);
	if (own.place != NO_RECORD)
		hold_strike_slot(own.place, true);
}

void
semaphore_keep(Key key, int slot, Hold *hold)
{
	int			index = find_own(Scope::session, key, slot);
	OwnSlot		own = session_slots->slots[index];
	LOCKTAG		tag = tag_of_slot(own.semaphore, slot);

	reserve_own(Scope::transaction);
	LockAcquire(&tag, ExclusiveLock, false, true);
	hold_note_kept_slot(hold, slot, own.place);
	remove_own(Scope::session, index);
	add_own(own.semaphore, slot, Scope::transaction)->hold = own.hold;
	LockRelease(&tag, ExclusiveLock, true);
	/* Its time is that of the record which goes on. */
	hold_strike_slot(own.place, false);
}

int
semaphore_find_slot(Key key, int slot)
{
	int			index;

	notice_lost_slots();
	index = find_own(Scope::session, key, slot);
	return index != NONE ? session_slots->slots[index].slot : NO_SLOT;
}

bool
semaphore_has_slot(Key key)
{
	notice_lost_slots();
	return find_own(Scope::session, key, NO_SLOT) != NONE || find_own(Scope::transaction, key, NO_SLOT) != NONE;
}

int
semaphore_slot_count()
{
	notice_lost_slots();
	return session_slots->count;
}

HeldSlot
semaphore_held_slot(int index)
{
	const OwnSlot &own = session_slots->slots[index];

	return HeldSlot{own.semaphore->key, own.slot, Scope::session, own.hold};
}

void
semaphores_init()
{
	RegisterResourceReleaseCallback(at_resource_release, nullptr);
	RegisterXactCallback(at_xact_end, nullptr);
	RegisterSubXactCallback(at_subxact_end, nullptr);
}

}								/* namespace advisory */
