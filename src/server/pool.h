/*
 * server/pool.h
 *		The server's shared lock table, and how full it is.
 */
#pragma once

#include "server/poolmemory.h"

namespace advisory
{

/* The size of the tables. */
struct PoolSize
{
	int64		guaranteed;		/* locks, by the server's formula; twice as many holders */
	PoolGrowth	growth;
};

/* Entries of both tables (lockhash.h) that are in use. */
struct PoolUse
{
	int64		locks;
	int64		holders;
};

/* What the tables are estimated to hold if each further lock has one holder. */
struct PoolCapacity
{
	int64		headroom;		/* further locks; 0 if the pool is full */
	int64		locks;			/* locks in use and headroom */
	int64		holders;		/* entries that the second table will have when the pool is full */
};

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
 * by_counting, or if the tables are not as this library expects them.
 */
PoolState	read_pool(bool by_counting = false);

/* How full the fuller one of the tables is, in percent. */
double		pool_percent_used(const PoolState &pool) noexcept;

/*
 * How many locks the server's formula has to give for the present use to be less than
 * this percentage of what fits: some percent too high rather than too low.
 */
int64		pool_guaranteed_for(const PoolState &pool, double percent) noexcept;

}								/* namespace advisory */
