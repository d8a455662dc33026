/*
 * server/pool.cpp
 *		The server's shared lock table, and how full it is.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "base/errors.h"
#include "server/lockhash.h"
#include "server/locktable.h"
#include "server/pool.h"
#include "server/poolmemory.h"

namespace advisory
{

static bool
read_list()
{
	return unless_lock_table_is_full([]() { read_shared_memory(); });
}

/* The estimate for this size and use.  The last one is kept, since it is often asked for again. */
static PoolCapacity
capacity_of(const PoolSize &size, const PoolUse &use)
{
	static PoolSize known_size = {-1, {-1, 0, 0}};
	static int64 known_more_holders;
	static PoolUse known_end;
	static int64 small_table_bias;
	int64		more_holders = Max(use.holders - use.locks, 0);
	int64		first_spare = pool_first_spare(size.growth);
	int64		headroom;

	/* This takes long to compute, and does not change while the pool grows. */
	if (first_spare != pool_first_spare(known_size.growth))
		small_table_bias = pool_small_table_bias(size.guaranteed, first_spare);
	if (memcmp(&size, &known_size, sizeof(size)) != 0 || more_holders != known_more_holders)
		known_end = pool_end(size, more_holders);
	known_size = size;
	known_more_holders = more_holders;
	headroom = Max(known_end.locks + small_table_bias - use.locks, 0);
	return PoolCapacity{headroom, use.locks + headroom, Max(known_end.holders, use.holders + headroom)};
}

PoolState
read_pool(bool by_counting)
{
	static bool list_was_read = false;
	PoolState	state = {};
	PoolGrowth *growth = &state.size.growth;

	/* The first time this may fail because the lock table is full. */
	if (compat::lock_tables_grow && !list_was_read)
		list_was_read = read_list();
	state.is_counted = by_counting || lock_tables() == nullptr || (compat::lock_tables_grow && !list_was_read);
	state.is_exact = !state.is_counted;
	state.size.guaranteed = guaranteed_locks();
	if (state.is_counted)
	{
		PoolTypeUse types[POOL_TYPES];
		PoolSessionUse *sessions;
		int			session_count;

		read_pool_use(types, &sessions, &session_count);
		for (const PoolTypeUse &type : types)
		{
			state.use.locks += type.locks;
			state.use.holders += type.holders;
		}
	}
	else
		state.use = PoolUse{static_cast<int64>(hash_get_num_entries(lock_tables()->locks)),
			static_cast<int64>(hash_get_num_entries(lock_tables()->holders))};

	if (compat::lock_tables_grow && !read_pool_growth(growth))
	{
		/* Assume the growth that the present use needs.  The free memory may have changed since the list was read. */
		read_list();
		read_pool_growth(growth);
		*growth = pool_least_growth(state.size.guaranteed, growth->spare, state.use);
		state.is_exact = false;
	}
	state.capacity = capacity_of(state.size, state.use);
	return state;
}

}								/* namespace advisory */
