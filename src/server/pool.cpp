/*
 * server/pool.cpp
 *		The server's shared lock table, and how full it is.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "server/locktable.h"
#include "server/pool.h"
#include "server/poolmemory.h"
#include "base/errors.h"

namespace advisory
{

/* A quick look may be off by the pool's size divided by this. */
static constexpr int64 QUICK_PART = 100;

namespace
{

/* One of the server's two tables. */
struct ServerTable
{
	const char *name;
	Size		key_size;
	Size		entry_size;
	int			entries_per_lock;	/* for each lock of the server's formula */
	HTAB	   *table;			/* null until it is attached to */
};

ServerTable lock_table = {"LOCK hash", sizeof(LOCKTAG), sizeof(LOCK), 1, nullptr};
ServerTable holder_table = {"PROCLOCK hash", sizeof(PROCLOCKTAG), sizeof(PROCLOCK), 2, nullptr};

}								/* anonymous namespace */

static bool tables_are_unknown = false;

/* The last estimate, and what it was made for. */
static PoolEnd known_end;
static PoolGrowth known_growth = {-1, 0, 0};
static int64 known_more_holders;

/* The last pool_small_table_bias(), and the spare memory it was computed for. */
static int64 known_bias;
static int64 known_first_spare = -1;

static int64
guaranteed_locks() noexcept
{
	return static_cast<int64>(max_locks_per_xact) * (MaxBackends + max_prepared_xacts);
}

/* ---- Attaching ---- */

static HASHCTL
control_of(const ServerTable &table) noexcept
{
	HASHCTL		control = {};

	control.keysize = table.key_size;
	control.entrysize = table.entry_size;
	control.num_partitions = NUM_LOCK_PARTITIONS;
	return control;
}

static bool
is_as_expected(const ServerTable &table, Size registered)
{
	HASHCTL		control = control_of(table);

	return registered == compat::shared_table_size(&control, guaranteed_locks() * table.entries_per_lock);
}

/* Only for counting entries.  As keys are never looked up, the server's hash function does not matter. */
static void
attach(ServerTable *table)
{
	HASHCTL		control = control_of(*table);

	table->table = compat::attach_shared_table(table->name, &control, guaranteed_locks() * table->entries_per_lock,
											   HASH_ELEM | HASH_BLOBS | HASH_PARTITION);
}

/* Attach to the tables.  False if they are not as expected. */
static bool
has_tables()
{
	if (holder_table.table != nullptr)
		return true;
	if (tables_are_unknown)
		return false;

	RegisteredTables registered = {};

	/* Calling a function reads the catalog, which needs a lock.  If the lock table is full, a later call will try again. */
	if (!unless_lock_table_is_full([&registered]() { registered = read_shared_memory(); }))
		return false;
	tables_are_unknown = !is_as_expected(lock_table, registered.locks) ||
		!is_as_expected(holder_table, registered.holders);
	if (tables_are_unknown)
		return false;
	attach(&lock_table);
	attach(&holder_table);
	return true;
}

static PoolUse
count_locks()
{
	PoolTypeUse types[POOL_TYPES];
	PoolSessionUse *sessions;
	int			session_count;
	PoolUse		use = {};

	read_pool_use(types, &sessions, &session_count);
	for (const PoolTypeUse &type : types)
	{
		use.locks += type.locks;
		use.holders += type.holders;
	}
	return use;
}

static PoolUse
read_use(bool by_counting)
{
	if (by_counting)
		return count_locks();
	return PoolUse{static_cast<int64>(hash_get_num_entries(lock_table.table)),
		static_cast<int64>(hash_get_num_entries(holder_table.table))};
}

/* ---- The estimate ---- */

/* By how much the tables have grown.  False if that is only the growth that the present use needs. */
static bool
find_growth(const PoolUse &use, PoolGrowth *growth)
{
	*growth = PoolGrowth{};
	if (!compat::lock_tables_grow || read_pool_growth(growth))
		return true;
	/* The free memory may have changed since the list was read. */
	unless_lock_table_is_full([]() { read_shared_memory(); });
	read_pool_growth(growth);
	*growth = pool_least_growth(guaranteed_locks(), growth->spare, use);
	return false;
}

static bool
is_near(int64 one, int64 other, int64 tolerance) noexcept
{
	return Max(one, other) - Min(one, other) <= tolerance;
}

/*
 * The estimate for this size and use.  The last one is used again if nothing has
 * changed since, or no more than the pool's size divided by part, unless that is 0.
 */
static PoolEnd
end_of(PoolSize size, const PoolUse &use, int64 part)
{
	int64		more_holders = Max(use.holders - use.locks, 0);
	int64		first_spare = pool_first_spare(size.growth);

	if (known_growth.spare >= 0 && first_spare == known_first_spare &&
		is_near(more_holders, known_more_holders, part > 0 ? size.guaranteed / part : 0) &&
		is_near(size.growth.spare, known_growth.spare, part > 0 ? first_spare / part : 0))
		return known_end;
	if (first_spare != known_first_spare)
		known_bias = pool_small_table_bias(size.guaranteed, first_spare);
	size.small_table_bias = known_bias;
	known_end = pool_end(size, more_holders);
	known_first_spare = first_spare;
	known_growth = size.growth;
	known_more_holders = more_holders;
	return known_end;
}

static PoolState
read_pool_within(bool by_counting, int64 part)
{
	bool		counts = by_counting || !has_tables();
	PoolState	state;

	state.use = read_use(counts);
	state.size.guaranteed = guaranteed_locks();
	state.is_exact = find_growth(state.use, &state.size.growth) && !counts;
	state.capacity = pool_capacity(end_of(state.size, state.use, part), state.use);
	state.is_counted = counts;
	return state;
}

PoolState
read_pool(bool by_counting)
{
	return read_pool_within(by_counting, 0);
}

PoolState
read_pool_quickly()
{
	return read_pool_within(false, QUICK_PART);
}

}								/* namespace advisory */
