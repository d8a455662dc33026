/*
 * sql_many.cpp
 *		SQL: taking and releasing several locks at once.
 */
#include "pg.h"

#include "args.h"
#include "lock.h"
#include "sqlfunction.h"

namespace advisory
{

template <Mode mode, Scope scope>
static Datum
must_lock_all(FunctionCallInfo fcinfo)
{
	LockNames	names = names_arguments(fcinfo, 1);
	Timeout		timeout = timeout_argument(fcinfo, 2);

	if (scope == Scope::session)
		check_session_locks(fcinfo);
	lock_must_all(names, mode, scope, timeout);
	PG_RETURN_BOOL(true);
}

template <Mode mode, Scope scope>
static Datum
try_to_lock_all(FunctionCallInfo fcinfo)
{
	LockNames	names = names_arguments(fcinfo, 1);
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

template <Scope scope>
static Datum
try_to_lock_any(FunctionCallInfo fcinfo)
{
	LockNames	names = names_arguments(fcinfo, 1);
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

template <typename By>
static Datum
unlock_all_of_name(FunctionCallInfo fcinfo)
{
	PG_RETURN_INT32(static_cast<int32>(lock_release_all(By::read(fcinfo).key)));
}

static Datum
unlock_all_of_names(FunctionCallInfo fcinfo)
{
	LockNames	names = names_arguments(fcinfo, 1);
	int64		released = 0;

	for (int i = 0; i < names.count; i++)
		released += lock_release_all(names.locks[i].key);
	PG_RETURN_INT32(static_cast<int32>(released));
}

static Datum
unlock_all_of_namespace(FunctionCallInfo fcinfo)
{
	PG_RETURN_INT32(static_cast<int32>(lock_release_namespace(text_argument(fcinfo, 0, "namespace"))));
}

ADVISORY_SQL_FUNCTION(advisory_lock_all, must_lock_all<Mode::exclusive, Scope::session>);
ADVISORY_SQL_FUNCTION(advisory_xact_lock_all, must_lock_all<Mode::exclusive, Scope::transaction>);
ADVISORY_SQL_FUNCTION(advisory_try_lock_all, try_to_lock_all<Mode::exclusive, Scope::session>);
ADVISORY_SQL_FUNCTION(advisory_try_xact_lock_all, try_to_lock_all<Mode::exclusive, Scope::transaction>);
ADVISORY_SQL_FUNCTION(advisory_try_lock_any, try_to_lock_any<Scope::session>);
ADVISORY_SQL_FUNCTION(advisory_try_xact_lock_any, try_to_lock_any<Scope::transaction>);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_unlock_all, unlock_all_of_name);
ADVISORY_SQL_FUNCTION(advisory_unlock_all_names, unlock_all_of_names);
ADVISORY_SQL_FUNCTION(advisory_unlock_all_namespace, unlock_all_of_namespace);

}								/* namespace advisory */
