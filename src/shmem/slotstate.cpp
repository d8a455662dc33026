/*
 * shmem/slotstate.cpp
 *		Semaphore states: the bits of the slots, and the queue.
 *
 * Attaching and removing
 *
 * A hash table in shared memory maps database and key to the state.  Its entries do not move.  A
 * session attaches with the entry locked exclusively, and detaches by decrementing a counter,
 * without a lock.  If there are many states, the session that creates a new one removes the states
 * that no session is attached to; while the entry is locked no session can attach.  A session that
 * attaches to a state without other sessions clears it.
 *
 * The queue
 *
 * A waiting process has a link in its place of the session table (sessiontable.h).  A state's
 * waiters are linked, in the order of their positions, by process number.  The state's lock
 * protects the links: it is held exclusively to join, to leave, and to claim a slot if there are
 * waiters, and shared to read.  Without the lock a session only checks whether there is a first
 * waiter.  A waiter that claims a slot leaves the queue immediately, so that no slot is set aside
 * for it any more.  If it cannot lock the slot it joins again, in its previous position.
 *
 * One rule decides which waiters are woken and which slots can be claimed: for each waiter, in
 * order, the highest free slot that it can use is set aside.  Every waiter that can use a higher
 * slot can also use a lower one, so this rule serves as many waiters as possible. wake_waiters()
 * wakes the waiters for which a slot is set aside.  claim_slot() claims the lowest free slot that
 * is not set aside for the waiters ahead of this session.  Change both together.
 *
 * No wake-up is lost.  A session that waits first joins the queue and then reads the bits.  A
 * session that frees a slot first clears its bit and then looks for a first waiter.  On both sides
 * there is a full memory barrier between the two steps, so at least one of the sessions sees what
 * the other has done.
 */
#include "base/pg.h"

#include "shmem/slotstate.h"
#include "server/latch.h"
#include "shmem/root.h"
#include "shmem/sessiontable.h"

