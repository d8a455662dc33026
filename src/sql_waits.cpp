/*
 * sql_waits.cpp
 *		SQL: who waits for whom.
 */
#include "pg.h"

#include "sqlfunction.h"
#include "waitview.h"

namespace advisory
{

static Datum
waits(FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
	show_waits(reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo));
	return Datum(0);
}

static Datum
wait_tree(FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	print_waits(reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo));
	return Datum(0);
}

ADVISORY_SQL_FUNCTION(advisory_waits, waits);
ADVISORY_SQL_FUNCTION(advisory_wait_tree, wait_tree);

}								/* namespace advisory */
