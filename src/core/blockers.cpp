/*
 * core/blockers.cpp
 *		Who is in the way of a lock or a slot, for error messages; and how to end such a session.
 */
#include "base/pg.h"

#include <signal.h>

#include "core/blockers.h"
#include "server/backends.h"
#include "shmem/slotlocks.h"

namespace advisory
{

/* More would not be read in an error message. */
static constexpr int DESCRIBED_BLOCKERS = 5;

/* What a session or prepared transaction has of it. */
static void
append_claim(StringInfo out, const LockEntry &entry)
{
	int			slot = decode_tag(entry.tag).slot;

	if (!is_of_semaphore(entry.tag))
		appendStringInfo(out, " %s it in %s mode", entry.granted ? "holds" : "waits for",
						 lockmode_name(entry.lockmode));
	else if (entry.granted)
		appendStringInfo(out, " has slot %d", slot);
	else
		appendStringInfoString(out, " waits for a slot");
}

static void
append_session(StringInfo out, const LockEntry &entry, const Backends &backends)
{
	const LocalPgBackendStatus *status = backends.find(entry.pid);
	Oid			role = status != nullptr ? status->backendStatus.st_userid : entry.role;
	char	   *name = role_name(role);

	appendStringInfo(out, "Process %d", entry.pid);
	if (name != nullptr)
		appendStringInfo(out, " of role \"%s\"", name);
	if (status != nullptr && status->backendStatus.st_appname[0] != '\0')
		appendStringInfo(out, ", application \"%s\",", status->backendStatus.st_appname);
	append_claim(out, entry);

	if (status == nullptr || !may_see_role(role))
		return;

	const PgBackendStatus &backend = status->backendStatus;
	const char *state = state_name(backend.st_state);

	if (state == nullptr)
		return;
	appendStringInfo(out, "; it is %s", state);
	if (backend.st_state_start_timestamp != 0)
		appendStringInfo(out, " since %s", timestamptz_to_str(backend.st_state_start_timestamp));
}

static void
append_prepared(StringInfo out, const LockEntry &entry, char **gid)
{
	int			count;
	const PreparedXact *xacts = prepared_xacts(&count);
	const PreparedXact *xact = find_prepared(xacts, count, entry.xid);

	if (xact != nullptr)
	{
		appendStringInfo(out, "Prepared transaction \"%s\"", xact->gid);
		*gid = xact->gid;
	}
	else
		appendStringInfoString(out, "A prepared transaction");
	append_claim(out, entry);
}

static bool
blocks(const LockEntry &entry, Mode wanted) noexcept
{
	if (entry.pid == MyProcPid)
		return false;
	return wanted == Mode::exclusive || entry.lockmode != ShareLock;
}

static Blockers
describe_blockers(const LockEntries &found, Mode mode)
{
	Backends	backends;
	Blockers	blockers = {};
	StringInfoData out;
	int			described = 0;
	int			left_out = 0;

	initStringInfo(&out);
	/* Holders first, since they decide. */
	for (bool granted : {true, false})
	{
		for (int i = 0; i < found.count; i++)
		{
			const LockEntry &entry = found.entries[i];

			if (entry.granted != granted || !blocks(entry, mode))
				continue;
			if (granted && blockers.holder_pid == 0)
				blockers.holder_pid = entry.pid;
			if (described == DESCRIBED_BLOCKERS)
			{
				left_out++;
				continue;
			}
			if (described++ > 0)
				appendStringInfoChar(&out, '\n');
			if (entry.pid == 0)
				append_prepared(&out, entry, &blockers.holder_gid);
			else
				append_session(&out, entry, backends);
			appendStringInfoChar(&out, '.');
		}
	}
	if (left_out > 0)
		appendStringInfo(&out, "\n%d more hold or wait for it.", left_out);
	if (described > 0)
		blockers.description = out.data;
	return blockers;
}

Blockers
find_blockers(const LockName &name, Mode mode)
{
	return describe_blockers(read_lock(lock_tag(MyDatabaseId, name.key)), mode);
}

/* Who has all slots himself is in his own way. */
static Blockers
add_own_slots(Blockers blockers, int own)
{
	if (own > 0)
		blockers.description = psprintf("%s%sThis session has %d of the slots itself.",
										blockers.description != nullptr ? blockers.description : "",
										blockers.description != nullptr ? "\n" : "", own);
	return blockers;
}

Blockers
find_slot_blockers(const LockName &name, int slots)
{
	LockEntries found = read_semaphore(MyDatabaseId, name.key, slots);
	int			own = 0;

	mark_slot_waits(&found);
	for (int i = 0; i < found.count; i++)
		own += found.entries[i].granted && found.entries[i].pid == MyProcPid;
	sort_slot_entries(&found);
	return add_own_slots(describe_blockers(found, Mode::exclusive), own);
}

/* The rules of pg_terminate_backend(). */
static void
check_may_terminate(const PGPROC *proc)
{
	Oid			role = proc->roleId;

	/* A process without a role may be as important as a superuser's. */
	if ((!OidIsValid(role) || superuser_arg(role)) && !superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to terminate process"),
				 errdetail("Only roles with the %s attribute may terminate processes of roles with the %s attribute.",
						   "SUPERUSER", "SUPERUSER")));
	if (!has_privs_of_role(GetUserId(), role) &&
		!has_privs_of_role(GetUserId(), ROLE_PG_SIGNAL_BACKEND))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to terminate process"),
				 errdetail("Only roles with privileges of the role whose process is being terminated or with privileges of the \"%s\" role may terminate this process.",
						   "pg_signal_backend")));
}

static bool
wait_for_end(int pid, Timeout timeout)
{
	static constexpr int POLL_MS = 100;
	Deadline	deadline(timeout);

	while (kill(pid, 0) == 0)
	{
		Timeout		left = deadline.remaining();
		int			pause = POLL_MS;

		if (left.is_immediate())
		{
			ereport(WARNING,
					(errmsg_plural("backend with PID %d did not terminate within %d millisecond",
								   "backend with PID %d did not terminate within %d milliseconds",
								   timeout.milliseconds(),
								   pid, timeout.milliseconds())));
			return false;
		}
		if (!left.is_forever())
			pause = Min(pause, left.milliseconds());
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, pause,
						 WAIT_EVENT_BACKEND_TERMINATION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	if (errno != ESRCH)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not check the existence of the backend with PID %d: %m", pid)));
	return true;
}

bool
terminate_holder(const LockName &name, int pid, Timeout timeout)
{
	PGPROC	   *proc = pid > 0 ? BackendPidGetProc(pid) : nullptr;
	bool		sent = false;

	if (proc == nullptr)
	{
		ereport(WARNING,
				(errmsg("PID %d is not a PostgreSQL backend process", pid)));
		return false;
	}
	check_may_terminate(proc);

	if (!signal_holder(lock_tag(MyDatabaseId, name.key), pid, &sent))
	{
		ereport(WARNING,
				(errmsg("PID %d does not hold advisory lock \"%s\"", pid, display_name(name))));
		return false;
	}
	if (!sent)
	{
		ereport(WARNING,
				(errmsg("could not send signal to process %d: %m", pid)));
		return false;
	}
	return timeout.is_immediate() || wait_for_end(pid, timeout);
}

}								/* namespace advisory */
