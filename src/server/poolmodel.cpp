/*
 * server/poolmodel.cpp
 *		How many locks the server's lock tables will hold: arithmetic only.
 *
 * With n entries in use, the number of entries taken from one free list has a binomial
 * distribution, which is close to a normal distribution.  This gives the average number
 * of chunks that a table has grown by.  The pool is full when all spare memory has gone
 * into chunks of the two tables, and one of them has used up all its free lists.
 *
 * A large pool really holds half a chunk less than that, with a standard deviation of
 * about 30, because the table with the worse distribution is full first.  In a small
 * pool a chunk is some percent of the whole and the steps do not average out, so some
 * fills are simulated.
 */
#include "base/pg.h"

#include <math.h>

#include "base/compat.h"
#include "server/poolmodel.h"

namespace advisory
{

/* As in dynahash.c, for partitioned tables. */
static constexpr int FREE_LISTS = 32;
static constexpr int MIN_CHUNK_BYTES = 256;
static constexpr int MIN_CHUNK_ENTRIES = 32;

/*
 * Smaller pools (locks by the server's formula) are simulated.  The estimate for a
 * tiny one is the worst case, so that all of it really fits.
 */
static constexpr int64 SIMULATED_POOL = 4000;
static constexpr int64 TINY_POOL = 1200;
static constexpr int SIMULATIONS = 41;

/*
 * The tables really hold at least this many locks for each lock that the formula gives
 * them.  Found with servers of 1,500 to 3,000,000 locks.
 */
static constexpr double MIN_GAIN = 1.35;

/* A normally distributed number is practically never further from its mean, in standard deviations. */
static constexpr double MAX_DEVIATIONS = 4;

/* The search for the end of memory is exact to this number of locks. */
static constexpr int64 END_TOLERANCE = 4;

/* One of the two tables. */
struct Table
{
	int64		first_entries;	/* entries that it has from the start */
	int			chunk_entries;
	int64		chunk_bytes;
	int64		grown;			/* chunks added since */
};

struct Tables
{
	Table		locks;
	Table		holders;
};

/* A chunk has the smallest power of two of bytes that holds MIN_CHUNK_ENTRIES (choose_nelem_alloc). */
static PoolChunk
chunk_of(Size entry_size) noexcept
{
	Size		element = MAXALIGN(sizeof(HASHELEMENT)) + MAXALIGN(entry_size);
	Size		bytes = MIN_CHUNK_BYTES;

	while (bytes / element < MIN_CHUNK_ENTRIES)
		bytes *= 2;

	int			entries = static_cast<int>(bytes / element);

	return PoolChunk{entries, element, CACHELINEALIGN(entries * element)};
}

PoolChunk
pool_lock_chunk() noexcept
{
	return chunk_of(sizeof(LOCK));
}

PoolChunk
pool_holder_chunk() noexcept
{
	return chunk_of(sizeof(PROCLOCK));
}

static Tables
tables_of(int64 guaranteed, const PoolGrowth &growth) noexcept
{
	PoolChunk	lock_chunk = pool_lock_chunk();
	PoolChunk	holder_chunk = pool_holder_chunk();
	int			parts = compat::lock_tables_grow ? 2 : 1;

	return Tables{{guaranteed / parts, lock_chunk.entries, static_cast<int64>(lock_chunk.bytes), growth.lock_chunks},
		{2 * guaranteed / parts, holder_chunk.entries, static_cast<int64>(holder_chunk.bytes), growth.holder_chunks}};
}

int64
pool_first_spare(const PoolGrowth &growth) noexcept
{
	return growth.spare + growth.lock_chunks * static_cast<int64>(pool_lock_chunk().bytes) +
		growth.holder_chunks * static_cast<int64>(pool_holder_chunk().bytes);
}

/* The average number of chunks that a table has grown by when this many entries are in use. */
static double
chunks_for(const Table &table, int64 entries) noexcept
{
	double		mean = static_cast<double>(entries) / FREE_LISTS;
	double		deviation = sqrt(mean * (FREE_LISTS - 1) / FREE_LISTS);
	double		needed = static_cast<double>(table.first_entries / FREE_LISTS);	/* entries of one list before the next chunk */
	double		chunks = 0;

	if (entries <= 0)
		return 0;
	if (mean - MAX_DEVIATIONS * deviation > needed)
		chunks = floor((mean - MAX_DEVIATIONS * deviation - needed) / table.chunk_entries);
	needed += chunks * table.chunk_entries;
	/* The probability that one list needs this chunk, too. */
	for (; needed < mean + MAX_DEVIATIONS * deviation; needed += table.chunk_entries)
		chunks += 0.5 * erfc((needed + 0.5 - mean) / deviation / M_SQRT2);
	return chunks * FREE_LISTS;
}

/* How many of them the table has yet to get. */
static double
new_chunks_for(const Table &table, int64 entries) noexcept
{
	return Max(chunks_for(table, entries) - table.grown, 0);
}

PoolGrowth
pool_least_growth(int64 guaranteed, int64 spare, const PoolUse &use) noexcept
{
	Tables		tables = tables_of(guaranteed, PoolGrowth{});

	return PoolGrowth{spare, static_cast<int64>(chunks_for(tables.locks, use.locks)),
		static_cast<int64>(chunks_for(tables.holders, use.holders))};
}

/*
 * Take an entry from one of a table's free lists.  If it is empty, the table grows by a chunk
 * of the spare memory, or else the next list that has an entry gives one.
 */
static bool
take_entry(const Table &table, int64 *lists, int list, int64 *spare) noexcept
{
	if (lists[list] == 0 && *spare >= table.chunk_bytes)
	{
		*spare -= table.chunk_bytes;
		lists[list] += table.chunk_entries;
	}
	for (int i = 0; i < FREE_LISTS; i++)
	{
		if (lists[(list + i) % FREE_LISTS]-- > 0)
			return true;
		lists[(list + i) % FREE_LISTS] = 0;
	}
	return false;
}

/* How many locks of one session fit in one simulated fill. */
static int64
simulate_fill(const Tables &tables, int64 spare, pg_prng_state *random) noexcept
{
	int64		locks[FREE_LISTS];
	int64		holders[FREE_LISTS];

	for (int i = 0; i < FREE_LISTS; i++)
	{
		locks[i] = tables.locks.first_entries / FREE_LISTS;
		holders[i] = tables.holders.first_entries / FREE_LISTS;
	}
	locks[0] += tables.locks.first_entries % FREE_LISTS;
	holders[0] += tables.holders.first_entries % FREE_LISTS;

	for (int64 filled = 0;; filled++)
	{
		int			list = static_cast<int>(pg_prng_uint32(random) % FREE_LISTS);

		/* The session's part of a holder's hash value moves all its holders by the same number of lists. */
		if (!take_entry(tables.locks, locks, list, &spare) ||
			!take_entry(tables.holders, holders, FREE_LISTS - 1 - list, &spare))
			return filled;
	}
}

int64
pool_small_table_bias(int64 guaranteed, int64 first_spare)
{
	PoolGrowth	start = {first_spare, 0, 0};
	Tables		tables = tables_of(guaranteed, start);
	int64		average = pool_end(PoolSize{guaranteed, start}, 0).locks;
	int64		filled[SIMULATIONS];
	pg_prng_state random;

	if (!compat::lock_tables_grow)
		return 0;
	if (guaranteed >= SIMULATED_POOL)
		return -tables.locks.chunk_entries / 2;

	/* The same seed gives the same estimate each time. */
	pg_prng_seed(&random, static_cast<uint64>(guaranteed));
	for (int64 &count : filled)
		count = simulate_fill(tables, first_spare, &random);
	qsort(filled, SIMULATIONS, sizeof(int64), [](const void *a, const void *b) {
		int64		difference = *static_cast<const int64 *>(a) - *static_cast<const int64 *>(b);

		return difference < 0 ? -1 : static_cast<int>(difference > 0);
	});
	if (guaranteed >= TINY_POOL)
		return (filled[1] + filled[SIMULATIONS - 2]) / 2 - average;
	return Max(filled[0] - tables.holders.chunk_entries, guaranteed) - average;
}

PoolUse
pool_end(const PoolSize &size, int64 more_holders) noexcept
{
	Tables		tables = tables_of(size.guaranteed, size.growth);
	Table	   &locks = tables.locks;
	Table	   &holders = tables.holders;
	PoolUse		end = {locks.first_entries, holders.first_entries};

	if (compat::lock_tables_grow)
	{
		auto		spare = static_cast<double>(size.growth.spare);
		int64		low = 0;
		int64		high = holders.first_entries + holders.grown * holders.chunk_entries +
			locks.grown * locks.chunk_entries + size.growth.spare / static_cast<int64>(sizeof(LOCK)) + 1;

		/* For how many locks with one holder each, beside more_holders, does the spare memory suffice? */
		while (high - low > END_TOLERANCE)
		{
			int64		middle = low + (high - low) / 2;

			if (new_chunks_for(locks, middle) * locks.chunk_bytes +
				new_chunks_for(holders, middle + more_holders) * holders.chunk_bytes <= spare)
				low = middle;
			else
				high = middle;
		}

		double		for_locks = new_chunks_for(locks, low);
		double		for_holders = Min(Max(spare - for_locks * locks.chunk_bytes, 0) / holders.chunk_bytes,
									  new_chunks_for(holders, low + more_holders));

		end.locks += static_cast<int64>((locks.grown + for_locks) * locks.chunk_entries);
		end.holders += static_cast<int64>((holders.grown + for_holders) * holders.chunk_entries);
	}
	end.locks = Min(end.locks, end.holders - more_holders);
	return end;
}

double
pool_percent_used(const PoolCapacity &capacity, const PoolUse &use) noexcept
{
	return Max(100.0 * use.locks / Max(capacity.locks, 1), 100.0 * use.holders / Max(capacity.holders, 1));
}

int64
pool_guaranteed_for(const PoolSize &size, const PoolCapacity &capacity, const PoolUse &use, double percent) noexcept
{
	double		more_locks = floor(use.locks * 100.0 / percent) + 1 - capacity.locks;
	double		more_holders = floor(use.holders * 100.0 / percent) + 1 - capacity.holders;
	double		more = compat::lock_tables_grow
		? Max(more_locks, more_holders) / MIN_GAIN : Max(more_locks, more_holders / 2);

	return size.guaranteed + static_cast<int64>(ceil(Max(more, 0)));
}

}								/* namespace advisory */
