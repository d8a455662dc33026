/*
 * views/stats.cpp
 *		The rows of advisory.stats and advisory.directory.
 */
#include "base/pg.h"

#include "base/guc.h"
#include "base/sqlfunction.h"
#include "server/standby.h"
#include "shmem/nametable.h"
#include "shmem/root.h"
#include "views/visiblename.h"

namespace advisory
{

/* Add the statistics of every name of this database. */
static void
show_stats(ReturnSetInfo *result)
{
	List	   *names = name_read_all();

	tell_reader_of_standby();
	show_each(list_length(names), [&](int i) {
		auto	   &name = *static_cast<KnownName *>(list_nth(names, i));
		NameStats  &stats = name.stats;
		bool		is_visible = may_see_name(name, UsedName{});
		bool		is_evicted = *name.name == '\0';
		Row			row;

		row.add_text(is_visible ? name.ns : HIDDEN);
		row.add_text(!is_visible ? HIDDEN : is_evicted ? "<evicted>" : name.name);
		for (Event event : {Event::acquired, Event::contended, Event::failed, Event::timed_out,
							Event::skipped})
			row.add_int64(value_of(&stats.events[index_of(event)]));
		row.add_interval(value_of(&stats.wait.total));
		row.add_interval(value_of(&stats.wait.longest));
		row.add_interval(value_of(&stats.hold.total));
		row.add_interval(value_of(&stats.hold.longest));
		row.add_time(value_of(&stats.last_acquired_at));
		row.add_time(value_of(&stats.since));
		row.add(Int64GetDatum(name.key.value), !is_visible || is_evicted);
		row.add_time(value_of(&stats.last_skipped_at));
		row.add_int64(value_of(&stats.events[index_of(Event::not_held)]));
		row.put(result);
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
	row.add_int64(state.not_stored);
	row.add_int64(state.collisions);
	row.add_text(state.available ? nullptr : shared_last_failure);
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
