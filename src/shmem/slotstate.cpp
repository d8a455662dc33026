/*
 * shmem/slotstate.cpp
 *		Semaphore states: the bits of the slots, and the queue.
 *
 * Attaching and removing
 *
 * A hash table in shared memory leads from database and key to the state, which is an
 * allocation of its own and does not move.  A session attaches with the table's entry
 * locked exclusively, and detaches by decrementing a counter, without a lock.  A session
 * that makes a state when there are many removes those that no session is attached to:
 * with the entry locked nobody can attach.  The session that attaches to a state that
 * nobody is attached to clears it.
 *
 * The bits of slots 1 to 64 are in the state; the bits of all others are in one further
 * allocation, made when the first session needs it.
 *
 * The queue
 *
 * A waiting process has one entry in the array of all waiters (waiters.h).  A state's
 * waiters are linked, in the order of their positions, by process number.  The state's
 * lock protects the links: it is held exclusively to join, to leave and to claim a slot
 * where there are waiters, and shared to read.  A waiter that claims a slot leaves the
 * queue at once, so that it is in nobody's way; if it cannot lock the slot it returns, with
 * the position that it had.
 *
 * Each waiter in order is meant to get the highest free slot that it can use: a lower slot
 * can be used by every waiter that can use a higher one, so this serves as many as
 * possible.  A session may claim what this leaves.
 *
 * No wake-up is lost: a session that waits first joins the queue and then reads the bits.
 * A session that frees a slot first clears its bit and then reads the length of the queue.
 * There is a full memory barrier between the two on both sides, so at least one of them
 * sees what the other has done.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "shmem/root.h"
#include "shmem/slotstate.h"
#include "shmem/waiters.h"

namespace advisory
{

static constexpr int SLOTS_PER_WORD = 64;
static constexpr int WORDS = MAX_SLOTS / SLOTS_PER_WORD;

/* Unused states are removed when there are more than this many, and twice as many as were in use the last time. */
static constexpr uint32 MIN_KEPT_STATES = 64;

/* How many waiters are woken at a time. */
static constexpr int MAX_WOKEN = 64;

static_assert(MAX_SLOTS % SLOTS_PER_WORD == 0, "slots fill their words");

/* One bit for each slot. */
struct SlotWord
{
	pg_atomic_uint64 taken;
	pg_atomic_uint64 unverified;	/* marked as taken, but maybe nobody will mark it when it becomes free */
};

struct SemaphoreState
{
	pg_atomic_uint32 attached;	/* sessions */
	pg_atomic_uint32 queue_length;
	pg_atomic_uint32 agreed;	/* slots */
	LWLock		lock;			/* protects what follows up to word, and the links of the waiters */
	int			first;			/* process numbers */
	int			last;
	uint64		next_position;
	int			most_wanted;	/* the largest number of slots that a session has said since the queue was empty */
	SlotWord	word;			/* of slots 1 to 64 */
	dsa_pointer_atomic more;	/* of all others: WORDS - 1 */
};

namespace
{

struct SemaphoreKey
{
	int64		key;
	Oid			database;
	uint32		padding;		/* always 0, since keys are compared as bytes */
};

struct SemaphoreEntry
{
	SemaphoreKey key;			/* hash key */
	dsa_pointer state;			/* invalid if there was no memory for it */
};

}								/* anonymous namespace */

static dshash_table *semaphores = nullptr;

/* In whose queue this session is. */
static SemaphoreState *my_queue = nullptr;

/* ---- The bits of a slot ---- */

/* Null where the session has not mapped it. */
static SlotWord *
word_at(const SlotState &state, int index) noexcept
{
	if (index == 0)
		return &state.shared->word;
	return state.more != nullptr ? &state.more[index - 1] : nullptr;
}

static SlotWord *
word_of(const SlotState &state, int slot) noexcept
{
	return state.shared != nullptr ? word_at(state, (slot - 1) / SLOTS_PER_WORD) : nullptr;
}

static int
word_count(const SlotState &state) noexcept
{
	return state.more != nullptr ? WORDS : 1;
}

