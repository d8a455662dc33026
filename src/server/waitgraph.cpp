/*
 * server/waitgraph.cpp
 *		Who waits for whom.
 */
#include "base/pg.h"

extern "C" {
#include "storage/lock.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
}

#include "server/waitgraph.h"

namespace advisory
{

/* A lock or semaphore with waiters: the entries that hold it, or that are in the semaphore's queue. */
struct AwaitedLock
{
	LOCKTAG		tag;			/* hash key */
	List	   *holders;		/* of int */
};

bool
is_in_the_way(const LockEntry &other, const LockEntry &waiter)
{
	LOCKMASK	conflicts = GetLockTagsMethodTable(&waiter.tag)->conflictTab[waiter.lockmode];
	LOCKMASK	held = other.held_modes & conflicts;
	LOCKMASK	mode = LOCKBIT_ON(other.lockmode);
	bool		is_same_group = other.leader_pid == waiter.leader_pid && other.leader_pid != 0;

	if ((mode & conflicts) == 0 || is_same_group)
		return false;
	if (!other.granted)
		return held == 0;
	return (held & (mode - 1)) == 0;
}

bool
is_slot_in_the_way(const LockEntry &holder, const LockEntry &waiter) noexcept
{
	DecodedTag	tag = decode_tag(holder.tag);

	return holder.granted && tag.kind == Kind::semaphore && is_same_semaphore(holder.tag, waiter.tag) &&
		(waiter.slots == 0 || tag.slot <= waiter.slots);
}

void
find_all_blockers(LockEntries *found)
{
	HASHCTL		control = {};
	HTAB	   *awaited = nullptr;
	LockEntry  *entries = found->entries;
	List	   *pids = NIL;
	ListCell   *cell;
	/* A semaphore's slots and its queue count as one lock. */
	auto		find = [&](const LockEntry &entry, HASHACTION action) {
		LOCKTAG		tag = entry.tag;

		if (is_of_semaphore(tag))
			tag = queue_tag(tag.locktag_field1, decode_tag(tag).key);
		return static_cast<AwaitedLock *>(hash_search(awaited, &tag, action, nullptr));
	};

	control.keysize = sizeof(LOCKTAG);
	control.entrysize = sizeof(AwaitedLock);
	control.hcxt = CurrentMemoryContext;
	awaited = hash_create("advisory_ext awaited locks", 256, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

	for (int i = 0; i < found->count; i++)
	{
		if (!entries[i].granted)
			find(entries[i], HASH_ENTER)->holders = NIL;
	}
	for (int i = found->count - 1; i >= 0 && hash_get_num_entries(awaited) > 0; i--)
	{
		AwaitedLock *lock = entries[i].granted || entries[i].is_head ? find(entries[i], HASH_FIND) : nullptr;

		if (lock != nullptr)
			lock->holders = lappend_int(lock->holders, i);
	}

	for (int i = 0; i < found->count; i++)
	{
		LockEntry  &waiter = entries[i];
		int			ahead = i;

		if (waiter.granted)
			continue;
		CHECK_FOR_INTERRUPTS();
		waiter.first_blocker = list_length(pids);
		foreach(cell, find(waiter, HASH_FIND)->holders)
		{
			const LockEntry &holder = entries[lfirst_int(cell)];
			bool		is_blocker = is_in_the_way(holder, waiter);

			if (holder.is_head)
				is_blocker = holder.pid != waiter.pid && (!waiter.is_head || holder.wait_start < waiter.wait_start);
			else if (is_of_semaphore(waiter.tag))
				is_blocker = is_blocker && is_slot_in_the_way(holder, waiter);
			if (is_blocker)
				pids = lappend_int(pids, holder.leader_pid);
		}

		/* The sessions ahead in the lock manager's queue, unless they hold the lock, too. */
		while (!waiter.is_head && ahead > 0 && !entries[ahead - 1].granted && !entries[ahead - 1].is_head &&
			   same_tag(entries[ahead - 1].tag, waiter.tag))
			ahead--;
		for (; ahead < i; ahead++)
		{
			if (is_in_the_way(entries[ahead], waiter))
				pids = lappend_int(pids, entries[ahead].leader_pid);
		}
		waiter.blocker_count = list_length(pids) - waiter.first_blocker;
	}
	found->blockers = pids;
	hash_destroy(awaited);
}

}								/* namespace advisory */
