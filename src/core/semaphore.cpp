/*
 * core/semaphore.cpp
 *		Semaphores: at most K at once.
 *
 * How a free slot is noticed
 *
 * A session keeps a list of the slots that it has.  Locks are released behind its back
 * (by the end of a transaction or savepoint, pg_advisory_unlock_all(), DISCARD ALL), so
 * whenever the server has released what belonged to some resource owner, each slot of the
 * list is compared with what the lock manager says, and what is gone is written on the
 * board (slotboard.h), where the first in line is woken.  That way it is seen at the
 * latest when the statement ends.  When a session ends, its locks are released earlier
 * than the server would, while the board can still be written on.
 *
 * Nobody tells us of COMMIT PREPARED, nor of what sessions without shared memory
 * release.  So the first in line looks at every slot from time to time.
 *
 * Who waits
 *
 * The line's length on the board counts those that are on their way into it, too; while it
 * is not 0 nobody takes a slot without lining up.  Without a board the queue's lock
 * itself is asked.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "base/lockname.h"
#include "shmem/heldread.h"
#include "shmem/waiters.h"
#include "core/semaphore.h"
#include "core/semdeadlock.h"

namespace advisory
{

/* How often the first in line looks at every slot; more often where nobody can wake it. */
static constexpr int LOOK_AFTER_MS = 1000;
static constexpr int LOOK_WITHOUT_BOARD_MS = 100;

/* So many semaphores are remembered at least, although the session has no slot of them. */
static constexpr int MIN_KEPT_SEMAPHORES = 64;

/*
 * Modes of the queue's lock.  Who is in the row keeps it in one that hinders nobody else
 * there.  Who tries without a board hinders nobody who does so too, but does not get past
 * the row.  Who comes into line one after the other keeps all of them out.
 */
static constexpr LOCKMODE IN_ROW = RowExclusiveLock;
static constexpr LOCKMODE PASSING = ShareLock;
static constexpr LOCKMODE IN_DOOR = ExclusiveLock;

static constexpr int FIRST_SLOTS = 16;
static constexpr int NONE = -1;

struct Semaphore
{
	Key			key;
	SlotBoard  *board;			/* null where there is no shared memory for it */
	int			held;			/* slots in the list */
	bool		disagreement_reported;
};

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

/* A slot that this session has, or had when it last looked. */
struct OwnSlot
{
	Semaphore  *semaphore;
	bool		is_noted;
	int			slot;
	Scope		scope;
};

}								/* anonymous namespace */

static semaphores_hash *known_semaphores = nullptr;
static uint32 sweep_at = MIN_KEPT_SEMAPHORES;

/* In the order they were taken. */
static OwnSlot *own_slots = nullptr;
static int	own_count = 0;
static int	own_capacity = 0;

/* Marked on a board, and not yet locked. */
static SlotBoard *claimed_board = nullptr;
static int	claimed_slot = NO_SLOT;

/* In whose line this session stands, and whether in its row. */
static Semaphore *lined_up_for = nullptr;
static bool in_row = false;

static LOCKTAG
tag_of(const Semaphore *semaphore, int slot) noexcept
{
	return slot_tag(MyDatabaseId, semaphore->key, slot);
}

static bool
is_mine(const Semaphore *semaphore, int slot) noexcept
{
	LOCKTAG		tag = tag_of(semaphore, slot);

	return compat::lock_held_by_me(&tag, ExclusiveLock);
}

/* ---- What the session has ---- */

static void
leave_line() noexcept
{
	if (lined_up_for == nullptr)
		return;
	if (lined_up_for->board != nullptr)
	{
		if (in_row)
			board_leave_row(lined_up_for->board);
		board_leave_line(lined_up_for->board);
		/* If it gave up, what was meant for it is somebody else's. */
		board_wake(lined_up_for->board);
	}
	lined_up_for = nullptr;
	in_row = false;
}

/* It is nobody's any more, as the lock manager has it. */
static void
tell_free(const Semaphore *semaphore, int slot) noexcept
{
	if (semaphore->board == nullptr)
		return;
	board_mark_free(semaphore->board, slot);
	board_wake(semaphore->board);
}

static void
add_own(Semaphore *semaphore, int slot, Scope scope) noexcept
{
	own_slots[own_count++] = OwnSlot{semaphore, false, slot, scope};
	semaphore->held++;
}

