/*
 * core/job.h
 *		Running a command while holding a lock, or one of K slots.
 */
#pragma once

#include "core/request.h"

namespace advisory
{

struct Job
{
	LockRequest request;		/* session-level */
	Timeout		timeout;
	bool		skips;			/* if the lock is not free: skip the command, or raise an error? */
	const char *command;
	bool		may_commit;		/* may the command end the transaction? */
};

/*
 * Take the job's lock or slot, run the command, and keep the lock until the transaction
 * ends: no other session may run its command before this one's effects are visible and
 * its deferred triggers have run.
 *
 * If the lock is not free, raises 55P03, or gives a NOTICE and returns false if the job
 * skips.  If the command fails, releases the lock and raises the command's error.
 */
bool		run_job(const Job &job);

}								/* namespace advisory */
