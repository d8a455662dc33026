/*
 * server/pool.cpp
 *		The server's shared lock table, and how full it is.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "server/lockhash.h"
#include "server/locktable.h"
#include "server/pool.h"
#include "server/poolmemory.h"
#include "base/errors.h"

namespace advisory
{

/* A quick look may be off by the pool's size divided by this. */
static constexpr int64 QUICK_PART = 100;

/* The server's list of shared memory. */
static bool list_was_read = false;

/* The last estimate, and what it was made for. */
static PoolEnd known_end;
static PoolGrowth known_growth = {-1, 0, 0};
static int64 known_more_holders;

/* The last pool_small_table_bias(), and the spare memory it was computed for. */
static int64 known_bias;
static int64 known_first_spare = -1;

/* Can the tables be read as they are?  The first time this may fail because the lock table is full. */
static bool
has_tables()
{
	if (compat::lock_tables_grow && !list_was_read)
		list_was_read = unless_lock_table_is_full([]() { read_shared_memory(); });
	return lock_tables() != nullptr && (list_was_read || !compat::lock_tables_grow);
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
	return PoolUse{static_cast<int64>(hash_get_num_entries(lock_tables()->locks)),
		static_cast<int64>(hash_get_num_entries(lock_tables()->holders))};
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
