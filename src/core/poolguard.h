/*
 * core/poolguard.h
 *		The guard that stops a session that would fill the server's lock table.
 */
#pragma once

#include "core/held.h"

namespace advisory
{

struct PoolState;

/* How many locks of leases this transaction holds; too many if it has given some back. */
inline int	lease_locks_taken = 0;

/* The rest of check_pool_limit(). */
void		check_pool(const LockName &name, const LockRequest *request, int wanted);

/*
 * lock_take() and lease_take() ask the guard first; the latter without a request.  Who has a lease
 * can always renew, check and end it.
 *
 * Raises 53400 if the table is fuller than advisory_ext.pool_limit, this session holds more than
 * max_locks_per_transaction advisory locks through this extension, and the request would add one
 * more.  Of the slots that a request wants all but the last count as in use.  For a session that
 * holds fewer locks this costs one comparison.  May ereport for other reasons, too (out of memory,
 * cancellation).
 */
inline void
check_pool_limit(const LockName &name, const LockRequest *request = nullptr)
{
	int			wanted = request != nullptr ? request->wanted : 1;

	if (held_count() + lease_locks_taken + wanted - 1 > max_locks_per_xact)
		check_pool(name, request, wanted);
}

/* How many further locks the guard lets this session take, as full as the table is now. */
int64		pool_limit_room(const PoolState &pool);

}								/* namespace advisory */
