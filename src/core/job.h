/*
 * core/job.h
 *		Running a command while holding a lock, or one of K slots.
 */
#ifndef ADVISORY_EXT_CORE_JOB_H
#define ADVISORY_EXT_CORE_JOB_H

#include "core/request.h"

namespace advisory
{

struct Job
{
	LockRequest request;		/* session-level */
	Timeout		timeout;
	bool		skips;			/* if it is taken; else that is an error */
	const char *command;
	bool		may_commit;		/* the command may end the transaction, as in a procedure that is called at top level */
};

/*
 * Take what the job asks for, run its command, and keep it until the transaction ends, so
 * that no one else runs before the command's effects are there to be seen, and before what was
 * deferred to the commit is done.  Returns whether it ran: false, with a NOTICE, if it was
 * taken and the job skips; otherwise error 55P03.  An error of the command is raised
 * once the lock is released.
 */
bool		run_job(const Job &job);

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_CORE_JOB_H */
