/*
 * sql/args.cpp
 *		Reading and checking SQL arguments.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "core/namecache.h"
#include "base/guc.h"
#include "base/key.h"

namespace advisory
{

static void
check_not_null(FunctionCallInfo fcinfo, int arg, const char *what)
{
	if (PG_ARGISNULL(arg))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", what)));
}

static std::string_view
checked_not_empty(std::string_view text, const char *what)
{
	if (text.empty())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must not be empty", what)));
	return text;
}

static std::string_view
view_of(const text *value)
{
	return std::string_view(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
}

std::string_view
text_argument(FunctionCallInfo fcinfo, int arg, const char *what)
{
	check_not_null(fcinfo, arg, what);
	return checked_not_empty(view_of(PG_GETARG_TEXT_PP(arg)), what);
}

int64
bigint_argument(FunctionCallInfo fcinfo, int arg, const char *what)
{
	check_not_null(fcinfo, arg, what);
	return PG_GETARG_INT64(arg);
}

int32
integer_argument(FunctionCallInfo fcinfo, int arg, const char *what)
{
	check_not_null(fcinfo, arg, what);
	return PG_GETARG_INT32(arg);
}

int
slot_number_argument(FunctionCallInfo fcinfo, int arg, const char *what)
{
	int32		value = integer_argument(fcinfo, arg, what);

	if (value < 1 || value > MAX_SLOTS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be between 1 and %d", what, MAX_SLOTS)));
	return value;
}

std::string_view
bigint_as_name(int64 id)
{
	char	   *digits = static_cast<char *>(palloc(MAXINT8LEN + 1));
	int			length = pg_lltoa(id, digits);

	return std::string_view(digits, length);
}

std::string_view
uuid_as_name(Datum id)
{
	char	   *digits = DatumGetCString(DirectFunctionCall1(uuid_out, id));

	return std::string_view(digits, strlen(digits));
}

/*
 * The length of an interval in milliseconds, rounded up, with a day of 24 hours
 * and a month of 30 days as where intervals are compared; -1 if it is negative.
 * No overflow: at most 2^31 * 31 days and 2^63 microseconds are below 2^63
 * milliseconds.
 */
static int64
interval_in_milliseconds(const Interval *interval)
{
	int64		days = static_cast<int64>(interval->month) * DAYS_PER_MONTH + interval->day;
	int64		whole = days * (SECS_PER_DAY * INT64CONST(1000)) + interval->time / 1000;
	int64		fraction = interval->time % 1000;

	if (whole < 0 || (whole == 0 && fraction < 0))
		return -1;
	return fraction > 0 ? whole + 1 : whole;
}

Timeout
timeout_argument(FunctionCallInfo fcinfo, int arg)
{
	if (PG_ARGISNULL(arg))
		return Timeout{-1};

	int64		milliseconds = interval_in_milliseconds(PG_GETARG_INTERVAL_P(arg));

	if (milliseconds < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("timeout must not be negative")));
	if (milliseconds > PG_INT32_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
				 errmsg("timeout is out of range"),
				 errdetail("A timeout can be at most %d milliseconds.", PG_INT32_MAX),
				 errhint("To wait without a limit, pass NULL.")));
	return Timeout{static_cast<int>(milliseconds)};
}

LockName
ByText::read(FunctionCallInfo fcinfo)
{
	std::string_view ns = text_argument(fcinfo, 0, "namespace");

	return named_lock(ns, text_argument(fcinfo, 1, "name"));
}

LockName
ByBigint::read(FunctionCallInfo fcinfo)
{
	std::string_view ns = text_argument(fcinfo, 0, "namespace");

	return named_lock(ns, bigint_as_name(bigint_argument(fcinfo, 1, "id")));
}

LockName
ByUuid::read(FunctionCallInfo fcinfo)
{
	std::string_view ns = text_argument(fcinfo, 0, "namespace");

	check_not_null(fcinfo, 1, "id");
	return named_lock(ns, uuid_as_name(PG_GETARG_DATUM(1)));
}

