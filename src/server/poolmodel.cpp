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

namespace
{

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

}								/* anonymous namespace */

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

static Table
make_table(int64 first_entries, const PoolChunk &chunk, int64 grown) noexcept
{
	return Table{first_entries, chunk.entries, static_cast<int64>(chunk.bytes), grown};
}

static Tables
tables_of(int64 guaranteed, const PoolGrowth &growth) noexcept
{
	int64		holders = 2 * guaranteed;
	int			parts = compat::lock_tables_grow ? 2 : 1;

	return Tables{make_table(guaranteed / parts, pool_lock_chunk(), growth.lock_chunks),
		make_table(holders / parts, pool_holder_chunk(), growth.holder_chunks)};
}

int64
pool_first_spare(const PoolGrowth &growth) noexcept
{
	return growth.spare + growth.lock_chunks * static_cast<int64>(pool_lock_chunk().bytes) +
		growth.holder_chunks * static_cast<int64>(pool_holder_chunk().bytes);
}

/* The probability that a normally distributed number is more than z standard deviations above its mean. */
static double
probability_above(double z) noexcept
{
	return 0.5 * erfc(z / M_SQRT2);
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
	for (; needed < mean + MAX_DEVIATIONS * deviation; needed += table.chunk_entries)
		chunks += probability_above((needed + 0.5 - mean) / deviation);
	return chunks * FREE_LISTS;
}

/* The same, but not fewer than the table has grown by already. */
static double
chunks_at(const Table &table, int64 entries) noexcept
{
	return Max(chunks_for(table, entries), static_cast<double>(table.grown));
}

/* The spare memory that both tables will have taken when this much is in use. */
static double
bytes_for(const Tables &tables, const PoolUse &use) noexcept
{
	return (chunks_at(tables.locks, use.locks) - tables.locks.grown) * tables.locks.chunk_bytes +
		(chunks_at(tables.holders, use.holders) - tables.holders.grown) * tables.holders.chunk_bytes;
}

PoolGrowth
pool_least_growth(int64 guaranteed, int64 spare, const PoolUse &use) noexcept
{
	Tables		tables = tables_of(guaranteed, PoolGrowth{});

	if (!compat::lock_tables_grow)
		return PoolGrowth{};
	return PoolGrowth{spare, static_cast<int64>(chunks_for(tables.locks, use.locks)),
		static_cast<int64>(chunks_for(tables.holders, use.holders))};
}

/* For how many locks with one holder each, beside more_holders, the spare memory suffices. */
static int64
find_end_of_memory(const Tables &tables, int64 spare, int64 more_holders) noexcept
{
	int64		low = 0;
	int64		high = tables.holders.first_entries + tables.holders.grown * tables.holders.chunk_entries +
		tables.locks.grown * tables.locks.chunk_entries + spare / static_cast<int64>(sizeof(LOCK)) + 1;

	while (high - low > END_TOLERANCE)
	{
		int64		middle = low + (high - low) / 2;

		if (bytes_for(tables, PoolUse{middle, middle + more_holders}) <= spare)
			low = middle;
		else
			high = middle;
	}
	return low;
}

namespace
{

/* The free lists of a table while a fill is simulated. */
class SimulatedTable
{
public:
	SimulatedTable(const Table &table, int64 *spare) noexcept : table(table), spare(spare)
	{
		for (int64 &free_entries : lists)
			free_entries = table.first_entries / FREE_LISTS;
		lists[0] += table.first_entries % FREE_LISTS;
	}

	/* Take an entry from this list or, if it is empty and the table cannot grow, from the next list that has one. */
	bool		take(int list) noexcept
	{
		if (lists[list] == 0 && *spare >= table.chunk_bytes)
		{
			*spare -= table.chunk_bytes;
			lists[list] += table.chunk_entries;
		}
		for (int i = 0; i < FREE_LISTS; i++)
		{
			int64	   &free_entries = lists[(list + i) % FREE_LISTS];

			if (free_entries > 0)
			{
				free_entries--;
				return true;
			}
		}
		return false;
	}

private:
	const Table &table;
	int64	   *spare;
	int64		lists[FREE_LISTS];
};

}								/* anonymous namespace */

