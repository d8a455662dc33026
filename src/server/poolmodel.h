/*
 * server/poolmodel.h
 *		How many locks the server's lock tables will hold: arithmetic only.
 *
 * Up to PostgreSQL 18 the tables start with a part of the entries that the server's
 * formula gives them.  They grow by chunks of spare shared memory until it is used up,
 * which is well beyond the formula.  Each table has NUM_FREELISTS lists of free
 * entries, and the list that an entry belongs to is practically random.  When a list
 * is empty the table grows, although other lists may have free entries.  Entries of
 * other lists are used only when the table cannot grow any more.  From 19 on the
 * tables have their final size from the start.  See dynahash.c and lock.c.
 */
#pragma once

namespace advisory
{

/* How a table grows. */
struct PoolChunk
{
	int			entries;
	Size		entry_bytes;
	Size		bytes;			/* of memory */
};

PoolChunk	pool_lock_chunk() noexcept;
PoolChunk	pool_holder_chunk() noexcept;

/* By how much the tables have grown since the server started. */
struct PoolGrowth
{
	int64		spare;			/* bytes left to grow into; 0 if the tables do not grow */
	int64		lock_chunks;
	int64		holder_chunks;
};

/* The size of the tables. */
struct PoolSize
{
	int64		guaranteed;		/* locks, by the server's formula; twice as many holders */
	PoolGrowth	growth;
};

/* Bytes that the tables had to grow into when the server started. */
int64		pool_first_spare(const PoolGrowth &growth) noexcept;

/*
 * The number of locks to add to the average estimate for a pool of this size; often
 * negative.  Chance decides which table gets the last chunks, and in a small pool a
 * chunk is a large part.  Takes up to some milliseconds for a small pool.
 */
int64		pool_small_table_bias(int64 guaranteed, int64 first_spare);

/* Entries of both tables that are in use. */
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

/*
 * The entries that will be in use when the pool is full, if it has more_holders more
 * holders than locks: the average estimate.  Takes about 10 us for any size.
 */
PoolUse		pool_end(const PoolSize &size, int64 more_holders) noexcept;

/* How full the fuller one of the tables is, in percent. */
double		pool_percent_used(const PoolCapacity &capacity, const PoolUse &use) noexcept;

/* The chunks that this use needs on average.  There are more if more was in use before. */
PoolGrowth	pool_least_growth(int64 guaranteed, int64 spare, const PoolUse &use) noexcept;

/*
 * How many locks the server's formula has to give for this use to be less than this
 * percentage of what fits.  size and capacity are those of the present pool.  The
 * result is some percent too high rather than too low.
 */
int64		pool_guaranteed_for(const PoolSize &size, const PoolCapacity &capacity, const PoolUse &use, double percent) noexcept;

}								/* namespace advisory */