static OwnSlot
remove_own(int index) noexcept
{
	OwnSlot		own = own_slots[index];

	own_count--;
	memmove(&own_slots[index], &own_slots[index + 1], sizeof(OwnSlot) * (own_count - index));
	own.semaphore->held--;
	return own;
}

/* Where in the list a slot is, or the one taken last if it is NO_SLOT; NONE if it is not there. */
static int
find_own(Key key, int slot) noexcept
{
	for (int i = own_count - 1; i >= 0; i--)
	{
		if (own_slots[i].semaphore->key == key && (slot == NO_SLOT || own_slots[i].slot == slot))
			return i;
	}
	return NONE;
}

/* What the session has published of a slot that is no more in the list. */
static void
strike(const OwnSlot &own, bool released)
{
	HeldLock   *held = held_find(tag_of(own.semaphore, own.slot), Mode::exclusive);

	if (held == nullptr || !own.is_noted || own.scope == Scope::transaction)
		return;
	if (released)
		held_remove(held, 1, true);
	else
		held_forget_session_holds(held);
}

/* Drop a slot that was released behind our back; was it? */
static bool
drop_if_lost(int index) noexcept
{
	if (is_mine(own_slots[index].semaphore, own_slots[index].slot))
		return false;

	OwnSlot		lost = remove_own(index);

	tell_free(lost.semaphore, lost.slot);
	strike(lost, false);
	return true;
}

/* Drop all that were, and a claim that came to nothing. */
static void
drop_lost_slots() noexcept
{
	if (claimed_slot != NO_SLOT)
	{
		board_mark_free(claimed_board, claimed_slot);
		board_wake(claimed_board);
	}
	claimed_slot = NO_SLOT;

	for (int i = own_count - 1; i >= 0; i--)
		drop_if_lost(i);
}

/* Release a session-level slot. */
static void
give_back(int index)
{
	OwnSlot		own = remove_own(index);
	LOCKTAG		tag = tag_of(own.semaphore, own.slot);

	LockRelease(&tag, ExclusiveLock, true);
	tell_free(own.semaphore, own.slot);
	strike(own, true);
}

static void
at_resource_release(ResourceReleasePhase phase, bool, bool, void *)
{
	if (phase == RESOURCE_RELEASE_AFTER_LOCKS && (own_count > 0 || claimed_slot != NO_SLOT))
		drop_lost_slots();
}

static void
detach(Semaphore *semaphore)
{
	if (semaphore->board != nullptr)
		board_detach(semaphore->board);
	pfree(semaphore);
}

/*
 * The session ends.  Release now what the server would release soon, while the boards are
 * still there to be written on.
 */
static void
at_exit(int, Datum)
{
	semaphores_iterator iterator;

	LWLockReleaseAll();
	leave_line();
	if (own_count > 0)
		AbortOutOfAnyTransaction();
	drop_lost_slots();
	while (own_count > 0)
		give_back(own_count - 1);
	semaphores_start_iterate(known_semaphores, &iterator);
	while (SemaphoreByKey *known = semaphores_iterate(known_semaphores, &iterator))
		detach(known->semaphore);
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
		detach(semaphore);
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
	bool		found;

	if (known_semaphores == nullptr)
	{
		known_semaphores = semaphores_create(TopMemoryContext, FIRST_SLOTS, nullptr);
		before_shmem_exit(at_exit, Datum(0));
	}
	if (known_semaphores->members >= sweep_at)
		sweep();

	auto	   *semaphore = static_cast<Semaphore *>(MemoryContextAllocZero(TopMemoryContext, sizeof(Semaphore)));

	semaphore->key = key;
	semaphores_insert(known_semaphores, key.value, &found)->semaphore = semaphore;
	return semaphore;
}

static void
reserve_own()
{
	if (own_count < own_capacity)
		return;

	int			capacity = Max(2 * own_capacity, FIRST_SLOTS);
	Size		bytes = sizeof(OwnSlot) * capacity;

	own_slots = static_cast<OwnSlot *>(own_slots == nullptr
									   ? MemoryContextAlloc(TopMemoryContext, bytes)
									   : repalloc_huge(own_slots, bytes));
	own_capacity = capacity;
}

static void
warn_of_disagreement(const LockName &name, int slots, const OtherSlots &other)
{
	ereport(WARNING,
			(errmsg("semaphore \"%s\" is used with different numbers of slots", display_name(name)),
			 errdetail("This session says that it has %d, process %d that it has %d.", slots, other.pid, other.slots),
			 errhint("Let all use the same number: who says less uses fewer slots, who says more can be let in beside all others.")));
}

