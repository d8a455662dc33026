/*
 * server/pool.h
 *		The server's shared lock table, and how full it is.
 *
 * The lock table consists of two hash tables: one of locks, and one of holders, with an
 * entry for each session that holds or awaits a lock.  A backend can attach to them as to
 * any hash table in shared memory.  Counting their entries then takes no lock and means
 * adding a few numbers.
 */
#pragma once

#include "server/poolmodel.h"

namespace advisory
{

struct PoolState
{
	PoolSize	size;
	PoolUse		use;
	PoolCapacity capacity;
	bool		is_counted;		/* the use was counted lock by lock */
	bool		is_exact;		/* false if is_counted, and if the growth of the tables is unknown */
};

/*
 * The present state of the pool, in constant time; by counting lock by lock if
 * by_counting, or if the tables are not as this library expects them.  May ereport
 * (out of memory, cancellation).
 */
PoolState	read_pool(bool by_counting = false);

/* The same in 0.1 us as a rule, with a capacity that can be off by one percent. */
PoolState	read_pool_quickly();

}								/* namespace advisory */
