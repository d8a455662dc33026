/*
 * views/sql_views.cpp
 *		SQL: what the views read.
 */
#include "base/pg.h"

#include "shmem/nametable.h"
#include "views/leaks.h"
#include "views/semaphores.h"
#include "base/sqlfunction.h"
#include "base/srf.h"
#include "views/stats.h"

namespace advisory
{

static Datum
reset_stats(FunctionCallInfo)
{
	name_reset_stats();
	PG_RETURN_VOID();
}

/*
 * The server's own view of the settings, read from here because by then the
 * library is loaded and they are known.
 */
static Datum
settings(FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);

	auto	   *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);

	SPI_connect();
	if (SPI_execute("SELECT name, setting, unit, boot_val, context, short_desc"
					" FROM pg_catalog.pg_settings"
					" WHERE pg_catalog.starts_with(name, 'advisory_ext.')",
					true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read pg_settings");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		Row			row;

		for (int column = 1; column <= SPI_tuptable->tupdesc->natts; column++)
			row.add_text(SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, column));
		row.put(result);
	}
	SPI_finish();
	return Datum(0);
}

ADVISORY_SQL_FUNCTION(advisory_stats, rows_function<show_stats>);
ADVISORY_SQL_FUNCTION(advisory_stats_reset, reset_stats);
ADVISORY_SQL_FUNCTION(advisory_directory, rows_function<show_directory>);
ADVISORY_SQL_FUNCTION(advisory_leaks, rows_function<show_leaks>);
ADVISORY_SQL_FUNCTION(advisory_semaphores, rows_function<show_semaphores>);
ADVISORY_SQL_FUNCTION(advisory_settings, settings);

}								/* namespace advisory */
