/*
 * core/blockers.cpp
 *		Which sessions block a lock or a slot, for error messages; and how to end such a session.
 */
#include "base/pg.h"

extern "C" {
#include "catalog/pg_authid.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/acl.h"
#include "utils/backend_status.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
}

#include <signal.h>

#include "base/encoding.h"
#include "core/blockers.h"
#include "core/waitchain.h"
#include "server/backends.h"
#include "shmem/slotlocks.h"
#include "shmem/waiters.h"

namespace advisory
{

/* How many sessions an error message describes; nobody would read more. */
static constexpr int DESCRIBED_BLOCKERS = 5;

namespace
{

/* Describes sessions and prepared transactions, as parts of a DETAIL. */
class Description
{
public:
	Description()
	{
		initStringInfo(&text);
	}

	/* Add a sentence about a session that holds or awaits the lock or slot.  follows: say also for which session it waits. */
	void		add_blocker(const LockEntry &entry, bool follows, Blockers *blockers);

	StringInfoData text;

private:
	bool		add_session(const LockEntry &session, char **gid);
	void		add_state(const LockEntry &session, const char *before, bool *is_idle = nullptr);
	void		add_chain(const WaitChain &chain, Blockers *blockers);

	Backends	backends;
};

}								/* anonymous namespace */

/* The session's present role, or the one in the lock table. */
static Oid
role_of(const LocalPgBackendStatus *status, const LockEntry &session) noexcept
{
	return status != nullptr ? status->backendStatus.st_userid : session.role;
}

/* Name the session or prepared transaction; sets *gid for the latter.  True if the text ends with an application name. */
bool
Description::add_session(const LockEntry &session, char **gid)
{
	if (session.pid == 0)
	{
		int			count;
		const PreparedXact *xacts = prepared_xacts(&count);
		const PreparedXact *xact = find_prepared(xacts, count, session.xid);

		if (xact != nullptr)
			appendStringInfo(&text, "prepared transaction \"%s\"", *gid = xact->gid);
		else
			appendStringInfoString(&text, "a prepared transaction");
		return false;
	}

	const LocalPgBackendStatus *status = backends.find(session_pid(session));
	char	   *role = role_name(role_of(status, session));

	appendStringInfo(&text, "process %d", session_pid(session));
	if (role != nullptr)
		appendStringInfo(&text, " of role \"%s\"", role);
	if (status == nullptr || status->backendStatus.st_appname[0] == '\0')
		return false;
	appendStringInfo(&text, ", application \"%s\"", status->backendStatus.st_appname);
	return true;
}

/* Add the session's state and since when, if the current user may see them. */
void
Description::add_state(const LockEntry &session, const char *before, bool *is_idle)
{
	const LocalPgBackendStatus *status = session.pid != 0 ? backends.find(session_pid(session)) : nullptr;

	if (status == nullptr || !may_see_role(role_of(status, session)))
		return;

	const PgBackendStatus &backend = status->backendStatus;
	PublishedWait wait;

	/* No session holds what the first in the queue of a lease waits for. */
	if (read_wait(session.proc_number, &wait) && wait.pid == session.pid && decode_tag(wait.tag).kind == Kind::lease)
	{
		appendStringInfo(&text, "%s waiting for a lease since %s", before, timestamptz_to_str(wait.since));
		return;
	}
	if (state_name(backend.st_state) == nullptr)
		return;
	appendStringInfo(&text, "%s %s", before, state_name(backend.st_state));
	if (backend.st_state_start_timestamp != 0)
		appendStringInfo(&text, " since %s", timestamptz_to_str(backend.st_state_start_timestamp));
	if (is_idle != nullptr)
		*is_idle = backend.st_state == STATE_IDLE || backend.st_state == STATE_IDLEINTRANSACTION ||
			backend.st_state == STATE_IDLEINTRANSACTION_ABORTED;
}

void
Description::add_chain(const WaitChain &chain, Blockers *blockers)
{
	bool		is_direct = chain.next.leader_number == chain.last.leader_number;

	appendStringInfoString(&text, "; it itself waits for ");
	if (!is_direct || chain.end == ChainEnd::cycle)
		appendStringInfo(&text, "process %d", session_pid(chain.next));
	if (chain.end == ChainEnd::cycle)
		return appendStringInfoString(&text, ", in a cycle of waits");
	if (!is_direct)
		appendStringInfoString(&text, ", which in the end waits for ");
	if (chain.end == ChainEnd::me)
	{
		blockers->waits_for_me = true;
		return appendStringInfoString(&text, "this session");
	}

	add_session(chain.last, &blockers->root_gid);
	add_state(chain.last, ", which is", &blockers->is_root_idle);
	blockers->root_pid = session_pid(chain.last);
}

void
Description::add_blocker(const LockEntry &entry, bool follows, Blockers *blockers)
{
	bool		is_first = text.len == 0;
	Blockers	others = {};
	WaitChain	chain;
	int			start;

	if (!is_first)
		appendStringInfoChar(&text, '\n');
	start = text.len;
	if (add_session(entry, &blockers->holder_gid))
		appendStringInfoChar(&text, ',');
	text.data[start] = pg_toupper(text.data[start]);

	if (!is_of_semaphore(entry.tag))
		appendStringInfo(&text, " %s it in %s mode",
						 !entry.granted ? "waits for" : decode_tag(entry.tag).kind == Kind::lease ? "has locked" : "holds",
						 lockmode_name(entry.tag, entry.lockmode));
	else if (entry.granted)
		appendStringInfo(&text, " has slot %d", decode_tag(entry.tag).slot);
	else
		appendStringInfoString(&text, " waits for a slot");

	if (follows && follow_waits(entry, &chain))
		add_chain(chain, is_first ? blockers : &others);
	else
		add_state(entry, "; it is");
	appendStringInfoChar(&text, '.');
	/* Names of roles and prepared transactions must not look like further lines. */
	make_printable(text.data + start);
	text.len = static_cast<int>(strlen(text.data));
}

Blockers
find_blockers(const LockRequest &request)
{
	bool		is_for_slot = request.is_for_slot();
	LockEntries found = is_for_slot ? read_semaphore(MyDatabaseId, request.name.key, request.slots)
		: read_lock(request.is_for_lease() ? lease_tag(MyDatabaseId, request.name.key) : request.tag());
	Blockers	blockers = {};
	Description description;
	StringInfo	out = &description.text;
	int			described = 0;
	int			left_out = 0;
	int			own = 0;

	if (is_for_slot)
	{
		mark_slot_waits(&found);
		for (int i = 0; i < found.count; i++)
			own += found.entries[i].granted && found.entries[i].pid == MyProcPid;
		sort_slot_entries(&found);
	}
	/* Holders first, because they block the waiters, too. */
	for (bool granted : {true, false})
	{
		for (int i = 0; i < found.count; i++)
		{
			const LockEntry &entry = found.entries[i];

			if (entry.granted != granted || entry.pid == MyProcPid ||
				(request.mode == Mode::shared && entry.lockmode == ShareLock))
				continue;
			if (granted && blockers.holder_pid == 0)
				blockers.holder_pid = entry.pid;
			if (described == DESCRIBED_BLOCKERS)
			{
				left_out++;
				continue;
			}
			/* Follow the chain of waiters only if there is no holder: it leads to the holder anyway. */
			description.add_blocker(entry, granted || described == 0, &blockers);
			described++;
		}
	}
	if (left_out > 0)
		appendStringInfo(out, "\n%d more hold or wait for it.", left_out);
	if (own > 0)
		appendStringInfo(out, "%sThis session has %d of the slots itself.", described > 0 ? "\n" : "", own);
	if (out->len > 0)
		blockers.description = out->data;
	return blockers;
}

/* Raise an error unless pg_terminate_backend() would let the current user terminate sessions of this role. */
static void
check_may_terminate(Oid role)
{
	/* Protect a process without a role like a superuser's. */
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
				 errdetail("Only roles with privileges of the role whose process is being terminated or with "
						   "privileges of the \"%s\" role may terminate this process.",
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
		Timeout		left = deadline.remaining();
		int			pause = left.is_forever() ? POLL_MS : Min(POLL_MS, left.milliseconds);

		if (left.is_immediate())
		{
			ereport(WARNING,
					(errmsg_plural("backend with PID %d did not terminate within %d millisecond",
								   "backend with PID %d did not terminate within %d milliseconds",
								   timeout.milliseconds,
								   pid, timeout.milliseconds)));
			return false;
		}

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
	check_may_terminate(proc->roleId);
	if (!signal_holder(MyDatabaseId, name.key, pid, &sent))
	{
		ereport(WARNING,
				(errmsg("PID %d does not hold advisory lock \"%s\", nor a slot of the semaphore of that name",
						pid, display_name(name))));
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