LockName
ByKey::read(FunctionCallInfo fcinfo)
{
	LockName	lock = {};

	lock.key.value = bigint_argument(fcinfo, 0, "key");
	return lock;
}

LockName
ByLabelledKey::read(FunctionCallInfo fcinfo)
{
	LockName	lock = ByKey::read(fcinfo);

	if (!PG_ARGISNULL(2))
		lock.name = text_argument(fcinfo, 2, "label");
	return lock;
}

/* What the elements of a list of names are called in messages. */
static const char *
element_word(Oid element_type)
{
	return element_type == INT8OID || element_type == UUIDOID ? "id" : "name";
}

static std::string_view
element_as_name(Datum element, Oid element_type)
{
	switch (element_type)
	{
		case INT8OID:
			return bigint_as_name(DatumGetInt64(element));
		case UUIDOID:
			return uuid_as_name(element);
		default:
			return checked_not_empty(view_of(DatumGetTextPP(element)), "name");
	}
}

static LockNames
names_in(std::string_view ns, ArrayType *array)
{
	LockNames	names = {};
	int16		typlen;
	bool		typbyval;
	char		typalign;
	bool	   *nulls;

	names.element_type = ARR_ELEMTYPE(array);
	get_typlenbyvalalign(names.element_type, &typlen, &typbyval, &typalign);
	deconstruct_array(array, names.element_type, typlen, typbyval, typalign,
					  &names.elements, &nulls, &names.count);

	for (int i = 0; i < names.count; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("%s must not be null", element_word(names.element_type)),
					 errdetail("Element %d of the list is null.", i + 1)));
	}

	names.locks = static_cast<LockName *>(palloc_extended(sizeof(LockName) * names.count, MCXT_ALLOC_HUGE));
	for (int i = 0; i < names.count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		names.locks[i] = named_lock(ns, element_as_name(names.elements[i], names.element_type));
	}
	return names;
}

static void
check_list_not_null(FunctionCallInfo fcinfo)
{
	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("list of names must not be null")));
}

LockNames
FromArray::read(FunctionCallInfo fcinfo)
{
	std::string_view ns = text_argument(fcinfo, 0, "namespace");

	check_list_not_null(fcinfo);
	return names_in(ns, PG_GETARG_ARRAYTYPE_P(1));
}

LockNames
FromLiteral::read(FunctionCallInfo fcinfo)
{
	std::string_view ns = text_argument(fcinfo, 0, "namespace");

	check_list_not_null(fcinfo);

	char	   *literal = text_to_cstring(PG_GETARG_TEXT_PP(1));

	return names_in(ns, DatumGetArrayTypeP(OidInputFunctionCall(F_ARRAY_IN, literal, TEXTOID, -1)));
}

/* try_lock -> try_xact_lock, await_lock -> xact_lock, lock_shared -> xact_lock_shared */
static char *
transaction_level_name(const char *function)
{
	static constexpr char TRY[] = "try_";
	static constexpr char AWAIT[] = "await_";

	if (strncmp(function, TRY, strlen(TRY)) == 0)
		return psprintf("try_xact_%s", function + strlen(TRY));
	if (strncmp(function, AWAIT, strlen(AWAIT)) == 0)
		return psprintf("xact_%s", function + strlen(AWAIT));
	return psprintf("xact_%s", function);
}

void
check_session_locks(FunctionCallInfo fcinfo)
{
	int			allowed = setting::session_locks;

	if (allowed == SESSION_LOCKS_ON)
		return;

	bool		refused = allowed == SESSION_LOCKS_OFF;
	char	   *function = get_func_name(fcinfo->flinfo->fn_oid);

	ereport(refused ? ERROR : WARNING,
			(errcode(refused ? ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE : ERRCODE_WARNING),
			 refused
			 ? errmsg("session-level advisory locks are turned off by \"advisory_ext.session_locks\"")
			 : errmsg("session-level advisory lock taken with \"advisory_ext.session_locks\" set to \"warn\""),
			 errdetail("Behind a transaction pooler a session-level lock outlives the client that took it."),
			 function != nullptr ? errhint("Use advisory.%s() instead.", transaction_level_name(function)) : 0));
}

}								/* namespace advisory */
