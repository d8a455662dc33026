/*
 * core/lock.cpp
 *		Taking and releasing named advisory locks.
 *
 * How a wait ends
 *
 * A lock that is free is taken without waiting, and nothing else happens.
 * Otherwise the lock manager itself queues, detects deadlocks, logs, and ends
 * the wait.  Where a timeout may end it, the wait runs in an internal
 * subtransaction with lock_timeout set to the shorter of the caller's and ours;
 * rolling that back makes the transaction usable again.  Where none can, there
 * is no subtransaction: every error is passed on, and a standby could not cancel
 * the query without ending the session.
 *
 * The grant can land before the waiter handles its timeout or cancel.  The lock
 * manager then keeps the lock and raises the error all the same, or even returns
 * with the interrupt still pending, which is why it is looked for at once.
 * Rolling the subtransaction back releases a transaction-level lock; a
 * session-level one stays, so the lock manager is asked for it after every
 * error: the wait's own timeout then counts as granted, anything else releases
 * the lock.  This is exact, since a mode that the session already holds never
 * waits.
 */
#include "base/pg.h"

#include "base/compat.h"
#include "base/guc.h"
#include "core/errors.h"
#include "core/held.h"
#include "core/lock.h"
#include "server/locktable.h"
#include "core/visiblename.h"
#include "core/poolguard.h"
#include "shmem/published.h"
#include "shmem/waiters.h"
#include "core/semaphore.h"
#include "base/errors.h"

