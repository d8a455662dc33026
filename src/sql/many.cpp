/*
 * sql/many.cpp
 *		SQL: taking and releasing several locks at once.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "sql/scope.h"
#include "core/many.h"
#include "core/release.h"
#include "server/locallock.h"
#include "base/sqlfunction.h"
#include "base/srf.h"

namespace advisory
{

template <ListForm form, Scope scope, OnFailure on_failure>
static Datum
lock_all(FunctionCallInfo fcinfo)
{
	LockNames	names = list_argument(fcinfo, form);
	Timeout		timeout = timeout_argument(fcinfo, 2);

	check_scope(fcinfo, scope);
	if (on_failure == OnFailure::say)
		PG_RETURN_BOOL(lock_try_all(names, Mode::exclusive, scope, timeout));
	lock_must_all(names, Mode::exclusive, scope, timeout);
	PG_RETURN_BOOL(true);
}

/* (namespace, names, wanted), or of slots (namespace, names, slots, wanted) */
template <ListForm form, Scope scope, bool of_slots>
static Datum
try_any(FunctionCallInfo fcinfo)
{
	struct Report
	{
		const LockNames *names;
		ReturnSetInfo *result;
	};
	LockNames	names = list_argument(fcinfo, form);
	int			slots = of_slots ? slot_number_argument(fcinfo, 2, "slots") : 0;
	int32		wanted = integer_argument(fcinfo, of_slots ? 3 : 2, "wanted");

	if (wanted < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("wanted must be at least 1")));
	check_scope(fcinfo, scope);
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);

	Report		report = {&names, reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo)};

	lock_try_any(names, Mode::exclusive, scope, slots, wanted, [](int index, int slot, void *argument) {
		auto	   *to = static_cast<Report *>(argument);
		Row			row;

		row.add(to->names->elements[index]);
		if (of_slots)
			row.add_int32(slot);
		row.put(to->result);
	}, &report);
	return Datum(0);
}

template <By by>
static Datum
unlock_all_of_name(FunctionCallInfo fcinfo)
{
	LockName	name = lock_argument(fcinfo, by);
	int64		released = lock_release_all(name);

	/* An untyped list becomes one name here.  In a finally block nobody would notice that.  An empty one releases nothing either way. */
	if (released == 0 && name.name.size() > 2 && name.name.front() == '{' && name.name.back() == '}' &&
		!is_held_by_me(lock_tag(MyDatabaseId, name.key)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("this session does not hold an advisory lock of that name, which looks like a list"),
				 errhint("To release a list of locks, cast it: unlock_all(namespace, list::text[]).")));
	PG_RETURN_INT32(static_cast<int32>(released));
}

static Datum
unlock_all_of_names(FunctionCallInfo fcinfo)
{
	LockNames	names = list_argument(fcinfo, ListForm::array);
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
	ADVISORY_SQL_FUNCTION(symbol, implementation<ListForm::array, __VA_ARGS__>); \
	ADVISORY_SQL_FUNCTION(symbol##_literal, implementation<ListForm::literal, __VA_ARGS__>)

ADVISORY_SQL_LIST_FUNCTIONS(advisory_lock_all, lock_all, Scope::session, OnFailure::raise);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_xact_lock_all, lock_all, Scope::transaction, OnFailure::raise);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_lock_all, lock_all, Scope::session, OnFailure::say);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_xact_lock_all, lock_all, Scope::transaction, OnFailure::say);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_lock_any, try_any, Scope::session, false);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_xact_lock_any, try_any, Scope::transaction, false);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_acquire_any, try_any, Scope::session, true);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_xact_acquire_any, try_any, Scope::transaction, true);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_unlock_all, unlock_all_of_name);
ADVISORY_SQL_FUNCTION(advisory_unlock_all_names, unlock_all_of_names);
ADVISORY_SQL_FUNCTION(advisory_unlock_all_namespace, unlock_all_of_namespace);

}								/* namespace advisory */