static uint64
bit_of(int slot) noexcept
{
	return UINT64CONST(1) << ((slot - 1) % SLOTS_PER_WORD);
}

/* Those bits of a word that are of slots up to last. */
static uint64
bits_up_to(int index, int last) noexcept
{
	int			count = last - index * SLOTS_PER_WORD;

	if (count >= SLOTS_PER_WORD)
		return PG_UINT64_MAX;
	return count > 0 ? (UINT64CONST(1) << count) - 1 : 0;
}

namespace
{

/* A copy of which slots, up to last, are free. */
class FreeSlots
{
public:
	FreeSlots(const SlotState &state, int last) noexcept
		: word_count(Min(advisory::word_count(state), (last - 1) / SLOTS_PER_WORD + 1))
	{
		for (int i = 0; i < word_count; i++)
		{
			words[i] = ~pg_atomic_read_u64(&word_at(state, i)->taken) & bits_up_to(i, last);
			count += pg_popcount64(words[i]);
		}
	}

	bool		is_empty() const noexcept
	{
		return count == 0;
	}

	/* Remove the highest, or the lowest, up to last, and return it; NO_SLOT if there is none. */
	int take_highest(int last) noexcept
	{
		for (int i = Min(word_count - 1, (last - 1) / SLOTS_PER_WORD); i >= 0 && count > 0; i--)
		{
			if (uint64 bits = words[i] & bits_up_to(i, last))
				return take(i, pg_leftmost_one_pos64(bits));
		}
		return NO_SLOT;
	}
	int take_lowest(int last) noexcept
	{
		for (int i = 0; i < word_count && count > 0; i++)
		{
			if (uint64 bits = words[i] & bits_up_to(i, last))
				return take(i, pg_rightmost_one_pos64(bits));
		}
		return NO_SLOT;
	}

private:
	int take(int index, int position) noexcept
	{
		words[index] &= ~(UINT64CONST(1) << position);
		count--;
		return index * SLOTS_PER_WORD + position + 1;
	}

	int			word_count;
	int			count = 0;
	uint64		words[WORDS];
};

}								/* anonymous namespace */

/* ---- Attaching ---- */

static void
attach_table(SharedRoot *root)
{
	dshash_parameters parameters = compat::hash_parameters(sizeof(SemaphoreKey), sizeof(SemaphoreEntry), root->tranche);

	LWLockAcquire(&root->lock, LW_EXCLUSIVE);
	if (root->semaphores == InvalidDsaPointer)
	{
		dshash_table *made = dshash_create(shared_area(), &parameters, &root->seed);

		root->semaphores = dshash_get_hash_table_handle(made);
		dshash_detach(made);
	}
	LWLockRelease(&root->lock);
	semaphores = dshash_attach(shared_area(), &parameters, root->semaphores, &root->seed);
}

static bool
has_table()
{
	if (semaphores != nullptr)
		return true;

	SharedRoot *root = shared_root();

	return root != nullptr && !shared_is_short() && shared_attempt([root]() { attach_table(root); });
}

static void
clear_words(SlotWord *words, int count) noexcept
{
	for (int i = 0; i < count; i++)
	{
		pg_atomic_init_u64(&words[i].taken, 0);
		pg_atomic_init_u64(&words[i].unverified, 0);
	}
}

static SlotWord *
further_words(SemaphoreState *shared)
{
	dsa_pointer place = dsa_pointer_atomic_read(&shared->more);

	pg_read_barrier();
	return place != InvalidDsaPointer ? static_cast<SlotWord *>(dsa_get_address(shared_area(), place)) : nullptr;
}

static dsa_pointer
make_state()
{
	dsa_pointer place = dsa_allocate0(shared_area(), sizeof(SemaphoreState));
	auto	   *made = static_cast<SemaphoreState *>(dsa_get_address(shared_area(), place));

	pg_atomic_init_u32(&made->attached, 0);
	LWLockInitialize(&made->lock, shared_root_if_attached()->tranche);
	dsa_pointer_atomic_init(&made->more, InvalidDsaPointer);
	return place;
}

