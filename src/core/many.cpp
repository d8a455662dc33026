/*
 * core/many.cpp
 *		Taking several locks at once.
 */
#include "base/pg.h"

extern "C" {
#include "lib/qunique.h"
#include "storage/lock.h"
#include "utils/hsearch.h"
}

#include "base/errors.h"
#include "core/errors.h"
#include "core/held.h"
#include "core/many.h"
#include "core/release.h"

namespace advisory
{

/* Release one session-level hold of each of these locks, which were just taken. */
static void
take_back(const LockName *locks, Mode mode, int taken)
{
	for (int i = taken - 1; i >= 0; i--)
	{
		LOCKTAG		tag = lock_tag(MyDatabaseId, locks[i].key);

		release_session_lock(tag, mode);
		held_remove(held_find(tag, mode), 1, locks[i].by_name());
	}
}

/* A copy in the order of the keys, each once; palloc'd. */
static LockNames
in_key_order(const LockNames &names)
{
	static constexpr auto compare_keys = [](const void *a, const void *b) {
		int64		key_a = static_cast<const LockName *>(a)->key.value;
		int64		key_b = static_cast<const LockName *>(b)->key.value;

		return key_a < key_b ? -1 : static_cast<int>(key_a > key_b);
	};
	LockNames	sorted = names;

	sorted.locks = static_cast<LockName *>(palloc(sizeof(LockName) * names.count));
	/* A string_view is trivially copyable. */
	// cppcheck-suppress memsetClass
	memcpy(static_cast<void *>(sorted.locks), names.locks, sizeof(LockName) * names.count);
	qsort(sorted.locks, names.count, sizeof(LockName), compare_keys);
	sorted.count = static_cast<int>(qunique(sorted.locks, names.count, sizeof(LockName), compare_keys));
	return sorted;
}

/*
 * Take the locks in their order: all of them or none.  Returns the outcome of the last request;
 * *last is its number.  If that lock cannot be obtained, the rollback of an internal
 * subtransaction releases transaction-level locks.
 */
static Outcome
take_all(const LockNames &sorted, Mode mode, Scope scope, Timeout timeout, int *last)
{
	MemoryContext callers_context = CurrentMemoryContext;
	Deadline	deadline(timeout);
	volatile int taken = 0;
	volatile Outcome outcome = Outcome::granted;
	Subtransaction subtransaction;

	PG_TRY();
	{
		while (taken < sorted.count && outcome == Outcome::granted)
		{
			ErrorData  *error;

			outcome = lock_take_or_hand_over(LockRequest{sorted.locks[taken], mode, scope},
											 deadline.remaining(), nullptr, &error);
			if (error != nullptr)
				ReThrowError(error);
			taken = taken + (outcome == Outcome::granted);
		}
		if (outcome == Outcome::granted)
			subtransaction.release();
		else
			subtransaction.roll_back();
	}
	PG_CATCH();
	{
		/* Release the locks first, because the rest needs memory. */
		subtransaction.roll_back();
		if (scope == Scope::session)
			take_back(sorted.locks, mode, taken);
		raise_wait_error(catch_error(callers_context));
	}
	PG_END_TRY();

	if (outcome != Outcome::granted && scope == Scope::session)
		take_back(sorted.locks, mode, taken);
	*last = taken;
	return outcome;
}

bool
lock_try_all(const LockNames &names, Mode mode, Scope scope, Timeout timeout)
{
	int			last;

	return take_all(in_key_order(names), mode, scope, timeout, &last) == Outcome::granted;
}

void
lock_must_all(const LockNames &names, Mode mode, Scope scope, Timeout timeout)
{
	LockNames	sorted = in_key_order(names);
	int			last;
	Outcome		outcome = take_all(sorted, mode, scope, timeout, &last);

	if (outcome != Outcome::granted)
		raise_not_available(LockRequest{sorted.locks[last], mode, scope}, outcome, timeout);
}

void
lock_try_any(const LockNames &names, Mode mode, Scope scope, int slots, int wanted,
			 void (*report) (int index, int slot, void *argument), void *argument)
{
	struct Taken
	{
		LockRequest request;
		int			slot;
	};
	auto	   *taken = static_cast<Taken *>(palloc(sizeof(Taken) * Max(Min(wanted, names.count), 1)));
	volatile int taken_count = 0;
	HASHCTL		control = {};
	HTAB	   *seen;

	control.keysize = sizeof(int64);
	control.entrysize = sizeof(int64);
	control.hcxt = CurrentMemoryContext;
	seen = hash_create("advisory_ext names", Max(names.count, 1), &control,
					   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	PG_TRY();
	{
		for (int i = 0; i < names.count && taken_count < wanted; i++)
		{
			LockRequest request = {names.locks[i], mode, scope, slots};
			bool		is_repeated;
			int			slot;

			CHECK_FOR_INTERRUPTS();
			hash_search(seen, &request.name.key.value, HASH_ENTER, &is_repeated);
			if (is_repeated || !lock_try(request, Timeout{0}, &slot))
				continue;
			taken[taken_count] = Taken{request, slot};
			taken_count = taken_count + 1;
			report(i, slot, argument);
		}
	}
	PG_CATCH();
	{
		for (int i = taken_count - 1; scope == Scope::session && i >= 0; i--)
			lock_give_up(taken[i].request, taken[i].slot);
		PG_RE_THROW();
	}
	PG_END_TRY();
	hash_destroy(seen);
}

}								/* namespace advisory */
