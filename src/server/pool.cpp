/*
 * server/pool.cpp
 *		The server's shared lock table, and how full it is.
 *
 * Up to PostgreSQL 18 the two tables start with half of the entries that the server's formula gives
 * them.  They grow by chunks of spare shared memory until it is used up, which is well beyond the
 * formula.  A chunk stays with its table, even when its entries are free again. So what fits
 * depends on the entries that each table has by now, and on the spare memory.  From 19 on the
 * tables have their final size from the start.  See dynahash.c and lock.c.
 *
 * The server does not count the entries of a table, but it has lists of the free ones.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "server/locktable.h"
#include "server/pool.h"

namespace advisory
{

/* ---- How the tables grow ---- */

/* As in dynahash.c. */
static constexpr Size MIN_CHUNK_BYTES = 256;
static constexpr Size MIN_CHUNK_ENTRIES = 32;

struct Chunk
{
	int64		entries;
	int64		bytes;			/* of shared memory */
};

/*
 * A table grows by the smallest power of two of bytes that holds MIN_CHUNK_ENTRIES
 * (choose_nelem_alloc).
 */
static constexpr Chunk
chunk_of(Size entry_size) noexcept
{
	Size		element = MAXALIGN(sizeof(HASHELEMENT)) + MAXALIGN(entry_size);
	Size		bytes = MIN_CHUNK_BYTES;

	while (bytes / element < MIN_CHUNK_ENTRIES)
		bytes *= 2;
	return Chunk{static_cast<int64>(bytes / element),
				 static_cast<int64>(CACHELINEALIGN(bytes / element * element))};
}

static constexpr Chunk LOCK_CHUNK = chunk_of(sizeof(LOCK));
static constexpr Chunk HOLDER_CHUNK = chunk_of(sizeof(PROCLOCK));
static constexpr double LOCK_BYTES = static_cast<double>(LOCK_CHUNK.bytes) / LOCK_CHUNK.entries;
static constexpr double HOLDER_BYTES =
	static_cast<double>(HOLDER_CHUNK.bytes) / HOLDER_CHUNK.entries;

/*
 * If both tables grow, this many locks do not fit, because the table that is full first leaves free
 * entries in the other one.  The true number depends on chance: 0 to 6 chunks in servers of every
 * size.
 */
static constexpr int64 LOST_LOCKS = 3 * LOCK_CHUNK.entries;

/*
 * In smaller pools (locks by the server's formula) a few chunks are half of the pool, and chance
 * decides which table gets them.  So not more than the formula's locks are sure to fit.
 */
static constexpr int64 TINY_POOL = 1200;

/* Larger pools really hold at least this many locks for each lock that the formula gives them. */
static constexpr double MIN_GAIN = 1.35;

static PoolCount
capacity_of(const PoolState &pool) noexcept
{
	/* Without the holders that are more than locks. */
	int64		holders = pool.size.holders - Max(pool.use.holders - pool.use.locks, 0);
	/* If both tables grow. */
	double		bytes = pool.spare + pool.size.locks * LOCK_BYTES + holders * HOLDER_BYTES;
	int64		fit = static_cast<int64>(bytes / (LOCK_BYTES + HOLDER_BYTES)) - LOST_LOCKS;

	/* The other table may be so large that only one grows. */
	fit = Min(fit, pool.size.locks + pool.spare / LOCK_CHUNK.bytes * LOCK_CHUNK.entries);
	fit = Min(fit, holders + pool.spare / HOLDER_CHUNK.bytes * HOLDER_CHUNK.entries);
	if (guaranteed_locks() < TINY_POOL)
		fit = Min(fit, guaranteed_locks());
	/* At least those that fit already. */
	fit = Max(Max(fit, Min(pool.size.locks, holders)), pool.use.locks);
	return PoolCount{fit, Max(pool.size.holders, pool.use.holders + fit - pool.use.locks)};
}

/* ---- Reading ---- */

/*
 * As in dynahash.c, for partitioned tables: the first member of a HTAB points to the table's
 * shared header, which begins with these lists.  PostgreSQL 10 to 18 have them.
 */
struct FreeList
{
	slock_t		mutex;
	long		used;			/* entries in use that belong to this list */
	HASHELEMENT *first;
};
static constexpr int FREE_LISTS = 32;

/*
 * The number of entries, in use or free, or -1 if the table is not as expected.
 *
 * The last bits of a hash value tell both the partition and the list.  So a list does not change
 * while its partition is locked.  Only when no memory is left, others may take entries from it.
 * Then the walk ends too early, or goes on with entries in use: a table's entries never become
 * anything else.
 */