static void
clear_state(SemaphoreState *shared)
{
	pg_atomic_init_u32(&shared->queue_length, 0);
	pg_atomic_init_u32(&shared->agreed, 0);
	shared->first = NO_PROCESS;
	shared->last = NO_PROCESS;
	shared->next_position = 0;
	shared->most_wanted = 0;
	clear_words(&shared->word, 1);
	if (SlotWord *more = further_words(shared))
		clear_words(more, WORDS - 1);
}

static void
make_further_words(SemaphoreState *shared)
{
	dsa_pointer place = dsa_allocate(shared_area(), sizeof(SlotWord) * (WORDS - 1));

	clear_words(static_cast<SlotWord *>(dsa_get_address(shared_area(), place)), WORDS - 1);
	pg_write_barrier();
	dsa_pointer_atomic_write(&shared->more, place);
}

/* Free a state that no session is attached to, with its entry locked. */
static bool
free_if_unused(SemaphoreEntry *entry)
{
	dsa_pointer place = entry->state;

	if (place != InvalidDsaPointer)
	{
		auto	   *shared = static_cast<SemaphoreState *>(dsa_get_address(shared_area(), place));
		dsa_pointer more = dsa_pointer_atomic_read(&shared->more);

		if (pg_atomic_read_u32(&shared->attached) > 0)
			return false;
		/* So that nothing is freed twice if this fails half-way. */
		entry->state = InvalidDsaPointer;
		if (more != InvalidDsaPointer)
			dsa_free(shared_area(), more);
		dsa_free(shared_area(), place);
	}
	return true;
}

static void
remove_unused_states(SharedRoot *root)
{
	dshash_seq_status scan;
	uint32		left;
	int			removed = 0;

	dshash_seq_init(&scan, semaphores, true);
	while (auto *entry = static_cast<SemaphoreEntry *>(dshash_seq_next(&scan)))
	{
		if (!free_if_unused(entry))
			continue;
		dshash_delete_current(&scan);
		removed++;
	}
	dshash_seq_term(&scan);
	left = pg_atomic_sub_fetch_u32(&root->semaphore_count, removed);
	pg_atomic_write_u32(&root->semaphore_limit, Max(2 * left, MIN_KEPT_STATES));
}

static void
attach(SlotState *state, Key key, int slots)
{
	SemaphoreKey wanted = {key.value, MyDatabaseId, 0};
	SharedRoot *root = shared_root_if_attached();
	bool		found;
	auto	   *entry = static_cast<SemaphoreEntry *>(dshash_find_or_insert(semaphores, &wanted, &found));

	if (!found)
	{
		entry->state = InvalidDsaPointer;
		pg_atomic_fetch_add_u32(&root->semaphore_count, 1);
	}
	if (entry->state == InvalidDsaPointer)
		entry->state = make_state();
	if (state->shared == nullptr)
	{
		auto	   *shared = static_cast<SemaphoreState *>(dsa_get_address(shared_area(), entry->state));

		if (pg_atomic_read_u32(&shared->attached) == 0)
			clear_state(shared);
		pg_atomic_fetch_add_u32(&shared->attached, 1);
		state->shared = shared;
	}
	if (slots > SLOTS_PER_WORD && dsa_pointer_atomic_read(&state->shared->more) == InvalidDsaPointer)
		make_further_words(state->shared);
	state->more = further_words(state->shared);
	dshash_release_lock(semaphores, entry);

	if (!found && pg_atomic_read_u32(&root->semaphore_count) > Max(pg_atomic_read_u32(&root->semaphore_limit), MIN_KEPT_STATES))
		remove_unused_states(root);
}

void
attach_slot_state(SlotState *state, Key key, int slots)
{
	bool		is_attached = state->shared != nullptr &&
		(state->more != nullptr ||
		 (slots <= SLOTS_PER_WORD && dsa_pointer_atomic_read(&state->shared->more) == InvalidDsaPointer));

	if (!is_attached && has_table() && attach_waiters() && !shared_is_short())
		shared_attempt([=]() { attach(state, key, slots); });
}

