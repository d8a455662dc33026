/*
 * sql/many.cpp
 *		SQL: taking and releasing several locks at once.
 */
#include "base/pg.h"

#include "sql/args.h"
#include "core/acquire.h"
#include "core/deadlocks.h"
#include "core/held.h"
#include "core/notavailable.h"
#include "core/release.h"
#include "server/locallock.h"
#include "base/sqlfunction.h"
#include "shmem/sessiontable.h"

namespace advisory
{

/* ---- All or none ---- */

/*
 * Bring the locks into the order of their keys, each once, so that two such calls never wait for
 * each other.
 */
static void
sort_by_key(LockNames *names)
{
	LockName   *end = names->locks + names->count;

	std::sort(names->locks, end, [](const LockName &a, const LockName &b) {
		return a.key.value < b.key.value;
	});
	end = std::unique(names->locks, end, [](const LockName &a, const LockName &b) {
		return a.key == b.key;
	});
	names->count = static_cast<int>(end - names->locks);
}

/*
 * Take the locks in their order, within one timeout: all of them or none.  Returns the outcome of
 * the last request; *last is its number.  An error says which locks of this session survive it;
 * those that are released here do not.
 */
static Outcome
take_all(const LockNames &sorted, Scope scope, Timeout timeout, int *last)
{
	Deadline	deadline(timeout);
	auto	   *tags = static_cast<LOCKTAG *>(palloc_extended(sizeof(LOCKTAG) * (sorted.count + 1),
															  MCXT_ALLOC_HUGE));
	OwnLocks	own = {tags, 0};
	volatile int taken = 0;
	volatile Outcome outcome = Outcome::granted;

	auto		request = [&](int i) {
		return LockRequest{sorted.locks[i], Mode::exclusive, scope};
	};

	PG_TRY();
	{
		under_own_locks(&own, [&]() {
			while (taken < sorted.count && outcome == Outcome::granted)
			{
				tags[taken] = request(taken).tag();
				outcome = lock_take(request(taken), deadline.remaining());
				taken = taken + (outcome == Outcome::granted);
				own.count = scope == Scope::session ? taken : 0;
			}
		});
	}
	PG_FINALLY();
	{
		/* After an error the transaction releases its own. */
		bool		releases = taken < sorted.count &&
			(scope == Scope::session || outcome != Outcome::granted);

		for (int i = taken - 1; releases && i >= 0; i--)
			lock_give_up(request(i), NO_SLOT);
	}
	PG_END_TRY();
	*last = taken;
	return outcome;
}

template <ListForm form, Scope scope, OnFailure on_failure>
static Datum
lock_all(FunctionCallInfo fcinfo)
{
	LockNames	names = list_argument(fcinfo, form);
	Timeout		timeout = timeout_argument(fcinfo, 2);
	Outcome		outcome;
	int			last;

	check_scope(fcinfo, scope);
	sort_by_key(&names);
	outcome = take_all(names, scope, timeout, &last);
	if (on_failure == OnFailure::raise && outcome != Outcome::granted)
		raise_not_available(LockRequest{names.locks[last], Mode::exclusive, scope}, outcome,
							timeout);
	PG_RETURN_BOOL(outcome == Outcome::granted);
}

/* A request for one of this many slots of each semaphore; palloc'd. */
static LockRequest *
slot_requests(const LockNames &names, const List *slots, Scope scope)
{
	auto	   *requests =
		static_cast<LockRequest *>(palloc(sizeof(LockRequest) * (names.count + 1)));

	if (list_length(slots) != names.count)
		raise_invalid("the lists of names and of slots must have the same length");
	if (names.count > MAX_QUEUES)
		raise_invalid(psprintf("cannot take slots of more than %d semaphores at once", MAX_QUEUES));
	for (int i = 0; i < names.count; i++)
	{
		requests[i] = LockRequest{names.locks[i], Mode::exclusive, scope, list_nth_int(slots, i)};
		for (int j = 0; j < i; j++)
		{
			if (requests[j].name.key == requests[i].name.key)
				raise_invalid("a semaphore must not be in the list twice");
		}
	}
	return requests;
}

/* (namespace, names, slots, timeout) */
template <ListForm form, Scope scope, OnFailure on_failure>
static Datum
acquire_all(FunctionCallInfo fcinfo)
{
	LockNames	names = list_argument(fcinfo, form);
	LockRequest *requests = slot_requests(names, slots_argument(fcinfo, 2, "slots"), scope);
	Timeout		timeout = timeout_argument(fcinfo, 3);
	Outcome		outcome = Outcome::granted;
	int			lacking;

	check_scope(fcinfo, scope);

	/* Allocate the result before taking anything. */
	ArrayType  *result = construct_array(
		static_cast<Datum *>(palloc0(sizeof(Datum) * (names.count + 1))), names.count, INT4OID,
		sizeof(int32), true, TYPALIGN_INT);

	if (names.count > 0)
		outcome = slots_take_all(requests, names.count, timeout,
								 reinterpret_cast<int *>(ARR_DATA_PTR(result)), &lacking);
	if (outcome == Outcome::granted)
		PG_RETURN_ARRAYTYPE_P(result);
	if (on_failure == OnFailure::raise)
		raise_not_available(requests[lacking], outcome, timeout);
	PG_RETURN_NULL();
}

/* ---- Those that are free ---- */

/*
 * Take up to wanted of the locks that are free, in the given order, looking at each once; with
 * slots, one slot of each semaphore instead.  Puts a row into the result for each that it takes.
 * After an error, releases what it took for the session; the end of the transaction releases the
 * others.
 */
static void
take_any(const LockNames &names, Scope scope, int slots, int wanted, ReturnSetInfo *result)
{
	using Taken = std::pair<LockRequest, int>;	/* and its slot */
	auto	   *taken =
		static_cast<Taken *>(palloc(sizeof(Taken) * Max(Min(wanted, names.count), 1)));
	volatile int taken_count = 0;
	HTAB	   *seen = make_hash_table<Key, Key>("advisory_ext names", Max(names.count, 1));

	PG_TRY();
	{
		for (int i = 0; i < names.count && taken_count < wanted; i++)
		{
			LockRequest request = {names.locks[i], Mode::exclusive, scope, slots};
			bool		is_repeated;
			int			slot = NO_SLOT;
			Row			row;

			CHECK_FOR_INTERRUPTS();
			hash_search(seen, &request.name.key, HASH_ENTER, &is_repeated);
			if (is_repeated || lock_take(request, Timeout{0}, &slot) != Outcome::granted)
				continue;
			taken[taken_count] = {request, slot};
			taken_count = taken_count + 1;
			row.add(names.elements[i]);
			if (slots > 0)
				row.add_int32(slot);
			row.put(result);
		}
	}
	PG_CATCH();
	{
		for (int i = taken_count - 1; scope == Scope::session && i >= 0; i--)
			lock_give_up(taken[i].first, taken[i].second);
		PG_RE_THROW();
	}
	PG_END_TRY();
	hash_destroy(seen);
}

/* (namespace, names, wanted), or of slots (namespace, names, slots, wanted) */
template <ListForm form, Scope scope, bool of_slots>
static Datum
try_any(FunctionCallInfo fcinfo)
{
	LockNames	names = list_argument(fcinfo, form);
	int			slots = of_slots ? slot_number_argument(fcinfo, 2, "slots") : 0;
	int32		wanted = integer_argument(fcinfo, of_slots ? 3 : 2, "wanted");

	if (wanted < 1)
		raise_invalid("wanted must be at least 1");
	check_scope(fcinfo, scope);
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	take_any(names, scope, slots, wanted, reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo));
	return Datum(0);
}

