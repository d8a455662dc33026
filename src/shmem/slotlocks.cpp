/*
 * shmem/slotlocks.cpp
 *		Waits for slots of semaphores, as one more kind of lock entries.
 */
#include "base/pg.h"

#include "shmem/waiters.h"
#include "shmem/root.h"
#include "shmem/slotlocks.h"

namespace advisory
{

static bool
is_queue(const LockEntry &entry) noexcept
{
	return is_of_semaphore(entry.tag) && entry.tag.locktag_field4 == OBJSUBID_QUEUE;
}

/*
 * A queued session holds the queue lock in RowExclusiveLock mode.  Other modes are held only in
 * order to get into the queue, or to see whether it is empty (semaphore.cpp), and say nothing of a wait.
 */
static void
drop_other_modes(LockEntries *found) noexcept
{
	int			kept = 0;

	for (int i = 0; i < found->count; i++)
	{
		const LockEntry &entry = found->entries[i];

		if (!entry.granted || !is_queue(entry) || entry.lockmode == RowExclusiveLock)
			found->entries[kept++] = entry;
	}
	found->count = kept;
}

void
mark_slot_waits(LockEntries *found)
{
	drop_other_modes(found);

	for (int i = 0; i < found->count; i++)
	{
		LockEntry  &entry = found->entries[i];
		PublishedWait wait;

		if (!is_of_semaphore(entry.tag) || (entry.granted && !is_queue(entry)))
			continue;
		CHECK_FOR_INTERRUPTS();
		if (entry.granted)
		{
			entry.is_head = true;
			entry.granted = false;
			entry.held_modes = 0;
			entry.lockmode = ExclusiveLock;
		}
		if (!read_wait(entry.proc_number, &wait) || wait.pid != entry.pid || !is_same_semaphore(wait.tag, entry.tag))
			continue;
		entry.slots = wait.slots;
		entry.wait_start = wait.since;
	}
}

/* By lock; its holders, then those in a semaphore's queue by the time they have waited, then the waiters in their order. */
static int
compare_entries(const void *a, const void *b) noexcept
{
	auto	   *entry_a = static_cast<const LockEntry *>(a);
	auto	   *entry_b = static_cast<const LockEntry *>(b);
	int			result = compare_locktags(&entry_a->tag, &entry_b->tag);

	if (result == 0)
		result = static_cast<int>(entry_b->granted) - static_cast<int>(entry_a->granted);
	if (result == 0)
		result = static_cast<int>(entry_b->is_head) - static_cast<int>(entry_a->is_head);
	if (result == 0 && entry_a->is_head && entry_a->wait_start != entry_b->wait_start)
		result = entry_a->wait_start < entry_b->wait_start ? -1 : 1;
	/* Where they stood before: the lock manager's own order. */
	return result != 0 ? result : entry_a->first_blocker - entry_b->first_blocker;
}

void
sort_slot_entries(LockEntries *found)
{
	for (int i = 0; i < found->count; i++)
		found->entries[i].first_blocker = i;
	if (found->count > 1)
		qsort(found->entries, found->count, sizeof(LockEntry), compare_entries);
	for (int i = 0; i < found->count; i++)
		found->entries[i].first_blocker = 0;
}

static bool
has_slot_wait(const LockEntries &found)
{
	int			count;

	for (int i = 0; i < found.count; i++)
	{
		if (is_of_semaphore(found.entries[i].tag))
			return true;
	}
	/* Where nobody can say anything it takes a look. */
	if (shared_root_if_attached() == nullptr)
		return true;
	read_slot_waits(&count);
	return count > 0;
}

static LockEntries
add_slots(const LockEntries &waits)
{
	LockEntries slots = read_all_slots();
	LockEntries all = {};

	mark_slot_waits(&slots);
	sort_slot_entries(&slots);
	all.entries = static_cast<LockEntry *>(palloc_extended(sizeof(LockEntry) * (waits.count + slots.count + 1),
														   MCXT_ALLOC_HUGE));
	for (int i = 0; i < waits.count; i++)
	{
		if (!is_of_semaphore(waits.entries[i].tag))
			all.entries[all.count++] = waits.entries[i];
	}
	for (int i = 0; i < slots.count; i++)
		all.entries[all.count++] = slots.entries[i];
	all.has_prepared = waits.has_prepared || slots.has_prepared;
	return all;
}

LockEntries
read_all_waits_and_slots()
{
	LockEntries waits = read_all_waits();

	return has_slot_wait(waits) ? add_slots(waits) : waits;
}

}								/* namespace advisory */
