/*
 * core/poolguard.h
 *		Stops a session that would fill the server's lock table.
 */
#pragma once

#include "core/request.h"

namespace advisory
{

/*
 * Call this before taking the requested lock or slot.  Raises 53400 if the pool is fuller than
 * advisory_ext.pool_limit, this session holds more than max_locks_per_transaction advisory
 * locks through this extension, and the request would add one more.  For a session that holds
 * fewer locks this costs one comparison.  May ereport for other reasons, too (out of memory,
 * cancellation).
 */
void		check_pool_limit(const LockRequest &request);

}								/* namespace advisory */
