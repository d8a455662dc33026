/*
 * shmem/stats.cpp
 *		The statistics of each name.
 */
#include "base/pg.h"

extern "C" {
#include "utils/timestamp.h"
}

#include "shmem/stats.h"

namespace advisory
{

/* Call set(counter) for each of them. */
template <typename Set>
static void
for_each_counter(NameStats *stats, Set set) noexcept
{
	static_assert(sizeof(NameStats) % sizeof(pg_atomic_uint64) == 0, "statistics are counters and nothing else");
	auto	   *counters = reinterpret_cast<pg_atomic_uint64 *>(stats);

	for (size_t i = 0; i < sizeof(NameStats) / sizeof(pg_atomic_uint64); i++)
		set(&counters[i]);
}

void
stats_init(NameStats *stats, TimestampTz since) noexcept
{
	for_each_counter(stats, [](pg_atomic_uint64 *counter) { pg_atomic_init_u64(counter, 0); });
	pg_atomic_write_u64(&stats->since, static_cast<uint64>(since));
}

void
stats_clear(NameStats *stats) noexcept
{
	auto		now = static_cast<uint64>(GetCurrentTimestamp());

	for_each_counter(stats, [](pg_atomic_uint64 *counter) { pg_atomic_write_u64(counter, 0); });
	pg_atomic_write_u64(&stats->since, now);
	pg_atomic_write_u64(&stats->reset_at, now);
}

TimestampTz
stats_reset_at(NameStats *stats) noexcept
{
	return static_cast<TimestampTz>(pg_atomic_read_u64(&stats->reset_at));
}

void
stats_count(NameStats *stats, Event event, int64 times) noexcept
{
	pg_atomic_fetch_add_u64(&stats->events[index_of(event)], times);
}

static void
raise_to(pg_atomic_uint64 *largest, uint64 value) noexcept
{
	uint64		present = pg_atomic_read_u64(largest);

	while (value > present && !pg_atomic_compare_exchange_u64(largest, &present, value))
		;
}

void
stats_note_acquired(NameStats *stats, TimestampTz at) noexcept
{
	raise_to(&stats->last_acquired_at, static_cast<uint64>(at));
}

void
stats_add(Duration *duration, TimestampTz from, TimestampTz to) noexcept
{
	uint64		took = static_cast<uint64>(Max(to - from, 0));

	pg_atomic_fetch_add_u64(&duration->total, static_cast<int64>(took));
	raise_to(&duration->longest, took);
}

static void
sum_duration(Duration *sum, Duration *evicted) noexcept
{
	pg_atomic_fetch_add_u64(&sum->total, static_cast<int64>(pg_atomic_read_u64(&evicted->total)));
	raise_to(&sum->longest, pg_atomic_read_u64(&evicted->longest));
}

void
stats_sum(NameStats *sums, NameStats *evicted) noexcept
{
	for (int i = 0; i < EVENTS; i++)
		pg_atomic_fetch_add_u64(&sums->events[i], static_cast<int64>(pg_atomic_read_u64(&evicted->events[i])));
	sum_duration(&sums->wait, &evicted->wait);
	sum_duration(&sums->hold, &evicted->hold);
	raise_to(&sums->last_acquired_at, pg_atomic_read_u64(&evicted->last_acquired_at));
	pg_atomic_write_u64(&sums->since, Min(pg_atomic_read_u64(&sums->since), pg_atomic_read_u64(&evicted->since)));
}

void
stats_copy(NameStats *from, NameStats *to) noexcept
{
	auto	   *first = reinterpret_cast<pg_atomic_uint64 *>(from);
	auto	   *copies = reinterpret_cast<pg_atomic_uint64 *>(to);

	for_each_counter(from, [=](pg_atomic_uint64 *counter) { pg_atomic_init_u64(&copies[counter - first], pg_atomic_read_u64(counter)); });
}

}								/* namespace advisory */
