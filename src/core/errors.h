/*
 * core/errors.h
 *		The errors of locks that were not obtained.
 */
#pragma once

#include "core/request.h"

namespace advisory
{

/*
 * What is asked for, as messages say it, such as: advisory lock "jobs/nightly".  slot: the slot
 * that was taken.  palloc'd.
 */
char	   *describe_request(const LockRequest &request, int slot = NO_SLOT);

/*
 * Raise 55P03, with the sessions that block the request; or 55006 for Outcome::mine_already.
 * outcome is the outcome of the request, and limit the timeout that the caller gave.
 */
[[noreturn]] void raise_not_available(const LockRequest &request, Outcome outcome, Timeout limit);

/* The same for a lease.  If it is held, its owner is described instead of sessions. */
[[noreturn]] void raise_lease_not_available(const LockName &name, Outcome outcome, Timeout limit);

/*
 * Raise the error that ended a wait for something of this name.  The caller has released everything
 * that it must release.  The DETAIL of a deadlock gets the names of locks, and its HINT says which
 * locks survive, and how to change from shared to exclusive mode.  request is null for a lease.
 */
[[noreturn]] void raise_wait_error(ErrorData *error, const LockName &name,
								   const LockRequest *request = nullptr);

/*
 * The session-level locks in exclusive mode that are released if an error ends what runs under
 * them.  A deadlock's hint does not count them among the locks that survive.
 */
struct PassingLocks
{
	const LOCKTAG *tags;		/* sorted by order_of(), each once */
	int			count;
	const PassingLocks *outer;
};

extern const PassingLocks *passing_locks;

/*
 * The sessions that block this request, one sentence each: first those that hold a conflicting mode
 * or a slot, then those that wait for one.  A sentence says whether the holder itself waits, or
 * else its state and since when, if the current user may see that. Null if no session blocks it any
 * more.  May ereport.
 */
char	   *describe_blockers(const LockRequest &request);

}								/* namespace advisory */
