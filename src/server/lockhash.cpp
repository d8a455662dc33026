/*
 * server/lockhash.cpp
 *		The hash tables of the server's lock manager.
 *
 * The server raises an error if it has a table of that name with another size.  It derives
 * the size from the same settings as this file.  After such an error the tables are not used.
 */
#include "base/pg.h"

extern "C" {
#include "access/twophase.h"
#include "storage/lwlock.h"
}

#include "base/compat.h"
#include "server/lockhash.h"

namespace advisory
{

static LockTables tables;
static bool were_tried = false;
static bool are_attached = false;

int64
guaranteed_locks() noexcept
{
	return static_cast<int64>(max_locks_per_xact) * (MaxBackends + max_prepared_xacts);
}

const LockTables *
lock_tables()
{
	MemoryContext context = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;

	if (were_tried)
		return are_attached ? &tables : nullptr;

	PG_TRY();
	{
		HASHCTL		control = {};
		int			flags = HASH_ELEM | HASH_BLOBS | HASH_PARTITION;

		control.num_partitions = NUM_LOCK_PARTITIONS;
		control.keysize = sizeof(LOCKTAG);
		control.entrysize = sizeof(LOCK);
		tables.locks = compat::attach_shared_table("LOCK hash", &control, guaranteed_locks(), flags);
		control.keysize = sizeof(PROCLOCKTAG);
		control.entrysize = sizeof(PROCLOCK);
		tables.holders = compat::attach_shared_table("PROCLOCK hash", &control, 2 * guaranteed_locks(), flags);
		are_attached = true;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
		/* The error has set it to 0. */
		InterruptHoldoffCount = holdoff;
	}
	PG_END_TRY();
	were_tried = true;
	return are_attached ? &tables : nullptr;
}

LOCK *
find_in_lock_table(const LOCKTAG &tag, uint32 hash) noexcept
{
	return static_cast<LOCK *>(hash_search_with_hash_value(tables.locks, &tag, hash, HASH_FIND, nullptr));
}

}								/* namespace advisory */
