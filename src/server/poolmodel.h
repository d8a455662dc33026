/*
 * server/poolmodel.h
 *		How many locks the server's lock tables will hold: arithmetic only.
 *
 * Up to 18 the tables begin with a part of what the server's formula gives them,
 * and grow by chunks out of the shared memory that nothing else uses, until there is no
 * more; that is well beyond the formula.  Each table has NUM_FREELISTS lists of
 * free entries, and the list that an entry belongs to is as good as random.  A list
 * that is empty has the table grow, although others may have free entries; only where the table
 * cannot grow any more are they used.  From 19 on the tables have their size from
 * the start.  (dynahash.c and lock.c of PostgreSQL.)
 */
#ifndef ADVISORY_EXT_SERVER_POOLMODEL_H
#define ADVISORY_EXT_SERVER_POOLMODEL_H

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

/* By how much the tables have grown since the server's start. */
struct PoolGrowth
{
	int64		spare;			/* bytes that are left to grow by; 0 if they do not grow */
	int64		lock_chunks;
	int64		holder_chunks;
};

/* The tables as they are. */
struct PoolSize
{
	int64		guaranteed;		/* locks, by the server's formula; twice as many holders */
	PoolGrowth	growth;
	int64		luck;			/* pool_luck() of both */
};

/* Bytes that they had to grow by at the server's start. */
int64		pool_first_spare(const PoolGrowth &growth) noexcept;

/*
 * How many locks more than on average (or fewer, then it is negative) a pool of this size is to be
 * estimated at, since luck decides who gets the last chunks.  Takes up to some milliseconds for
 * a small pool.
 */
int64		pool_luck(int64 guaranteed, int64 first_spare);

/* Entries of both tables that are in use. */
struct PoolUse
{
	int64		locks;
	int64		holders;
};

/* What the tables are estimated to hold, if each further lock has one holder. */
struct PoolCapacity
{
	int64		headroom;		/* further locks; 0 if it is full */
	int64		locks;			/* when it is full: those in use and the headroom */
	int64		holders;		/* entries that the second table will have by then */
};

/*
 * The estimate for a pool of this size in which there are so many more holders than locks:
 * how many of both it will hold when it is full.  Takes some 10 us, whatever the size.
 */
struct PoolEnd
{
	int64		locks;
	int64		holders;
};

PoolEnd		pool_end(const PoolSize &size, int64 more_holders) noexcept;

/* The same, with so much in use already.  Takes no time. */
PoolCapacity pool_capacity(const PoolEnd &end, const PoolUse &use) noexcept;

/* How full it is, in percent: the fuller of both tables. */
double		pool_percent_used(const PoolCapacity &capacity, const PoolUse &use) noexcept;

/* The chunks that this use needs, on average; there may be more, if the use was larger once. */
PoolGrowth	pool_least_growth(int64 guaranteed, int64 spare, const PoolUse &use) noexcept;

/*
 * How many locks by the server's formula are enough for this use, of a pool of this size and
 * capacity, to be less than so many percent of what fits.  On the safe side by some percent.
 */
int64		pool_guaranteed_for(const PoolSize &size, const PoolCapacity &capacity, const PoolUse &use, double percent) noexcept;

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_SERVER_POOLMODEL_H */
