/*
 * sql/args.cpp
 *		Reading and checking SQL arguments, and the scope of a call.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "core/claim.h"
#include "core/leaserows.h"
#include "core/namecache.h"
#include "core/owntables.h"
#include "base/errors.h"
#include "base/guc.h"

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
checked_text(Datum value, const char *what)
{
	text	   *checked = DatumGetTextPP(value);
	std::string_view view(VARDATA_ANY(checked), VARSIZE_ANY_EXHDR(checked));

	if (view.empty())
		raise_invalid(psprintf("%s must not be empty", what));
	return view;
}

std::string_view
text_argument(FunctionCallInfo fcinfo, int arg, const char *what)
{
	check_not_null(fcinfo, arg, what);
	return checked_text(PG_GETARG_DATUM(arg), what);
}

void
check_bytes(std::string_view text, const char *what, const char *of, int limit)
{
	if (text.size() > static_cast<size_t>(limit))
		ereport(ERROR,
				(errcode(ERRCODE_STRING_DATA_RIGHT_TRUNCATION),
				 errmsg("%s of a %s is too long", what, of),
				 errdetail("It can have at most %d bytes.", limit)));
}

void
check_kept_name(const LockName &name, const char *of)
{
	check_bytes(name.ns, "namespace", of, KEPT_NAME_BYTES);
	check_bytes(name.name, "name", of, KEPT_NAME_BYTES);
}

int32
integer_argument(FunctionCallInfo fcinfo, int arg, const char *what)
{
	check_not_null(fcinfo, arg, what);
	return PG_GETARG_INT32(arg);
}

int64
token_argument(FunctionCallInfo fcinfo, int arg)
{
	int64		token;

	check_not_null(fcinfo, arg, "token");
	token = PG_GETARG_INT64(arg);
	if (token <= 0)
		raise_invalid("token must be greater than zero");
	return token;
}

static int
check_slot_number(int32 value, const char *what)
{
	if (value < 1 || value > MAX_SLOTS)
		raise_invalid(psprintf("%s must be between 1 and %d", what, MAX_SLOTS));
	return value;
}

int
slot_number_argument(FunctionCallInfo fcinfo, int arg, const char *what)
{
	return check_slot_number(integer_argument(fcinfo, arg, what), what);
}

/* Raise 22004 for an element of a list, counted from 0, that is null. */
[[noreturn]] static void
raise_null_element(const char *what, int i)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("%s must not be null", what),
			 errdetail("Element %d of the list is null.", i + 1)));
}

List *
slots_argument(FunctionCallInfo fcinfo, int arg, const char *what)
{
	Datum	   *elements;
	bool	   *nulls;
	int			count;
	List	   *slots = NIL;

	check_not_null(fcinfo, arg, "slots");
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(arg), INT4OID, sizeof(int32), true, TYPALIGN_INT,
					  &elements, &nulls, &count);
	for (int i = 0; i < count; i++)
	{
		if (nulls[i])
			raise_null_element(what, i);
		slots = lappend_int(slots, check_slot_number(DatumGetInt32(elements[i]), what));
	}
	return slots;
}

/*
 * An interval in microseconds.  A day has 24 hours and a month 30 days, as in comparisons of
 * intervals.  Out of range, as an infinite one is, the number farthest from zero that has its sign.
 */
static int64
to_microseconds(const Interval *interval)
{
	int64		days = static_cast<int64>(interval->month) * DAYS_PER_MONTH + interval->day;
	int64		result;

	if (pg_mul_s64_overflow(days, USECS_PER_DAY, &result) ||
		pg_add_s64_overflow(result, interval->time, &result))
		return days < 0 ? PG_INT64_MIN : PG_INT64_MAX;
	return result;
}

