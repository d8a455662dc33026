/*
 * core/blockers.h
 *		Which sessions block a lock or a slot, for error messages; and how to end such a session.
 */
#pragma once

#include "core/request.h"

namespace advisory
{

struct Blockers
{
	char	   *description;	/* null if no session blocks it any more */
	int			holder_pid;		/* a session that holds the lock; 0 if none does */
	char	   *holder_gid;		/* a prepared transaction that does; null if none does */

	/* If the first session in the description itself waits: the session or prepared transaction at the end of its waits. */
	int			root_pid;		/* 0 if there is no such session */
	bool		is_root_idle;	/* as far as the current user may see it */
	char	   *root_gid;
	bool		waits_for_me;	/* it waits for this session in the end */
};

/*
 * The sessions that block this request, one sentence each: first those that hold a conflicting
 * mode or a slot, then those that wait for one.  If such a session itself waits, its sentence
 * says for which session.  States and times are included only for sessions that the current
 * user may see.
 */
Blockers	find_blockers(const LockRequest &request);

/*
 * End the session with this pid if it holds the lock at that moment, or a slot of the
 * semaphore of that name, and wait for its end (an immediate timeout does not wait).  Returns
 * false, with a WARNING, if it holds neither, could not be signaled, or is still there when
 * the timeout ends.  Raises 42501 by pg_terminate_backend()'s rules.
 */
bool		terminate_holder(const LockName &name, int pid, Timeout timeout);

}								/* namespace advisory */
