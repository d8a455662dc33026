/*
 * base/sqlfunction.h
 *		Making C++ functions callable from SQL.
 */
#pragma once

/*
 * Export implementation, a function of fcinfo, to SQL as symbol.  The library exports
 * no other symbols, except those that the server needs to load it.
 */
#define ADVISORY_SQL_FUNCTION(symbol, ...) \
	_Pragma("GCC visibility push(default)") \
	extern "C" { \
	PG_FUNCTION_INFO_V1(symbol); \
	Datum \
	symbol(PG_FUNCTION_ARGS) \
	{ \
		return __VA_ARGS__(fcinfo); \
	} \
	} \
	_Pragma("GCC visibility pop") \
	extern int	advisory_no_such_variable

/* The same for a template whose first parameter is By.  Exports symbol_text, symbol_bigint and symbol_uuid. */
#define ADVISORY_SQL_NAME_FUNCTIONS(symbol, implementation, ...) \
	ADVISORY_SQL_FUNCTION(symbol##_text, implementation<By::text, ##__VA_ARGS__>); \
	ADVISORY_SQL_FUNCTION(symbol##_bigint, implementation<By::bigint, ##__VA_ARGS__>); \
	ADVISORY_SQL_FUNCTION(symbol##_uuid, implementation<By::uuid, ##__VA_ARGS__>)

namespace advisory
{

/* The row that a function with OUT or INOUT parameters returns.  May ereport. */
inline HeapTuple
result_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	TupleDesc	description;

	if (get_call_result_type(fcinfo, nullptr, &description) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return heap_form_tuple(BlessTupleDesc(description), values, nulls);
}

/*
 * The row of a function with one INOUT parameter, whose value produce() returns.  The row is made before that: produce() may take a
 * lock, which an error after it would leave taken, or replace the function.  May ereport.
 */
template <typename Value, typename Produce>
Datum
row_made_first(FunctionCallInfo fcinfo, Produce produce)
{
	Datum		placeholder = Datum(0);
	bool		is_null = false;
	HeapTuple	row = result_row(fcinfo, &placeholder, &is_null);
	Datum		result = HeapTupleGetDatum(row);
	Value		value = produce();

	memcpy(GETSTRUCT(row), &value, sizeof(value));
	return result;
}

/* A set-returning function; show() adds its rows. */
template <void (*show) (ReturnSetInfo *), uint32 flags = 0>
Datum
rows_function(FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, flags);
	show(reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo));
	return Datum(0);
}

}								/* namespace advisory */