/* The length in milliseconds is rounded up. */
Timeout
timeout_argument(FunctionCallInfo fcinfo, int arg)
{
	if (PG_ARGISNULL(arg))
		return Timeout{-1};

	int64		length = to_microseconds(PG_GETARG_INTERVAL_P(arg));

	if (length < 0)
		raise_invalid("timeout must not be negative");
	if (length > PG_INT32_MAX * INT64CONST(1000))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
				 errmsg("timeout is out of range"),
				 errdetail("A timeout can be at most %d milliseconds.", PG_INT32_MAX),
				 errhint("To wait without a limit, pass NULL.")));
	return Timeout{static_cast<int>((length + 999) / 1000)};
}

/*
 * A length of time: greater than zero unless that is allowed, and at most 366 days, because a
 * longer one is in a wrong unit.
 */
static const Interval *
length_argument(FunctionCallInfo fcinfo, int arg, const char *what, bool may_be_zero)
{
	check_not_null(fcinfo, arg, what);

	const Interval *length = PG_GETARG_INTERVAL_P(arg);
	int64		microseconds = to_microseconds(length);

	if (microseconds < 0 && may_be_zero)
		raise_invalid(psprintf("%s must not be negative", what));
	if (microseconds <= 0 && !may_be_zero)
		raise_invalid(psprintf("%s must be greater than zero", what));
	if (!DatumGetBool(DirectFunctionCall1(interval_finite, IntervalPGetDatum(length))))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("%s must be finite", what)));
	if (microseconds > LONGEST_DAYS * USECS_PER_DAY)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
				 errmsg("%s is out of range", what),
				 errdetail("It can be at most " INT64_FORMAT " days.", LONGEST_DAYS),
				 errhint("A number without a unit counts seconds. "
						 "Pass the length with its unit, such as '1 hour'.")));
	return length;
}

int64
microseconds_argument(FunctionCallInfo fcinfo, int arg, const char *what, bool may_be_zero,
					  const char *hint)
{
	const Interval *interval = length_argument(fcinfo, arg, what, may_be_zero);

	if (interval->month != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must not have months or years", what),
				 errdetail("Months and years differ in length."),
				 errhint("%s", hint)));
	return to_microseconds(interval);
}

TimestampTz
window_at_argument(FunctionCallInfo fcinfo, int arg, const char *every, const char *window,
				   TimestampTz at)
{
	int64		length = microseconds_argument(
		fcinfo, arg, every, false,
		psprintf("Give the window itself as %s, such as date_trunc('month', now() + interval "
				 "'1 minute', 'UTC').", window));

	if (!PG_ARGISNULL(arg + 2) && length % USECS_PER_DAY != 0)
		raise_invalid(psprintf("%s must be whole days if time_zone is given", every));
	return window_at(at, length, PG_ARGISNULL(arg + 2) ? Datum(0) : PG_GETARG_DATUM(arg + 2));
}

/*
 * Raise 22023 for a window that is later than one window from now: no window before it could be
 * claimed any more.
 */
static void
check_window_is_near(TimestampTz window, const Interval *length)
{
	Datum		ahead = DirectFunctionCall2(timestamptz_pl_interval,
											TimestampTzGetDatum(GetCurrentTimestamp()),
											IntervalPGetDatum(length));

	if (window > DatumGetTimestampTz(ahead))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("window %s is too far ahead", display_window(window)),
				 errdetail("A window can be claimed at most one window before it begins.")));
}

TimestampTz
window_start_argument(FunctionCallInfo fcinfo, int arg, const char *window)
{
	check_not_null(fcinfo, arg, window);

	TimestampTz start = PG_GETARG_TIMESTAMPTZ(arg);

	if (TIMESTAMP_NOT_FINITE(start))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("%s must be finite", window)));
	return whole_milliseconds(start);
}

