/*
 * views/stats.cpp
 *		The rows of advisory.stats and advisory.directory.
 */
#include "base/pg.h"

#include "shmem/nametable.h"
#include "base/guc.h"
#include "views/visiblename.h"
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

static void
show_name(const KnownName &known, ReturnSetInfo *result)
{
	bool		is_visible = may_see_name(known.roles);
	const StatsCopy &stats = known.stats;
	Row			row;

	row.add_text(is_visible ? known.ns : HIDDEN);
	row.add_text(is_visible ? known.name : HIDDEN);
	row.add_int64(stats.events[index_of(Event::acquired)]);
	row.add_int64(stats.events[index_of(Event::contended)]);
	row.add_int64(stats.events[index_of(Event::failed)]);
	row.add_int64(stats.events[index_of(Event::timed_out)]);
	row.add_int64(stats.events[index_of(Event::skipped)]);
	add_microseconds(row, stats.wait_total);
	add_microseconds(row, stats.wait_max);
	add_microseconds(row, stats.hold_total);
	add_microseconds(row, stats.hold_max);
	row.add_time(stats.last_acquired_at);
	row.add_time(stats.since);
	row.put(result);
}

void
show_stats(ReturnSetInfo *result)
{
	int			count;
	KnownName  *names = name_read_all(MyDatabaseId, &count);

	show_each(count, [&](int i) {
		show_name(names[i], result);
	});
}

void
show_directory(ReturnSetInfo *result)
{
	NameTableState state = name_table_state();
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
