/*
 * server/waitgraph.cpp
 *		Who waits for whom.
 */
#include "base/pg.h"

#include "server/waitgraph.h"

namespace advisory
{

namespace
{

/* The holders of a lock that somebody waits for, as a list through next_holder. */
struct AwaitedLock
{
	LOCKTAG		tag;			/* hash key */
	int			first_holder;
};

constexpr int NO_HOLDER = -1;

}								/* anonymous namespace */

/* A semaphore's slots and its queue are one thing to be waited for. */
static LOCKTAG
awaited_tag(const LOCKTAG &tag) noexcept
{
	return is_of_semaphore(tag) ? queue_tag(tag.locktag_field1, decode_tag(tag).key) : tag;
}

bool
is_slot_in_the_way(const LockEntry &holder, const LockEntry &waiter) noexcept
{
	DecodedTag	tag = decode_tag(holder.tag);

	return holder.granted && tag.kind == Kind::semaphore && is_same_semaphore(holder.tag, waiter.tag) &&
		(waiter.slots == 0 || tag.slot <= waiter.slots);
}

/* Is a holder, or a session in a semaphore's queue, in the waiter's way? */
static bool
holds_in_the_way(const LockEntry &holder, const LockEntry &waiter)
{
	if (!is_of_semaphore(waiter.tag))
		return is_in_the_way(holder, waiter);
	if (holder.is_head)
		return holder.pid != waiter.pid && (!waiter.is_head || holder.wait_start < waiter.wait_start);
	return is_slot_in_the_way(holder, waiter) && is_in_the_way(holder, waiter);
}

static LOCKMASK
conflicts_of(const LockEntry &entry)
{
	return GetLockTagsMethodTable(&entry.tag)->conflictTab[entry.lockmode];
}

static bool
is_same_group(const LockEntry &a, const LockEntry &b) noexcept
{
	return a.leader_pid == b.leader_pid && a.leader_pid != 0;
}

bool
is_in_the_way(const LockEntry &other, const LockEntry &waiter)
{
	LOCKMASK	conflicts = conflicts_of(waiter);
	LOCKMASK	held = other.held_modes & conflicts;
	LOCKMASK	mode = LOCKBIT_ON(other.lockmode);

	if ((mode & conflicts) == 0 || is_same_group(other, waiter))
		return false;
	if (!other.granted)
		return held == 0;
	return (held & (mode - 1)) == 0;
}

/* Those ahead of a waiter in the lock manager's queue, unless they hold the lock, too. */
static void
add_ahead(const LockEntries &found, int waiter, Array<int> *pids)
{
	const LockEntry *entries = found.entries;
	int			ahead = waiter;

	while (ahead > 0 && !entries[ahead - 1].granted && !entries[ahead - 1].is_head &&
		   same_tag(entries[ahead - 1].tag, entries[waiter].tag))
		ahead--;
	for (; ahead < waiter; ahead++)
	{
		if (is_in_the_way(entries[ahead], entries[waiter]))
			pids->add(entries[ahead].leader_pid);
	}
}

void
find_all_blockers(LockEntries *found)
{
	HASHCTL		control = {};
	HTAB	   *awaited;
	LockEntry  *entries = found->entries;
	auto	   *next_holder = static_cast<int *>(palloc_extended(sizeof(int) * (found->count + 1), MCXT_ALLOC_HUGE));
	Array<int>	pids;

	control.keysize = sizeof(LOCKTAG);
	control.entrysize = sizeof(AwaitedLock);
	control.hcxt = CurrentMemoryContext;
	awaited = hash_create("advisory_ext awaited locks", 256, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

	/* Link the holders of each lock that somebody waits for. */
	for (int i = 0; i < found->count; i++)
	{
		if (entries[i].granted)
			continue;

		LOCKTAG		tag = awaited_tag(entries[i].tag);

		static_cast<AwaitedLock *>(hash_search(awaited, &tag, HASH_ENTER, nullptr))->first_holder = NO_HOLDER;
	}
	for (int i = 0; i < found->count && hash_get_num_entries(awaited) > 0; i++)
	{
		LOCKTAG		tag = awaited_tag(entries[i].tag);
		AwaitedLock *lock;

		if (!entries[i].granted && !entries[i].is_head)
			continue;
		lock = static_cast<AwaitedLock *>(hash_search(awaited, &tag, HASH_FIND, nullptr));
		if (lock == nullptr)
			continue;
		next_holder[i] = lock->first_holder;
		lock->first_holder = i;
	}

	/* Then it is easy to say who is in each waiter's way. */
	for (int i = 0; i < found->count; i++)
	{
		if (entries[i].granted)
			continue;
		CHECK_FOR_INTERRUPTS();

		LOCKTAG		tag = awaited_tag(entries[i].tag);

		entries[i].first_blocker = pids.count;
		for (int holder = static_cast<AwaitedLock *>(hash_search(awaited, &tag, HASH_FIND, nullptr))->first_holder;
			 holder != NO_HOLDER; holder = next_holder[holder])
		{
			if (holds_in_the_way(entries[holder], entries[i]))
				pids.add(entries[holder].leader_pid);
		}
		if (!entries[i].is_head)
			add_ahead(*found, i, &pids);
		entries[i].blocker_count = pids.count - entries[i].first_blocker;
	}
	found->blockers = pids.items;
	pfree(next_holder);
	hash_destroy(awaited);
}

}								/* namespace advisory */
