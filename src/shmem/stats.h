/*
 * shmem/stats.h
 *		The statistics of each name.
 *
 * The counters are atomics in shared memory, so everything is counted exactly and without
 * a lock.  A hold is counted as acquired when it begins, and its time is added when it ends.
 * Times are in microseconds.
 */
#pragma once

#include "shmem/layout.h"

namespace advisory
{

inline int64
value_of(pg_atomic_uint64 *counter) noexcept
{
	return static_cast<int64>(pg_atomic_read_u64(counter));
}

/* Call set(counter) for each of them. */
template <typename Set>
inline void
for_each_counter(NameStats *stats, Set set) noexcept
{
	static_assert(sizeof(NameStats) % sizeof(pg_atomic_uint64) == 0,
				  "statistics are counters and nothing else");
	auto	   *counters = reinterpret_cast<pg_atomic_uint64 *>(stats);

	for (size_t i = 0; i < sizeof(NameStats) / sizeof(pg_atomic_uint64); i++)
		set(&counters[i]);
}

/* Initialize statistics that no other session can see yet; counting begins at since. */
inline void
stats_init(NameStats *stats, TimestampTz since) noexcept
{
	for_each_counter(stats, [](pg_atomic_uint64 *counter) { pg_atomic_init_u64(counter, 0); });
	pg_atomic_write_u64(&stats->since, static_cast<uint64>(since));
}

/* Begin again from zero. */
inline void
stats_clear(NameStats *stats) noexcept
{
	auto		now = static_cast<uint64>(GetCurrentTimestamp());

	for_each_counter(stats, [](pg_atomic_uint64 *counter) { pg_atomic_write_u64(counter, 0); });
	pg_atomic_write_u64(&stats->since, now);
	pg_atomic_write_u64(&stats->reset_at, now);
}

/* When they were last set to zero; 0 for never. */
inline TimestampTz
stats_reset_at(NameStats *stats) noexcept
{
	return value_of(&stats->reset_at);
}

inline void
stats_count(NameStats *stats, Event event, int64 times) noexcept
{
	pg_atomic_fetch_add_u64(&stats->events[index_of(event)], times);
}

inline void
raise_to(pg_atomic_uint64 *largest, int64 value) noexcept
{
	auto		wanted = static_cast<uint64>(value);
	uint64		present = pg_atomic_read_u64(largest);

	while (wanted > present && !pg_atomic_compare_exchange_u64(largest, &present, wanted))
		;
}

inline void
stats_add(Duration *duration, TimestampTz from, TimestampTz to) noexcept
{
	int64		took = Max(to - from, 0);

	pg_atomic_fetch_add_u64(&duration->total, took);
	raise_to(&duration->longest, took);
}

/*
 * Add what was counted for a name that is evicted to the sums of such names, which no other session
 * changes at that time.
 */
inline void
stats_sum(NameStats *sums, NameStats *evicted) noexcept
{
	auto		add = [](Duration *sum, Duration *one) {
		pg_atomic_fetch_add_u64(&sum->total, value_of(&one->total));
		raise_to(&sum->longest, value_of(&one->longest));
	};

	for (int i = 0; i < EVENTS; i++)
		pg_atomic_fetch_add_u64(&sums->events[i], value_of(&evicted->events[i]));
	add(&sums->wait, &evicted->wait);
	add(&sums->hold, &evicted->hold);
	raise_to(&sums->last_acquired_at, value_of(&evicted->last_acquired_at));
	pg_atomic_write_u64(&sums->since,
						Min(pg_atomic_read_u64(&sums->since), pg_atomic_read_u64(&evicted->since)));
}

/* Copy all counters for reading. */
inline void
stats_copy(NameStats *from, NameStats *to) noexcept
{
	auto	   *first = reinterpret_cast<pg_atomic_uint64 *>(from);
	auto	   *copies = reinterpret_cast<pg_atomic_uint64 *>(to);

	for_each_counter(from, [=](pg_atomic_uint64 *counter) {
		pg_atomic_init_u64(&copies[counter - first], pg_atomic_read_u64(counter));
	});
}

}								/* namespace advisory */
