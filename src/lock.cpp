/*
 * lock.cpp
 *		Taking and releasing named advisory locks.
 *
 * How a wait ends
 *
 * A lock that is free is taken without waiting, and nothing else happens.
 * Otherwise the wait runs in an internal subtransaction with lock_timeout set
 * to the shorter of the caller's and ours, so that the lock manager itself
 * queues, detects deadlocks, logs, and ends the wait.  Rolling the
 * subtransaction back after an error makes the transaction usable again.
 *
 * The grant can land before the waiter handles its timeout or cancel.  The lock
 * manager then keeps the lock and raises the error all the same.  Rolling the
 * subtransaction back releases a transaction-level lock; a session-level one
 * stays, so it is looked for after every error: the wait's own timeout then
 * counts as granted, anything else releases the lock.  This is exact, since a
 * mode that the session already holds never waits.
 */
#include "pg.h"

#include "compat.h"
#include "guc.h"
#include "holders.h"
#include "holds.h"
#include "lock.h"

namespace advisory
{

static LockAcquireResult
acquire(const LockRequest &request, bool dont_wait)
{
	LOCKTAG		tag = request.tag();

	return LockAcquire(&tag, lockmode_of(request.mode), request.scope == Scope::session, dont_wait);
}

/* Error context while a session waits. */
static void
add_wait_context(void *argument)
{
	const auto *request = static_cast<const LockRequest *>(argument);

	errcontext("while waiting for advisory lock \"%s\" in %s mode",
			   display_name(request->name), mode_name(request->mode));
}

/* The shorter of the user's lock_timeout and ours, in milliseconds; 0 is none. */
static int
effective_lock_timeout(Timeout timeout) noexcept
{
	if (timeout.is_forever())
		return LockTimeout;
	if (LockTimeout > 0)
		return Min(LockTimeout, timeout.milliseconds());
	return timeout.milliseconds();
}

/* A deadlock's victim keeps its session-level locks; say so. */
static void
add_survivors_hint(ErrorData *error)
{
	int			count;
	Key		   *keys = hold_session_keys(nullptr, &count);

	if (count == 0)
		return;

	LockName	survivor = hold_name(hold_find(keys[0]));
	char	   *shown = display_name(survivor);
	char	   *hint;

	if (count == 1)
		hint = psprintf("This session still holds session-level advisory lock \"%s\", which an error does not release.",
						shown);
	else
		hint = psprintf("This session still holds %d session-level advisory locks, such as \"%s\", which an error does not release.",
						count, shown);
	error->hint = error->hint == nullptr ? hint : psprintf("%s\n%s", error->hint, hint);
}

/*
 * Wait for the lock in an internal subtransaction.  Returns null if it was
 * granted there, otherwise the error that ended the wait, in the caller's
 * memory context.
 */
static ErrorData *
wait_in_subtransaction(const LockRequest &request, Timeout timeout)
{
	MemoryContext callers_context = CurrentMemoryContext;
	ResourceOwner callers_owner = CurrentResourceOwner;
	int			users_lock_timeout = LockTimeout;
	ErrorData  *volatile error = nullptr;
	ErrorContextCallback context;

	context.callback = add_wait_context;
	context.arg = const_cast<LockRequest *>(&request);
	context.previous = error_context_stack;

	BeginInternalSubTransaction(nullptr);
	MemoryContextSwitchTo(callers_context);

	PG_TRY();
	{
		error_context_stack = &context;
		LockTimeout = effective_lock_timeout(timeout);
		acquire(request, false);
		LockTimeout = users_lock_timeout;
		error_context_stack = context.previous;

		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		LockTimeout = users_lock_timeout;
		MemoryContextSwitchTo(callers_context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();

	MemoryContextSwitchTo(callers_context);
	CurrentResourceOwner = callers_owner;
	return error;
}

/* After an error out of a wait: was the lock granted all the same? */
static bool
survived(const LockRequest &request)
{
	LOCKTAG		tag = request.tag();

	return request.scope == Scope::session &&
		compat::lock_held_by_me(&tag, lockmode_of(request.mode));
}

/* Raise the error that ended a wait, once everything is released that has to be. */
[[noreturn]] static void
raise_wait_error(ErrorData *error)
{
	if (error->sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED)
		add_survivors_hint(error);
	ReThrowError(error);
	pg_unreachable();
}

/* Wait, and say what came of it: granted, timed out (false), or *error to be raised. */
static bool
wait_for_grant(const LockRequest &request, Timeout timeout, ErrorData **error)
{
	ErrorData  *ended_by = wait_in_subtransaction(request, timeout);

	if (ended_by == nullptr)
		return true;

	if (ended_by->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE)
	{
		FreeErrorData(ended_by);
		return survived(request);
	}

	if (survived(request))
	{
		LOCKTAG		tag = request.tag();

		LockRelease(&tag, lockmode_of(request.mode), true);
	}
	*error = ended_by;
	return false;
}

/* As lock_try, but hands over the error that ended the wait. */
static bool
take(const LockRequest &request, Timeout timeout, ErrorData **error)
{
	Hold	   *hold = hold_open(request.name, request.scope);
	bool		granted = acquire(request, true) != LOCKACQUIRE_NOT_AVAIL;

	if (!granted && !timeout.is_immediate())
		granted = wait_for_grant(request, timeout, error);

	if (granted)
		hold_granted(hold, request.mode, request.scope);
	else
		hold_close(hold);
	return granted;
}

bool
lock_try(const LockRequest &request, Timeout timeout)
{
	ErrorData  *error = nullptr;
	bool		granted = take(request, timeout, &error);

	if (error != nullptr)
		raise_wait_error(error);
	return granted;
}

/* "within 250 ms", "within 5 s" */
static char *
format_limit(int milliseconds)
{
	if (milliseconds % 1000 == 0)
		return psprintf("%d s", milliseconds / 1000);
	return psprintf("%d ms", milliseconds);
}

/* Fields that a program finds the lock by. */
static int
set_lock_fields(const LockName &name)
{
	if (name.by_name())
		err_generic_string(PG_DIAG_SCHEMA_NAME, to_cstring(name.ns));
	if (name.has_name())
		err_generic_string(PG_DIAG_CONSTRAINT_NAME, to_cstring(name.name));
	else
		err_generic_string(PG_DIAG_CONSTRAINT_NAME, display_name(name));
	return 0;
}

static int
set_look_hint(const LockName &name)
{
	char	   *arguments = call_arguments(name);
	const char *suffix = name.by_name() ? "" : "_key";

	if (arguments == nullptr)
		return errhint("To see who holds it: SELECT * FROM advisory.locks WHERE key = " INT64_FORMAT ".",
					   name.key.value);
	if (!name.by_name())
		return errhint("To see who holds it: SELECT * FROM advisory.holders%s(%s).", suffix, arguments);
	return errhint("To see who holds it: SELECT * FROM advisory.holders(%s). "
				   "To end a holder's session: SELECT advisory.terminate_holder(%s, pid).",
				   arguments, arguments);
}

static int
set_blockers_detail(const char *blockers)
{
	return blockers != nullptr ? errdetail("%s", blockers) : 0;
}

[[noreturn]] void
lock_raise_not_available(const LockRequest &request, Timeout limit)
{
	char	   *blockers = describe_blockers(request.name, request.mode);
	char	   *shown = display_name(request.name);

	if (limit.is_immediate())
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("could not obtain advisory lock \"%s\" without waiting", shown),
				 set_blockers_detail(blockers),
				 set_look_hint(request.name),
				 set_lock_fields(request.name)));

	int			waited = effective_lock_timeout(limit);
	bool		by_lock_timeout = limit.is_forever() || waited < limit.milliseconds();

	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 by_lock_timeout
			 ? errmsg("could not obtain advisory lock \"%s\" within lock_timeout of %s", shown, format_limit(waited))
			 : errmsg("could not obtain advisory lock \"%s\" within %s", shown, format_limit(waited)),
			 set_blockers_detail(blockers),
			 set_look_hint(request.name),
			 set_lock_fields(request.name)));
	pg_unreachable();
}

