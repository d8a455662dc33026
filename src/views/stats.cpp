/*
 * views/stats.cpp
 *		The rows of advisory.stats and advisory.directory.
 */
#include "base/pg.h"

#include "base/guc.h"
#include "base/sqlfunction.h"
#include "base/srf.h"
#include "core/visiblename.h"
#include "shmem/nametable.h"
#include "shmem/published.h"
#include "shmem/root.h"

namespace advisory
{

static void
add_microseconds(Row &row, int64 microseconds)
{
	auto	   *interval = static_cast<Interval *>(palloc0(sizeof(Interval)));

	interval->time = microseconds;
	row.add(IntervalPGetDatum(interval));
}

/* The table counts a hold when it has ended; pending are the holds that have not. */
static void
show_name(const KnownName &known, PendingStats pending, ReturnSetInfo *result)
{
	bool		is_visible = may_see_name(known.roles);
	const StatsCopy &stats = known.stats;
	Row			row;

	if (pending.last_acquired_at < stats.reset_at)
		pending = PendingStats{};	/* before the reset */

	row.add_text(is_visible ? known.ns : HIDDEN);
	row.add_text(is_visible ? known.name : HIDDEN);
	row.add_int64(stats.events[index_of(Event::acquired)] + pending.acquired);
	row.add_int64(stats.events[index_of(Event::contended)]);
	row.add_int64(stats.events[index_of(Event::failed)]);
	row.add_int64(stats.events[index_of(Event::timed_out)]);
	row.add_int64(stats.events[index_of(Event::skipped)]);
	add_microseconds(row, stats.wait_total);
	add_microseconds(row, stats.wait_max);
	add_microseconds(row, stats.hold_total);
	add_microseconds(row, stats.hold_max);
	row.add_time(Max(stats.last_acquired_at, pending.last_acquired_at));
	row.add_time(stats.since);
	row.put(result);
}

/* Add the statistics of every name of this database. */
static void
show_stats(ReturnSetInfo *result)
{
	PendingHolds pending;
	int			new_count;
	NewName    *new_names = read_new_names(MyDatabaseId, nullptr, &new_count);
	int			count;
	KnownName  *names = directory_read(MyDatabaseId, &count);
	bool		is_first;

	show_each(count, [&](int i) {
		show_name(names[i], pending.take(names[i].key, &is_first), result);
	});
	show_each(new_count, [&](int i) {
		PendingStats stats = pending.take(new_names[i].key, &is_first);

		if (is_first)
			show_name(make_known(new_names[i]), stats, result);
	});
}

/* Add the only row of advisory.directory, the state of the name table. */
static void
show_directory(ReturnSetInfo *result)
{
	DirectoryState state = directory_state();
	Row			row;

	row.add_bool(state.available);
	row.add_int64(state.names);
	row.add_int32(max_names_setting());
	row.add_int64(state.evicted);
	row.add_int64(state.refused);
	row.add_int64(state.clashes);
	row.add_text(state.available ? nullptr : shared_last_failure());
	row.put(result);
}

static Datum
reset_stats(FunctionCallInfo)
{
	directory_reset_stats();
	PG_RETURN_VOID();
}

ADVISORY_SQL_FUNCTION(advisory_stats, rows_function<show_stats>);
ADVISORY_SQL_FUNCTION(advisory_stats_reset, reset_stats);
ADVISORY_SQL_FUNCTION(advisory_directory, rows_function<show_directory>);

}								/* namespace advisory */
