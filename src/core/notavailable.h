/*
 * core/notavailable.h
 *		The error of what could not be obtained in time, and the sessions in its way.
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

/* The same: lease "jobs/nightly", a slot of lease "jobs/pool", slot 2 of that; name as shown. */
char	   *describe_lease(const char *name, bool is_slot, int slot = NO_SLOT);

/*
 * Raise 55P03, with the sessions that block the request; or 55006 for Outcome::mine_already.
 * outcome is the outcome of the request, and limit the timeout that the caller gave.
 */
[[noreturn]] void raise_not_available(const LockRequest &request, Outcome outcome, Timeout limit);

/*
 * The same for a lease, or for one of so many slots.  If it is held, its owner is described instead
 * of sessions.
 */
[[noreturn]] void raise_lease_not_available(const LockName &name, int slots, Outcome outcome,
											Timeout limit);

/*
 * The sessions that block this request, one sentence each: first those that hold a conflicting mode
 * or a slot, then those that wait for one.  A sentence says whether the holder itself waits, or
 * else its state and since when, if the current user may see that. Null if no session blocks it any
 * more.  May ereport.
 */
char	   *describe_blockers(const LockRequest &request);

}								/* namespace advisory */
