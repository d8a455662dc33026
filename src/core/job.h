/*
 * core/job.h
 *		Running a command while holding a lock, or one of K slots.
 */
#pragma once

#include "core/claim.h"

namespace advisory
{

struct Job
{
	LockRequest request;		/* session-level */
	Timeout		timeout;
	bool		skips;			/* if the lock is not free, skip the command, or raise an error */
	const char *command;
	bool		may_commit;		/* may the command end the transaction? */
	bool		is_once;		/* run the command only if this window can be claimed? */
	WindowClaim claim;
};

/*
 * Take the job's lock or slot, run the command, and keep the lock until the transaction ends.  So
 * no other session runs its command before the effects of this one are visible and its deferred
 * triggers have run.
 *
 * If the lock is not free, raises 55P03, or gives a NOTICE and returns false if the job
 * skips.  If the command fails, releases the lock and raises the command's error.
 *
 * If is_once is true, claims the window under the lock and commits before it runs the command.  If
 * it cannot commit here, raises 2D000 before it takes the lock.  If the window or a later one is
 * already claimed, raises 55000, or gives a NOTICE and returns false if the job skips.  Raises
 * 57014 if the wait for a synchronous standby was canceled at that commit.
 */
bool		run_job(const Job &job);

}								/* namespace advisory */
