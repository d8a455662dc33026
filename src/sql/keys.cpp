/*
 * sql/keys.cpp
 *		SQL: key().
 */
#include "base/pg.h"

#include "sql/args.h"
#include "base/key.h"
#include "base/sqlfunction.h"

namespace advisory
{

static Datum
key_of_name_alone(FunctionCallInfo fcinfo)
{
	PG_RETURN_INT64(key_of(text_argument(fcinfo, 0, "name")).value);
}

template <By by>
static Datum
key_of_lock(FunctionCallInfo fcinfo)
{
	PG_RETURN_INT64(lock_argument(fcinfo, by).key.value);
}

ADVISORY_SQL_FUNCTION(advisory_key_name, key_of_name_alone);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_key, key_of_lock);

}								/* namespace advisory */
