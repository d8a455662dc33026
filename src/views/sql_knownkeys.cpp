/*
 * views/sql_knownkeys.cpp
 *		SQL: what is known of keys.
 */
#include "base/pg.h"

#include "views/knownkeys.h"
#include "base/sqlfunction.h"
#include "base/srf.h"

namespace advisory
{

/* Loaded by the query's first call, for all of its rows. */
static KnownKeys *
loaded_keys(FmgrInfo *function)
{
	if (function->fn_extra == nullptr)
		function->fn_extra = load_known_keys(function->fn_mcxt);
	return static_cast<KnownKeys *>(function->fn_extra);
}

/* database oid, high integer, low integer, objsubid integer */
static Datum
known_as_of_tag(FunctionCallInfo fcinfo)
{
	LOCKTAG		tag;
	ArrayType  *candidates;

	/* Nothing is known of a tag that is not whole, or cannot be. */
	for (int i = 0; i < PG_NARGS(); i++)
	{
		if (PG_ARGISNULL(i))
			PG_RETURN_NULL();
	}
	if (PG_GETARG_INT32(3) < 0 || PG_GETARG_INT32(3) > PG_UINT16_MAX)
		PG_RETURN_NULL();

	SET_LOCKTAG_ADVISORY(tag, PG_GETARG_OID(0), PG_GETARG_UINT32(1), PG_GETARG_UINT32(2), PG_GETARG_INT32(3));
	candidates = known_as(loaded_keys(fcinfo->flinfo), decode_tag(tag));
	if (candidates == nullptr)
		PG_RETURN_NULL();
	PG_RETURN_ARRAYTYPE_P(candidates);
}

ADVISORY_SQL_FUNCTION(advisory_known_keys, rows_function<show_known_keys>);
ADVISORY_SQL_FUNCTION(advisory_known_as, known_as_of_tag);

}								/* namespace advisory */