void
detach_slot_state(SlotState *state) noexcept
{
	if (state->shared != nullptr)
		pg_atomic_fetch_sub_u32(&state->shared->attached, 1);
	*state = SlotState{};
}

bool
has_bits_of(const SlotState &state, int slots) noexcept
{
	return state.shared != nullptr && (slots <= SLOTS_PER_WORD || state.more != nullptr);
}

/* ---- Slots ---- */

int
next_unverified(const SlotState &state, int first, int last) noexcept
{
	for (int i = (first - 1) / SLOTS_PER_WORD; i < word_count(state) && i * SLOTS_PER_WORD < last; i++)
	{
		uint64		bits = pg_atomic_read_u64(&word_at(state, i)->unverified) & bits_up_to(i, last) & ~bits_up_to(i, first - 1);

		if (bits != 0)
			return i * SLOTS_PER_WORD + pg_rightmost_one_pos64(bits) + 1;
	}
	return NO_SLOT;
}

static void
clear_unverified(SlotWord *word, int slot) noexcept
{
	if ((pg_atomic_read_u64(&word->unverified) & bit_of(slot)) != 0)
		pg_atomic_fetch_and_u64(&word->unverified, ~bit_of(slot));
}

void
mark_taken(const SlotState &state, int slot) noexcept
{
	if (SlotWord *word = word_of(state, slot))
	{
		pg_atomic_fetch_or_u64(&word->taken, bit_of(slot));
		clear_unverified(word, slot);
	}
}

void
mark_unverified(const SlotState &state, int slot) noexcept
{
	if (SlotWord *word = word_of(state, slot))
	{
		pg_atomic_fetch_or_u64(&word->unverified, bit_of(slot));
		pg_atomic_fetch_or_u64(&word->taken, bit_of(slot));
	}
}

void
mark_free(const SlotState &state, int slot) noexcept
{
	if (SlotWord *word = word_of(state, slot))
	{
		clear_unverified(word, slot);
		pg_atomic_fetch_and_u64(&word->taken, ~bit_of(slot));
	}
}

/* ---- The queue ---- */

/*
 * Call visit(process number, slots) for each waiter, up to this session if it is one, until
 * it returns false.  With the state's lock held.
 */
template <typename Visit>
static void
visit_waiters(SemaphoreState *shared, Visit visit)
{
	for (int number = shared->first; number != NO_PROCESS && number != my_process_number(); number = queue_link(number)->next)
	{
		if (!visit(number, queue_link(number)->slots))
			return;
	}
}

/* Insert this session by its position.  With the state's lock held. */
static void
link_me(SemaphoreState *shared)
{
	int			me = my_process_number();
	QueueLink  *link = queue_link(me);
	int			previous = shared->last;

	while (previous != NO_PROCESS && queue_link(previous)->position > link->position)
		previous = queue_link(previous)->previous;
	link->previous = previous;
	link->next = previous != NO_PROCESS ? queue_link(previous)->next : shared->first;
	*(previous != NO_PROCESS ? &queue_link(previous)->next : &shared->first) = me;
	*(link->next != NO_PROCESS ? &queue_link(link->next)->previous : &shared->last) = me;
	shared->most_wanted = Max(shared->most_wanted, link->slots);
	my_queue = shared;
	/* Implies a full memory barrier: this session reads the bits next. */
	pg_atomic_fetch_add_u32(&shared->queue_length, 1);
}

/* With the state's lock held. */
static void
unlink_me(SemaphoreState *shared)
{
	const QueueLink *link = queue_link(my_process_number());

	*(link->previous != NO_PROCESS ? &queue_link(link->previous)->next : &shared->first) = link->next;
	*(link->next != NO_PROCESS ? &queue_link(link->next)->previous : &shared->last) = link->previous;
	if (shared->first == NO_PROCESS)
		shared->most_wanted = 0;
	my_queue = nullptr;
	pg_atomic_fetch_sub_u32(&shared->queue_length, 1);
}

