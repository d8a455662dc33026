/*
 * server/pool.h
 *		The server's shared lock table, and how full it is.
 *
 * It consists of two hash tables (lockhash.h): one of locks, and one of holders.
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
 * by_counting, or if the tables are not as this library expects them.
 */
PoolState	read_pool(bool by_counting = false);

}								/* namespace advisory */
