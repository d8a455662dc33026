/*
 * base/sqlfunction.h
 *		Making C++ functions callable from SQL, and the rows that they return.
 */
#pragma once

#include "base/encoding.h"
#include "base/errors.h"

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

/*
 * The same for a template whose first parameter is By.  Exports symbol_text, symbol_bigint and
 * symbol_uuid.
 */
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
 * The row of a function with one INOUT parameter, whose value produce() returns.  The row is made
 * before that: produce() may take a lock, which an error after it would leave taken, or replace the
 * function.  May ereport.
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
template <void (*show) (ReturnSetInfo *)>
Datum
rows_function(FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
	show(reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo));
	return Datum(0);
}

/* A palloc'd text; 0 for a null pointer.  May ereport (out of memory). */
inline Datum
raw_text_datum(const char *text)
{
	return text != nullptr ? CStringGetTextDatum(text) : Datum(0);
}

/* The same with what is not printable replaced (encoding.h). */
inline Datum
text_datum(const char *text)
{
	return raw_text_datum(printable_text(text));
}

/* One row, whose columns are added in order. */
struct Row
{
	static constexpr int MAX_COLUMNS = 40;

	Datum		values[MAX_COLUMNS];
	bool		nulls[MAX_COLUMNS];
	int			count = 0;

	Row() = default;
	/* Copies only the columns that were added: a row is often begun with those of another one. */
	Row(const Row &other) noexcept
	{
		*this = other;
	}
	Row		   &operator=(const Row &other) noexcept
	{
		count = other.count;
		memcpy(values, other.values, sizeof(Datum) * count);
		memcpy(nulls, other.nulls, sizeof(bool) * count);
		return *this;
	}

	void		add(Datum value, bool is_null = false)
	{
		if (count == MAX_COLUMNS)
			elog(ERROR, "a row has more than %d columns", MAX_COLUMNS);
		values[count] = value;
		nulls[count++] = is_null;
	}
	/* A value of a type that is passed by reference; null for 0. */
	void		add_reference(Datum value)
	{
		add(value, value == Datum(0));
	}
	/*
	 * As text_datum(); null for a null pointer.  May ereport (out of memory), like all that follow
	 * with a palloc'd value.
	 */
	void		add_text(const char *text)
	{
		add_reference(text_datum(text));
	}
	void		add_bool(bool value)
	{
		add(BoolGetDatum(value));
	}
	void		add_int32(int32 value)
	{
		add(Int32GetDatum(value));
	}
	void		add_int64(int64 value)
	{
		add(Int64GetDatum(value));
	}
	void		add_int32_array(Datum *items, int item_count)
	{
		add(PointerGetDatum(construct_array(items, item_count, INT4OID, sizeof(int32), true,
											TYPALIGN_INT)));
	}
	/* Null for a time of 0. */
	void		add_time(TimestampTz time)
	{
		add(TimestampTzGetDatum(time), time == 0);
	}
	void		add_interval(int64 microseconds)
	{
		auto	   *interval = static_cast<Interval *>(palloc(sizeof(Interval)));

		*interval = Interval{microseconds};
		add(IntervalPGetDatum(interval));
	}
	/* The interval from time to now; null for a time of 0. */
	void		add_age(TimestampTz time, TimestampTz now)
	{
		if (time != 0)
			add_interval(Max(now - time, 0));
		else
			add_reference(Datum(0));
	}
	/*
	 * Append the row to the result that InitMaterializedSRF made.  It may lack the last columns,
	 * but must not have more: those of a newer version.  May ereport.
	 */
	void		put(ReturnSetInfo *result)
	{
		if (count < result->setDesc->natts)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("function returns %d columns, but the library of advisory_ext %s has "
							"%d",
							result->setDesc->natts, ADVISORY_EXT_VERSION, count),
					 errhint(OTHER_VERSION_HINT)));
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
};

/*
 * Run show(i) for each i from 0 to count - 1.  The current memory context is emptied
 * after each, so that memory does not grow with the number of rows.  May ereport.
 */
template <typename Show>
inline void
show_each(int count, Show show)
{
	MemoryContext row_context = AllocSetContextCreate(CurrentMemoryContext, "advisory_ext row",
													  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(row_context);

	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		show(i);
		MemoryContextReset(row_context);
	}
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(row_context);
}

}								/* namespace advisory */
