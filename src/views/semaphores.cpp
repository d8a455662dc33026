/*
 * views/semaphores.cpp
 *		The rows of advisory.semaphores.
 */
#include "base/pg.h"

#include "base/sqlfunction.h"
#include "base/srf.h"
#include "views/visiblename.h"
#include "shmem/slotlocks.h"

namespace advisory
{

namespace
{

/* The use of one semaphore. */
struct Usage
{
	const LockEntry *shown;		/* one of its entries, to find its name by */
	int			slots;			/* the largest number that a session gave; 0 if unknown */
	bool		disagree;		/* sessions gave different numbers */
	int			in_use;
	int			waiting;
	Datum	   *holders;
};

}								/* anonymous namespace */

static void
note_slots(Usage *usage, int slots) noexcept
{
	if (slots == 0)
		return;
	usage->disagree = usage->disagree || (usage->slots != 0 && usage->slots != slots);
	usage->slots = Max(usage->slots, slots);
}

static void
add_entry(Usage *usage, const LockEntry &entry, VisibleNames *names)
{
	if (!entry.granted)
	{
		usage->waiting++;
		note_slots(usage, entry.slots);
		return;
	}
	if (const KnownHold *hold = names->hold_of(entry))
		note_slots(usage, hold->hold.slots);
	usage->holders[usage->in_use++] = Int32GetDatum(entry.leader_pid);
	usage->shown = &entry;
}

static void
show_usage(const Usage &usage, VisibleNames *names, ReturnSetInfo *result)
{
	const VisibleName &name = names->of(*usage.shown);
	Row			row;

	row.add(name.ns_text);
	row.add(name.name_text);
	row.add_int64(decode_tag(usage.shown->tag).key.value);
	if (usage.slots > 0)
		row.add_int32(usage.slots);
	else
		row.add_null();
	row.add_int32(usage.in_use);
	if (usage.slots > 0)
		row.add_int32(Max(usage.slots - usage.in_use, 0));
	else
		row.add_null();
	row.add_int32(usage.waiting);
	row.add(PointerGetDatum(construct_array(usage.holders, usage.in_use, INT4OID, sizeof(int32), true, TYPALIGN_INT)));
	row.add_bool(usage.disagree);
	row.put(result);
}

static void
drop_other_databases(LockEntries *found) noexcept
{
	int			kept = 0;

	for (int i = 0; i < found->count; i++)
	{
		if (found->entries[i].tag.locktag_field1 == MyDatabaseId)
			found->entries[kept++] = found->entries[i];
	}
	found->count = kept;
}

/* Add a row for each semaphore of this database that a session holds or awaits a slot of. */
static void
show_semaphores(ReturnSetInfo *result)
{
	LockEntries found = read_all_locks(true);

	mark_slot_waits(&found);
	drop_other_databases(&found);
	if (found.count == 0)
		return;
	sort_slot_entries(&found);

	VisibleNames names(found.count);
	auto	   *holders = static_cast<Datum *>(palloc_extended(sizeof(Datum) * found.count, MCXT_ALLOC_HUGE));

	for (int first = 0, next; first < found.count; first = next)
	{
		Usage		usage = {&found.entries[first], 0, false, 0, 0, holders};

		CHECK_FOR_INTERRUPTS();
		for (next = first; next < found.count && is_same_semaphore(found.entries[next].tag, found.entries[first].tag); next++)
			add_entry(&usage, found.entries[next], &names);
		show_usage(usage, &names, result);
	}
}

ADVISORY_SQL_FUNCTION(advisory_semaphores, rows_function<show_semaphores>);

}								/* namespace advisory */
