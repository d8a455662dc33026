/*
 * server/lockhash.cpp
 *		The hash tables of the server's lock manager.
 *
 * The server raises an error if it knows a table of that name with another size, which it
 * derives from the same settings as we do.  Then the tables are not ours to touch.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "server/lockhash.h"

namespace advisory
{

static LockTables tables;
static bool are_attached = false;
static bool are_unknown = false;

int64
guaranteed_locks() noexcept
{
	return static_cast<int64>(max_locks_per_xact) * (MaxBackends + max_prepared_xacts);
}

static HTAB *
attach(const char *name, Size key_size, Size entry_size, int64 entries)
{
	HASHCTL		control = {};

	control.keysize = key_size;
	control.entrysize = entry_size;
	control.num_partitions = NUM_LOCK_PARTITIONS;
	return compat::attach_shared_table(name, &control, entries, HASH_ELEM | HASH_BLOBS | HASH_PARTITION);
}

const LockTables *
lock_tables()
{
	MemoryContext context = CurrentMemoryContext;

	if (are_attached)
		return &tables;
	if (are_unknown)
		return nullptr;

	PG_TRY();
	{
		tables.locks = attach("LOCK hash", sizeof(LOCKTAG), sizeof(LOCK), guaranteed_locks());
		tables.holders = attach("PROCLOCK hash", sizeof(PROCLOCKTAG), sizeof(PROCLOCK), 2 * guaranteed_locks());
		are_attached = true;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
		are_unknown = true;
	}
	PG_END_TRY();
	return are_attached ? &tables : nullptr;
}

LOCK *
find_in_lock_table(const LOCKTAG &tag, uint32 hash) noexcept
{
	return static_cast<LOCK *>(hash_search_with_hash_value(tables.locks, &tag, hash, HASH_FIND, nullptr));
}

}								/* namespace advisory */
