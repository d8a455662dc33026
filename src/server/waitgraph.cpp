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
constexpr int FIRST_BLOCKERS = 256;

class BlockerFinder
{
public:
	explicit BlockerFinder(LockEntries *found) : found(found)
	{
	}

	void		run()
	{
		if (index_awaited_locks() == 0)
			return;
		index_holders();
		for (int i = 0; i < found->count; i++)
		{
			CHECK_FOR_INTERRUPTS();
			if (!found->entries[i].granted)
				find_for(i);
		}
		found->blockers = pids.items;
		hash_destroy(awaited);
	}

private:
	int			index_awaited_locks();
	void		index_holders();
	void		find_for(int waiter);

	LockEntries *found;
	HTAB	   *awaited = nullptr;
	int		   *next_holder = nullptr;
	List<int>	pids;
};

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

int
BlockerFinder::index_awaited_locks()
{
	HASHCTL		control = {};
	int			count = 0;

	for (int i = 0; i < found->count; i++)
	{
		LOCKTAG		tag = awaited_tag(found->entries[i].tag);

		if (found->entries[i].granted)
			continue;
		if (awaited == nullptr)
		{
			control.keysize = sizeof(LOCKTAG);
			control.entrysize = sizeof(AwaitedLock);
			control.hcxt = CurrentMemoryContext;
			awaited = hash_create("advisory_ext awaited locks", FIRST_BLOCKERS, &control,
								  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		}

		auto	   *lock = static_cast<AwaitedLock *>(hash_search(awaited, &tag, HASH_ENTER, nullptr));

		lock->first_holder = NO_HOLDER;
		count++;
	}
	return count;
}

void
BlockerFinder::index_holders()
{
	next_holder = static_cast<int *>(palloc_extended(sizeof(int) * found->count, MCXT_ALLOC_HUGE));
	for (int i = 0; i < found->count; i++)
	{
		LOCKTAG		tag = awaited_tag(found->entries[i].tag);

		if (!found->entries[i].granted && !found->entries[i].is_head)
			continue;

		auto	   *lock = static_cast<AwaitedLock *>(hash_search(awaited, &tag, HASH_FIND, nullptr));

		if (lock == nullptr)
			continue;
		next_holder[i] = lock->first_holder;
		lock->first_holder = i;
	}
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

void
BlockerFinder::find_for(int waiter)
{
	LockEntry  &entry = found->entries[waiter];
	LOCKTAG		tag = awaited_tag(entry.tag);
	auto	   *lock = static_cast<AwaitedLock *>(hash_search(awaited, &tag, HASH_FIND, nullptr));

	entry.first_blocker = pids.count;
	for (int i = lock->first_holder; i != NO_HOLDER; i = next_holder[i])
	{
		if (holds_in_the_way(found->entries[i], entry))
			pids.add(found->entries[i].leader_pid);
	}

	/* Those ahead in the queue, unless they were already named as holders. */
	int			ahead = waiter;

	while (!entry.is_head && ahead > 0 && !found->entries[ahead - 1].granted && !found->entries[ahead - 1].is_head &&
		   same_tag(found->entries[ahead - 1].tag, entry.tag))
		ahead--;
	for (; ahead < waiter; ahead++)
	{
		if (is_in_the_way(found->entries[ahead], entry))
			pids.add(found->entries[ahead].leader_pid);
	}
	entry.blocker_count = pids.count - entry.first_blocker;
}

void
find_all_blockers(LockEntries *found)
{
	BlockerFinder(found).run();
}

}								/* namespace advisory */
