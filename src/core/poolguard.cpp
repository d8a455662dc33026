/*
 * core/poolguard.cpp
 *		The guard that stops a session that would fill the server's lock table.
 *
 * The guard does not look at the table for each lock.  The emptier the table is, the more locks the
 * session may take before the next look, but never more than a small part of the room that is left,
 * because other sessions take locks, too. If the use of the table is not known, there is no guard.
 */
#include "base/pg.h"

#include "base/guc.h"
#include "core/notavailable.h"
#include "core/held.h"
#include "core/namecache.h"
#include "core/poolguard.h"
#include "server/locktable.h"
#include "server/pool.h"

namespace advisory
{

/* Between two looks a session may use 1/PART_OF_ROOM of the room that is left. */
static constexpr int64 PART_OF_ROOM = 16;
static constexpr int64 MOST_BETWEEN_LOOKS = 8;

static int64 until_look = 0;

static pg_noinline void
look_at_pool(const LockName &name, const LockRequest *request, int wanted)
{
	int			limit = setting::pool_limit;
	PoolState	pool = read_pool();

	until_look = Min(pool_room(pool, limit) / PART_OF_ROOM, MOST_BETWEEN_LOOKS);
	if (pool_percent_used(pool) <= limit && wanted - 1 <= pool_room(pool, limit))
		return;
	if (request != nullptr &&
		(request->is_mine(Mode::exclusive) || request->is_mine(Mode::shared)))
		return;

	/* The session may not have noticed yet that some of its locks were released. */
	int			held = held_count_locks() + count_my_lease_locks() + wanted - 1;

	if (held <= max_locks_per_xact)
		return;

	char	   *what = request != nullptr
		? describe_request(*request) : psprintf("lease \"%s\"", display_lock(name));

	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("cannot take %s because the server's lock table %s nearly full",
					what, pool_percent_used(pool) > limit ? "is" : "would be"),
			 errdetail("The table is %.1f percent full (" INT64_FORMAT " of an estimated "
					   INT64_FORMAT " locks), and advisory_ext.pool_limit is %d. This session "
					   "%s %d advisory locks, more than max_locks_per_transaction (%d).",
					   pool_percent_used(pool), pool.use.locks, pool.capacity.locks, limit,
					   wanted > 1 ? "would hold" : "holds", held + (wanted > 1),
					   max_locks_per_xact),
			 errhint("Release locks, or protect several things by one lock. To hold this many "
					 "locks, increase max_locks_per_transaction and restart the server."),
			 set_lock_fields(name)));
}

void
check_pool(const LockName &name, const LockRequest *request, int wanted)
{
	if (setting::pool_limit > 0 && (until_look -= wanted) < 0)
		look_at_pool(name, request, wanted);
}

int64
pool_limit_room(const PoolState &pool)
{
	int			held = held_count_locks() + count_my_lease_locks();

	if (setting::pool_limit == 0)
		return PG_INT64_MAX;
	return Max(max_locks_per_xact - held, pool_room(pool, setting::pool_limit));
}

}								/* namespace advisory */
