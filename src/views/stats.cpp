/*
 * views/stats.cpp
 *		The rows of advisory.stats and advisory.directory.
 */
#include "base/pg.h"

extern "C" {
#include "executor/executor.h"
}

#include "base/guc.h"
#include "base/sqlfunction.h"
#include "base/srf.h"
#include "shmem/nametable.h"
#include "shmem/root.h"
#include "views/visiblename.h"

namespace advisory
{

static void
show_name(const KnownName &name, ReturnSetInfo *result)
{
	const StatsCopy &stats = name.stats;
	bool		is_visible = may_see_name(name.roles);
	Row			row;

	row.add_text(is_visible ? name.ns : HIDDEN);
	row.add_text(is_visible ? name.name : HIDDEN);
	for (Event event : {Event::acquired, Event::contended, Event::failed, Event::timed_out, Event::skipped})
		row.add_int64(stats.events[index_of(event)]);
	row.add_interval(stats.wait_total);
	row.add_interval(stats.wait_max);
	row.add_interval(stats.hold_total);
	row.add_interval(stats.hold_max);
	row.add_time(stats.last_acquired_at);
	row.add_time(stats.since);
	row.put(result);
}

/* Add the statistics of every name of this database. */
static void
show_stats(ReturnSetInfo *result)
{
	show_each(name_chunk_count(), [&](int chunk) {
		int			count;
		const KnownName *names = name_read_chunk(chunk, &count);

		for (int i = 0; i < count; i++)
			show_name(names[i], result);
	});
}

/* Add the only row of advisory.directory, the state of the name table. */
static void
show_directory(ReturnSetInfo *result)
{
	NameTableState state = name_table_state();
	Row			row;

	row.add_bool(state.available);
	row.add_int64(state.names);
	row.add_int32(setting::max_names);
	row.add_int64(state.evicted);
	row.add_int64(state.refused);
	row.add_int64(state.clashes);
	row.add_text(state.available ? nullptr : shared_last_failure());
	row.put(result);
}

static Datum
reset_stats(FunctionCallInfo)
{
	name_reset_stats();
	PG_RETURN_VOID();
}

ADVISORY_SQL_FUNCTION(advisory_stats, rows_function<show_stats>);
ADVISORY_SQL_FUNCTION(advisory_stats_reset, reset_stats);
ADVISORY_SQL_FUNCTION(advisory_directory, rows_function<show_directory>);

}								/* namespace advisory */
