/*
 * core/many.cpp
 *		Taking several locks at once.
 */
#include "base/pg.h"

#include "base/errors.h"
#include "core/errors.h"
#include "core/held.h"
#include "core/many.h"

namespace advisory
{

/* Undo one grant of this call; only for session-level locks. */
static void
take_back(const LockName &name, Mode mode)
{
	LOCKTAG		tag = lock_tag(MyDatabaseId, name.key);

	release_session_lock(tag, mode);
	held_remove(held_find(tag, mode), 1, name.by_name());
}

static int
compare_keys(const void *a, const void *b) noexcept
{
	int64		key_a = static_cast<const LockName *>(a)->key.value;
	int64		key_b = static_cast<const LockName *>(b)->key.value;

	return key_a < key_b ? -1 : key_a > key_b;
}

/* A copy in the order of the keys, each once; palloc'd. */
static LockNames
in_key_order(const LockNames &names)
{
	LockNames	sorted = names;
	int			kept = 0;

	sorted.locks = static_cast<LockName *>(palloc(sizeof(LockName) * names.count));
	memcpy(static_cast<void *>(sorted.locks), names.locks, sizeof(LockName) * names.count);
	qsort(sorted.locks, sorted.count, sizeof(LockName), compare_keys);
	for (int i = 0; i < sorted.count; i++)
	{
		if (kept == 0 || !(sorted.locks[i].key == sorted.locks[kept - 1].key))
			sorted.locks[kept++] = sorted.locks[i];
	}
	sorted.count = kept;
	return sorted;
}

namespace
{

/* What came of taking several locks. */
struct TakenAll
{
	int			taken;			/* how many, from the front */
	Outcome		outcome;		/* of the last that was asked for */
};

}								/* anonymous namespace */

/*
 * Take the locks in their order, up to the first that is not to be had.  result
 * counts along, for who has to undo when this raises an error; that says nothing
 * of what the session still holds.
 */
static void
take_in_order(const LockNames &names, Mode mode, Scope scope, Timeout timeout, volatile TakenAll *result)
{
	Deadline	deadline(timeout);

	while (result->taken < names.count)
	{
		ErrorData  *error;
		Outcome		outcome = lock_take_or_hand_over(LockRequest{names.locks[result->taken], mode, scope},
													 deadline.remaining(), nullptr, &error);

		if (error != nullptr)
			ReThrowError(error);
		result->outcome = outcome;
		if (outcome != Outcome::granted)
			return;
		result->taken = result->taken + 1;
	}
}

static void
take_back_first(const LockName *locks, Mode mode, int taken)
{
	for (int i = taken - 1; i >= 0; i--)
		take_back(locks[i], mode);
}

/* All session-level locks or none. */
static void
take_all_session(const LockNames &names, Mode mode, Timeout timeout, volatile TakenAll *result)
{
	MemoryContext callers_context = CurrentMemoryContext;

	PG_TRY();
	{
		take_in_order(names, mode, Scope::session, timeout, result);
	}
	PG_CATCH();
	{
		/* As after a wait: first that, then what takes memory. */
		LWLockReleaseAll();
		take_back_first(names.locks, mode, result->taken);
		raise_wait_error(catch_error(callers_context));
	}
	PG_END_TRY();

	if (result->taken < names.count)
		take_back_first(names.locks, mode, result->taken);
}

/*
 * The same for transaction-level locks: an internal subtransaction releases
 * those that were taken when one is not to be had.
 */
static void
take_all_transaction(const LockNames &names, Mode mode, Timeout timeout, volatile TakenAll *result)
{
	Subtransaction subtransaction;

	PG_TRY();
	{
		take_in_order(names, mode, Scope::transaction, timeout, result);
		if (result->taken == names.count)
			subtransaction.release();
		else
			subtransaction.roll_back();
	}
	PG_CATCH();
	{
		raise_wait_error(subtransaction.roll_back_error());
	}
	PG_END_TRY();
}

/* All of them (sorted) or none; how many were taken, and what stopped it. */
static TakenAll
take_all(const LockNames &sorted, Mode mode, Scope scope, Timeout timeout)
{
	volatile TakenAll result = {0, Outcome::granted};

	if (scope == Scope::session)
		take_all_session(sorted, mode, timeout, &result);
	else
		take_all_transaction(sorted, mode, timeout, &result);
	return TakenAll{result.taken, result.outcome};
}

bool
lock_try_all(const LockNames &names, Mode mode, Scope scope, Timeout timeout)
{
	return take_all(in_key_order(names), mode, scope, timeout).outcome == Outcome::granted;
}

void
lock_must_all(const LockNames &names, Mode mode, Scope scope, Timeout timeout)
{
	LockNames	sorted = in_key_order(names);
	TakenAll	result = take_all(sorted, mode, scope, timeout);

	if (result.outcome != Outcome::granted)
		raise_not_available(LockRequest{sorted.locks[result.taken], mode, scope}, result.outcome, timeout);
}

/* Was this key already looked at, further ahead in the list? */
static bool *
find_repeats(const LockNames &names)
{
	auto	   *repeats = static_cast<bool *>(palloc0(sizeof(bool) * Max(names.count, 1)));
	HASHCTL		control = {};
	HTAB	   *seen;

	control.keysize = sizeof(int64);
	control.entrysize = sizeof(int64);
	control.hcxt = CurrentMemoryContext;
	seen = hash_create("advisory_ext names", Max(names.count, 1), &control,
					   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	for (int i = 0; i < names.count; i++)
		hash_search(seen, &names.locks[i].key.value, HASH_ENTER, &repeats[i]);
	hash_destroy(seen);
	return repeats;
}

void
lock_try_any(const LockNames &names, Mode mode, Scope scope, int wanted,
			 void (*report) (int index, void *argument), void *argument)
{
	bool	   *repeats = find_repeats(names);
	auto	   *taken = static_cast<LockName *>(palloc(sizeof(LockName) * Max(Min(wanted, names.count), 1)));
	volatile int taken_count = 0;

	PG_TRY();
	{
		for (int i = 0; i < names.count && taken_count < wanted; i++)
		{
			CHECK_FOR_INTERRUPTS();
			if (repeats[i] ||
				!lock_try(LockRequest{names.locks[i], mode, scope}, Timeout::immediate()))
				continue;
			taken[taken_count] = names.locks[i];
			taken_count++;
			report(i, argument);
		}
	}
	PG_CATCH();
	{
		if (scope == Scope::session)
			take_back_first(taken, mode, taken_count);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

}								/* namespace advisory */