static int64
count_entries(const HTAB *table)
{
	const FreeList *lists = *reinterpret_cast<FreeList *const *>(table);
	int64		entries = 0;
	bool		are_lists = ShmemAddrIsValid(lists);

	for (int i = 0; i < FREE_LISTS && are_lists; i++)
	{
		LWLock	   *partition = LockHashPartitionLockByIndex(i % NUM_LOCK_PARTITIONS);

		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(partition, LW_SHARED);
		entries += lists[i].used;

		const HASHELEMENT *entry = lists[i].first;

		for (; ShmemAddrIsValid(entry); entry = entry->link)
			entries++;
		are_lists = lists[i].used >= 0 && entry == nullptr;
		LWLockRelease(partition);
	}
	return are_lists ? entries : -1;
}

/* The shared memory segment of the server, or null if it is not as expected. */
static const PGShmemHeader *
shared_segment() noexcept
{
	auto		first = reinterpret_cast<uintptr_t>(ProcGlobal);

	/* It begins at the lowest valid address. */
	for (uintptr_t step = ~(UINTPTR_MAX / 2); step > 0; step /= 2)
	{
		// NOLINTNEXTLINE(performance-no-int-to-ptr): there is no pointer to begin with
		if (step <= first && ShmemAddrIsValid(reinterpret_cast<const void *>(first - step)))
			first -= step;
	}

	// NOLINTNEXTLINE(performance-no-int-to-ptr)
	auto	   *segment = reinterpret_cast<const PGShmemHeader *>(first);

	return segment->magic == PGShmemMagic ? segment : nullptr;
}

/*
 * Fill in the size of the tables, and the spare memory; or else what they have at least, and return
 * false.
 *
 * The entries are counted anew when the tables have taken 1/32 of the spare memory.  Before that it
 * makes little difference which table has taken it, and none if each lock had one holder.
 */
static bool
read_size(PoolState *pool, const LockTables *tables)
{
	static PoolCount counted = {-1, -1};
	static int64 spare_then = 0;
	int64		guaranteed = guaranteed_locks();

	pool->size = PoolCount{guaranteed, 2 * guaranteed};
	if (!compat::lock_tables_grow)
		return true;

	static const PGShmemHeader *const segment = shared_segment();

	if (segment != nullptr)
		pool->spare = static_cast<int64>(segment->totalsize - compat::used_shared_memory(segment));
	if (segment != nullptr && tables != nullptr &&
		(counted.locks < 0 || spare_then - pool->spare > spare_then / 32))
	{
		counted = PoolCount{count_entries(tables->locks), count_entries(tables->holders)};
		spare_then = pool->spare;
	}
	if (counted.locks < 0 || counted.holders < 0)
	{
		pool->size = PoolCount{Max(guaranteed / 2, pool->use.locks),
							   Max(guaranteed, pool->use.holders)};
		return false;
	}
	pool->size = counted;
	pool->spare = spare_then;
	return true;
}

PoolState
read_pool()
{
	const LockTables *tables = lock_tables();
	PoolState	pool = {};

	pool.is_known = tables != nullptr;
	if (pool.is_known)
		pool.use = PoolCount{hash_get_num_entries(tables->locks),
							 hash_get_num_entries(tables->holders)};
	pool.is_exact = read_size(&pool, tables) && pool.is_known;
	pool.capacity = capacity_of(pool);
	return pool;
}

double
pool_percent_used(const PoolState &pool) noexcept
{
	return Max(100.0 * pool.use.locks / Max(pool.capacity.locks, 1),
			   100.0 * pool.use.holders / Max(pool.capacity.holders, 1));
}

int64
pool_room(const PoolState &pool, int percent) noexcept
{
	int64		locks = pool.capacity.locks * percent / 100 - pool.use.locks;
	int64		holders = pool.capacity.holders * percent / 100 - pool.use.holders;

	return Max(Min(locks, holders), 0);
}

/* How many locks the server's formula has to give for that. */
static int64
guaranteed_for(const PoolState &pool, double percent) noexcept
{
	int64		guaranteed = guaranteed_locks();
	auto		locks = static_cast<int64>(pool.use.locks * 100.0 / percent) + 1;
	auto		holders = static_cast<int64>(pool.use.holders * 100.0 / percent) + 1;

	if (!compat::lock_tables_grow || guaranteed < TINY_POOL)
		return Max(guaranteed, Max(locks, (holders + 1) / 2));

	int64		missing = Max(locks - pool.capacity.locks, holders - pool.capacity.holders);

	return guaranteed + static_cast<int64>(ceil(Max(missing, 0) / MIN_GAIN));
}

int64
pool_setting_for(const PoolState &pool, double percent) noexcept
{
	int64		processes = MaxBackends + max_prepared_xacts;

	return (guaranteed_for(pool, percent) + processes - 1) / processes;
}

}								/* namespace advisory */
