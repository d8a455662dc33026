/*
 * core/blockers.h
 *		Which sessions block a lock or a slot, for error messages.
 */
#pragma once

#include "core/request.h"

namespace advisory
{

struct Blockers
{
	char	   *description;	/* null if no session blocks it any more */
	bool		is_waiting;		/* the first session in the description itself waits */
	int			holder_pid;		/* a session that holds the lock; 0 if none does */
	const char *holder_gid;		/* a prepared transaction that does; null if none does */
};

/*
 * The sessions that block this request, one sentence each: first those that hold a conflicting
 * mode or a slot, then those that wait for one.  A sentence says whether the holder itself
 * waits, or else its state and since when, if the current user may see that.  May ereport.
 */
Blockers	find_blockers(const LockRequest &request);

}								/* namespace advisory */
