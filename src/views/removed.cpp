/*
 * views/removed.cpp
 *		Functions that only older versions of the extension have.
 *
 * The library must keep them: a database with an older version goes on calling them until it is
 * updated, and CREATE EXTENSION … VERSION needs them.  They raise an error that tells how to
 * update.
 */
#include "base/pg.h"

#include "base/sqlfunction.h"

namespace advisory
{

static void
show_for_other_version(ReturnSetInfo *result)
{
	Row().put(result);
}

ADVISORY_SQL_FUNCTION(advisory_pressure_by_backend, rows_function<show_for_other_version>);
ADVISORY_SQL_FUNCTION(advisory_pressure_by_type, rows_function<show_for_other_version>);
ADVISORY_SQL_FUNCTION(advisory_semaphores, rows_function<show_for_other_version>);
ADVISORY_SQL_FUNCTION(advisory_settings, rows_function<show_for_other_version>);

}								/* namespace advisory */