WindowClaim
window_argument(FunctionCallInfo fcinfo, int arg, const char *every, const char *window)
{
	WindowClaim claim = {length_argument(fcinfo, arg, every, false)};

	/*
	 * New data of a time zone, or another zone, can move a day by hours, so one that begins that
	 * near the last claimed one is the same day.
	 */
	claim.distance = PG_ARGISNULL(arg + 2) ? 1 : USECS_PER_DAY / 2;
	if (PG_ARGISNULL(arg + 1))
		claim.window = window_at_argument(fcinfo, arg, every, window, GetCurrentTimestamp());
	else if (!PG_ARGISNULL(arg + 2))
		raise_invalid(psprintf("time_zone must not be given together with %s", window));
	else
	{
		claim.window = window_start_argument(fcinfo, arg + 1, window);
		check_window_is_near(claim.window, claim.every);
	}
	return claim;
}

/* The name of an argument of this type in messages. */
static const char *
name_or_id(Oid type)
{
	return type == INT8OID || type == UUIDOID ? "id" : "name";
}

/* The name that a text, bigint or uuid stands for: ids in their text form, palloc'd. */
static std::string_view
value_as_name(Datum value, Oid type)
{
	switch (type)
	{
		case INT8OID:
			return psprintf(INT64_FORMAT, DatumGetInt64(value));
		case UUIDOID:
			return DatumGetCString(DirectFunctionCall1(uuid_out, value));
		default:
			return checked_text(value, name_or_id(type));
	}
}

LockName
lock_argument(FunctionCallInfo fcinfo, By by)
{
	if (by == By::key || by == By::labelled_key)
	{
		LockName	lock = {};

		check_not_null(fcinfo, 0, "key");
		lock.key.value = PG_GETARG_INT64(0);
		if (by == By::labelled_key && !PG_ARGISNULL(2))
			lock.name = text_argument(fcinfo, 2, "label");
		return lock;
	}

	Oid			type = by == By::text ? TEXTOID : by == By::bigint ? INT8OID : UUIDOID;
	std::string_view ns = text_argument(fcinfo, 0, "namespace");

	check_not_null(fcinfo, 1, name_or_id(type));
	return named_lock(ns, value_as_name(PG_GETARG_DATUM(1), type));
}

LockNames
list_argument(FunctionCallInfo fcinfo, ListForm form)
{
	std::string_view ns = text_argument(fcinfo, 0, "namespace");
	LockNames	names = {};
	int16		typlen;
	bool		typbyval;
	char		typalign;
	bool	   *nulls;

	check_not_null(fcinfo, 1, "list of names");

	ArrayType  *array = form == ListForm::array ? PG_GETARG_ARRAYTYPE_P(1)
		: DatumGetArrayTypeP(OidInputFunctionCall(F_ARRAY_IN, text_to_cstring(PG_GETARG_TEXT_PP(1)),
												  TEXTOID, -1));
	Oid			type = ARR_ELEMTYPE(array);

	get_typlenbyvalalign(type, &typlen, &typbyval, &typalign);
	deconstruct_array(array, type, typlen, typbyval, typalign, &names.elements, &nulls,
					  &names.count);

	names.locks =
		static_cast<LockName *>(palloc_extended(sizeof(LockName) * names.count, MCXT_ALLOC_HUGE));
	for (int i = 0; i < names.count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (nulls[i])
			raise_null_element(name_or_id(type), i);
		names.locks[i] = named_lock(ns, value_as_name(names.elements[i], type));
	}
	return names;
}

/* ---- The scope ---- */

/*
 * Is this call all that the client's statement does?  The plan of the running portal tells.  Most
 * calls come from elsewhere, for example from PL/pgSQL; they fail the first tests, which take some
 * nanoseconds.
 */