/* ---- Releasing ---- */

/*
 * Does a name look like a list, in a form in which drivers send one without a type: {a,b}, ["a",
 * "b"] or a,b?  A comma beside a space does not count: it is in ordinary names.
 */
static bool
looks_like_list(std::string_view name) noexcept
{
	if (name.size() > 2 && ((name.front() == '{' && name.back() == '}') ||
							(name.front() == '[' && name.back() == ']')))
		return true;
	for (size_t i = 1; i + 1 < name.size(); i++)
		if (name[i] == ',' && name[i - 1] != ' ' && name[i + 1] != ' ')
			return true;
	return false;
}

template <By by>
static Datum
unlock_all_of_name(FunctionCallInfo fcinfo)
{
	LockName	name = lock_argument(fcinfo, by);
	int64		released = lock_release_all(name);

	/*
	 * An untyped list becomes one name here.  In a finally block nobody would notice that.  An
	 * empty one releases nothing either way.
	 */
	if (released == 0 && looks_like_list(name.name) &&
		!is_held_by_me(lock_tag(MyDatabaseId, name.key)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("this session does not hold an advisory lock of that name, which looks "
						"like a list"),
				 errhint("To release a list of locks, cast it: "
						 "unlock_all(namespace, list::text[]).")));
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
	PG_RETURN_INT32(
		static_cast<int32>(lock_release_namespace(text_argument(fcinfo, 0, "namespace"))));
}

#define ADVISORY_SQL_LIST_FUNCTIONS(symbol, implementation, ...) \
	ADVISORY_SQL_FUNCTION(symbol, implementation<ListForm::array, __VA_ARGS__>); \
	ADVISORY_SQL_FUNCTION(symbol##_literal, implementation<ListForm::literal, __VA_ARGS__>)

ADVISORY_SQL_LIST_FUNCTIONS(advisory_lock_all, lock_all, Scope::session, OnFailure::raise);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_xact_lock_all, lock_all, Scope::transaction, OnFailure::raise);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_lock_all, lock_all, Scope::session, OnFailure::say);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_xact_lock_all, lock_all, Scope::transaction,
							OnFailure::say);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_acquire_all, acquire_all, Scope::session, OnFailure::raise);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_xact_acquire_all, acquire_all, Scope::transaction,
							OnFailure::raise);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_acquire_all, acquire_all, Scope::session, OnFailure::say);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_xact_acquire_all, acquire_all, Scope::transaction,
							OnFailure::say);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_lock_any, try_any, Scope::session, false);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_xact_lock_any, try_any, Scope::transaction, false);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_acquire_any, try_any, Scope::session, true);
ADVISORY_SQL_LIST_FUNCTIONS(advisory_try_xact_acquire_any, try_any, Scope::transaction, true);
ADVISORY_SQL_NAME_FUNCTIONS(advisory_unlock_all, unlock_all_of_name);
ADVISORY_SQL_FUNCTION(advisory_unlock_all_names, unlock_all_of_names);
ADVISORY_SQL_FUNCTION(advisory_unlock_all_namespace, unlock_all_of_namespace);

}								/* namespace advisory */
