/*
 * core/poolguard.cpp
 *		Stops a session that would fill the server's lock table.
 *
 * The guard does not look at the table for each lock.  The emptier the table is, the more locks
 * the session may take before the next look, but never more than a small part of the room that
 * is left, because other sessions take locks, too.  If the use of the table is not known, there is no guard.
 */
#include "base/pg.h"

extern "C" {
#include "storage/lock.h"
}

#include "base/guc.h"
#include "core/held.h"
#include "core/lease.h"
#include "core/namecache.h"
#include "server/locktable.h"
#include "server/pool.h"
#include "core/poolguard.h"

namespace advisory
{

/* Between two looks a session may use 1/PART_OF_ROOM of the room that is left. */
static constexpr int64 PART_OF_ROOM = 16;
static constexpr int64 MOST_BETWEEN_LOOKS = 8;

static int64 until_look = 0;

void
check_pool_limit(const LockRequest &request)
{
	int			limit = setting::pool_limit;

	if (held_entry_count() + lease_lock_estimate() <= max_locks_per_xact || limit == 0 || until_look-- > 0)
		return;

	PoolState	pool = read_pool();
	int64		locks = pool.capacity.locks * limit / 100 - pool.use.locks;
	int64		holders = pool.capacity.holders * limit / 100 - pool.use.holders;
	int64		part = Max(Min(locks, holders), 0) / PART_OF_ROOM;

	until_look = Min(part, MOST_BETWEEN_LOOKS);
	if (pool_percent_used(pool) <= limit ||
		(!request.is_for_slot() && is_held_by_me(request.tag())))
		return;

	/* The session may not have noticed yet that some of its locks were released. */
	int			held = held_count_locks() + count_my_lease_locks();

	if (held <= max_locks_per_xact)
		return;

	char	   *name = display_lock(request.name);

	until_look = 0;

	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("cannot take advisory lock \"%s\" because the server's lock table is nearly full", name),
			 errdetail("The table is %.1f percent full (" INT64_FORMAT " of an estimated " INT64_FORMAT " locks), and "
					   "advisory_ext.pool_limit is %d. This session holds %d advisory locks, more than max_locks_per_transaction (%d).",
					   pool_percent_used(pool), pool.use.locks, pool.capacity.locks,
					   limit, held, max_locks_per_xact),
			 errhint("Release locks, or protect several things by one lock. "
					 "To hold this many locks, increase max_locks_per_transaction and restart the server."),
			 set_lock_fields(request.name)));
}

}								/* namespace advisory */
