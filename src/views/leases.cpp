/*
 * views/leases.cpp
 *		The rows of advisory.leases, and what advisory.activity shows of leases.
 */
#include "base/pg.h"

#include "base/sqlfunction.h"
#include "base/srf.h"
#include "core/lease.h"
#include "server/backends.h"
#include "views/visiblename.h"

namespace advisory
{

static void
show_leases(ReturnSetInfo *result)
{
	int			count;
	const LeaseRow *leases = lease_read_all(&count);
	TimestampTz now = GetCurrentTimestamp();

	show_each(count, [&](int i) {
		const LeaseRow &lease = leases[i];
		bool		is_visible = lease_is_visible(lease);
		const char *state = now >= lease.ends_at ? "expired" : lease.is_of_older_era ? "restarted" : "held";
		Row			row;

		row.add_text(is_visible ? lease.ns : HIDDEN);
		row.add_text(is_visible ? lease.name : HIDDEN);
		row.add_text(is_visible ? lease.owner : HIDDEN);
		/* A role that knows the token can renew and end the lease, so the token is hidden. */
		row.add(Int64GetDatum(lease.token), !is_visible);
		row.add_text(state);
		row.add(lease.ttl);
		row.add_time(lease.acquired_at);
		row.add_time(lease.renewed_at);
		row.add_time(lease.ends_at);
		row.add_int64(lease.renewals);
		row.add_int64(lease.key.value);
		row.add_text(is_visible ? join_name(lease.ns, lease.name) : psprintf(INT64_FORMAT, lease.key.value));
		row.put(result);
	});
}

ADVISORY_SQL_FUNCTION(advisory_leases, rows_function<show_leases>);

}								/* namespace advisory */
