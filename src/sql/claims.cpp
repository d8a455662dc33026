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

static LockName
claim_name_argument(FunctionCallInfo fcinfo, By by)
{
	LockName	name = lock_argument(fcinfo, by);

	check_kept_name(name, "claim");
	return name;
}

/* claim(namespace, name, every, window_start, time_zone), claim_apart(namespace, name, apart) */
template <By by, bool is_apart>
static Datum
claim(FunctionCallInfo fcinfo)
{
	LockName	name = claim_name_argument(fcinfo, by);
	WindowClaim claim = {};

	if (is_apart)
		claim.distance = microseconds_argument(fcinfo, next_argument(by), "apart");
	else
		claim = window_argument(fcinfo, next_argument(by), "every", "window_start");
	if (!claim_window(name, &claim, true))
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(claim.window);
}

/* unclaim(namespace, name, window_start) */
template <By by>
static Datum
unclaim(FunctionCallInfo fcinfo)
{
	LockName	name = claim_name_argument(fcinfo, by);
	TimestampTz window = window_start_argument(fcinfo, next_argument(by), "window_start");

	PG_RETURN_BOOL(claim_undo(name, window));
}

/* window(every, at, time_zone) */
static Datum
window(FunctionCallInfo fcinfo)
{
	if (PG_ARGISNULL(1))
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(window_at_argument(fcinfo, 0, "every", "window_start",
											 PG_GETARG_TIMESTAMPTZ(1)));
}

ADVISORY_SQL_NAME_FUNCTIONS(advisory_claim, claim, false);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_claim_apart, claim, true);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_unclaim, unclaim);
ADVISORY_SQL_FUNCTION(advisory_window, window);

}								/* namespace advisory */
