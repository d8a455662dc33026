/*
 * views/semaphores.cpp
 *		The rows of advisory.semaphores.
 */
#include "base/pg.h"

extern "C" {
#include "executor/executor.h"
}

#include "base/sqlfunction.h"
#include "base/srf.h"
#include "views/visiblename.h"
#include "shmem/slotlocks.h"

namespace advisory
{

/* Add the row of the semaphore that these entries belong to. */
static void
show_semaphore(const LockEntry *entries, int count, VisibleNames *names, ReturnSetInfo *result)
{
	const LockEntry *named = &entries[0];	/* the entry to find the name by */
	auto	   *holders = static_cast<int *>(palloc_extended(sizeof(int) * count, MCXT_ALLOC_HUGE));
	int			in_use = 0;
	int			waiting = 0;
	int			slots = 0;		/* the largest number that a session gave; 0 if unknown */
	bool		disagree = false;	/* did sessions give different numbers? */
	VisibleName name;
	Row			row;

	for (int i = 0; i < count; i++)
	{
		const LockEntry &entry = entries[i];
		int			given = entry.slots;

		if (entry.granted)
		{
			const KnownHold *hold = names->hold_of(entry);

			given = hold != nullptr ? hold->hold.slots : 0;
			holders[in_use++] = entry.leader_pid;
			named = &entry;
		}
		else
			waiting++;
		if (slots != 0 && given != 0 && given != slots)
			disagree = true;
		slots = Max(slots, given);
	}

	name = names->of(*named);
	row.add_text(name.ns);
	row.add_text(name.name);
	row.add_int64(decode_tag(named->tag).key.value);
	row.add(Int32GetDatum(slots), slots == 0);
	row.add_int32(in_use);
	row.add(Int32GetDatum(Max(slots - in_use, 0)), slots == 0);
	row.add_int32(waiting);
	row.add_int32_array(holders, in_use);
	row.add_bool(disagree);
	row.put(result);
}

/* Add a row for each semaphore of this database that a session holds or awaits a slot of. */
static void
show_semaphores(ReturnSetInfo *result)
{
	LockEntries found = read_all_locks(true);
	VisibleNames names;

	mark_slot_waits(&found);
	sort_slot_entries(&found);
	for (int first = 0, next; first < found.count; first = next)
	{
		const LockEntry *entries = &found.entries[first];

		CHECK_FOR_INTERRUPTS();
		for (next = first + 1; next < found.count && is_same_semaphore(found.entries[next].tag, entries->tag);)
			next++;
		if (entries->tag.locktag_field1 == MyDatabaseId && is_of_semaphore(entries->tag))
			show_semaphore(entries, next - first, &names, result);
	}
}

ADVISORY_SQL_FUNCTION(advisory_semaphores, rows_function<show_semaphores>);

}								/* namespace advisory */
