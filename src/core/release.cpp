/*
 * core/release.cpp
 *		Releasing session-level locks and slots, and ending the session that holds one.
 */
#include "base/pg.h"

#include "base/guc.h"
#include "core/boundedwait.h"
#include "core/held.h"
#include "core/namecache.h"
#include "core/release.h"
#include "core/semaphore.h"
#include "server/backends.h"
#include "server/latch.h"
#include "server/locktable.h"

namespace advisory
{

/*
 * Say that what the caller wants cannot be done: by a WARNING, after which this returns false, or
 * by error 55000.
 */
static bool
complain(const LockName &name, const char *message, const char *detail = nullptr,
		 const char *hint = nullptr, int level = WARNING)
{
	ereport(level,
			(errcode(level == ERROR ? ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE : ERRCODE_WARNING),
			 errmsg("%s", message),
			 detail != nullptr ? errdetail("%s", detail) : 0,
			 hint != nullptr ? errhint("%s", hint) : 0,
			 set_lock_fields(name)));
	return false;
}

/*
 * The session does not hold what it releases: count that, and obey advisory_ext.unlock_not_held.
 * If detail knows no reason, the HINT of the error names the likely one, and what to use instead.
 */
static bool
not_held(const LockName &name, const char *message, const char *detail, const char *hint,
		 const char *instead)
{
	bool		is_error = setting::unlock_not_held == ALLOWED_OFF;
	NameHandle	request = name_ask(name);

	count_event(request, Event::not_held);
	name_end(request);
	if (is_error && detail == nullptr)
		hint = psprintf("Another connection of a pool may have taken it. Take and release it on "
						"one connection, or use advisory.%s().", instead);
	return complain(name, message, detail, hint, is_error ? ERROR : WARNING);
}

/*
 * How often this session has the lock in session scope.  hold: its session-level hold, or null.
 * May ereport (out of memory).
 */
static int64
session_count(const Hold *hold, const LOCKTAG &tag, Mode mode)
{
	int64		count = hold != nullptr ? count_of(hold) : 0;

	/* The built-in functions may have taken it, also after they have released the hold. */
	return count > 0 ? count : lock_counts(tag, mode).session;
}

/*
 * Release it count times, which is at most session_count().  Was that early: has the transaction
 * written, and does the session keep no hold that excludes as much, as a transaction-level one?
 */
static bool
release_holds(const LockName &name, Hold *hold, Mode mode, int64 count)
{
	LOCKTAG		tag = lock_tag(MyDatabaseId, name.key);
	bool		has_written = count > 0 && hold != nullptr && has_written_since(hold);

	held_release(hold, {tag, mode, Scope::session}, count, name.by_name());
	return has_written && !is_held_by_me(tag, mode) && !is_held_by_me(tag, Mode::exclusive);
}

/*
 * So many locks were released early, of which this is the first: obey
 * advisory_ext.unlock_before_commit, with one WARNING for all.
 */
static void
warn_early(const LockName &first, int count)
{
	if (setting::unlock_before_commit == ALLOWED_ON)
		return;

	bool		is_one = count == 1;
	char	   *shown = display_lock(first);

	ereport(WARNING,
			(errmsg("advisory lock \"%s\"%s released before what was written under %s is committed",
					shown,
					is_one ? " is" : psprintf(" and %d more are", count - 1),
					is_one ? "it" : "them"),
			 errdetail("Until COMMIT others see the old rows, also whoever takes the lock now."),
			 errhint("Release it after COMMIT, or take it with advisory.xact_lock(). To allow it, "
					 "SET advisory_ext.unlock_before_commit = on."),
			 set_lock_fields(first)));
}

bool
lock_release(const LockName &name, Mode mode)
{
	LOCKTAG		tag = lock_tag(MyDatabaseId, name.key);
	Hold	   *hold = held_find(tag, mode, Scope::session, name.cached);

	if (session_count(hold, tag, mode) > 0)
	{
		if (release_holds(name, hold, mode, 1))
			warn_early(name, 1);
		log_ended_holds();
		return true;
	}

	LockCounts	counts = lock_counts(tag, mode);
	Mode		other = other_mode(mode);
	LockCounts	other_counts = lock_counts(tag, other);
	const char *lock = GetLockmodeName(DEFAULT_LOCKMETHOD, lockmode_of(mode));
	const char *detail = nullptr;
	const char *hint = nullptr;

	if (semaphore_has_slot(name.key))
	{
		detail = "This session has a slot of the semaphore of that name, which is separate from "
				 "the lock.";
		hint = "To release a slot, use advisory.release().";
	}
	if (counts.transaction + other_counts.transaction > 0)
		detail = "This session holds it until the end of the transaction.";
	if (other_counts.session > 0)
		detail = psprintf("This session holds it in %s mode.", mode_name(other));
	return not_held(name, psprintf("you don't own a lock of type %s on \"%s\"",
								   lock, display_lock(name)), detail, hint,
					mode == Mode::exclusive ? "xact_lock" : "xact_lock_shared");
}

static void
slot_not_held(const LockName &name, int slot)
{
	const char *slot_text = slot == NO_SLOT ? "a slot" : psprintf("slot %d", slot);
	const char *detail = nullptr;
	const char *hint = nullptr;

	if (slot == NO_SLOT ? semaphore_has_slot(name.key) :
		is_held_by_me(slot_tag(MyDatabaseId, name.key, slot)))
		detail = "A transaction-level slot is released at the end of the transaction.";
	else if (is_held_by_me(lock_tag(MyDatabaseId, name.key)))
	{
		detail = "This session holds the lock of that name, which is separate from the semaphore.";
		hint = "To release the lock, use advisory.unlock().";
	}
	not_held(name, psprintf("you don't own %s of semaphore \"%s\"", slot_text,
							display_lock(name)), detail, hint, "xact_acquire");
}

/* False if this session does not have it. */
static bool
release_slot(const LockName &name, int slot)
{
	Hold	   *hold = semaphore_find_slot(name.key, slot);

	if (hold != nullptr)
		held_release(hold, hold->key, 1, name.by_name());
	return hold != nullptr;
}

bool
slot_release(const LockName &name, int slot)
{
	bool		is_released = release_slot(name, slot);

	if (is_released)
		log_ended_holds();
	else
		slot_not_held(name, slot);
	return is_released;
}

int32
slots_release(const LockName &name, const List *slots)
{
	List	   *missing = NIL;
	ListCell   *cell;

	foreach(cell, slots)
	{
		CHECK_FOR_INTERRUPTS();
		if (!release_slot(name, lfirst_int(cell)))
			missing = lappend_int(missing, lfirst_int(cell));
	}
	log_ended_holds();
	foreach(cell, missing)
		slot_not_held(name, lfirst_int(cell));
	return list_length(slots) - list_length(missing);
}

int64
lock_release_all(const LockName &name)
{
	LOCKTAG		tag = lock_tag(MyDatabaseId, name.key);
	int64		released = 0;
	int			early = 0;

	for (Mode mode : ALL_MODES)
	{
		Hold	   *hold = held_find(tag, mode, Scope::session, name.cached);
		int64		count = session_count(hold, tag, mode);

		early += release_holds(name, hold, mode, count);
		released += count;
	}
	if (early > 0)
		warn_early(name, early);
	log_ended_holds();
	return released;
}

int64
lock_release_namespace(std::string_view ns)
{
	int64		released = 0;
	int			early = 0;
	LockName	first;			/* that was released early */

	/* A hold that is released leaves the list. */
	for (Hold *hold : holds_in(HoldState::session))
	{
		CHECK_FOR_INTERRUPTS();
		if (hold->count_by_name > 0 && name_is_in_namespace(hold->name, ns) &&
			held_compare(hold) != nullptr)
		{
			LockName	name = {hold->name->key, ns};

			if (hold->name->has_text())
				name.name = hold->name->name();
			released += hold->count_by_name;
			if (hold->semaphore != nullptr)
				held_release(hold, hold->key, hold->count_by_name, true);
			else if (release_holds(name, hold, hold->key.mode, hold->count_by_name) && early++ == 0)
				first = name;
		}
	}
	if (early > 0)
		warn_early(first, early);
	log_ended_holds();
	return released;
}

int64
lock_my_count(Key key)
{
	int64		total = 0;

	for (Mode mode : ALL_MODES)
	{
		for (Scope scope : ALL_SCOPES)
		{
			Hold	   *hold = held_find(lock_tag(MyDatabaseId, key), mode, scope);

			if (hold != nullptr && held_compare(hold) != nullptr)
				total += hold->count;
		}
	}
	return total;
}

/* ---- Ending the session that holds a lock ---- */

/*
 * Raise an error unless pg_terminate_backend() would let the current user terminate sessions of
 * this role.
 */
static void
check_may_terminate(Oid role)
{
	/*
	 * Reads no catalog, so that a superuser can end a session that has filled the server's lock
	 * table.
	 */
	if (superuser())
		return;

	/* Protect a process without a role like a superuser's. */
	bool		is_protected = !OidIsValid(role) || superuser_arg(role);

	if (!is_protected && (has_privs_of_role(GetUserId(), role) ||
						  has_privs_of_role(GetUserId(), ROLE_PG_SIGNAL_BACKEND)))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to terminate process"),
			 is_protected
			 ? errdetail("Only roles with the %s attribute may terminate processes of roles with "
						 "the %s attribute.",
						 "SUPERUSER", "SUPERUSER")
			 : errdetail("Only roles with privileges of the role whose process is being terminated "
						 "or with privileges of the \"%s\" role may terminate this process.",
						 "pg_signal_backend")));
}

