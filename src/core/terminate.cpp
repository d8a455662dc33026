/*
 * core/terminate.cpp
 *		Ending the session that holds a lock.
 */
#include "base/pg.h"

extern "C" {
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/acl.h"
#include "utils/wait_event.h"
}

#include <signal.h>

#include "core/terminate.h"
#include "server/backends.h"
#include "server/locktable.h"

namespace advisory
{

/* Raise an error unless pg_terminate_backend() would let the current user terminate sessions of this role. */
static void
check_may_terminate(Oid role)
{
	/* Reads no catalog, so that a superuser can end a session that has filled the server's lock table. */
	if (superuser())
		return;
	/* Protect a process without a role like a superuser's. */
	if (!OidIsValid(role) || superuser_arg(role))
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
						pid, display_name(name)),
				 proc->databaseId != MyDatabaseId && OidIsValid(proc->databaseId)
				 ? errhint("That session is in another database. To end it, connect to database \"%s\".", database_name(proc->databaseId)) : 0));
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
