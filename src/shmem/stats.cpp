/*
 * shmem/stats.cpp
 *		What is counted about each name.
 */
#include "base/pg.h"

#include "shmem/stats.h"

namespace advisory
{

static void
init_duration(Duration *duration) noexcept
{
	pg_atomic_init_u64(&duration->total, 0);
	pg_atomic_init_u64(&duration->longest, 0);
}

static void
clear_duration(Duration *duration) noexcept
{
	pg_atomic_write_u64(&duration->total, 0);
	pg_atomic_write_u64(&duration->longest, 0);
}

void
stats_init(NameStats *stats, TimestampTz since) noexcept
{
	for (pg_atomic_uint64 &counter : stats->events)
		pg_atomic_init_u64(&counter, 0);
	init_duration(&stats->wait);
	init_duration(&stats->hold);
	pg_atomic_init_u64(&stats->last_acquired_at, 0);
	pg_atomic_init_u64(&stats->since, static_cast<uint64>(since));
	pg_atomic_init_u64(&stats->reset_at, 0);
}

void
stats_clear(NameStats *stats) noexcept
{
	for (pg_atomic_uint64 &counter : stats->events)
		pg_atomic_write_u64(&counter, 0);
	clear_duration(&stats->wait);
	clear_duration(&stats->hold);
	pg_atomic_write_u64(&stats->last_acquired_at, 0);
	pg_atomic_write_u64(&stats->since, static_cast<uint64>(GetCurrentTimestamp()));
	pg_atomic_write_u64(&stats->reset_at, pg_atomic_read_u64(&stats->since));
}

TimestampTz
stats_reset_at(NameStats *stats) noexcept
{
	return static_cast<TimestampTz>(pg_atomic_read_u64(&stats->reset_at));
}

void
stats_note_since(NameStats *stats, TimestampTz since) noexcept
{
	uint64		present = pg_atomic_read_u64(&stats->since);

	while (static_cast<uint64>(since) < present &&
		   !pg_atomic_compare_exchange_u64(&stats->since, &present, static_cast<uint64>(since)))
		;
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

StatsCopy
stats_read(NameStats *stats) noexcept
{
	StatsCopy	copy;

	for (int i = 0; i < EVENTS; i++)
		copy.events[i] = static_cast<int64>(pg_atomic_read_u64(&stats->events[i]));
	copy.wait_total = static_cast<int64>(pg_atomic_read_u64(&stats->wait.total));
	copy.wait_max = static_cast<int64>(pg_atomic_read_u64(&stats->wait.longest));
	copy.hold_total = static_cast<int64>(pg_atomic_read_u64(&stats->hold.total));
	copy.hold_max = static_cast<int64>(pg_atomic_read_u64(&stats->hold.longest));
	copy.last_acquired_at = static_cast<TimestampTz>(pg_atomic_read_u64(&stats->last_acquired_at));
	copy.since = static_cast<TimestampTz>(pg_atomic_read_u64(&stats->since));
	copy.reset_at = stats_reset_at(stats);
	return copy;
}

}								/* namespace advisory */
