/*
 * sql/locks.cpp
 *		SQL: taking, releasing and asking about one lock.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "core/await.h"
#include "core/blockers.h"
#include "core/release.h"
#include "server/locallock.h"
#include "server/locktable.h"
#include "views/locks.h"
#include "base/sqlfunction.h"

namespace advisory
{

template <typename By>
static LockRequest
read_request(FunctionCallInfo fcinfo, Mode mode, Scope scope)
{
	return LockRequest{By::read(fcinfo), mode, scope};
}

template <typename By, Mode mode, Scope scope>
static Datum
must_lock(FunctionCallInfo fcinfo)
{
	LockRequest request = read_request<By>(fcinfo, mode, scope);
	Timeout		timeout = timeout_argument(fcinfo, By::next_arg);

	if (scope == Scope::session)
		check_session_locks(fcinfo);
	lock_must(request, timeout);
	PG_RETURN_BOOL(true);
}

template <typename By, Mode mode, Scope scope>
static Datum
try_to_lock(FunctionCallInfo fcinfo)
{
	LockRequest request = read_request<By>(fcinfo, mode, scope);
	Timeout		timeout = timeout_argument(fcinfo, By::next_arg);

	if (scope == Scope::session)
		check_session_locks(fcinfo);
	PG_RETURN_BOOL(lock_try(request, timeout));
}

template <typename By, Mode mode>
static Datum
await(FunctionCallInfo fcinfo)
{
	LockRequest request = read_request<By>(fcinfo, mode, Scope::session);
	Timeout		timeout = timeout_argument(fcinfo, By::next_arg);

	check_session_locks(fcinfo);
	await_lock(request, timeout, get_func_name(fcinfo->flinfo->fn_oid));
	PG_RETURN_VOID();
}

template <typename By, Mode mode>
static Datum
unlock(FunctionCallInfo fcinfo)
{
	PG_RETURN_BOOL(lock_release(By::read(fcinfo), mode));
}

template <typename By>
static Datum
holds(FunctionCallInfo fcinfo)
{
	PG_RETURN_BOOL(is_held_by_me(lock_tag(MyDatabaseId, By::read(fcinfo).key)));
}

template <typename By>
static Datum
hold_count(FunctionCallInfo fcinfo)
{
	PG_RETURN_INT32(static_cast<int32>(lock_my_count(By::read(fcinfo).key)));
}

template <typename By>
static Datum
is_locked(FunctionCallInfo fcinfo)
{
	PG_RETURN_BOOL(is_held_by_anybody(lock_tag(MyDatabaseId, By::read(fcinfo).key)));
}

template <typename By>
static Datum
holders(FunctionCallInfo fcinfo)
{
	LockName	name = By::read(fcinfo);

	InitMaterializedSRF(fcinfo, 0);
	show_holders(name, reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo));
	return Datum(0);
}

template <typename By>
static Datum
terminate(FunctionCallInfo fcinfo)
{
	LockName	name = By::read(fcinfo);
	int32		pid = integer_argument(fcinfo, 2, "pid");

	PG_RETURN_BOOL(terminate_holder(name, pid, timeout_argument(fcinfo, 3)));
}

#define ADVISORY_SQL_LOCK_FUNCTIONS(verb, implementation, ...) \
	ADVISORY_SQL_NAME_FUNCTIONS(advisory_##verb, implementation, ##__VA_ARGS__); \
	ADVISORY_SQL_FUNCTION(advisory_##verb##_key, implementation<ByLabelledKey, ##__VA_ARGS__>)

ADVISORY_SQL_LOCK_FUNCTIONS(lock, must_lock, Mode::exclusive, Scope::session);
ADVISORY_SQL_LOCK_FUNCTIONS(lock_shared, must_lock, Mode::shared, Scope::session);
ADVISORY_SQL_LOCK_FUNCTIONS(xact_lock, must_lock, Mode::exclusive, Scope::transaction);
ADVISORY_SQL_LOCK_FUNCTIONS(xact_lock_shared, must_lock, Mode::shared, Scope::transaction);
ADVISORY_SQL_LOCK_FUNCTIONS(try_lock, try_to_lock, Mode::exclusive, Scope::session);
ADVISORY_SQL_LOCK_FUNCTIONS(try_lock_shared, try_to_lock, Mode::shared, Scope::session);
ADVISORY_SQL_LOCK_FUNCTIONS(try_xact_lock, try_to_lock, Mode::exclusive, Scope::transaction);
ADVISORY_SQL_LOCK_FUNCTIONS(try_xact_lock_shared, try_to_lock, Mode::shared, Scope::transaction);
ADVISORY_SQL_LOCK_FUNCTIONS(await_lock, await, Mode::exclusive);
ADVISORY_SQL_LOCK_FUNCTIONS(await_lock_shared, await, Mode::shared);

#define ADVISORY_SQL_ASK_FUNCTIONS(verb, implementation, ...) \
	ADVISORY_SQL_NAME_FUNCTIONS(advisory_##verb, implementation, ##__VA_ARGS__); \
	ADVISORY_SQL_FUNCTION(advisory_##verb##_key, implementation<ByKey, ##__VA_ARGS__>)

ADVISORY_SQL_ASK_FUNCTIONS(unlock, unlock, Mode::exclusive);
ADVISORY_SQL_ASK_FUNCTIONS(unlock_shared, unlock, Mode::shared);
ADVISORY_SQL_ASK_FUNCTIONS(holds, holds);
ADVISORY_SQL_ASK_FUNCTIONS(is_locked, is_locked);
ADVISORY_SQL_ASK_FUNCTIONS(holders, holders);

ADVISORY_SQL_NAME_FUNCTIONS(advisory_hold_count, hold_count);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_terminate_holder, terminate);

}								/* namespace advisory */