static void
check_agreement(Semaphore *semaphore, const LockName &name, int slots)
{
	int			agreed = board_agree(semaphore->board, slots);
	OtherSlots	other;

	if (agreed == 0 || agreed == slots || semaphore->disagreement_reported)
		return;
	if (!find_other_slots(semaphore->key, slots, &other))
		return board_set_agreed(semaphore->board, slots);
	semaphore->disagreement_reported = true;
	warn_of_disagreement(name, slots, other);
}

Semaphore *
semaphore_open(const LockName &name, int slots)
{
	Semaphore  *semaphore = find_semaphore(name.key);

	if (semaphore == nullptr)
		semaphore = add_semaphore(name.key);
	reserve_own();
	if (semaphore->board == nullptr)
		semaphore->board = board_attach(name.key, slots);
	else
		board_make_room(semaphore->board, slots);
	if (semaphore->board != nullptr)
		check_agreement(semaphore, name, slots);
	return semaphore;
}

/* ---- Taking a slot ---- */

/* The lock manager has just given it, maybe once more after it was released behind our back. */
static void
note_taken(Semaphore *semaphore, int slot, Scope scope) noexcept
{
	int			former = semaphore->held > 0 ? find_own(semaphore->key, slot) : NONE;

	if (former != NONE)
		strike(remove_own(former), false);
	add_own(semaphore, slot, scope);
}

/*
 * Lock a slot, if it is free and not this session's already.  Who stands in line says
 * before that he may have it by then: to others he would wait and have it at once.
 */
static bool
lock_slot(Semaphore *semaphore, int slot, Scope scope)
{
	LOCKTAG		tag = tag_of(semaphore, slot);
	bool		is_session = scope == Scope::session;
	LockAcquireResult result;

	if (lined_up_for != nullptr)
		publish_leaving(true);
	result = LockAcquire(&tag, ExclusiveLock, is_session, true);
	if (result == LOCKACQUIRE_ALREADY_HELD)
		LockRelease(&tag, ExclusiveLock, is_session);
	else if (result != LOCKACQUIRE_NOT_AVAIL)
	{
		note_taken(semaphore, slot, scope);
		return true;
	}
	if (lined_up_for != nullptr)
		publish_leaving(false);
	return false;
}

/* A slot that the board has as free. */
static int
take_claimed(Semaphore *semaphore, int slots, Scope scope)
{
	int			slot;

	while ((slot = board_claim(semaphore->board, slots)) != NO_SLOT)
	{
		bool		is_taken;

		claimed_board = semaphore->board;
		claimed_slot = slot;
		if (in_row)
			board_mark_served(semaphore->board);
		is_taken = lock_slot(semaphore, slot, scope);
		claimed_slot = NO_SLOT;
		if (is_taken)
			return slot;
		if (in_row)
			board_mark_waiting(semaphore->board, slots);
		if (!is_mine(semaphore, slot))
			board_mark_doubtful(semaphore->board, slot);
	}
	return NO_SLOT;
}

static bool
take_this(Semaphore *semaphore, int slot, Scope scope)
{
	if (!lock_slot(semaphore, slot, scope))
		return false;
	if (semaphore->board != nullptr)
		board_mark_taken(semaphore->board, slot);
	return true;
}

/* One of those that the board does not know enough of. */
static int
take_doubtful(Semaphore *semaphore, int slots, Scope scope)
{
	int			slot = NO_SLOT;

	while ((slot = board_next_doubtful(semaphore->board, slots, slot)) != NO_SLOT)
	{
		if (take_this(semaphore, slot, scope))
			return slot;
	}
	return NO_SLOT;
}

/* Any, whatever the board says. */
static int
take_any(Semaphore *semaphore, int slots, Scope scope)
{
	for (int slot = 1; slot <= slots; slot++)
	{
		CHECK_FOR_INTERRUPTS();
		if (take_this(semaphore, slot, scope))
			return slot;
	}
	return NO_SLOT;
}

/* Are all of its slots on the board?  To look at the only one is as good as that. */
static bool
is_on_board(const Semaphore *semaphore, int slots) noexcept
{
	return slots > 1 && semaphore->board != nullptr && board_has_room(semaphore->board, slots);
}

