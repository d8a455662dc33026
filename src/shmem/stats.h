/*
 * shmem/stats.h
 *		The statistics of each name.
 *
 * The counters are atomics in shared memory, so everything is counted exactly and without
 * a lock.  A hold is counted as acquired when it begins, and its time is added when it ends.
 * Times are in microseconds.
 */
#pragma once

extern "C" {
#include "port/atomics.h"
}

#include "base/locktag.h"

namespace advisory
{

/*
 * What can happen to a request for a lock.  The view has a column for each event: see
 * show_stats() in views/stats.cpp, and sql/parts/56-stats.sql.
 */
enum class Event
{
	acquired,					/* it was granted */
	contended,					/* the session had to wait, whether or not it got the lock */
	failed,						/* it was not free, and the session did not wait */
	timed_out,					/* a timeout or lock_timeout ended the wait */
	skipped						/* run() did nothing because it was taken, or its window was claimed */
};

constexpr int EVENTS = index_of(Event::skipped) + 1;

/* The total and the longest of several durations. */
struct Duration
{
	pg_atomic_uint64 total;
	pg_atomic_uint64 longest;
};

/* The members that every hold needs come first. */
struct NameStats
{
	pg_atomic_uint64 reset_at;	/* the time before this does not count in a hold; 0 for never */
	pg_atomic_uint64 last_acquired_at;	/* 0 for never */
	Duration	hold;
	pg_atomic_uint64 events[EVENTS];
	Duration	wait;
	pg_atomic_uint64 since;		/* when counting began */
};

/* When they were last set to zero; 0 for never. */
TimestampTz stats_reset_at(NameStats *stats) noexcept;

/* Initialize statistics that no other session can see yet; counting begins at since. */
void		stats_init(NameStats *stats, TimestampTz since) noexcept;

/* Begin again from zero. */
void		stats_clear(NameStats *stats) noexcept;

void		stats_count(NameStats *stats, Event event, int64 times) noexcept;
void		stats_note_acquired(NameStats *stats, TimestampTz at) noexcept;
void		stats_add(Duration *duration, TimestampTz from, TimestampTz to) noexcept;

/* Add what was counted for a name that is evicted to the sums of such names, which no other session changes at that time. */
void		stats_sum(NameStats *sums, NameStats *evicted) noexcept;

/* Copy all counters for reading. */
void		stats_copy(NameStats *from, NameStats *to) noexcept;

}								/* namespace advisory */
