/*
 * sql/locks.cpp
 *		SQL: taking, releasing and asking about one lock, or a slot of a semaphore; its key.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "core/acquire.h"
#include "core/await.h"
#include "core/notavailable.h"
#include "core/release.h"
#include "server/locallock.h"
#include "server/locktable.h"
#include "views/locks.h"
#include "base/sqlfunction.h"

namespace advisory
{

/* Take the lock, or slots.  False if it is not granted, and the function only says so. */
static bool
take(FunctionCallInfo fcinfo, const LockRequest &request, Timeout timeout, OnFailure on_failure,
	 int *slots = nullptr)
{
	Outcome		outcome;

	check_scope(fcinfo, request.scope);
	outcome = lock_take(request, timeout, slots);
	if (outcome != Outcome::granted && on_failure == OnFailure::raise)
		raise_not_available(request, outcome, timeout);
	return outcome == Outcome::granted;
}

template <By by, Mode mode, Scope scope, OnFailure on_failure>
static Datum
lock(FunctionCallInfo fcinfo)
{
	LockRequest request = {lock_argument(fcinfo, by), mode, scope};
	Timeout		timeout = timeout_argument(fcinfo, next_argument(by));

	PG_RETURN_BOOL(take(fcinfo, request, timeout, on_failure));
}

template <By by, Mode mode>
static Datum
await(FunctionCallInfo fcinfo)
{
	LockRequest request = {lock_argument(fcinfo, by), mode, Scope::session};
	Timeout		timeout = timeout_argument(fcinfo, next_argument(by));

	check_scope(fcinfo, Scope::session);
	await_lock(request, timeout, get_func_name(fcinfo->flinfo->fn_oid));
	PG_RETURN_VOID();
}

template <By by, Mode mode>
static Datum
unlock(FunctionCallInfo fcinfo)
{
	PG_RETURN_BOOL(lock_release(lock_argument(fcinfo, by), mode));
}

template <By by>
static Datum
holds(FunctionCallInfo fcinfo)
{
	PG_RETURN_BOOL(is_held_by_me(lock_tag(MyDatabaseId, lock_argument(fcinfo, by).key)));
}

template <By by>
static Datum
hold_count(FunctionCallInfo fcinfo)
{
	PG_RETURN_INT32(static_cast<int32>(lock_my_count(lock_argument(fcinfo, by).key)));
}

template <By by>
static Datum
is_locked(FunctionCallInfo fcinfo)
{
	PG_RETURN_BOOL(is_held_by_anybody(lock_tag(MyDatabaseId, lock_argument(fcinfo, by).key)));
}

template <By by>
static Datum
holders(FunctionCallInfo fcinfo)
{
	Key			key = lock_argument(fcinfo, by).key;

	InitMaterializedSRF(fcinfo, 0);
	show_holders(key, reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo));
	return Datum(0);
}

template <By by>
static Datum
terminate(FunctionCallInfo fcinfo)
{
	LockName	name = lock_argument(fcinfo, by);
	int32		pid = integer_argument(fcinfo, next_argument(by), "pid");
	Timeout		timeout = timeout_argument(fcinfo, next_argument(by) + 1);
	constexpr int kind = next_argument(by) + 2;

	if (PG_ARGISNULL(kind))
		PG_RETURN_BOOL(terminate_holder(name, pid, nullptr, timeout));
	for (Kind only : {Kind::lock, Kind::semaphore, Kind::lease})
		if (text_argument(fcinfo, kind, "kind") == kind_name(only))
			PG_RETURN_BOOL(terminate_holder(name, pid, &only, timeout));
	raise_invalid("kind must be \"lock\", \"semaphore\" or \"lease\"");
}

static Datum
key_of_name_alone(FunctionCallInfo fcinfo)
{
	PG_RETURN_INT64(key_of(text_argument(fcinfo, 0, "name")).value);
}

template <By by>
static Datum
key_of_lock(FunctionCallInfo fcinfo)
{
	PG_RETURN_INT64(lock_argument(fcinfo, by).key.value);
}

/*
 * ---- Slots ----
 *
 * The number of slots takes the place of a lock function's timeout, and the timeout follows it.
 */

template <By by>
static LockRequest
slot_request(FunctionCallInfo fcinfo, Scope scope)
{
	return LockRequest{lock_argument(fcinfo, by), Mode::exclusive, scope,
					   slot_number_argument(fcinfo, next_argument(by), "slots")};
}

template <By by, Scope scope, OnFailure on_failure>
static Datum
acquire(FunctionCallInfo fcinfo)
{
	LockRequest request = slot_request<by>(fcinfo, scope);
	Timeout		timeout = timeout_argument(fcinfo, next_argument(by) + 1);
	int			slot;

	if (!take(fcinfo, request, timeout, on_failure, &slot))
		PG_RETURN_NULL();
	PG_RETURN_INT32(slot);
}

