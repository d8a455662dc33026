/*
 * sql/semaphores.cpp
 *		SQL: taking and giving back slots of semaphores.
 *
 * How many slots there are stands where a lock's timeout does, and the timeout behind it.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "core/await.h"
#include "core/release.h"
#include "base/sqlfunction.h"

namespace advisory
{

template <typename By>
static LockRequest
read_request(FunctionCallInfo fcinfo, Scope scope)
{
	LockRequest request = {By::read(fcinfo), Mode::exclusive, scope};

	request.slots = slot_number_argument(fcinfo, By::next_arg, "slots");
	return request;
}

template <typename By, Scope scope>
static Datum
acquire(FunctionCallInfo fcinfo)
{
	LockRequest request = read_request<By>(fcinfo, scope);
	Timeout		timeout = timeout_argument(fcinfo, By::next_arg + 1);

	if (scope == Scope::session)
		check_session_locks(fcinfo);
	PG_RETURN_INT32(slot_must(request, timeout));
}

template <typename By, Scope scope>
static Datum
try_acquire(FunctionCallInfo fcinfo)
{
	LockRequest request = read_request<By>(fcinfo, scope);
	Timeout		timeout = timeout_argument(fcinfo, By::next_arg + 1);
	int			slot;

	if (scope == Scope::session)
		check_session_locks(fcinfo);
	slot = slot_try(request, timeout);
	if (slot == NO_SLOT)
		PG_RETURN_NULL();
	PG_RETURN_INT32(slot);
}

template <typename By>
static Datum
await_acquire(FunctionCallInfo fcinfo)
{
	LockRequest request = read_request<By>(fcinfo, Scope::session);
	Timeout		timeout = timeout_argument(fcinfo, By::next_arg + 1);
	TupleDesc	description;
	Datum		no_slot = Int32GetDatum(NO_SLOT);
	bool		is_null = false;
	HeapTuple	row;
	Datum		result;
	int32		slot;

	check_session_locks(fcinfo);
	if (get_call_result_type(fcinfo, nullptr, &description) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	/* The row is made before the slot is taken, since an error after that would leave the slot taken. */
	row = heap_form_tuple(BlessTupleDesc(description), &no_slot, &is_null);
	result = HeapTupleGetDatum(row);
	slot = await_lock(request, timeout, get_func_name(fcinfo->flinfo->fn_oid));
	memcpy(GETSTRUCT(row), &slot, sizeof(slot));
	PG_RETURN_DATUM(result);
}

template <typename By>
static Datum
release(FunctionCallInfo fcinfo)
{
	LockName	name = By::read(fcinfo);
	int			slot = NO_SLOT;

	if (!PG_ARGISNULL(By::next_arg))
		slot = slot_number_argument(fcinfo, By::next_arg, "slot");
	PG_RETURN_BOOL(slot_release(name, slot));
}

ADVISORY_SQL_NAME_FUNCTIONS(advisory_acquire, acquire, Scope::session);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_xact_acquire, acquire, Scope::transaction);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_try_acquire, try_acquire, Scope::session);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_try_xact_acquire, try_acquire, Scope::transaction);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_await_acquire, await_acquire);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_release, release);

}								/* namespace advisory */