static bool
is_whole_statement(FunctionCallInfo fcinfo)
{
	Portal		portal = ActivePortal;

	/*
	 * Portals of cursors and of EXECUTE have a name.  A portal for a utility statement, such as
	 * CALL, has no query.
	 */
	if (portal == nullptr || portal->name[0] != '\0' || portal->queryDesc == nullptr)
		return false;

	const PlannedStmt *statement = portal->queryDesc->plannedstmt;
	const Plan *plan = statement->planTree;

	/* Is the call in this plan, and not in the plan of a function that runs under it? */
	if (list_length(plan->targetlist) != 1 ||
		reinterpret_cast<Node *>(linitial_node(TargetEntry, plan->targetlist)->expr) !=
		fcinfo->flinfo->fn_expr)
		return false;
	if (!IsA(plan, Result) || outerPlan(plan) != nullptr || statement->subplans != NIL ||
		reinterpret_cast<const Result *>(plan)->resconstantqual != nullptr)
		return false;

	/*
	 * FROM can leave no other trace than a range table entry with columns.  The planner's own entry
	 * has none.
	 */
	if (list_length(statement->rtable) > 1 ||
		(statement->rtable != NIL &&
		 linitial_node(RangeTblEntry, statement->rtable)->eref->colnames != NIL))
		return false;

	/*
	 * The planner lists each function that is not built in, whether it is called in an argument or
	 * was inlined.
	 */
	return list_length(statement->invalItems) == 1;
}

/*
 * The function that takes the same lock in the other scope: try_lock and try_xact_lock; lock or
 * await_lock, and xact_lock.
 */
static char *
function_of_other_scope(const char *function, Scope scope)
{
	const char *tries = "";

	if (strncmp(function, "try_", strlen("try_")) == 0)
	{
		tries = "try_";
		function += strlen("try_");
	}
	else if (strncmp(function, "await_", strlen("await_")) == 0)
		function += strlen("await_");
	if (scope == Scope::session)
		return psprintf("%sxact_%s", tries, function);
	return psprintf("%s%s", tries, function + strlen("xact_"));
}

#define HINT_OF_BARRIER \
	"To only wait for those that hold it now, put BEGIN and COMMIT around it: recipe \"Barrier\"."

/* Raise a WARNING or an error, depending on what the setting of this scope allows. */
static pg_noinline void
complain_about_scope(FunctionCallInfo fcinfo, Scope scope, int allowed)
{
	int			level = allowed == ALLOWED_OFF ? ERROR : WARNING;
	const char *function = get_func_name(fcinfo->flinfo->fn_oid);

	if (function == nullptr)
		elog(ERROR, "cache lookup failed for function %u", fcinfo->flinfo->fn_oid);

	const char *instead = function_of_other_scope(function, scope);

	if (scope == Scope::transaction)
		ereport(level,
				(errcode(ERRCODE_NO_ACTIVE_SQL_TRANSACTION),
				 errmsg("advisory.%s() has no lasting effect outside a transaction block",
						function),
				 errdetail("The locks that it takes are released at the end of the statement."),
				 setting::session_locks == ALLOWED_OFF
				 ? errhint("BEGIN a transaction first. " HINT_OF_BARRIER)
				 : errhint("BEGIN a transaction first, or use the session-level function "
						   "advisory.%s(). " HINT_OF_BARRIER, instead)));
	else
		ereport(level,
				(errcode(allowed == ALLOWED_OFF
						 ? ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE : ERRCODE_WARNING),
				 allowed == ALLOWED_OFF
				 ? errmsg("session-level advisory locks are turned off by "
						  "\"advisory_ext.session_locks\"")
				 : errmsg("session-level advisory lock taken with \"advisory_ext.session_locks\" "
						  "set to \"warn\""),
				 errdetail("Behind a transaction pooler a session-level lock outlives the client "
						   "that took it."),
				 errhint("Use advisory.%s() instead.", instead)));
}

void
check_scope(FunctionCallInfo fcinfo, Scope scope)
{
	int			allowed = scope == Scope::session ? setting::session_locks
		: setting::warn_no_transaction;

	if (allowed == ALLOWED_ON ||
		(scope == Scope::transaction &&
		 (!is_whole_statement(fcinfo) || IsInTransactionBlock(true))))
		return;
	complain_about_scope(fcinfo, scope, allowed);
}

}								/* namespace advisory */