namespace advisory
{

namespace
{

/* An attempt to have a lock, or a slot. */
struct Attempt
{
	LockRequest request;
	Hold	   *hold = nullptr;
	Semaphore  *semaphore = nullptr;	/* stays null for a lock */
	int			slot = NO_SLOT; /* that was taken */
};

}								/* anonymous namespace */

static const PassingLock *passing_locks = nullptr;

static LockAcquireResult
acquire(const LockRequest &request, bool dont_wait)
{
	LOCKTAG		tag = request.tag();

	return LockAcquire(&tag, lockmode_of(request.mode), request.scope == Scope::session, dont_wait);
}

/* Have it without waiting, if possible. */
static bool
grab(Attempt *attempt)
{
	const LockRequest &request = attempt->request;

	if (!request.is_for_slot())
		return acquire(request, true) != LOCKACQUIRE_NOT_AVAIL;
	attempt->slot = semaphore_try(attempt->semaphore, request.slots, request.scope);
	return attempt->slot != NO_SLOT;
}

/* Give up one session-level hold that is known to be there. */
static void
release_one(const LOCKTAG &tag, Mode mode)
{
	LockRelease(&tag, lockmode_of(mode), true);
}

/* What the session has taken here, if it is session-level. */
static void
release_taken(const Attempt &attempt)
{
	const LockRequest &request = attempt.request;

	if (request.is_for_slot())
		semaphore_release(request.name.key, attempt.slot);
	else
		release_one(request.tag(), request.mode);
}

namespace
{

/* What the error context needs, looked up before the wait. */
struct Waiting
{
	char	   *display_name;
	Mode		mode;
	bool		is_for_slot;
};

}								/* anonymous namespace */

/* Error context while a session waits. */
static void
add_wait_context(void *argument)
{
	const auto *waiting = static_cast<const Waiting *>(argument);

	if (waiting->is_for_slot)
		errcontext("while waiting for a slot of semaphore \"%s\"", waiting->display_name);
	else
		errcontext("while waiting for advisory lock \"%s\" in %s mode",
				   waiting->display_name, mode_name(waiting->mode));
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

/* What this session calls a lock that it holds. */
static char *
display_my_lock(const LOCKTAG &tag)
{
	DecodedTag	decoded = decode_tag(tag);
	char	   *name = visible_name(tag);

	if (name != nullptr)
		return decoded.kind == Kind::semaphore ? psprintf("%s, slot %d", name, decoded.slot) : name;
	if (!has_key(decoded.kind))
		return psprintf("%d, %d", decoded.key1, decoded.key2);
	return psprintf(INT64_FORMAT, decoded.key.value);
}

/* How many of a lock's session-level holds are given up after an error. */
static int64
passing_count(const LOCKTAG &tag) noexcept
{
	int64		count = 0;

	for (const PassingLock *passing = passing_locks; passing != nullptr; passing = passing->outer)
		count += compare_locktags(&passing->tag, &tag) == 0 ? 1 : 0;
	return count;
}

/* Is it held so that it outlives an error? */
static bool
outlives_error(const LockEntry &entry)
{
	for (Mode mode : ALL_MODES)
	{
		if (entry.lockmode == lockmode_of(mode))
			return lock_counts(entry.tag, mode).session > passing_count(entry.tag);
	}
	return false;
}

/* The tags of this session's locks that outlive an error, in order, each once; palloc'd. */
static LOCKTAG *
find_survivors(int *count)
{
	LockEntries mine = read_my_locks();
	auto	   *tags = static_cast<LOCKTAG *>(palloc_extended(sizeof(LOCKTAG) * (mine.count + 1), MCXT_ALLOC_HUGE));

	*count = 0;
	for (int i = 0; i < mine.count; i++)
	{
		if (outlives_error(mine.entries[i]))
			tags[(*count)++] = mine.entries[i].tag;
	}
	qsort(tags, *count, sizeof(LOCKTAG), compare_locktags);
	*count = static_cast<int>(qunique(tags, *count, sizeof(LOCKTAG), compare_locktags));
	return tags;
}

/* A deadlock's victim keeps its session-level locks, however taken; say so. */
static void
add_survivors_hint(ErrorData *error)
{
	int			count;
	LOCKTAG    *survivors = find_survivors(&count);
	char	   *hint;

	if (count == 0)
		return;
	if (count == 1)
		hint = psprintf("This session still holds session-level advisory lock \"%s\", which an error does not release.",
						display_my_lock(survivors[0]));
	else
		hint = psprintf("This session still holds %d session-level advisory locks, such as \"%s\", which an error does not release.",
						count, display_my_lock(survivors[0]));
	error->hint = error->hint == nullptr ? hint : psprintf("%s\n%s", error->hint, hint);
}

/*
 * Read an advisory lock's tag as the deadlock detector prints it, in any language:
 * [database,high,low,objsubid].  The character behind it, or null if it is none.
 */
static const char *
read_printed_tag(const char *text, LOCKTAG *tag) noexcept
{
	unsigned int database;
	unsigned int high;
	unsigned int low;
	unsigned int objsubid;
	int			length = 0;

	if (sscanf(text, "[%u,%u,%u,%u]%n", &database, &high, &low, &objsubid, &length) != 4 || length == 0)
		return nullptr;
	SET_LOCKTAG_ADVISORY(*tag, database, high, low, static_cast<uint16>(objsubid));
	return text + length;
}

/* Put the names of advisory locks, as far as they may be seen, behind their numbers. */
static char *
add_lock_names(const char *detail)
{
	StringInfoData out;

	if (detail == nullptr)
		return nullptr;
	initStringInfo(&out);
	while (*detail != '\0')
	{
		LOCKTAG		tag;
		const char *end = *detail == '[' ? read_printed_tag(detail, &tag) : nullptr;

		if (end == nullptr)
		{
			appendStringInfoChar(&out, *detail++);
			continue;
		}
		appendBinaryStringInfo(&out, detail, static_cast<int>(end - detail));
		if (char *name = visible_name(tag))
			appendStringInfo(&out, " \"%s\"", name);
		detail = end;
	}
	return out.data;
}

/* Wait for it; what was pending when it was granted ends the wait too. */
static void
wait_and_check(Attempt *attempt)
{
	const LockRequest &request = attempt->request;

	/* What was looked up for the wait must not hold back others while it lasts. */
	InvalidateCatalogSnapshot();
	if (request.is_for_slot())
		attempt->slot = semaphore_wait(attempt->semaphore, request.slots, request.scope);
	else
		acquire(request, false);
	CHECK_FOR_INTERRUPTS();
}

/* After an error out of a wait: was it granted all the same? */
static bool
survived(Attempt *attempt)
{
	const LockRequest &request = attempt->request;
	LOCKTAG		tag = request.tag();

	if (request.scope != Scope::session)
		return false;
	if (!request.is_for_slot())
		return compat::lock_held_by_me(&tag, lockmode_of(request.mode));
	attempt->slot = semaphore_survivor(attempt->semaphore, request.slots);
	return attempt->slot != NO_SLOT;
}

/* Release what was granted while the wait was being ended. */
static void
release_survivor(Attempt *attempt)
{
	if (survived(attempt))
		release_taken(*attempt);
}

namespace
{

/* How a wait ended. */
enum class WaitEnd
{
	granted,
	timeout,					/* its own; what was granted all the same is still there */
	error						/* another, which must be raised; nothing is left of the wait */
};

}								/* anonymous namespace */

/* Wait without an end of its own. */
static WaitEnd
wait_forever(Attempt *attempt, ErrorData *volatile *error)
{
	MemoryContext callers_context = CurrentMemoryContext;
	volatile WaitEnd end = WaitEnd::granted;

	PG_TRY();
	{
		wait_and_check(attempt);
	}
	PG_CATCH();
	{
		/* Before anything that takes memory, of which there may be no more. */
		LWLockReleaseAll();
		release_survivor(attempt);
		*error = catch_error(callers_context);
		end = WaitEnd::error;
	}
	PG_END_TRY();
	return end;
}

/* Wait for so many milliseconds in an internal subtransaction. */
static WaitEnd
wait_in_subtransaction(Attempt *attempt, int milliseconds, ErrorData *volatile *error)
{
	MemoryContext callers_context = CurrentMemoryContext;
	int			users_lock_timeout = LockTimeout;
	volatile WaitEnd end = WaitEnd::granted;
	Subtransaction subtransaction;

	PG_TRY();
	{
		LockTimeout = milliseconds;
		wait_and_check(attempt);
		LockTimeout = users_lock_timeout;
		subtransaction.release();
	}
	PG_CATCH();
	{
		LockTimeout = users_lock_timeout;
		subtransaction.roll_back();
		if (geterrcode() == ERRCODE_LOCK_NOT_AVAILABLE)
		{
			FlushErrorState();
			end = WaitEnd::timeout;
		}
		else
		{
			release_survivor(attempt);
			*error = catch_error(callers_context);
			end = WaitEnd::error;
		}
	}
	PG_END_TRY();
	return end;
}

/* Wait with the lock's name in the context of errors. */
static WaitEnd
wait_for_lock(Attempt *attempt, int milliseconds, ErrorData **error)
{
	const LockRequest &request = attempt->request;
	ErrorContextCallback context;
	Waiting		waiting = {display_lock(request.name), request.mode, request.is_for_slot()};
	ErrorData  *volatile ended_by = nullptr;
	WaitEnd		end;

	context.callback = add_wait_context;
	context.arg = &waiting;
	context.previous = error_context_stack;
	error_context_stack = &context;
	end = milliseconds > 0 ? wait_in_subtransaction(attempt, milliseconds, &ended_by) : wait_forever(attempt, &ended_by);
	error_context_stack = context.previous;
	*error = ended_by;
	return end;
}

/* Raise the error that ended a wait, once everything is released that has to be. */
[[noreturn]] static void
raise_wait_error(ErrorData *error)
{
	if (error->sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED)
	{
		error->detail = add_lock_names(error->detail);
		add_survivors_hint(error);
	}
	ReThrowError(error);
	pg_unreachable();
}

/* What ended, or would end, a wait of this length by its own. */
static Outcome
outcome_of_timeout(Timeout timeout) noexcept
{
	if (timeout.is_forever() || effective_lock_timeout(timeout) < timeout.milliseconds())
		return Outcome::lock_timeout;
	return Outcome::timeout;
}

/*
 * The server reports one interrupt for all that were pending, and a lock timeout
 * before the others.  A statement must not outlive its statement_timeout for
 * that.  (A cancel by somebody else cannot be told from the lock timeout's own.)
 */
static void
check_statement_timeout(Attempt *attempt, bool was_running)
{
	if (!was_running || get_timeout_active(STATEMENT_TIMEOUT))
		return;
	release_survivor(attempt);
	ereport(ERROR,
			(errcode(ERRCODE_QUERY_CANCELED),
			 errmsg("canceling statement due to statement timeout")));
}

/* Wait, and say what came of it; with *error, that is to be raised. */
static Outcome
wait_for_grant(Attempt *attempt, Timeout timeout, ErrorData **error)
{
	const LockName &name = attempt->request.name;
	bool		statement_timeout = get_timeout_active(STATEMENT_TIMEOUT);
	WaitEnd		end = wait_for_lock(attempt, effective_lock_timeout(timeout), error);

	withdraw_wait();
	if (end == WaitEnd::granted)
		return Outcome::granted;

	if (end == WaitEnd::timeout)
	{
		check_statement_timeout(attempt, statement_timeout);
		return survived(attempt) ? Outcome::granted : outcome_of_timeout(timeout);
	}

	/* What a program finds the lock by, as where a timeout ends the wait. */
	(*error)->schema_name = field_namespace(name);
	(*error)->constraint_name = field_name(name);
	return Outcome::not_free;
}

namespace
{

/* When a session waited; from is 0 if it did not. */
struct Waited
{
	TimestampTz from;
	TimestampTz to;
};

}								/* anonymous namespace */

/* Log a wait that was longer than it may be without being logged. */
static void
log_wait(const LockRequest &request, const Waited &wait, const char *end)
{
	TimestampTz waited = wait.to - wait.from;

	if (wait.from == 0 || log_wait_setting() < 0 || waited < log_wait_setting() * INT64CONST(1000))
		return;

	/* Not to the client, where sending it could fail. */
	char	   *name = display_lock(request.name);

	ereport(LOG_SERVER_ONLY,
			(request.is_for_slot()
			 ? errmsg("session waited for a slot of semaphore \"%s\" for " INT64_FORMAT ".%03d ms %s",
					  name, waited / 1000, static_cast<int>(waited % 1000), end)
			 : errmsg("session waited for advisory lock \"%s\" in %s mode for " INT64_FORMAT ".%03d ms %s",
					  name, mode_name(request.mode), waited / 1000, static_cast<int>(waited % 1000), end)));
}

/* As wait_for_grant; others see that and why this session waits. */
static Outcome
wait_in_public(Attempt *attempt, Timeout timeout, Waited *waited, ErrorData **error)
{
	const LockRequest &request = attempt->request;
	bool		by_name = hold_proves_name(attempt->hold);
	Outcome		outcome;

	waited->from = GetCurrentTimestamp();
	hold_count_event(attempt->hold, Event::contended);
	if (by_name || request.is_for_slot())
		publish_wait(request.tag(), request.slots, by_name);
	outcome = wait_for_grant(attempt, timeout, error);
	waited->to = GetCurrentTimestamp();
	hold_count_wait(attempt->hold, waited->from, waited->to);
	return outcome;
}

/*
 * Note a grant; look for interrupts once more, since those that come later end
 * the statement with the lock held.  *noted says how far it got.
 */
static void
note_grant(const Attempt &attempt, const Waited &waited, volatile bool *noted)
{
	const LockRequest &request = attempt.request;

	if (request.is_for_slot())
		semaphore_note(attempt.semaphore, request.name, attempt.hold, attempt.slot, request.slots, request.scope);
	else
		hold_note(attempt.hold, request.name, request.mode, request.scope);
	*noted = true;
	log_wait(request, waited, "and obtained it");
	CHECK_FOR_INTERRUPTS();
}

/* A session-level lock must not outlive an error on the way. */
static void
note_or_release(const Attempt &attempt, const Waited &waited)
{
	const LockRequest &request = attempt.request;
	volatile bool noted = false;

	/* The error ends what a transaction-level lock belongs to. */
	if (request.scope == Scope::transaction)
		return note_grant(attempt, waited, &noted);

	PG_TRY();
	{
		note_grant(attempt, waited, &noted);
	}
	PG_CATCH();
	{
		release_taken(attempt);
		if (noted && !request.is_for_slot())
			hold_strike(request.name, request.mode, 1);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

static void
check_not_parallel_worker()
{
	if (IsParallelWorker())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot take advisory locks in a parallel worker"),
				 errdetail("The lock would go with the worker, at the end of the query."),
				 errhint("Mark the calling function PARALLEL UNSAFE.")));
}

/* As lock_take, but hands over the error that ended a wait. */
static Outcome
take(Attempt *attempt, Timeout timeout, ErrorData **error)
{
	const LockRequest &request = attempt->request;
	Outcome		outcome = Outcome::granted;
	Waited		waited = {};

	check_not_parallel_worker();
	CHECK_FOR_INTERRUPTS();
	check_pool_limit(request);
	attempt->hold = hold_open(request.name, request.scope);
	if (request.is_for_slot())
		attempt->semaphore = semaphore_open(request.name, request.slots);
	if (!grab(attempt))
	{
		hold_not_free(attempt->hold, request.name);
		outcome = timeout.is_immediate() ? Outcome::not_free : wait_in_public(attempt, timeout, &waited, error);
	}
	if (outcome == Outcome::granted)
	{
		note_or_release(*attempt, waited);
		return outcome;
	}
	if (*error == nullptr)
		hold_count_event(attempt->hold, outcome == Outcome::not_free ? Event::failed : Event::timed_out);
	log_wait(request, waited, *error == nullptr ? "and timed out" : "in vain");
	return outcome;
}

Outcome
lock_take(const LockRequest &request, Timeout timeout, int *slot)
{
	Attempt		attempt = {request};
	ErrorData  *error = nullptr;
	Outcome		outcome = take(&attempt, timeout, &error);

	if (error != nullptr)
		raise_wait_error(error);
	if (slot != nullptr)
		*slot = attempt.slot;
	return outcome;
}

bool
lock_try(const LockRequest &request, Timeout timeout)
{
	return lock_take(request, timeout) == Outcome::granted;
}

/* "within 250 ms", "within 5 s" */
static char *
format_limit(int milliseconds)
{
	if (milliseconds % 1000 == 0)
		return psprintf("%d s", milliseconds / 1000);
	return psprintf("%d ms", milliseconds);
}

/* What to run to look, and to act. */
static int
set_hint(const LockName &name, const Blockers &blockers)
{
	char	   *arguments = call_arguments(name);

	if (arguments == nullptr)
		return errhint("To see who holds it: SELECT * FROM advisory.locks WHERE key = " INT64_FORMAT ".",
					   name.key.value);
	if (blockers.holder_gid != nullptr)
		return errhint("To end the prepared transaction that holds it: COMMIT PREPARED %s or ROLLBACK PREPARED %s.",
					   quote_literal_cstr(blockers.holder_gid), quote_literal_cstr(blockers.holder_gid));
	if (!name.by_name())
		return errhint("To see who holds it: SELECT * FROM advisory.holders_key(%s).", arguments);
	if (blockers.holder_pid == 0)
		return errhint("To see who holds it: SELECT * FROM advisory.holders(%s).", arguments);
	return errhint("To see who holds it: SELECT * FROM advisory.holders(%s). "
				   "To end that session: SELECT advisory.terminate_holder(%s, %d).",
				   arguments, arguments, blockers.holder_pid);
}

static int
set_detail(const Blockers &blockers)
{
	return blockers.description != nullptr ? errdetail("%s", blockers.description) : 0;
}

/* How long it was waited for, as a part of the sentence. */
static char *
describe_limit(Outcome outcome, Timeout limit)
{
	if (outcome == Outcome::lock_timeout)
		return psprintf("within lock_timeout of %s", format_limit(LockTimeout));
	if (limit.is_forever() || limit.is_immediate())
		return pstrdup("without waiting");
	return psprintf("within %s", format_limit(limit.milliseconds()));
}

[[noreturn]] void
lock_raise_not_available(const LockRequest &request, Outcome outcome, Timeout limit)
{
	bool		is_for_slot = request.is_for_slot();
	Blockers	blockers = is_for_slot
		? find_slot_blockers(request.name, request.slots) : find_blockers(request.name, request.mode);
	char	   *name = display_lock(request.name);

	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 is_for_slot
			 ? errmsg("could not obtain a slot of semaphore \"%s\" %s", name, describe_limit(outcome, limit))
			 : errmsg("could not obtain advisory lock \"%s\" %s", name, describe_limit(outcome, limit)),
			 set_detail(blockers),
			 is_for_slot
			 ? errhint("To see who has its slots: SELECT * FROM advisory.locks WHERE key = " INT64_FORMAT ".",
					   request.name.key.value)
			 : set_hint(request.name, blockers),
			 set_lock_fields(request.name)));
	pg_unreachable();
}