void
lock_must(const LockRequest &request, Timeout timeout)
{
	if (!lock_try(request, timeout))
		lock_raise_not_available(request, timeout);
}

/* Undo one grant of this call; only for session-level locks. */
static void
take_back(const LockName &name, Mode mode)
{
	LOCKTAG		tag = lock_tag(MyDatabaseId, name.key);

	LockRelease(&tag, lockmode_of(mode), true);
	hold_released(name.key, mode, Scope::session, 1);
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

/*
 * Take the locks in their order.  Returns the index of the first that was not
 * to be had, or their number.  *taken counts along, for who has to undo; it
 * raises what ended a wait without looking at what this session still holds.
 */
static int
take_in_order(const LockNames &names, Mode mode, Scope scope, Timeout timeout, volatile int *taken)
{
	Deadline	deadline(timeout);

	for (int i = 0; i < names.count; i++)
	{
		ErrorData  *error = nullptr;

		if (take(LockRequest{names.locks[i], mode, scope}, deadline.remaining(), &error))
			(*taken)++;
		else if (error == nullptr)
			return i;
		else
			ReThrowError(error);
	}
	return names.count;
}

static void
take_back_first(const LockNames &names, Mode mode, int taken)
{
	for (int i = taken - 1; i >= 0; i--)
		take_back(names.locks[i], mode);
}

/* All session-level locks or none; -1 for all, or the index of the one that was not to be had. */
static int
take_all_session(const LockNames &names, Mode mode, Timeout timeout)
{
	MemoryContext callers_context = CurrentMemoryContext;
	volatile int taken = 0;
	int			missing;

	PG_TRY();
	{
		missing = take_in_order(names, mode, Scope::session, timeout, &taken);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(callers_context);
		error = CopyErrorData();
		FlushErrorState();
		take_back_first(names, mode, taken);
		raise_wait_error(error);
	}
	PG_END_TRY();

	if (missing == names.count)
		return -1;
	take_back_first(names, mode, taken);
	return missing;
}

/*
 * The same for transaction-level locks: an internal subtransaction releases those that
 * were taken when one is not to be had.
 */
static int
take_all_transaction(const LockNames &names, Mode mode, Timeout timeout)
{
	MemoryContext callers_context = CurrentMemoryContext;
	ResourceOwner callers_owner = CurrentResourceOwner;
	volatile int taken = 0;
	volatile int missing = -1;

	BeginInternalSubTransaction(nullptr);
	MemoryContextSwitchTo(callers_context);

	PG_TRY();
	{
		missing = take_in_order(names, mode, Scope::transaction, timeout, &taken);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(callers_context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(callers_context);
		CurrentResourceOwner = callers_owner;
		raise_wait_error(error);
	}
	PG_END_TRY();

	if (missing == names.count)
		ReleaseCurrentSubTransaction();
	else
		RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(callers_context);
	CurrentResourceOwner = callers_owner;
	return missing == names.count ? -1 : missing;
}

static int
take_all(const LockNames &sorted, Mode mode, Scope scope, Timeout timeout)
{
	return scope == Scope::session
		? take_all_session(sorted, mode, timeout)
		: take_all_transaction(sorted, mode, timeout);
}

bool
lock_try_all(const LockNames &names, Mode mode, Scope scope, Timeout timeout)
{
	return take_all(in_key_order(names), mode, scope, timeout) < 0;
}

void
lock_must_all(const LockNames &names, Mode mode, Scope scope, Timeout timeout)
{
	LockNames	sorted = in_key_order(names);
	int			missing = take_all(sorted, mode, scope, timeout);

	if (missing >= 0)
		lock_raise_not_available(LockRequest{sorted.locks[missing], mode, scope}, timeout);
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
		{
			for (int i = taken_count - 1; i >= 0; i--)
				take_back(taken[i], mode);
		}
		PG_RE_THROW();
	}
	PG_END_TRY();
}

static bool
holds_for_transaction(const LOCKTAG &tag)
{
	for (Mode mode : ALL_MODES)
	{
		if (lock_counts(tag, mode).transaction > 0)
			return true;
	}
	return false;
}

/* Why a release was in vain, as far as it can be told. */
static int
set_vain_release_detail(const LOCKTAG &tag, Mode mode)
{
	Mode		other = mode == Mode::exclusive ? Mode::shared : Mode::exclusive;

	if (lock_counts(tag, other).session > 0)
		return errdetail("This session holds it in %s mode.", mode_name(other));
	if (holds_for_transaction(tag))
		return errdetail("This session holds it until the end of the transaction.");
	return 0;
}

bool
lock_release(const LockName &name, Mode mode)
{
	LOCKTAG		tag = lock_tag(MyDatabaseId, name.key);

	if (lock_counts(tag, mode).session == 0)
	{
		ereport(WARNING,
				(errmsg("you don't own a lock of type %s on \"%s\"",
						mode == Mode::exclusive ? "ExclusiveLock" : "ShareLock",
						display_name(name)),
				 set_vain_release_detail(tag, mode),
				 set_lock_fields(name)));
		return false;
	}
	LockRelease(&tag, lockmode_of(mode), true);
	hold_released(name.key, mode, Scope::session, 1);
	return true;
}

static int64
release_holds(Key key, Mode mode, int64 count)
{
	LOCKTAG		tag = lock_tag(MyDatabaseId, key);

	for (int64 i = 0; i < count; i++)
		LockRelease(&tag, lockmode_of(mode), true);
	hold_released(key, mode, Scope::session, count);
	return count;
}

int64
lock_release_all(Key key)
{
	LOCKTAG		tag = lock_tag(MyDatabaseId, key);
	int64		released = 0;

	for (Mode mode : ALL_MODES)
		released += release_holds(key, mode, lock_counts(tag, mode).session);
	return released;
}

int64
lock_release_namespace(std::string_view ns)
{
	int			count;
	Key		   *keys = hold_session_keys(&ns, &count);
	int64		released = 0;

	for (int i = 0; i < count; i++)
	{
		for (Mode mode : ALL_MODES)
		{
			const Hold *hold = hold_find(keys[i]);

			if (hold != nullptr)
				released += release_holds(keys[i], mode, hold_count(hold, mode, Scope::session));
		}
	}
	return released;
}

bool
lock_is_mine(Key key)
{
	LOCKTAG		tag = lock_tag(MyDatabaseId, key);

	for (Mode mode : ALL_MODES)
	{
		if (compat::lock_held_by_me(&tag, lockmode_of(mode)))
			return true;
	}
	return false;
}

int64
lock_my_count(Key key)
{
	const Hold *hold = hold_find(key);
	int64		total = 0;

	if (hold == nullptr)
		return 0;
	for (Mode mode : ALL_MODES)
	{
		total += hold_count(hold, mode, Scope::session);
		total += hold_count(hold, mode, Scope::transaction);
	}
	return total;
}

/* try_lock -> try_xact_lock, await_lock -> xact_lock, lock_shared -> xact_lock_shared */
static char *
transaction_level_name(const char *function)
{
	static constexpr char TRY[] = "try_";
	static constexpr char AWAIT[] = "await_";

	if (strncmp(function, TRY, strlen(TRY)) == 0)
		return psprintf("try_xact_%s", function + strlen(TRY));
	if (strncmp(function, AWAIT, strlen(AWAIT)) == 0)
		return psprintf("xact_%s", function + strlen(AWAIT));
	return psprintf("xact_%s", function);
}

void
check_session_locks(FunctionCallInfo fcinfo)
{
	SessionLocks allowed = session_locks_setting();

	if (allowed == SessionLocks::on)
		return;

	char	   *function = get_func_name(fcinfo->flinfo->fn_oid);

	ereport(allowed == SessionLocks::off ? ERROR : WARNING,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 allowed == SessionLocks::off
			 ? errmsg("session-level advisory locks are turned off by \"advisory_ext.session_locks\"")
			 : errmsg("session-level advisory lock taken with \"advisory_ext.session_locks\" set to \"warn\""),
			 errdetail("Behind a transaction pooler a session-level lock outlives the client that took it."),
			 errhint("Use advisory.%s() instead.", transaction_level_name(function))));
}

}								/* namespace advisory */
