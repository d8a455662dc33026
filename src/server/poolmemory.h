/*
 * server/poolmemory.h
 *		What the server's lock tables have taken of its spare shared memory.
 *
 * Memory that a table has grown by stays with that table, even when its entries are
 * free again.  The server does not count it.  But the chunks of memory lie one after
 * the other in the part of the segment that was free when the server had started, and
 * the keys of their entries tell which table they belong to.
 *
 * Nothing here takes a lock, except for reading pg_shmem_allocations.
 */
#pragma once

namespace advisory
{

/* By how much the tables have grown since the server started. */
struct PoolGrowth
{
	int64		spare;			/* bytes left to grow into; 0 if the tables do not grow */
	int64		lock_chunks;
	int64		holder_chunks;
};

/* How a table grows. */
struct PoolChunk
{
	int			entries;
	Size		entry_bytes;
	Size		bytes;			/* of memory */
};

/* For a table with entries of this size: LOCK or PROCLOCK. */
PoolChunk	pool_chunk(Size entry_size) noexcept;

/*
 * Read the server's list of shared memory, which read_pool_growth() needs.  Reads
 * catalogs, so it may need a lock in the lock table.
 */
void		read_shared_memory();

/*
 * By how much the tables have grown, and the memory that is left.  Returns false,
 * and sets only the memory that was left when the list was read, if that cannot be
 * found out because shared memory is not as expected or the list was not read yet.
 *
 * The first call in a session, and a call a second after a chunk was not recognized, visits
 * each chunk and at most 8 MB of other memory (below 5 ms).  Further calls visit only new
 * memory.  May ereport (cancellation).
 */
bool		read_pool_growth(PoolGrowth *growth);

}								/* namespace advisory */