/* How many locks of one session fit in one simulated fill. */
static int64
simulate_fill(const Tables &tables, int64 spare, pg_prng_state *random) noexcept
{
	SimulatedTable locks(tables.locks, &spare);
	SimulatedTable holders(tables.holders, &spare);
	int64		filled = 0;

	for (;;)
	{
		int			list = static_cast<int>(pg_prng_uint32(random) % FREE_LISTS);

		/* The session's part of a holder's hash value moves all its holders by the same number of lists. */
		if (!locks.take(list) || !holders.take(FREE_LISTS - 1 - list))
			return filled;
		filled++;
	}
}

static int
compare_counts(const void *a, const void *b) noexcept
{
	int64		count_a = *static_cast<const int64 *>(a);
	int64		count_b = *static_cast<const int64 *>(b);

	return count_a < count_b ? -1 : count_a > count_b;
}

int64
pool_small_table_bias(int64 guaranteed, int64 first_spare)
{
	PoolGrowth	start = {first_spare, 0, 0};
	Tables		tables = tables_of(guaranteed, start);
	int64		average = pool_end(PoolSize{guaranteed, start, 0}, 0).locks;
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
	qsort(filled, SIMULATIONS, sizeof(int64), compare_counts);
	if (guaranteed >= TINY_POOL)
		return (filled[1] + filled[SIMULATIONS - 2]) / 2 - average;
	return Max(filled[0] - tables.holders.chunk_entries, guaranteed) - average;
}

PoolEnd
pool_end(const PoolSize &size, int64 more_holders) noexcept
{
	Tables		tables = tables_of(size.guaranteed, size.growth);
	PoolEnd		end = {tables.locks.first_entries, tables.holders.first_entries};

	if (compat::lock_tables_grow)
	{
		auto		spare = static_cast<double>(size.growth.spare);
		int64		last = find_end_of_memory(tables, size.growth.spare, more_holders);
		double		for_locks = chunks_at(tables.locks, last);
		double		for_holders = tables.holders.grown +
			Max(spare - (for_locks - tables.locks.grown) * tables.locks.chunk_bytes, 0) / tables.holders.chunk_bytes;

		for_holders = Min(for_holders, chunks_at(tables.holders, last + more_holders));
		end.locks += static_cast<int64>(for_locks * tables.locks.chunk_entries);
		end.holders += static_cast<int64>(for_holders * tables.holders.chunk_entries);
	}
	end.locks = Max(Min(end.locks, end.holders - more_holders) + size.small_table_bias, 0);
	return end;
}

PoolCapacity
pool_capacity(const PoolEnd &end, const PoolUse &use) noexcept
{
	int64		headroom = Max(end.locks - use.locks, 0);

	return PoolCapacity{headroom, use.locks + headroom, Max(end.holders, use.holders + headroom)};
}

static double
share(int64 part, int64 whole) noexcept
{
	return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

double
pool_percent_used(const PoolCapacity &capacity, const PoolUse &use) noexcept
{
	return Max(share(use.locks, capacity.locks), share(use.holders, capacity.holders));
}

/* How much more the formula has to give for this use of a table to be below this percentage. */
static double
guaranteed_more(int64 used, int64 room, double percent, double gain) noexcept
{
	return Max(floor(used * 100.0 / percent) + 1 - room, 0) / gain;
}

int64
pool_guaranteed_for(const PoolSize &size, const PoolCapacity &capacity, const PoolUse &use, double percent) noexcept
{
	double		for_locks = guaranteed_more(use.locks, capacity.locks, percent, compat::lock_tables_grow ? MIN_GAIN : 1);
	double		for_holders = guaranteed_more(use.holders, capacity.holders, percent, compat::lock_tables_grow ? MIN_GAIN : 2);

	return size.guaranteed + static_cast<int64>(ceil(Max(for_locks, for_holders)));
}

}								/* namespace advisory */