template <By by, Scope scope, OnFailure on_failure>
static Datum
acquire_many(FunctionCallInfo fcinfo)
{
	LockRequest request = slot_request<by>(fcinfo, scope);
	int32		wanted = integer_argument(fcinfo, next_argument(by) + 1, "wanted");
	Timeout		timeout = timeout_argument(fcinfo, next_argument(by) + 2);

	if (wanted < 1 || wanted > request.slots)
		raise_invalid(psprintf("wanted must be between 1 and %d", request.slots));
	request.wanted = wanted;

	/* Allocate the result before taking anything. */
	ArrayType  *result = construct_array(static_cast<Datum *>(palloc0(sizeof(Datum) * wanted)),
										 wanted, INT4OID, sizeof(int32), true, TYPALIGN_INT);

	if (!take(fcinfo, request, timeout, on_failure, reinterpret_cast<int *>(ARR_DATA_PTR(result))))
		PG_RETURN_NULL();
	PG_RETURN_ARRAYTYPE_P(result);
}

template <By by>
static Datum
await_acquire(FunctionCallInfo fcinfo)
{
	LockRequest request = slot_request<by>(fcinfo, Scope::session);
	Timeout		timeout = timeout_argument(fcinfo, next_argument(by) + 1);

	check_scope(fcinfo, Scope::session);
	return row_made_first<int32>(fcinfo, [&]() {
		return await_lock(request, timeout, get_func_name(fcinfo->flinfo->fn_oid));
	});
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

/* (namespace, name, slots): each of these.  Returns how many this session had. */
template <By by>
static Datum
release_many(FunctionCallInfo fcinfo)
{
	LockName	name = lock_argument(fcinfo, by);

	PG_RETURN_INT32(slots_release(name, slots_argument(fcinfo, next_argument(by))));
}

/* ---- What SQL calls ---- */

/* The same by key: with a label to take the lock, without one to release it or to ask about it. */
#define ADVISORY_SQL_FUNCTIONS(verb, implementation, by_key, ...) \
	ADVISORY_SQL_NAME_FUNCTIONS(advisory_##verb, implementation, ##__VA_ARGS__); \
	ADVISORY_SQL_FUNCTION(advisory_##verb##_key, implementation<by_key, ##__VA_ARGS__>)

/* The same in both modes. */
#define ADVISORY_SQL_MODE_FUNCTIONS(verb, implementation, by_key, ...) \
	ADVISORY_SQL_FUNCTIONS(verb, implementation, by_key, Mode::exclusive, ##__VA_ARGS__); \
	ADVISORY_SQL_FUNCTIONS(verb##_shared, implementation, by_key, Mode::shared, ##__VA_ARGS__)

ADVISORY_SQL_MODE_FUNCTIONS(lock, lock, By::labelled_key, Scope::session, OnFailure::raise);
ADVISORY_SQL_MODE_FUNCTIONS(xact_lock, lock, By::labelled_key, Scope::transaction,
							OnFailure::raise);
ADVISORY_SQL_MODE_FUNCTIONS(try_lock, lock, By::labelled_key, Scope::session, OnFailure::say);
ADVISORY_SQL_MODE_FUNCTIONS(try_xact_lock, lock, By::labelled_key, Scope::transaction,
							OnFailure::say);
ADVISORY_SQL_MODE_FUNCTIONS(await_lock, await, By::labelled_key);
ADVISORY_SQL_MODE_FUNCTIONS(unlock, unlock, By::key);
ADVISORY_SQL_FUNCTIONS(holds, holds, By::key);
ADVISORY_SQL_FUNCTIONS(is_locked, is_locked, By::key);
ADVISORY_SQL_FUNCTIONS(holders, holders, By::key);
ADVISORY_SQL_FUNCTIONS(terminate_holder, terminate, By::key);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_hold_count, hold_count);
ADVISORY_SQL_FUNCTION(advisory_key_name, key_of_name_alone);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_key, key_of_lock);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_acquire, acquire, Scope::session, OnFailure::raise);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_xact_acquire, acquire, Scope::transaction, OnFailure::raise);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_try_acquire, acquire, Scope::session, OnFailure::say);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_try_xact_acquire, acquire, Scope::transaction, OnFailure::say);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_await_acquire, await_acquire);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_acquire_many, acquire_many, Scope::session, OnFailure::raise);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_xact_acquire_many, acquire_many, Scope::transaction,
							OnFailure::raise);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_try_acquire_many, acquire_many, Scope::session,
							OnFailure::say);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_try_xact_acquire_many, acquire_many, Scope::transaction,
							OnFailure::say);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_release, release);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_release_many, release_many);

}								/* namespace advisory */