void
join_queue(const SlotState &state, int slots)
{
	QueueLink  *link = queue_link(my_process_number());

	LWLockAcquire(&state.shared->lock, LW_EXCLUSIVE);
	link->position = state.shared->next_position++;
	link->slots = slots;
	link_me(state.shared);
	LWLockRelease(&state.shared->lock);
}

void
return_to_queue(const SlotState &state)
{
	LWLockAcquire(&state.shared->lock, LW_EXCLUSIVE);
	link_me(state.shared);
	LWLockRelease(&state.shared->lock);
}

void
leave_queue()
{
	SemaphoreState *shared = my_queue;

	if (shared == nullptr)
		return;
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	unlink_me(shared);
	LWLockRelease(&shared->lock);
}

static bool
has_waiters(const SlotState &state) noexcept
{
	return pg_atomic_read_u32(&state.shared->queue_length) > 0;
}

static int
claim_lowest(const SlotState &state, FreeSlots *free, int slots) noexcept
{
	int			slot;

	while ((slot = free->take_lowest(slots)) != NO_SLOT)
	{
		if ((pg_atomic_fetch_or_u64(&word_of(state, slot)->taken, bit_of(slot)) & bit_of(slot)) == 0)
			break;
	}
	return slot;
}

static int
claim_behind_waiters(const SlotState &state, int slots)
{
	FreeSlots	free(state, Max(slots, state.shared->most_wanted));
	int			slot;

	visit_waiters(state.shared, [&free](int, int its_slots) {
		free.take_highest(its_slots);
		return !free.is_empty();
	});
	slot = claim_lowest(state, &free, slots);
	if (slot != NO_SLOT && my_queue == state.shared)
		unlink_me(state.shared);
	return slot;
}

int
claim_slot(const SlotState &state, int slots)
{
	FreeSlots	free(state, slots);
	int			slot;

	if (free.is_empty() || !has_waiters(state))
		return claim_lowest(state, &free, slots);
	LWLockAcquire(&state.shared->lock, LW_EXCLUSIVE);
	slot = claim_behind_waiters(state, slots);
	LWLockRelease(&state.shared->lock);
	return slot;
}

int
most_slots_ahead(const SlotState &state, int enough)
{
	int			most = 0;

	if (!has_waiters(state))
		return most;
	LWLockAcquire(&state.shared->lock, LW_SHARED);
	visit_waiters(state.shared, [&](int, int slots) {
		most = Max(most, slots);
		return most < enough;
	});
	LWLockRelease(&state.shared->lock);
	return most;
}

void
wake_waiters(const SlotState &state)
{
	int			woken[MAX_WOKEN];
	int			count = 0;

	if (state.shared == nullptr)
		return;
	pg_memory_barrier();
	if (!has_waiters(state))
		return;
	pg_read_barrier();

	/* A session that joins only now, and may say a larger number of slots, reads the bits itself. */
	FreeSlots	free(state, Max(state.shared->most_wanted, 1));

	if (free.is_empty())
		return;
	LWLockAcquire(&state.shared->lock, LW_SHARED);
	visit_waiters(state.shared, [&](int number, int slots) {
		if (free.take_highest(slots) != NO_SLOT)
			woken[count++] = number;
		return count < MAX_WOKEN && !free.is_empty();
	});
	LWLockRelease(&state.shared->lock);
	for (int i = 0; i < count; i++)
		SetLatch(&ProcGlobal->allProcs[woken[i]].procLatch);
}

/* ---- The number of slots ---- */

int
agree_on_slots(const SlotState &state, int slots) noexcept
{
	uint32		agreed = 0;

	if (pg_atomic_read_u32(&state.shared->agreed) == static_cast<uint32>(slots))
		return slots;
	if (pg_atomic_compare_exchange_u32(&state.shared->agreed, &agreed, static_cast<uint32>(slots)))
		return 0;
	return static_cast<int>(agreed);
}

void
set_agreed_slots(const SlotState &state, int slots) noexcept
{
	pg_atomic_write_u32(&state.shared->agreed, static_cast<uint32>(slots));
}

}								/* namespace advisory */
