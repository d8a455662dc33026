/*
 * core/lease.h
 *		Leases and lease slots: holds that outlive a session or a server.
 *
 * The rows of advisory._leases (core/leaserows.h) are the truth.  Two advisory locks order the
 * sessions that change them:
 *
 *		the lease queue		exclusive: a session that takes the lease, or is first in the queue
 *							and waits until it can; later sessions wait for this lock, in order
 *		the lease's lock	exclusive: a transaction that takes or ends the lease, until it ends;
 *							weaker modes: a transaction that renews the lease, or relies on it,
 *							until it ends; or the first in the queue, while it checks whether
 *							the lease is free
 *
 * Both are transaction-level.  A session that only tries waits for neither.  The first in the
 * queue sleeps until the lease expires, or until a transaction that has taken or locked it ends and
 * wakes it.
 *
 * The slots of a name have one queue, and a lock for each slot.  Whoever takes a slot takes the
 * lowest one that is free, and never waits for its lock: another slot may become free meanwhile.
 *
 * The role that took a lease, and members of that role, renew, check and end it, with its token.
 */
#pragma once

#include "core/leaserows.h"
#include "core/request.h"

namespace advisory
{

/* A request for a lease; if wanted.slots is greater than 0, for a slot. */
struct Lease
{
	LockName	name;
	LeaseRow	wanted;			/* slot, token, era and ends_at are set when it is granted */
	LeaseRow	before;			/* the previous lease */
	TimestampTz free_at;		/* when it, or the first of its slots, is free, as far as seen */
	LeaseRow	other;			/* a slot whose taker gave another number of slots, if is_there */

	bool		is_slot() const noexcept
	{
		return wanted.slots > 0;
	}
};

/* Raise 25006 in a READ ONLY transaction or on a standby, 25000 in a parallel operation. */
void		lease_check_can_change(const char *function);

/*
 * Take the lease or a slot, waiting at most as long as the timeout or lock_timeout says; as
 * lock_take().  The caller has asked lease_check_can_change().  It takes effect at commit.  Raises
 * 55000 if it would have to wait for what this transaction itself has taken or ended.
 */
Outcome		lease_take(Lease *lease, Timeout timeout);

/*
 * The following functions wait for the lease's lock, and keep it until the transaction ends, unless
 * the lease is lost: it has another token, or it was taken by a role that the current user is no
 * member of.  They raise the same errors as lease_check_can_change(); but lease_check() may be
 * called in a READ ONLY transaction.
 */

/*
 * Renew the lease.  Returns when it expires; 0 if it is lost, or has been held for its max_hold.
 * ttl 0 keeps the present TTL.
 */
TimestampTz lease_renew(const LockName &name, int64 token, int64 ttl);

/*
 * End the lease, and its lock_delay.  False if it is lost; with of_any_role, the role that took it
 * does not matter.  ANY_TOKEN ends the present lease, but no slot, whatever its token; false if
 * there is none.
 */
bool		lease_end(const LockName &name, int64 token, bool of_any_role);

constexpr int64 ANY_TOKEN = 0;

/* Raise 55000 if the lease is lost. */
void		lease_check(const LockName &name, int64 token);

/* When the locks of a transaction are released: wake who waits for leases that it locked. */
void		lease_transaction_released() noexcept;

}								/* namespace advisory */