namespace advisory
{

static constexpr int SLOTS_PER_WORD = 64;
static constexpr int WORDS = MAX_SLOTS / SLOTS_PER_WORD;

/*
 * Unused states are removed when there are more than this many, and more than twice as many as were
 * left the last time.
 */
static constexpr uint32 MIN_KEPT_STATES = 64;

static_assert(MAX_SLOTS % SLOTS_PER_WORD == 0, "slots fill their words");

/* One bit for each slot. */
struct SlotWord
{
	pg_atomic_uint64 taken;
	pg_atomic_uint64 unverified;	/* see SlotMark */
};

struct SemaphoreState
{
	SharedKey	key;			/* hash key */
	pg_atomic_uint32 attached;	/* sessions */
	pg_atomic_uint32 agreed;	/* slots; 0 if no session has given a number yet */
	/* Protects what follows up to words, and the links of the waiters. */
	LWLock		lock;
	int			first;			/* waiter: its process number, or NO_PROCESS */
	/* The largest number of slots that a waiter has given since the queue was empty. */
	int			most_wanted;
	uint64		next_position;
	SlotWord	words[WORDS];
};

/* A copy of the bits of free slots. */
struct FreeSlots
{
	int			count = 0;
	int			word_count = 0;
	uint64		words[WORDS];
};

static dshash_table *semaphores = nullptr;

/*
 * The semaphore that this session waits for.  The session is not in the queue while it tries to
 * lock a claimed slot.
 */
static SemaphoreState *my_queue = nullptr;

/* ---- Attaching ---- */

/* Has this session attached to the table?  Attaches it if possible.  May ereport for a cancel. */
static bool
has_semaphores()
{
	if (semaphores == nullptr)
		semaphores = shared_hash(&SharedRoot::semaphores, sizeof(SemaphoreState),
								 &SharedRoot::slots_tranche);
	return semaphores != nullptr;
}

static void
remove_unused_states()
{
	dshash_seq_status scan;
	uint32		left;
	int			removed = 0;

	dshash_seq_init(&scan, semaphores, true);
	while (auto *state = static_cast<SemaphoreState *>(dshash_seq_next(&scan)))
	{
		if (pg_atomic_read_u32(&state->attached) > 0)
			continue;
		dshash_delete_current(&scan);
		removed++;
	}
	dshash_seq_term(&scan);
	left = pg_atomic_sub_fetch_u32(&attached_root->semaphore_count, removed);
	pg_atomic_write_u32(&attached_root->semaphore_limit, Max(2 * left, MIN_KEPT_STATES));
}

/* For the first of the sessions that are attached.  The entry must be locked exclusively. */
static void
clear_state(SemaphoreState *state) noexcept
{
	pg_atomic_init_u32(&state->agreed, 0);
	LWLockInitialize(&state->lock, attached_root->slots_tranche);
	state->first = NO_PROCESS;
	state->most_wanted = 0;
	state->next_position = 0;
	for (SlotWord &word : state->words)
	{
		pg_atomic_init_u64(&word.taken, 0);
		pg_atomic_init_u64(&word.unverified, 0);
	}
}

SemaphoreState *
attach_slot_state(Key key)
{
	SharedKey	wanted = {key, MyDatabaseId};
	SemaphoreState *state = nullptr;

	if (all_sessions() == nullptr || !has_semaphores() || shared_is_short())
		return nullptr;
	shared_attempt([&]() {
		pg_atomic_uint32 *count = &attached_root->semaphore_count;
		bool		found;

		state = static_cast<SemaphoreState *>(dshash_find_or_insert(semaphores, &wanted, &found));
		if (!found)
		{
			pg_atomic_init_u32(&state->attached, 0);
			pg_atomic_fetch_add_u32(count, 1);
		}
		if (pg_atomic_fetch_add_u32(&state->attached, 1) == 0)
			clear_state(state);
		dshash_release_lock(semaphores, state);
		if (pg_atomic_read_u32(count) > Max(pg_atomic_read_u32(&attached_root->semaphore_limit),
											MIN_KEPT_STATES))
			remove_unused_states();
	});
	return state;
}

void
detach_slot_state(SemaphoreState *state) noexcept
{
	if (state != nullptr)
		pg_atomic_fetch_sub_u32(&state->attached, 1);
}

/* ---- The bits of slots ---- */

static SlotWord *
word_of(SemaphoreState *state, int slot) noexcept
{
	return &state->words[(slot - 1) / SLOTS_PER_WORD];
}

static uint64
bit_of(int slot) noexcept
{
	return UINT64CONST(1) << ((slot - 1) % SLOTS_PER_WORD);
}

/* A word whose lowest count bits are set. */
static uint64
lowest_bits(int count) noexcept
{
	if (count >= SLOTS_PER_WORD)
		return PG_UINT64_MAX;
	return count > 0 ? (UINT64CONST(1) << count) - 1 : 0;
}

/* The slots, up to last, that are marked as free. */
static FreeSlots
read_free_slots(SemaphoreState *state, int last) noexcept
{
	FreeSlots	free;

	for (int base = 0; base < last; base += SLOTS_PER_WORD)
	{
		uint64		bits = ~pg_atomic_read_u64(&word_of(state, base + 1)->taken) &
			lowest_bits(last - base);

		free.words[free.word_count++] = bits;
		free.count += pg_popcount64(bits);
	}
	return free;
}

/*
 * Remove the highest or the lowest slot, up to last, from the copy and return it; NO_SLOT if there
 * is none.
 */
static int
remove_free_slot(FreeSlots *free, int last, bool highest) noexcept
{
	for (int i = 0; i < free->word_count && free->count > 0; i++)
	{
		int			index = highest ? free->word_count - 1 - i : i;
		uint64		bits = free->words[index] & lowest_bits(last - index * SLOTS_PER_WORD);
		int			position;

		if (bits == 0)
			continue;
		position = highest ? pg_leftmost_one_pos64(bits) : pg_rightmost_one_pos64(bits);
		free->words[index] &= ~(UINT64CONST(1) << position);
		free->count--;
		return index * SLOTS_PER_WORD + position + 1;
	}
	return NO_SLOT;
}

int
next_unverified(SemaphoreState *state, int first, int last) noexcept
{
	for (int base = (first - 1) / SLOTS_PER_WORD * SLOTS_PER_WORD; base < last;
		 base += SLOTS_PER_WORD)
	{
		uint64		bits = pg_atomic_read_u64(&word_of(state, base + 1)->unverified) &
			lowest_bits(last - base) & ~lowest_bits(first - 1 - base);

		if (bits != 0)
			return base + pg_rightmost_one_pos64(bits) + 1;
	}
	return NO_SLOT;
}

void
mark_slot(SemaphoreState *state, int slot, SlotMark mark) noexcept
{
	SlotWord   *word;

	if (state == nullptr)
		return;
	word = word_of(state, slot);
	if (mark == SlotMark::unverified)
		pg_atomic_fetch_or_u64(&word->unverified, bit_of(slot));
	else
		pg_atomic_fetch_and_u64(&word->unverified, ~bit_of(slot));
	if (mark == SlotMark::free)
		pg_atomic_fetch_and_u64(&word->taken, ~bit_of(slot));
	else
		pg_atomic_fetch_or_u64(&word->taken, bit_of(slot));
}

/* ---- The queue ---- */

static QueueLink *
queue_link(int proc_number) noexcept
{
	return &all_sessions()[proc_number].link;
}

void
join_queue(SemaphoreState *state, int slots, bool again)
{
	int			me = my_process_number();
	QueueLink  *link = queue_link(me);
	int		   *place = &state->first;

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	if (!again)
		link->position = state->next_position++;
	while (*place != NO_PROCESS && queue_link(*place)->position < link->position)
		place = &queue_link(*place)->next;
	link->slots = slots;
	link->next = *place;
	*place = me;
	state->most_wanted = Max(state->most_wanted, slots);
	my_queue = state;
	LWLockRelease(&state->lock);
	/* This session reads the bits next. */
	pg_memory_barrier();
}

/* Remove this session from the queue, which it must be in.  The state's lock must be held. */
static void
unlink_me(SemaphoreState *state) noexcept
{
	int			me = my_process_number();
	int		   *place = &state->first;

	while (*place != me)
		place = &queue_link(*place)->next;
	*place = queue_link(me)->next;
	queue_link(me)->slots = 0;
	if (state->first == NO_PROCESS)
		state->most_wanted = 0;
}

void
leave_queue() noexcept
{
	SemaphoreState *state = my_queue;

	if (state == nullptr)
		return;
	my_queue = nullptr;
	if (queue_link(my_process_number())->slots > 0)
	{
		LWLockAcquire(&state->lock, LW_EXCLUSIVE);
		unlink_me(state);
		LWLockRelease(&state->lock);
	}
	/* If this session gives up, another one can get the slot that was set aside for it. */
	wake_waiters(state);
}

int
claim_slot(SemaphoreState *state, int slots)
{
	FreeSlots	free = read_free_slots(state, slots);
	bool		has_waiters = state->first != NO_PROCESS;
	int			me = my_process_number();
	int			slot;

	if (free.count == 0)
		return NO_SLOT;
	if (has_waiters)
	{
		LWLockAcquire(&state->lock, LW_EXCLUSIVE);
		free = read_free_slots(state, Max(slots, state->most_wanted));
		for (int i = state->first; i != NO_PROCESS && i != me && free.count > 0;
			 i = queue_link(i)->next)
			remove_free_slot(&free, queue_link(i)->slots, true);
	}
	while ((slot = remove_free_slot(&free, slots, false)) != NO_SLOT)
	{
		uint64		before = pg_atomic_fetch_or_u64(&word_of(state, slot)->taken, bit_of(slot));

		if ((before & bit_of(slot)) == 0)
			break;
	}
	if (slot != NO_SLOT && my_queue == state)
		unlink_me(state);
	if (has_waiters)
		LWLockRelease(&state->lock);
	return slot;
}

int
most_slots_ahead(SemaphoreState *state, int enough)
{
	int			me = my_process_number();
	int			most = 0;

	if (state->first == NO_PROCESS)
		return most;
	LWLockAcquire(&state->lock, LW_SHARED);
	for (int i = state->first; i != NO_PROCESS && i != me && most < enough; i = queue_link(i)->next)
		most = Max(most, queue_link(i)->slots);
	LWLockRelease(&state->lock);
	return most;
}

void
wake_waiters(SemaphoreState *state) noexcept
{
	/* The bits were written before. */
	pg_memory_barrier();
	if (state == nullptr || state->first == NO_PROCESS)
		return;
	LWLockAcquire(&state->lock, LW_SHARED);

	/*
	 * A session that joins after this, perhaps with a larger number of slots, reads the bits
	 * itself.
	 */
	FreeSlots	free = read_free_slots(state, state->most_wanted);

	for (int i = state->first; i != NO_PROCESS && free.count > 0; i = queue_link(i)->next)
	{
		if (remove_free_slot(&free, queue_link(i)->slots, true) != NO_SLOT)
			wake(i);
	}
	LWLockRelease(&state->lock);
}

/* ---- The number of slots ---- */

int
highest_slot(Key key)
{
	SharedKey	wanted = {key, MyDatabaseId};
	int			highest = SLOTS_PER_WORD;
	bool		is_known;

	if (!has_semaphores())
		return MAX_SLOTS;
	is_known = shared_attempt([&]() {
		auto	   *state = static_cast<SemaphoreState *>(dshash_find(semaphores, &wanted, false));

		if (state == nullptr)
			return;
		highest = Max(highest, static_cast<int>(pg_atomic_read_u32(&state->agreed)));
		for (int last = MAX_SLOTS; last > highest; last -= SLOTS_PER_WORD)
		{
			if (pg_atomic_read_u64(&word_of(state, last)->taken) != 0)
				highest = last;
		}
		dshash_release_lock(semaphores, state);
	});
	return is_known ? highest : MAX_SLOTS;
}

bool
agree_on_slots(SemaphoreState *state, int slots, bool replaces) noexcept
{
	uint32		wanted = static_cast<uint32>(slots);
	uint32		agreed = 0;

	if (replaces)
		pg_atomic_write_u32(&state->agreed, wanted);
	return pg_atomic_compare_exchange_u32(&state->agreed, &agreed, wanted) || agreed == wanted;
}

}								/* namespace advisory */
