/*
 * views/sql_waits.cpp
 *		SQL: who waits for whom.
 */
#include "base/pg.h"

#include "base/sqlfunction.h"
#include "views/waitview.h"

namespace advisory
{

ADVISORY_SQL_FUNCTION(advisory_waits, rows_function<show_waits>);
ADVISORY_SQL_FUNCTION(advisory_wait_tree, rows_function<print_waits, MAT_SRF_USE_EXPECTED_DESC>);

}								/* namespace advisory */
