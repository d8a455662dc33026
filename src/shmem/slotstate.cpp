/*
 * shmem/slotstate.cpp
 *		Semaphore states: the bits of the slots, and the queue.
 *
 * Attaching and removing
 *
 * A hash table in shared memory maps database and key to the shared part of the state.  Its entries
 * do not move.  A session attaches with the entry locked exclusively, and detaches by decrementing
 * a counter, without a lock, so that it can do so at its end.  Nobody needs a state that no session
 * is attached to: a session that attaches to it clears it.  When there are many such states, the
 * next session that asks for a lock removes them; while the entry is locked no session can attach.
 *
 * The queue
 *
 * A waiting process has a link in its place of the session table (sessiontable.h), or one for each
 * of several semaphores.  A state's waiters are linked, in the order of their tickets.  The state's
 * lock protects the links: it is held exclusively to join, to leave, and to claim a slot if there
 * are waiters, and shared to read.  Without the lock a session only checks whether there is a first
 * waiter.  A waiter that claims its slots leaves the queues immediately, so that no slot is set
 * aside for it any more.  If it cannot lock one of them it joins again, with the same ticket.
 *
 * One rule decides which waiters are woken and which slots can be claimed: for each waiter, in
 * order, the highest free slots that it can use are set aside, as many as it wants.  Every waiter
 * that can use a higher slot can also use a lower one, so this rule serves as many waiters as
 * possible.  If there are fewer than it wants, they stay set aside until there are enough, so that
 * those behind it cannot starve it.  wake_waiters() wakes the waiters for which all is set aside.
 * claim_slots() claims the lowest free slots that are not set aside for the waiters ahead of this
 * session.  Change both together.  A session that claims several slots holds the state's lock, so
 * that two of them never take a part each.
 *
 * A session that wants a slot of each of several semaphores stands in all their queues with one
 * ticket, which is drawn from one counter for all queues.  So of two waiters the same one is ahead
 * wherever both stand, and the one with the lowest ticket of all is ahead everywhere: what it wants
 * is set aside for it as it comes free, and nobody is served instead.  It claims with the locks of
 * all its states held, which are taken in the order of the keys.
 *
 * No wake-up is lost.  A session that waits first joins the queue and then reads the bits.  A
 * session that frees a slot first clears its bit and then looks for a first waiter.  On both sides
 * there is a full memory barrier between the two steps, so at least one of the sessions sees what
 * the other has done.
 */
#include "base/pg.h"

#include "shmem/slotstate.h"
#include "base/stoppoint.h"
#include "server/latch.h"
#include "shmem/root.h"

