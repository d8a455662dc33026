/*
 * core/poolguard.h
 *		Stops a session that would fill the server's lock table.
 */
#pragma once

#include "core/request.h"

namespace advisory
{

/*
 * Call this before taking what request asks for.  Raises 53400 if the pool is fuller than
 * advisory_ext.pool_limit, this session holds more than max_locks_per_transaction advisory
 * locks through this extension, and this would be one more.  Costs a comparison for a
 * session that holds fewer.  May ereport otherwise, too (out of memory, cancellation).
 */
void		check_pool_limit(const LockRequest &request);

}								/* namespace advisory */
