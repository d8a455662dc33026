/*
 * sql/claims.cpp
 *		SQL: windows of time that are claimed once.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "core/claim.h"
#include "base/sqlfunction.h"

namespace advisory
{

/* claim(namespace, name, every, slot) */
template <By by>
static Datum
claim(FunctionCallInfo fcinfo)
{
	LockName	name = lock_argument(fcinfo, by);
	TimestampTz window = window_argument(fcinfo, next_argument(by), "every", "slot");

	if (!claim_window(name, window))
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(window);
}

/* _window(every, at) */
static Datum
window(FunctionCallInfo fcinfo)
{
	PG_RETURN_TIMESTAMPTZ(window_nearest(PG_GETARG_TIMESTAMPTZ(1), window_length_argument(fcinfo, 0, "every", "slot")));
}

ADVISORY_SQL_NAME_FUNCTIONS(advisory_claim, claim);
ADVISORY_SQL_FUNCTION(advisory_window, window);

}								/* namespace advisory */