namespace advisory
{

static constexpr int SLOTS_PER_WORD = 64;
static constexpr int WORDS = MAX_SLOTS / SLOTS_PER_WORD;

/* Unused states are removed when there are more than this many, and more than a quarter of all. */
static constexpr int64 MAX_UNUSED_STATES = 64;

/* That all states take together. */
static constexpr uint32 MAX_BYTES = 8 * 1024 * 1024;

static_assert(MAX_SLOTS % SLOTS_PER_WORD == 0, "slots fill their words");

/* A copy of the bits of free slots. */
struct FreeSlots
{
	int			count = 0;
	int			word_count = 0;
	uint64		words[WORDS];
};

static dshash_table *semaphores = nullptr;

/* What this session waits for; it is not in the queues while it tries to lock claimed slots. */
static SemaphoreState *my_queues[MAX_QUEUES];
static int	my_queue_count = 0;

/* ---- Attaching ---- */

bool
has_semaphores()
{
	if (semaphores == nullptr && all_sessions() != nullptr)
		semaphores = shared_hash(&SharedRoot::semaphores, sizeof(SharedState),
								 &SharedRoot::slots_tranche);
	return semaphores != nullptr;
}

/* How many slots this many blocks have together: 64, 256, 1,024, 4,096 or 16,384. */
static constexpr int
slots_of(int block_count) noexcept
{
	return block_count > 0 ? SLOTS_PER_WORD << (2 * (block_count - 1)) : 0;
}

static_assert(slots_of(SLOT_BLOCKS) >= MAX_SLOTS, "the blocks have room for all slots");

static constexpr uint32
block_bytes(int block) noexcept
{
	return (slots_of(block + 1) - slots_of(block)) / SLOTS_PER_WORD * sizeof(SlotWord);
}

/* Remove the states that no session is attached to.  May run out of memory halfway. */
static void
remove_unused_states()
{
	dshash_seq_status scan;

	dshash_seq_init(&scan, semaphores, true);
	while (auto *shared = static_cast<SharedState *>(dshash_seq_next(&scan)))
	{
		if (pg_atomic_read_u32(&shared->attached) > 0)
			continue;
		while (shared->block_count > 1)
		{
			int			last = --shared->block_count;

			pg_atomic_fetch_sub_u32(&attached_root->semaphore_bytes, block_bytes(last));
			dsa_free(shared_area, shared->blocks[last]);
		}
		dshash_delete_current(&scan);
		pg_atomic_fetch_sub_u32(&attached_root->semaphore_bytes, sizeof(SharedState));
		pg_atomic_fetch_sub_u32(&attached_root->semaphore_count, 1);
		pg_atomic_fetch_sub_u32(&attached_root->unused_semaphores, 1);
	}
	dshash_seq_term(&scan);
}

/* Is there no room for one more semaphore with this many slots? */
static bool
is_full(int slots) noexcept
{
	return pg_atomic_read_u32(&attached_root->semaphore_bytes) >=
		(slots > SLOTS_PER_WORD ? MAX_BYTES / 2 : MAX_BYTES);
}

void
sweep_slot_states()
{
	/* Less than 0 if a session attaches before the last one to detach has counted. */
	int64		unused = attached_root == nullptr ? 0 :
		static_cast<int32>(pg_atomic_read_u32(&attached_root->unused_semaphores));

	if (unused > MAX_UNUSED_STATES &&
		4 * unused > pg_atomic_read_u32(&attached_root->semaphore_count) &&
		!shared_is_short() && has_semaphores())
		shared_attempt(remove_unused_states);
}

/*
 * See all blocks of a state, and add those that this many slots need, if there is room.  The entry
 * must be locked exclusively.
 */
static void
open_blocks(SemaphoreState *state, SharedState *shared, int slots)
{
	int			i = 1;

	state->blocks[0] = &shared->first_block;
	for (; i < shared->block_count || (slots_of(i) < slots && !is_full(slots)); i++)
	{
		if (i == shared->block_count)
		{
			shared->blocks[i] = dsa_allocate0(shared_area, block_bytes(i));
			shared->block_count = i + 1;
			pg_atomic_fetch_add_u32(&attached_root->semaphore_bytes, block_bytes(i));
		}
		state->blocks[i] = static_cast<SlotWord *>(dsa_get_address(shared_area, shared->blocks[i]));
	}
	state->shared = shared;
	state->slots = slots_of(i);
}

static SlotWord *
word_of(SemaphoreState *state, int slot) noexcept
{
	int			index = (slot - 1) / SLOTS_PER_WORD;
	int			block = index == 0 ? 0 : pg_leftmost_one_pos32(index) / 2 + 1;

	return &state->blocks[block][index - slots_of(block) / SLOTS_PER_WORD];
}

/* For the first of the sessions that are attached.  The entry must be locked exclusively. */
static void
clear_state(SemaphoreState *state) noexcept
{
	SharedState *shared = state->shared;

	pg_atomic_init_u32(&shared->agreed, 0);
	LWLockInitialize(&shared->lock, attached_root->slots_tranche);
	shared->first = NO_LINK;
	shared->most_wanted = 0;
	for (int slot = 1; slot <= state->slots; slot += SLOTS_PER_WORD)
	{
		pg_atomic_init_u64(&word_of(state, slot)->taken, 0);
		pg_atomic_init_u64(&word_of(state, slot)->unverified, 0);
	}
}

/* Attach and see, where the session may get memory. */
static void
attach(SemaphoreState *state, Key key, int slots)
{
	SharedKey	wanted = {key, MyDatabaseId};
	bool		is_new = state->shared == nullptr;
	bool		found = true;
	auto	   *shared = static_cast<SharedState *>(is_full(slots)
		? dshash_find(semaphores, &wanted, true)
		: dshash_find_or_insert(semaphores, &wanted, &found));

	if (shared == nullptr)
		return;
	if (!found)
	{
		pg_atomic_init_u32(&shared->attached, 0);
		shared->block_count = 1;
		pg_atomic_fetch_add_u32(&attached_root->semaphore_bytes, sizeof(SharedState));
		pg_atomic_fetch_add_u32(&attached_root->semaphore_count, 1);
		pg_atomic_fetch_add_u32(&attached_root->unused_semaphores, 1);
	}
	open_blocks(state, shared, slots);
	if (is_new && pg_atomic_fetch_add_u32(&shared->attached, 1) == 0)
	{
		pg_atomic_fetch_sub_u32(&attached_root->unused_semaphores, 1);
		clear_state(state);
	}
	dshash_release_lock(semaphores, shared);
}

bool
attach_slot_state(SemaphoreState *state, Key key, int slots)
{
	if (state->slots >= slots && state->slots == slots_of(state->shared->block_count))
		return true;
	if (has_semaphores() && !shared_is_short())
		shared_attempt([&]() { attach(state, key, slots); });
	return state->slots >= slots;
}

void
note_unknown_slots(SemaphoreState *state, bool has_some) noexcept
{
	if (state->has_unknown_slots != has_some)
		pg_atomic_fetch_add_u32(&attached_root->unknown_slots, has_some ? 1 : -1);
	state->has_unknown_slots = has_some;
}

void
detach_slot_state(SemaphoreState *state) noexcept
{
	if (state->shared != nullptr && pg_atomic_fetch_sub_u32(&state->shared->attached, 1) == 1)
		pg_atomic_fetch_add_u32(&attached_root->unused_semaphores, 1);
	note_unknown_slots(state, false);
	*state = {};
}

/* ---- The bits of slots ---- */

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

/* The slots, up to last, that are marked as free, and those that this session does not see. */
static FreeSlots
read_free_slots(SemaphoreState *state, int last) noexcept
{
	FreeSlots	free;

	for (int base = 0; base < last; base += SLOTS_PER_WORD)
	{
		uint64		taken = base < state->slots
			? pg_atomic_read_u64(&word_of(state, base + 1)->taken) : 0;
		uint64		bits = ~taken & lowest_bits(last - base);

		free.words[free.word_count++] = bits;
		free.count += pg_popcount64(bits);
	}
	return free;
}

/*
 * Remove the lowest slots, up to last, from the copy, as many as are wanted and there are, and fill
 * in their numbers; or the highest, if removed is null.  Returns how many they are.
 */
static int
remove_free_slots(FreeSlots *free, int last, int wanted, int *removed) noexcept
{
	bool		highest = removed == nullptr;
	int			count = 0;

	for (int i = 0; i < free->word_count && free->count > 0 && count < wanted; i++)
	{
		int			index = highest ? free->word_count - 1 - i : i;
		uint64		bits = free->words[index] & lowest_bits(last - index * SLOTS_PER_WORD);
		int			in_word = pg_popcount64(bits);
		uint64		kept = highest && in_word <= wanted - count ? 0 : bits;

		/* Not bit by bit if all of them go. */
		count += kept == 0 ? in_word : 0;
		for (; kept != 0 && count < wanted; count++)
		{
			int			position = highest ? pg_leftmost_one_pos64(kept)
				: pg_rightmost_one_pos64(kept);

			kept &= ~(UINT64CONST(1) << position);
			if (!highest)
				removed[count] = index * SLOTS_PER_WORD + position + 1;
		}
		free->words[index] ^= bits ^ kept;
		free->count -= in_word - pg_popcount64(kept);
	}
	return count;
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

	if (slot > Max(state->slots, SLOTS_PER_WORD) && mark == SlotMark::taken &&
		attached_root != nullptr)
		note_unknown_slots(state, true);
	if (slot > state->slots)
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
queue_link(int number) noexcept
{
	return &all_sessions()[number / MAX_QUEUES].links[number % MAX_QUEUES];
}

static int
process_of(int link) noexcept
{
	return link / MAX_QUEUES;
}

/* The number of this session's link in the queue of the semaphore in this place of its request. */
static int
my_link(int place) noexcept
{
	return my_process_number() * MAX_QUEUES + place;
}

void
join_queues(const SlotRequest *requests, bool again)
{
	uint64		ticket = again ? queue_link(my_link(0))->ticket
		: pg_atomic_fetch_add_u64(&attached_root->next_ticket, 1);

	for (const SlotRequest *each = requests; each != nullptr; each = each->next)
	{
		SharedState *shared = each->state->shared;
		int			me = my_link(each->place);
		int		   *place = &shared->first;

		LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
		while (*place != NO_LINK && queue_link(*place)->ticket < ticket)
			place = &queue_link(*place)->next;
		*queue_link(me) = QueueLink{*place, each->slots, each->wanted, ticket,
			queue_tag(shared->key.database, shared->key.key), requests->next != nullptr};
		*place = me;
		shared->most_wanted = Max(shared->most_wanted, each->slots);
		my_queues[each->place] = each->state;
		my_queue_count = each->place + 1;
		LWLockRelease(&shared->lock);
	}
	/* This session reads the bits next. */
	pg_memory_barrier();
}

/* Remove this session from a queue, which it must be in.  The state's lock must be held. */
static void
unlink_me(SharedState *shared, int me) noexcept
{
	int		   *place = &shared->first;

	while (*place != me)
		place = &queue_link(*place)->next;
	*place = queue_link(me)->next;
	queue_link(me)->slots = 0;
	if (shared->first == NO_LINK)
		shared->most_wanted = 0;
}

void
leave_queues() noexcept
{
	int			count = my_queue_count;

	my_queue_count = 0;
	for (int i = 0; i < count; i++)
	{
		SharedState *shared = my_queues[i]->shared;

		if (queue_link(my_link(i))->slots == 0)
			continue;
		LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
		unlink_me(shared, my_link(i));
		LWLockRelease(&shared->lock);
	}
	/* If this session gives up, others can get the slots that were set aside for it. */
	for (int i = 0; i < count; i++)
		wake_waiters(my_queues[i]);
}

/* Remove the slots that are set aside for a waiter.  Are they as many as it wants? */
static bool
set_aside(FreeSlots *free, const QueueLink *waiter) noexcept
{
	return remove_free_slots(free, waiter->slots, waiter->wanted, nullptr) == waiter->wanted;
}

/* Mark a slot as taken.  False if it is marked already. */
static bool
claim_slot(SemaphoreState *state, int slot) noexcept
{
	return (pg_atomic_fetch_or_u64(&word_of(state, slot)->taken, bit_of(slot)) & bit_of(slot)) == 0;
}

/* Without waiters: mark the lowest free slot as taken, and return it.  NO_SLOT if none is free. */
static int
claim_lowest_slot(SemaphoreState *state, int slots) noexcept
{
	for (int base = 0; base < slots; base += SLOTS_PER_WORD)
	{
		pg_atomic_uint64 *taken = &word_of(state, base + 1)->taken;
		uint64		usable = lowest_bits(slots - base);

		while (uint64 free = ~pg_atomic_read_u64(taken) & usable)
		{
			int			slot = base + pg_rightmost_one_pos64(free) + 1;

			/* If another session was faster, there may be another slot. */
			if (claim_slot(state, slot))
				return slot;
		}
	}
	return NO_SLOT;
}

/*
 * Choose what is wanted of one semaphore among the free slots that are not set aside for those
 * ahead.  False if they are too few.  The state's lock must be held exclusively.
 */
static bool
choose_slots(const SlotRequest &request) noexcept
{
	SemaphoreState *state = request.state;
	SharedState *shared = state->shared;
	int			me = my_link(request.place);
	/* What this session does not see is no reason to give it a slot that it sees. */
	FreeSlots	free =
		read_free_slots(state, Min(Max(request.slots, shared->most_wanted), state->slots));

	for (int i = shared->first; i != NO_LINK && i != me && free.count > 0; i = queue_link(i)->next)
		set_aside(&free, queue_link(i));
	return remove_free_slots(&free, request.slots, request.wanted, request.claimed) >=
		request.wanted;
}

/* Mark all chosen slots, of this request and the next ones, as taken; or none, and return false. */
static bool
claim_chosen(const SlotRequest *request) noexcept
{
	int			count = 0;

	if (request == nullptr)
		return true;
	while (count < request->wanted && claim_slot(request->state, request->claimed[count]))
		count++;
	if (count == request->wanted && claim_chosen(request->next))
		return true;
	while (count-- > 0)
		mark_slot(request->state, request->claimed[count], SlotMark::free);
	return false;
}

/* With the locks of all states held: as claim_slots(), but the session stays in the queues. */
static const SlotRequest *
claim_with_locks(const SlotRequest *requests) noexcept
{
	do
	{
		/* All are chosen before one is marked, because who only tries would find it taken. */
		for (const SlotRequest *each = requests; each != nullptr; each = each->next)
		{
			if (!choose_slots(*each))
				return each;
		}
		/* If a session without the lock was faster, there may be other slots now. */
	} while (!claim_chosen(requests));
	return nullptr;
}

const SlotRequest *
claim_slots(const SlotRequest *requests)
{
	bool		is_waiter = my_queue_count > 0;
	const SlotRequest *lacking;

	if (requests->next == nullptr && requests->wanted == 1 &&
		requests->state->shared->first == NO_LINK)
	{
		requests->claimed[0] = claim_lowest_slot(requests->state, requests->slots);
		return requests->claimed[0] != NO_SLOT ? nullptr : requests;
	}

	/*
	 * Usually no slot is free: then do not wait for those who look for one, too.  A waiter does,
	 * because what they give back with the lock held wakes nobody.
	 */
	for (const SlotRequest *each = requests; each != nullptr && !is_waiter; each = each->next)
	{
		if (read_free_slots(each->state, each->slots).count < each->wanted)
			return each;
	}
	for (const SlotRequest *each = requests; each != nullptr; each = each->next)
		LWLockAcquire(&each->state->shared->lock, LW_EXCLUSIVE);
	STOP_POINT("slots are locked");
	lacking = claim_with_locks(requests);
	for (const SlotRequest *each = requests; each != nullptr; each = each->next)
	{
		if (is_waiter && lacking == nullptr)
			unlink_me(each->state->shared, my_link(each->place));
		LWLockRelease(&each->state->shared->lock);
	}
	return lacking;
}

int
most_slots_ahead(SemaphoreState *state, int enough)
{
	SharedState *shared = state->shared;
	int			me = my_process_number();
	int			most = 0;

	if (shared->first == NO_LINK)
		return most;
	LWLockAcquire(&shared->lock, LW_SHARED);
	for (int i = shared->first; i != NO_LINK && process_of(i) != me && most < enough;
		 i = queue_link(i)->next)
		most = Max(most, queue_link(i)->slots);
	LWLockRelease(&shared->lock);
	return most;
}

int
read_waiters_ahead(const LOCKTAG &queue, int proc_number, WaiterAhead *ahead)
{
	DecodedTag	tag = decode_tag(queue);
	SharedKey	wanted = {tag.key, tag.database};
	SharedState *shared = semaphores == nullptr ? nullptr :
		static_cast<SharedState *>(dshash_find(semaphores, &wanted, false));
	int			count = 0;
	int			i = NO_LINK;

	if (shared == nullptr)
		return 0;
	/* Without a session that is attached there is no lock yet. */
	if (pg_atomic_read_u32(&shared->attached) > 0)
	{
		LWLockAcquire(&shared->lock, LW_SHARED);
		for (i = shared->first; i != NO_LINK && process_of(i) != proc_number;
			 i = queue_link(i)->next)
		{
			if (queue_link(i)->wanted > 1 || queue_link(i)->is_one_of_several)
				ahead[count++] = {process_of(i), *queue_link(i)};
		}
		LWLockRelease(&shared->lock);
	}
	dshash_release_lock(semaphores, shared);
	return i != NO_LINK ? count : 0;	/* perhaps it does not wait any more */
}

bool
read_queue_of(int proc_number, int place, LOCKTAG *queue, int *slots)
{
	SharedSession *sessions = all_sessions();

	if (sessions == nullptr || sessions[proc_number].links[place].slots == 0)
		return false;
	*queue = sessions[proc_number].links[place].queue;
	*slots = sessions[proc_number].links[place].slots;
	return true;
}

void
wake_waiters(SemaphoreState *state) noexcept
{
	/* The bits were written before. */
	pg_memory_barrier();
	if (state->shared == nullptr || state->shared->first == NO_LINK)
		return;
	LWLockAcquire(&state->shared->lock, LW_SHARED);

	/*
	 * A session that joins after this, perhaps with a larger number of slots, reads the bits
	 * itself.  A waiter for which this session sets aside a slot that it does not see is woken in
	 * vain at worst.
	 */
	FreeSlots	free = read_free_slots(state, state->shared->most_wanted);

	for (int i = state->shared->first; i != NO_LINK && free.count > 0; i = queue_link(i)->next)
	{
		if (set_aside(&free, queue_link(i)))
			wake(process_of(i));
	}
	LWLockRelease(&state->shared->lock);
}

/* ---- The number of slots ---- */

int
highest_slot(Key key)
{
	SharedKey	wanted = {key, MyDatabaseId};
	int			highest = SLOTS_PER_WORD;

	if (!has_semaphores() || pg_atomic_read_u32(&attached_root->unknown_slots) != 0)
		return MAX_SLOTS;
	if (auto *shared = static_cast<SharedState *>(dshash_find(semaphores, &wanted, false)))
	{
		highest = Min(slots_of(shared->block_count), MAX_SLOTS);
		dshash_release_lock(semaphores, shared);
	}
	return highest;
}

bool
agree_on_slots(SemaphoreState *state, int slots, bool replaces) noexcept
{
	pg_atomic_uint32 *agreed = &state->shared->agreed;
	uint32		wanted = static_cast<uint32>(slots);
	uint32		before = 0;

	if (replaces)
		pg_atomic_write_u32(agreed, wanted);
	return pg_atomic_compare_exchange_u32(agreed, &before, wanted) || before == wanted;
}

}								/* namespace advisory */
