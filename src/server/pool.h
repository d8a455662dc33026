/*
 * server/pool.h
 *		The server's shared lock table, and how full it is.
 *
 * It consists of two hash tables: one of locks, and one of holders, with an entry for
 * each session that holds or awaits a lock.  A backend can attach to them as it can to
 * any table in shared memory, and to count their entries takes no lock and no longer than to
 * add a few numbers.
 */
#ifndef ADVISORY_EXT_SERVER_POOL_H
#define ADVISORY_EXT_SERVER_POOL_H

#include "server/poolmodel.h"

namespace advisory
{

struct PoolState
{
	PoolSize	size;
	PoolUse		use;
	PoolCapacity capacity;
	bool		is_counted;		/* what is in use was counted lock by lock */
	bool		is_exact;		/* false in that case, and where it cannot be told how the tables have grown */
};

/*
 * The pool as it is, in constant time; lock by lock if by_counting, or if the tables are not
 * what this version of the library expects.  May ereport (out of memory, cancellation).
 */
PoolState	read_pool(bool by_counting = false);

/* The same in a tenth of a microsecond as a rule, with a capacity that can be off by a percent. */
PoolState	read_pool_quickly();

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_SERVER_POOL_H */