/* Returns false, with a WARNING, if the process is still there when the timeout ends. */
static bool
wait_for_end(int pid, Timeout timeout)
{
	static constexpr int POLL_MS = 100;
	Deadline	deadline(timeout);

	while (kill(pid, 0) == 0)
	{
		if (deadline.is_over())
		{
			ereport(WARNING,
					(errmsg("backend with PID %d did not terminate within %d milliseconds",
							pid, timeout.milliseconds)));
			return false;
		}

		sleep_until_woken(deadline.most(POLL_MS), WAIT_EVENT_BACKEND_TERMINATION);
		CHECK_FOR_INTERRUPTS();
	}
	return true;
}

bool
terminate_holder(const LockName &name, int pid, const Kind *only, Timeout timeout)
{
	PGPROC	   *proc = pid > 0 ? BackendPidGetProc(pid) : nullptr;
	bool		sent = false;

	if (proc == nullptr)
		return complain(name, psprintf("PID %d is not a PostgreSQL backend process", pid));
	check_may_terminate(proc->roleId);
	if (!signal_holder(MyDatabaseId, name.key, pid, only, &sent))
		return complain(name, psprintf("PID %d does not hold %s \"%s\"%s", pid,
									   only == nullptr || *only == Kind::lock ? "advisory lock" :
									   *only == Kind::semaphore ? "a slot of semaphore" : "lease",
									   display_name(name), only == nullptr
									   ? ", nor a slot of the semaphore of that name" : ""),
						nullptr,
						proc->databaseId == MyDatabaseId || !OidIsValid(proc->databaseId)
						? nullptr :
						psprintf("That session is in another database. To end it, connect to "
								 "database \"%s\".", database_name(proc->databaseId)));
	if (!sent)
		return complain(name, psprintf("could not send signal to process %d: %m", pid));
	return timeout.is_immediate() || wait_for_end(pid, timeout);
}

}								/* namespace advisory */
