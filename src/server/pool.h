/*
 * server/pool.h
 *		The server's shared lock table, and how full it is.
 */
#pragma once

namespace advisory
{

/* Entries of the two tables (locktable.h). */
struct PoolCount
{
	int64		locks;
	int64		holders;
};

struct PoolState
{
	PoolCount	use;			/* in use */
	PoolCount	size;			/* in use or free */
	/* Bytes of shared memory that both tables can grow into; 0 if they do not grow. */
	int64		spare;
	/* In use when the pool is full, if each further lock has one holder: estimated. */
	PoolCount	capacity;
	/* False if the tables are not as this library expects them; use is 0 then. */
	bool		is_known;
	/* False if use is not known, or the size is only what the tables have at least. */
	bool		is_exact;
};

/*
 * The present state of the pool.  Reads no catalog.
 *
 * The first call in a session counts the free entries of the tables, which takes some 3 ms for
 * 100,000, and locks one partition at a time. So does the first call after the tables have taken
 * 1/32 of the spare memory.  Other calls lock nothing and take constant time.  No LWLock may be
 * held.  May ereport (cancellation).
 */
PoolState	read_pool();

/* How full the fuller one of the tables is, in percent. */
double		pool_percent_used(const PoolState &pool) noexcept;

/* How many further locks, with one holder each, fit until that is this percentage; at least 0. */
int64		pool_room(const PoolState &pool, int percent) noexcept;

/*
 * The max_locks_per_transaction with which the present use is less than this percentage of what
 * fits: some percent too high rather than too low.
 */
int64		pool_setting_for(const PoolState &pool, double percent) noexcept;

}								/* namespace advisory */
