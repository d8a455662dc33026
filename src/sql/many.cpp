/*
 * sql/many.cpp
 *		SQL: taking and releasing several locks at once.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "core/many.h"
#include "core/release.h"
#include "base/sqlfunction.h"

namespace advisory
{

template <typename List, Mode mode, Scope scope>
static Datum
must_lock_all(FunctionCallInfo fcinfo)
{
	LockNames	names = List::read(fcinfo);
	Timeout		timeout = timeout_argument(fcinfo, 2);

	if (scope == Scope::session)
		check_session_locks(fcinfo);
	lock_must_all(names, mode, scope, timeout);
	PG_RETURN_BOOL(true);
}

template <typename List, Mode mode, Scope scope>
static Datum
try_to_lock_all(FunctionCallInfo fcinfo)
{
	LockNames	names = List::read(fcinfo);
	Timeout		timeout = timeout_argument(fcinfo, 2);

	if (scope == Scope::session)
		check_session_locks(fcinfo);
	PG_RETURN_BOOL(lock_try_all(names, mode, scope, timeout));
}

namespace
{

struct AnyResult
{
	const LockNames *names;
	ReturnSetInfo *result;
};

}								/* anonymous namespace */

static void
return_element(int index, void *argument)
{
	auto	   *any = static_cast<AnyResult *>(argument);
	bool		null = false;

	tuplestore_putvalues(any->result->setResult, any->result->setDesc,
						 &any->names->elements[index], &null);
}

template <typename List, Scope scope>
static Datum
try_to_lock_any(FunctionCallInfo fcinfo)
{
	LockNames	names = List::read(fcinfo);
	int32		wanted = integer_argument(fcinfo, 2, "wanted");

	if (wanted < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("wanted must be at least 1")));
	if (scope == Scope::session)
		check_session_locks(fcinfo);

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);

	AnyResult	any = {&names, reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo)};

	lock_try_any(names, Mode::exclusive, scope, wanted, return_element, &any);
	return Datum(0);
}

/* An untyped list becomes one name here; in a finally block that would go unseen. */
static void
notice_if_list(std::string_view name)
{
	if (name.front() == '{' && name.back() == '}')
		ereport(NOTICE,
				(errmsg("this session does not hold an advisory lock of that name, which looks like a list"),
				 errhint("To release a list of locks, cast it: unlock_all(namespace, list::text[]).")));
}

template <typename By>
static Datum
unlock_all_of_name(FunctionCallInfo fcinfo)
{
	LockName	name = By::read(fcinfo);
	int64		released = lock_release_all(name);

	if (released == 0)
		notice_if_list(name.name);
	PG_RETURN_INT32(static_cast<int32>(released));
}

static Datum
unlock_all_of_names(FunctionCallInfo fcinfo)
{
	LockNames	names = FromArray::read(fcinfo);
	int64		released = 0;

	for (int i = 0; i < names.count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		released += lock_release_all(names.locks[i]);
	}
	PG_RETURN_INT32(static_cast<int32>(released));
}

static Datum
unlock_all_of_namespace(FunctionCallInfo fcinfo)
{
	PG_RETURN_INT32(static_cast<int32>(lock_release_namespace(text_argument(fcinfo, 0, "namespace"))));
}

#define ADVISORY_SQL_LIST_FUNCTIONS(symbol, implementation, ...) \
	ADVISORY_SQL_FUNCTION(symbol, implementation<FromArray, __VA_ARGS__>); \
	ADVISORY_SQL_FUNCTION(symbol##_literal, implementation<FromLiteral, __VA_ARGS__>)

ADVISORY_SQL_LIST_FUNCTIONS(advisory_lock_all, must_lock_all, Mode::exclusive, Scope::session);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_xact_lock_all, must_lock_all, Mode::exclusive, Scope::transaction);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_lock_all, try_to_lock_all, Mode::exclusive, Scope::session);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_xact_lock_all, try_to_lock_all, Mode::exclusive, Scope::transaction);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_lock_any, try_to_lock_any, Scope::session);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_xact_lock_any, try_to_lock_any, Scope::transaction);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_unlock_all, unlock_all_of_name);
ADVISORY_SQL_FUNCTION(advisory_unlock_all_names, unlock_all_of_names);
ADVISORY_SQL_FUNCTION(advisory_unlock_all_namespace, unlock_all_of_namespace);

}								/* namespace advisory */
