/*
 * sql/tokens.cpp
 *		SQL: fencing tokens.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "core/token.h"
#include "base/sqlfunction.h"

namespace advisory
{

template <By by, bool is_of_slot = false>
static Datum
token(FunctionCallInfo fcinfo)
{
	LockName	name = lock_argument(fcinfo, by);

	PG_RETURN_INT64(token_next(name, is_of_slot
							   ? slot_number_argument(fcinfo, next_argument(by), "slot")
							   : NO_SLOT));
}

template <By by>
static Datum
check_token(FunctionCallInfo fcinfo)
{
	LockName	name = lock_argument(fcinfo, by);

	token_check(name, token_argument(fcinfo, next_argument(by)));
	PG_RETURN_BOOL(true);
}

static Datum
tokens_above(FunctionCallInfo fcinfo)
{
	token_raise_above(token_argument(fcinfo, 0));
	PG_RETURN_VOID();
}

static Datum
begin_era(FunctionCallInfo)
{
	token_era();
	PG_RETURN_VOID();
}

/* ---- The trigger ---- */

[[noreturn]] static void
raise_bad_trigger(const char *message)
{
	ereport(ERROR,
			(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
			 errmsg("%s", message)));
}

/*
 * fenced(column): raise 55000 for a row whose token is smaller than the token of the row that it
 * replaces, and 22023 if it is greater than any token of this database.  The error does not tell
 * the token that was there, because the role may be unable to read it.
 */
static Datum
fenced(FunctionCallInfo fcinfo)
{
	auto	   *data = reinterpret_cast<TriggerData *>(fcinfo->context);

	if (!CALLED_AS_TRIGGER(fcinfo))
		raise_bad_trigger("advisory.fenced() must be called as a trigger");
	if (!TRIGGER_FIRED_FOR_ROW(data->tg_event) || !TRIGGER_FIRED_BEFORE(data->tg_event) ||
		!(TRIGGER_FIRED_BY_INSERT(data->tg_event) || TRIGGER_FIRED_BY_UPDATE(data->tg_event)))
		raise_bad_trigger("advisory.fenced() must be fired BEFORE INSERT OR UPDATE, FOR EACH ROW");
	if (data->tg_trigger->tgnargs != 1)
		raise_bad_trigger("advisory.fenced() takes the name of the token's column as its only "
						  "argument");

	bool		is_update = TRIGGER_FIRED_BY_UPDATE(data->tg_event);
	HeapTuple	row = is_update ? data->tg_newtuple : data->tg_trigtuple;
	const char *relation = RelationGetRelationName(data->tg_relation);
	const char *column = data->tg_trigger->tgargs[0];
	TupleDesc	columns = RelationGetDescr(data->tg_relation);
	int			number = SPI_fnumber(columns, column);
	bool		is_null;

	if (number <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist", column, relation)));
	if (SPI_gettypeid(columns, number) != INT8OID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of relation \"%s\" must have type bigint",
						column, relation)));

	Datum		value = SPI_getbinval(row, columns, number, &is_null);

	/* Where a bigint is passed by reference, a null cannot be converted. */
	if (is_null)
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("null token in column \"%s\" of relation \"%s\"", column, relation),
				 errtablecol(data->tg_relation, number)));

	int64		token = DatumGetInt64(value);
	int64		before = PG_INT64_MIN;

	if (is_update)
	{
		value = SPI_getbinval(data->tg_trigtuple, columns, number, &is_null);
		before = is_null ? PG_INT64_MIN : DatumGetInt64(value);
	}
	if (token < before)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("stale token " INT64_FORMAT " in column \"%s\" of relation \"%s\"",
						token, column, relation),
				 errdetail("A later holder has already written a greater token."),
				 errtablecol(data->tg_relation, number)));
	if (token > before)
		token_check_given(token);
	return PointerGetDatum(row);
}

ADVISORY_SQL_NAME_FUNCTIONS(advisory_token, token);
ADVISORY_SQL_FUNCTION(advisory_token_key, token<By::key>);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_token_slot, token, true);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_check_token, check_token);
ADVISORY_SQL_FUNCTION(advisory_tokens_above, tokens_above);
ADVISORY_SQL_FUNCTION(advisory_begin_era, begin_era);
ADVISORY_SQL_FUNCTION(advisory_fenced, fenced);

}								/* namespace advisory */
