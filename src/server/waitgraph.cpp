/*
 * server/waitgraph.cpp
 *		Who waits for whom.
 */
#include "base/pg.h"

#include "server/waitgraph.h"

namespace advisory
{

bool
is_in_the_way(const LockEntry &other, const LockEntry &waiter)
{
	bool		is_same_group = other.leader_pid == waiter.leader_pid && other.leader_pid != 0;

	return !is_same_group && conflicts_with(other, waiter);
}

bool
conflicts_with(const LockEntry &other, const LockEntry &waiter)
{
	LOCKMASK	conflicts = GetLockTagsMethodTable(&waiter.tag)->conflictTab[waiter.lockmode];
	LOCKMASK	held = other.held_modes & conflicts;
	LOCKMASK	mode = LOCKBIT_ON(other.lockmode);

	if ((mode & conflicts) == 0)
		return false;
	/* No session waits in the lock manager for a lease slot that it wants to take. */
	if (waiter.waits_for_lease_slot() ? !(other.granted && is_of_lease_slot(other.tag))
		: !is_of_semaphore(waiter.tag) && !same_tag(other.tag, waiter.tag))
		return false;
	/* A session that waits for the only slot in the lock manager came before the queue. */
	if (other.is_head)
		return same_tag(other.tag, waiter.tag) &&
			(!waiter.is_head || other.wait_start < waiter.wait_start);
	if (!other.granted)
		return held == 0;
	/* A slot that is beyond the number of slots that the waiter gave does not help it. */
	if (waiter.slots > 0 && decode_tag(other.tag).slot > waiter.slots)
		return false;
	return (held & (mode - 1)) == 0;
}

/* A lock that has waiters.  A semaphore, a lease, and lease slots with their queue are one. */
struct AwaitedLock
{
	LOCKTAG		tag;			/* hash key: see whole_lock() */
	/* Of int: the entries that hold it, or that are in the semaphore's queue. */
	List	   *others;
};

static AwaitedLock *
find_awaited(HTAB *awaited, const LockEntry &entry, HASHACTION action)
{
	LOCKTAG		tag = whole_lock(entry.tag);

	return static_cast<AwaitedLock *>(hash_search(awaited, &tag, action, nullptr));
}

/* The locks that have waiters, each with its holders. */
static HTAB *
find_awaited_locks(const LockEntries &found)
{
	HTAB	   *awaited = make_hash_table<LOCKTAG, AwaitedLock>("advisory_ext awaited locks", 256);

	for (int i = 0; i < found.count; i++)
	{
		if (found.entries[i].is_waiting())
			find_awaited(awaited, found.entries[i], HASH_ENTER)->others = NIL;
	}
	for (int i = found.count - 1; i >= 0 && hash_get_num_entries(awaited) > 0; i--)
	{
		const LockEntry &entry = found.entries[i];
		AwaitedLock *lock = entry.granted || entry.is_head
			? find_awaited(awaited, entry, HASH_FIND) : nullptr;

		if (lock == nullptr)
			continue;

		const LockEntry *last = lock->others != NIL
			? &found.entries[llast_int(lock->others)] : nullptr;

		/* Of a session's slots that with the lowest number is in the way of the most waiters. */
		if (last == nullptr || !entry.granted || !last->granted ||
			last->leader_number != entry.leader_number || !is_of_semaphore(entry.tag))
			lock->others = lappend_int(lock->others, i);
		else if (decode_tag(entry.tag).slot < decode_tag(last->tag).slot)
			llast_int(lock->others) = i;
	}
	return awaited;
}

void
find_all_blockers(LockEntries *found)
{
	HTAB	   *awaited = find_awaited_locks(*found);
	/* The first waiter in the lock manager's queue of the present waiter. */
	const LockEntry *queue = nullptr;
	/* By process number: the last waiter that the session is in the way of. */
	// NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
	auto	   *blocked = static_cast<LockEntry **>(palloc0(sizeof(LockEntry *) * proc_count()));

	for (LockEntry *waiter = found->entries; waiter < found->entries + found->count; waiter++)
	{
		ListCell   *cell;
		auto		add_if_in_the_way = [&](const LockEntry &other) {
			if (blocked[other.leader_number] == waiter || !is_in_the_way(other, *waiter))
				return;
			blocked[other.leader_number] = waiter;
			found->blockers = lappend_int(found->blockers, other.leader_pid);
		};

		if (!waiter->is_waiting())
			continue;
		CHECK_FOR_INTERRUPTS();
		waiter->first_blocker = list_length(found->blockers);
		foreach(cell, find_awaited(awaited, *waiter, HASH_FIND)->others)
			add_if_in_the_way(found->entries[lfirst_int(cell)]);
		if (!waiter->granted && !waiter->is_head)
		{
			if (queue == nullptr || !same_tag(queue->tag, waiter->tag))
				queue = waiter;
			for (const LockEntry *ahead = queue; ahead < waiter; ahead++)
				add_if_in_the_way(*ahead);
		}
		waiter->blocker_count = list_length(found->blockers) - waiter->first_blocker;
	}
	pfree(blocked);
	hash_destroy(awaited);
}

}								/* namespace advisory */
