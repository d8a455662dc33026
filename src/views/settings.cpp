/*
 * views/settings.cpp
 *		The rows of advisory.settings, and what databases with version 1.0 of the extension call.
 */
#include "base/pg.h"

extern "C" {
#include "executor/spi.h"
}

#include "base/sqlfunction.h"
#include "base/srf.h"

namespace advisory
{

/*
 * Read pg_settings from here, because calling this function loads the library, which
 * defines the settings.
 */
static void
show_settings(ReturnSetInfo *result)
{
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
}

/* Version 1.0 of the extension has these functions, which now raise an error that tells how to update it. */
static void
show_for_other_version(ReturnSetInfo *result)
{
	Row().put(result);
}

ADVISORY_SQL_FUNCTION(advisory_pressure_by_backend, rows_function<show_for_other_version>);
ADVISORY_SQL_FUNCTION(advisory_pressure_by_type, rows_function<show_for_other_version>);
ADVISORY_SQL_FUNCTION(advisory_semaphores, rows_function<show_for_other_version>);
ADVISORY_SQL_FUNCTION(advisory_settings, rows_function<show_settings>);

}								/* namespace advisory */
