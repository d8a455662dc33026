/*
 * sql/semaphores.cpp
 *		SQL: taking and giving back slots of semaphores.
 *
 * The number of slots takes the place of a lock function's timeout, and the timeout follows it.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "core/await.h"
#include "core/release.h"
#include "base/sqlfunction.h"

namespace advisory
{

template <By by>
static LockRequest
slot_request(FunctionCallInfo fcinfo, Scope scope)
{
	return LockRequest{lock_argument(fcinfo, by), Mode::exclusive, scope, slot_number_argument(fcinfo, next_argument(by), "slots")};
}

template <By by, Scope scope, OnFailure on_failure>
static Datum
acquire(FunctionCallInfo fcinfo)
{
	LockRequest request = slot_request<by>(fcinfo, scope);
	Timeout		timeout = timeout_argument(fcinfo, next_argument(by) + 1);
	int			slot;

	check_scope(fcinfo, scope);
	if (on_failure == OnFailure::raise)
		PG_RETURN_INT32(lock_must(request, timeout));
	if (!lock_try(request, timeout, &slot))
		PG_RETURN_NULL();
	PG_RETURN_INT32(slot);
}

template <By by>
static Datum
await_acquire(FunctionCallInfo fcinfo)
{
	LockRequest request = slot_request<by>(fcinfo, Scope::session);
	Timeout		timeout = timeout_argument(fcinfo, next_argument(by) + 1);
	Datum		no_slot = Int32GetDatum(NO_SLOT);
	bool		is_null = false;
	HeapTuple	row;
	Datum		result;
	int32		slot;

	check_scope(fcinfo, Scope::session);
	/* Make the row before taking the slot, because an error after that would leave the slot taken. */
	row = result_row(fcinfo, &no_slot, &is_null);
	result = HeapTupleGetDatum(row);
	slot = await_lock(request, timeout, get_func_name(fcinfo->flinfo->fn_oid));
	memcpy(GETSTRUCT(row), &slot, sizeof(slot));
	PG_RETURN_DATUM(result);
}

template <By by>
static Datum
release(FunctionCallInfo fcinfo)
{
	LockName	name = lock_argument(fcinfo, by);
	int			slot = NO_SLOT;

	if (!PG_ARGISNULL(next_argument(by)))
		slot = slot_number_argument(fcinfo, next_argument(by), "slot");
	PG_RETURN_BOOL(slot_release(name, slot));
}

ADVISORY_SQL_NAME_FUNCTIONS(advisory_acquire, acquire, Scope::session, OnFailure::raise);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_xact_acquire, acquire, Scope::transaction, OnFailure::raise);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_try_acquire, acquire, Scope::session, OnFailure::say);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_try_xact_acquire, acquire, Scope::transaction, OnFailure::say);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_await_acquire, await_acquire);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_release, release);

}								/* namespace advisory */