void
lock_must(const LockRequest &request, Timeout timeout)
{
	Outcome		outcome = lock_take(request, timeout);

	if (outcome != Outcome::granted)
		lock_raise_not_available(request, outcome, timeout);
}

int
slot_try(const LockRequest &request, Timeout timeout)
{
	int			slot;

	return lock_take(request, timeout, &slot) == Outcome::granted ? slot : NO_SLOT;
}

int
slot_must(const LockRequest &request, Timeout timeout)
{
	int			slot;
	Outcome		outcome = lock_take(request, timeout, &slot);

	if (outcome != Outcome::granted)
		lock_raise_not_available(request, outcome, timeout);
	return slot;
}

/* Undo one grant of this call; only for session-level locks. */
static void
take_back(const LockName &name, Mode mode)
{
	release_one(lock_tag(MyDatabaseId, name.key), mode);
	hold_strike(name, mode, 1);
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
		Attempt		attempt = {LockRequest{names.locks[result->taken], mode, scope}};
		ErrorData  *error = nullptr;
		Outcome		outcome = take(&attempt, deadline.remaining(), &error);

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
		lock_raise_not_available(LockRequest{sorted.locks[result.taken], mode, scope}, result.outcome, timeout);
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
set_vain_release_detail(const LOCKTAG &tag, Mode mode, bool has_slot)
{
	Mode		other = mode == Mode::exclusive ? Mode::shared : Mode::exclusive;

	if (lock_counts(tag, other).session > 0)
		return errdetail("This session holds it in %s mode.", mode_name(other));
	if (holds_for_transaction(tag))
		return errdetail("This session holds it until the end of the transaction.");
	if (has_slot)
		return errdetail("This session has a slot of the semaphore of that name, which is another thing than the lock.");
	return 0;
}

bool
lock_release(const LockName &name, Mode mode)
{
	LOCKTAG		tag = lock_tag(MyDatabaseId, name.key);

	if (lock_counts(tag, mode).session == 0)
	{
		char	   *shown_name = display_lock(name);
		bool		has_slot = semaphore_has_slot(name.key);

		ereport(WARNING,
				(errmsg("you don't own a lock of type %s on \"%s\"",
						mode == Mode::exclusive ? "ExclusiveLock" : "ShareLock",
						shown_name),
				 set_vain_release_detail(tag, mode, has_slot),
				 has_slot ? errhint("To give back a slot, use advisory.release().") : 0,
				 set_lock_fields(name)));
		return false;
	}
	release_one(tag, mode);
	hold_strike(name, mode, 1);
	return true;
}

/* Why there is no slot to be given back, as far as it can be told. */
static int
set_vain_slot_detail(bool has_lock, bool has_slot)
{
	if (has_lock)
		return errdetail("This session holds the lock of that name, which is another thing than the semaphore.");
	if (has_slot)
		return errdetail("Slots that were taken for the transaction are given back at its end.");
	return 0;
}

bool
slot_release(const LockName &name, int slot)
{
	int			mine = semaphore_find_slot(name.key, slot);

	if (mine == NO_SLOT)
	{
		char	   *shown_name = display_lock(name);
		bool		has_slot = slot == NO_SLOT ? semaphore_has_slot(name.key)
			: is_held_by_me(slot_tag(MyDatabaseId, name.key, slot));
		bool		has_lock = !has_slot && is_held_by_me(lock_tag(MyDatabaseId, name.key));

		ereport(WARNING,
				(slot == NO_SLOT
				 ? errmsg("you don't own a slot of semaphore \"%s\"", shown_name)
				 : errmsg("you don't own slot %d of semaphore \"%s\"", slot, shown_name),
				 set_vain_slot_detail(has_lock, has_slot),
				 has_lock ? errhint("To release the lock, use advisory.unlock().") : 0,
				 set_lock_fields(name)));
		return false;
	}
	semaphore_release(name.key, mine);
	return true;
}

bool
lock_keep_for_transaction(const LockRequest &request, int slot)
{
	LOCKTAG		tag = lock_tag(MyDatabaseId, request.name.key);
	Hold	   *hold;

	if (request.is_for_slot())
	{
		if (semaphore_find_slot(request.name.key, slot) == NO_SLOT)
			return false;
		semaphore_keep(request.name.key, slot, hold_open(request.name, Scope::transaction));
		return true;
	}
	if (lock_counts(tag, request.mode).session == 0)
		return false;
	hold = hold_open(request.name, Scope::transaction);
	LockAcquire(&tag, lockmode_of(request.mode), false, true);
	hold_note_kept(hold, request.mode);
	release_one(tag, request.mode);
	hold_strike(request.name, request.mode, 1);
	return true;
}

void
lock_give_up(const LockRequest &request, int slot)
{
	LOCKTAG		tag = request.tag();

	if (request.is_for_slot())
	{
		if (semaphore_find_slot(request.name.key, slot) != NO_SLOT)
			semaphore_release(request.name.key, slot);
	}
	else if (compat::lock_held_by_me(&tag, lockmode_of(request.mode)) &&
			 LockRelease(&tag, lockmode_of(request.mode), true))
		hold_strike(request.name, request.mode, 1);
}

void
lock_begin_passing(PassingLock *passing, const LockRequest &request, int slot) noexcept
{
	Key			key = request.name.key;

	*passing = {request.is_for_slot() ? slot_tag(MyDatabaseId, key, slot) : lock_tag(MyDatabaseId, key), passing_locks};
	passing_locks = passing;
}

void
lock_set_passing(const PassingLock *passing) noexcept
{
	passing_locks = passing;
}

void
lock_count_skipped(const LockName &name)
{
	hold_count_event(hold_open(name, Scope::session), Event::skipped);
}

static int64
release_holds(const LockName &name, Mode mode, int64 count)
{
	LOCKTAG		tag = lock_tag(MyDatabaseId, name.key);

	for (int64 i = 0; i < count; i++)
		release_one(tag, mode);
	hold_strike(name, mode, count);
	return count;
}

int64
lock_release_all(const LockName &name)
{
	LOCKTAG		tag = lock_tag(MyDatabaseId, name.key);
	int64		released = 0;

	for (Mode mode : ALL_MODES)
		released += release_holds(name, mode, lock_counts(tag, mode).session);
	return released;
}

static int64
release_slots_of_namespace(std::string_view ns)
{
	int64		released = 0;

	for (int i = semaphore_slot_count() - 1; i >= 0; i--)
	{
		HeldSlot	held = semaphore_held_slot(i);

		if (held.scope != Scope::session || held.hold == nullptr || !hold_is_in_namespace(held.hold, ns))
			continue;
		semaphore_release(held.key, held.slot);
		released++;
	}
	return released;
}

int64
lock_release_namespace(std::string_view ns)
{
	int			count;
	Key		   *keys = hold_session_keys(ns, &count);
	int64		released = 0;

	for (int i = 0; i < count; i++)
	{
		for (Mode mode : ALL_MODES)
		{
			const Hold *hold = hold_find(keys[i]);

			if (hold != nullptr)
				released += release_holds(LockName{keys[i], ns, ns}, mode, hold->rest->session_by_name[index_of(mode)]);
		}
	}
	return released + release_slots_of_namespace(ns);
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
		total += hold_count(hold, mode);
	}
	return total;
}

}								/* namespace advisory */
