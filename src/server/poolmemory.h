/*
 * server/poolmemory.h
 *		What the server's lock tables have taken of its spare shared memory.
 *
 * Memory that a table has grown by stays that table's, also when its entries are free again.
 * Nobody keeps account of it, but it can be seen: chunks come one after the other from
 * the part of the segment that was free when the server had started, and an entry of either table is
 * known by its key.
 *
 * Nothing here takes a lock but the look at the server's list.
 */
#ifndef ADVISORY_EXT_SERVER_POOLMEMORY_H
#define ADVISORY_EXT_SERVER_POOLMEMORY_H

#include "server/poolmodel.h"

namespace advisory
{

/*
 * Look at the server's list of shared memory: where everything is, for read_pool_growth().  Reads catalogs, so it may need a lock in the lock table.
 */
void		read_shared_memory();

/*
 * By how much the tables have grown, and what is left.  False if that cannot be told, because
 * shared memory is not as expected or nobody has looked at the list yet; then only what the
 * list said is left is set.  The first time in a session it visits all that was taken (some ten
 * nanoseconds a chunk), then only what is new, and all once more where something could not be told.
 */
bool		read_pool_growth(PoolGrowth *growth);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_SERVER_POOLMEMORY_H */
