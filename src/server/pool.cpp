/*
 * server/pool.cpp
 *		The server's shared lock table, and how full it is.
 *
 * Up to PostgreSQL 18 the tables start with a part of the entries that the server's
 * formula gives them.  They grow by chunks of spare shared memory until it is used up,
 * which is well beyond the formula.  Each table has NUM_FREELISTS lists of free
 * entries, and the list that an entry belongs to is practically random.  When a list
 * is empty the table grows, although other lists may have free entries.  Entries of
 * other lists are used only when the table cannot grow any more.  From 19 on the
 * tables have their final size from the start.  See dynahash.c and lock.c.
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

extern "C" {
#include "common/pg_prng.h"
#include "storage/lock.h"
#include "utils/hsearch.h"
}

#include <math.h>

#include "base/compat.h"
#include "base/errors.h"
#include "server/lockhash.h"
#include "server/locktable.h"
#include "server/pool.h"
#include "server/poolmemory.h"

namespace advisory
{

/* ---- The estimate ---- */

/* As in dynahash.c, for partitioned tables. */
static constexpr int FREE_LISTS = 32;

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

static Tables
tables_of(int64 guaranteed, const PoolGrowth &growth) noexcept
{
	PoolChunk	lock_chunk = pool_chunk(sizeof(LOCK));
	PoolChunk	holder_chunk = pool_chunk(sizeof(PROCLOCK));
	int			parts = compat::lock_tables_grow ? 2 : 1;

	return Tables{{guaranteed / parts, lock_chunk.entries, static_cast<int64>(lock_chunk.bytes), growth.lock_chunks},
		{2 * guaranteed / parts, holder_chunk.entries, static_cast<int64>(holder_chunk.bytes), growth.holder_chunks}};
}

/* Bytes that the tables had to grow into when the server started. */
static int64
first_spare_of(const PoolGrowth &growth) noexcept
{
	return growth.spare + growth.lock_chunks * static_cast<int64>(pool_chunk(sizeof(LOCK)).bytes) +
		growth.holder_chunks * static_cast<int64>(pool_chunk(sizeof(PROCLOCK)).bytes);
}

/* The average number of chunks that a table has grown by when this many entries are in use. */
static double
chunks_for(const Table &table, int64 entries) noexcept
{
	double		mean = static_cast<double>(entries) / FREE_LISTS;
	double		deviation = sqrt(mean * (FREE_LISTS - 1) / FREE_LISTS);
	/* Entries of one list before the next chunk. */
	double		needed = floor(static_cast<double>(table.first_entries) / FREE_LISTS);
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

/* How many of these chunks the table does not have yet. */
static double
new_chunks_for(const Table &table, int64 entries) noexcept
{
	return Max(chunks_for(table, entries) - table.grown, 0);
}

/* The chunks that this use needs on average.  The tables have more chunks if more entries were in use before. */
static PoolGrowth
least_growth(int64 guaranteed, int64 spare, const PoolUse &use) noexcept
{
	Tables		tables = tables_of(guaranteed, PoolGrowth{});

	return PoolGrowth{spare, static_cast<int64>(chunks_for(tables.locks, use.locks)),
		static_cast<int64>(chunks_for(tables.holders, use.holders))};
}

/*
 * The entries that will be in use when the pool is full, if it has more_holders more
 * holders than locks: the average estimate.  Takes about 10 us for any size.
 */
static PoolUse
average_end(const PoolSize &size, int64 more_holders) noexcept
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

/*
 * The number of locks to add to the average estimate for a pool of this size; often
 * negative.  Chance decides which table gets the last chunks, and in a small pool a
 * chunk is a large part.  Takes up to some milliseconds for a small pool.
 */
static int64
small_table_bias_of(int64 guaranteed, int64 first_spare)
{
	PoolGrowth	start = {first_spare, 0, 0};
	Tables		tables = tables_of(guaranteed, start);
	int64		average = average_end(PoolSize{guaranteed, start}, 0).locks;
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

/* The estimate for this size and use.  The last one is kept, since it is often asked for again. */
static PoolCapacity
capacity_of(const PoolSize &size, const PoolUse &use)
{
	static PoolSize known_size = {-1, {-1, 0, 0}};
	static int64 known_more_holders;
	static PoolUse known_end;
	static int64 small_table_bias;
	int64		more_holders = Max(use.holders - use.locks, 0);
	int64		first_spare = first_spare_of(size.growth);
	int64		headroom;

	/* This takes long to compute, and does not change while the pool grows. */
	if (first_spare != first_spare_of(known_size.growth))
		small_table_bias = small_table_bias_of(size.guaranteed, first_spare);
	if (memcmp(&size, &known_size, sizeof(size)) != 0 || more_holders != known_more_holders)
		known_end = average_end(size, more_holders);
	known_size = size;
	known_more_holders = more_holders;
	headroom = Max(known_end.locks + small_table_bias - use.locks, 0);
	return PoolCapacity{headroom, use.locks + headroom, Max(known_end.holders, use.holders + headroom)};
}

/* ---- Reading ---- */

static bool
read_list()
{
	return unless_lock_table_is_full([]() { read_shared_memory(); });
}

PoolState
read_pool(bool by_counting)
{
	static bool list_was_read = false;
	PoolState	state = {};
	PoolGrowth *growth = &state.size.growth;

	/* The first time this may fail because the lock table is full. */
	if (compat::lock_tables_grow && !list_was_read)
		list_was_read = read_list();
	state.is_counted = by_counting || lock_tables() == nullptr || (compat::lock_tables_grow && !list_was_read);
	state.is_exact = !state.is_counted;
	state.size.guaranteed = guaranteed_locks();
	if (state.is_counted)
	{
		PoolTypeUse types[POOL_TYPES];
		PoolSessionUse *sessions;
		int			session_count;

		read_pool_use(types, &sessions, &session_count);
		for (const PoolTypeUse &type : types)
		{
			state.use.locks += type.locks;
			state.use.holders += type.holders;
		}
	}
	else
		state.use = PoolUse{static_cast<int64>(hash_get_num_entries(lock_tables()->locks)),
			static_cast<int64>(hash_get_num_entries(lock_tables()->holders))};

	if (compat::lock_tables_grow && !read_pool_growth(growth))
	{
		/* Assume the growth that the present use needs.  The free memory may have changed since the list was read. */
		read_list();
		read_pool_growth(growth);
		*growth = least_growth(state.size.guaranteed, growth->spare, state.use);
		state.is_exact = false;
	}
	state.capacity = capacity_of(state.size, state.use);
	return state;
}

double
pool_percent_used(const PoolState &pool) noexcept
{
	return Max(100.0 * pool.use.locks / Max(pool.capacity.locks, 1),
			   100.0 * pool.use.holders / Max(pool.capacity.holders, 1));
}

int64
pool_guaranteed_for(const PoolState &pool, double percent) noexcept
{
	double		more_locks = floor(pool.use.locks * 100.0 / percent) + 1 - pool.capacity.locks;
	double		more_holders = floor(pool.use.holders * 100.0 / percent) + 1 - pool.capacity.holders;
	double		more = compat::lock_tables_grow
		? Max(more_locks, more_holders) / MIN_GAIN : Max(more_locks, more_holders / 2);

	return pool.size.guaranteed + static_cast<int64>(ceil(Max(more, 0)));
}

}								/* namespace advisory */
