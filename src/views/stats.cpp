/*
 * views/stats.cpp
 *		The rows of advisory.stats and advisory.directory.
 */
#include "base/pg.h"

#include "shmem/nametable.h"
#include "base/guc.h"
#include "core/visiblename.h"
#include "shmem/published.h"
#include "shmem/root.h"
#include "base/srf.h"
#include "views/stats.h"

namespace advisory
{

static void
add_microseconds(Row &row, int64 microseconds)
{
	auto	   *interval = static_cast<Interval *>(palloc0(sizeof(Interval)));

	interval->time = microseconds;
	row.add(IntervalPGetDatum(interval));
}

/* Something counts once it has ended; what is pending is what has not. */
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

void
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

void
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

}								/* namespace advisory */