static int
take_free(Semaphore *semaphore, int slots, Scope scope)
{
	int			slot;

	if (!is_on_board(semaphore, slots))
		return take_any(semaphore, slots, scope);
	slot = take_claimed(semaphore, slots, scope);
	return slot != NO_SLOT ? slot : take_doubtful(semaphore, slots, scope);
}

/* Without a board: stand in the queue's door, so that nobody can be in line. */
static int
try_behind_queue(Semaphore *semaphore, int slots, Scope scope)
{
	LOCKTAG		queue = queue_tag(MyDatabaseId, semaphore->key);
	int			slot;

	if (LockAcquire(&queue, PASSING, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return NO_SLOT;
	slot = take_free(semaphore, slots, scope);
	LockRelease(&queue, PASSING, false);
	return slot;
}

static int
try_once(Semaphore *semaphore, int slots, Scope scope)
{
	if (slots == 1)
		return take_free(semaphore, slots, scope);	/* the lock manager sees to the line */
	if (semaphore->board == nullptr)
		return try_behind_queue(semaphore, slots, scope);
	return board_line_length(semaphore->board) > 0 ? NO_SLOT : take_free(semaphore, slots, scope);
}

int
semaphore_try(Semaphore *semaphore, int slots, Scope scope)
{
	int			slot = try_once(semaphore, slots, scope);

	if (slot != NO_SLOT || own_count == 0)
		return slot;

	/* Others may wait for what this session has lost without having noticed yet. */
	drop_lost_slots();
	return try_once(semaphore, slots, scope);
}

/* ---- Waiting ---- */

[[noreturn]] static void
raise_lock_timeout()
{
	/* As the server does. */
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("canceling statement due to lock timeout")));
	pg_unreachable();
}

/* time is later than now. */
static void
sleep_until(TimestampTz time, TimestampTz now)
{
	WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
			  TimestampDifferenceMilliseconds(now, time),
			  PG_WAIT_LOCK | LOCKTAG_ADVISORY);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

namespace
{

/* A wait in line. */
class WaitInLine
{
public:
	WaitInLine(Semaphore *semaphore, int slots, Scope scope);

	/* Wait for a slot, and take it. */
	int			wait();

private:
	bool		step_in();
	void		come_through_door();
	void		come_forward();
	void		leave();
	int			take_mine() const;
	int			look_again(TimestampTz now);
	bool		am_first() const noexcept;
	TimestampTz next_look(TimestampTz now) const noexcept;

	Semaphore  *semaphore;
	int			slots;
	Scope		scope;
	LOCKTAG		queue;
	TimestampTz deadline;		/* DT_NOEND if there is none */
	TimestampTz look_at;
	TimestampTz check_at;
};

}								/* anonymous namespace */

WaitInLine::WaitInLine(Semaphore *semaphore, int slots, Scope scope)
	: semaphore(semaphore), slots(slots), scope(scope), queue(queue_tag(MyDatabaseId, semaphore->key))
{
	TimestampTz start = GetCurrentTimestamp();

	deadline = LockTimeout > 0 ? TimestampTzPlusMilliseconds(start, LockTimeout) : DT_NOEND;
	check_at = TimestampTzPlusMilliseconds(start, DeadlockTimeout);
}

TimestampTz
WaitInLine::next_look(TimestampTz now) const noexcept
{
	bool		is_woken = in_row && is_on_board(semaphore, slots);

	return TimestampTzPlusMilliseconds(now, is_woken ? LOOK_AFTER_MS : LOOK_WITHOUT_BOARD_MS);
}

/* Into the row at once: nobody is ahead who is not in it, too. */
bool
WaitInLine::step_in()
{
	if (semaphore->board == nullptr || LockAcquire(&queue, IN_ROW, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	in_row = board_join_row(semaphore->board, slots);
	if (!in_row)
		LockRelease(&queue, IN_ROW, false);
	return in_row;
}

/*
 * Through the door, one after the other, and behind all that are in the row.  Where there is
 * no row the first in line stays in the door, and all others wait for that.
 */
void
WaitInLine::come_through_door()
{
	LockAcquire(&queue, IN_DOOR, false, false);
	LockAcquire(&queue, IN_ROW, false, false);
	in_row = semaphore->board != nullptr && board_join_row(semaphore->board, slots);
	if (in_row)
		LockRelease(&queue, IN_DOOR, false);
}

void
WaitInLine::come_forward()
{
	if (!step_in())
		come_through_door();
	look_at = next_look(GetCurrentTimestamp());
}

void
WaitInLine::leave()
{
	bool		was_in_row = in_row;

	leave_line();
	if (!was_in_row)
		LockRelease(&queue, IN_DOOR, false);
	LockRelease(&queue, IN_ROW, false);
}

bool
WaitInLine::am_first() const noexcept
{
	return !in_row || board_am_first(semaphore->board);
}

/* A slot, if there is one for all ahead of us, too. */
int
WaitInLine::take_mine() const
{
	int			slot = NO_SLOT;

	if (!is_on_board(semaphore, slots))
		return am_first() ? take_any(semaphore, slots, scope) : NO_SLOT;
	if (!in_row || board_has_slot_for_me(semaphore->board, slots))
		slot = take_claimed(semaphore, slots, scope);
	if (slot == NO_SLOT && am_first())
		slot = take_doubtful(semaphore, slots, scope);
	return slot;
}

/* From time to time: what nobody told us about. */
int
WaitInLine::look_again(TimestampTz now)
{
	int			slot = NO_SLOT;

	if (now >= look_at)
	{
		if (am_first())
			slot = take_any(semaphore, slots, scope);
		look_at = next_look(now);
	}
	if (slot == NO_SLOT && now >= check_at)
	{
		check_slot_deadlock(semaphore->key, slots);
		check_at = TimestampTzPlusMilliseconds(now, LOOK_AFTER_MS);
	}
	return slot;
}

int
WaitInLine::wait()
{
	int			slot;

	come_forward();
	while ((slot = take_mine()) == NO_SLOT)
	{
		TimestampTz now = GetCurrentTimestamp();

		if (now >= deadline)
			raise_lock_timeout();
		slot = look_again(now);
		if (slot != NO_SLOT)
			break;
		sleep_until(Min(Min(look_at, check_at), deadline), now);
	}
	leave();
	return slot;
}

/* The only slot: in the lock manager's own line. */
static int
wait_for_only(Semaphore *semaphore, Scope scope)
{
	LOCKTAG		tag = tag_of(semaphore, 1);

	LockAcquire(&tag, ExclusiveLock, scope == Scope::session, false);
	note_taken(semaphore, 1, scope);
	if (semaphore->board != nullptr)
		board_mark_taken(semaphore->board, 1);
	return 1;
}

int
semaphore_wait(Semaphore *semaphore, int slots, Scope scope)
{
	volatile int slot = NO_SLOT;

	if (slots == 1 && !is_mine(semaphore, 1))
		return wait_for_only(semaphore, scope);

	lined_up_for = semaphore;
	if (semaphore->board != nullptr)
		board_enter_line(semaphore->board);
	PG_TRY();
	{
		slot = WaitInLine(semaphore, slots, scope).wait();
	}
	PG_CATCH();
	{
		leave_line();
		PG_RE_THROW();
	}
	PG_END_TRY();
	return slot;
}

int
semaphore_survivor(Semaphore *semaphore, int slots)
{
	const OwnSlot *last = own_count > 0 ? &own_slots[own_count - 1] : nullptr;

	/* What it had before is noted. */
	if (last != nullptr && last->semaphore == semaphore && !last->is_noted && last->scope == Scope::session)
		return last->slot;
	if (slots > 1 || find_own(semaphore->key, 1) != NONE || !is_mine(semaphore, 1))
		return NO_SLOT;
	add_own(semaphore, 1, Scope::session);
	return 1;
}

/* ---- Noting and releasing ---- */

void
semaphore_note(Semaphore *semaphore, int slot, HeldLock *held) noexcept
{
	own_slots[find_own(semaphore->key, slot)].is_noted = true;
}

void
semaphore_kept(Key key, int slot) noexcept
{
	own_slots[find_own(key, slot)].scope = Scope::transaction;
}

void
semaphore_release(Key key, int slot)
{
	give_back(find_own(key, slot));
}

int
semaphore_find_slot(Key key, int slot)
{
	for (int i = own_count - 1; i >= 0; i--)
	{
		OwnSlot		own = own_slots[i];

		if (own.semaphore->key == key && own.scope == Scope::session && (slot == NO_SLOT || own.slot == slot) &&
			!drop_if_lost(i))
			return own.slot;
	}
	return NO_SLOT;
}

bool
semaphore_has_slot(Key key)
{
	drop_lost_slots();
	return find_own(key, NO_SLOT) != NONE;
}

void
semaphores_init()
{
	RegisterResourceReleaseCallback(at_resource_release, nullptr);
}

}								/* namespace advisory */
