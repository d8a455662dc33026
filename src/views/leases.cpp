/*
 * views/leases.cpp
 *		The rows of advisory.leases, from which advisory.activity has them, too.
 */
#include "base/pg.h"

#include "base/lockname.h"
#include "base/sqlfunction.h"
#include "core/leaserows.h"
#include "server/backends.h"
#include "server/standby.h"
#include "views/visiblename.h"

namespace advisory
{

/* lease_rows(only_one, wanted_key): the lease with this key, or all that are shown */
static Datum
lease_rows(FunctionCallInfo fcinfo)
{
	auto	   *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
	TimestampTz now = GetCurrentTimestamp();
	LeaseRows	leases = !PG_GETARG_BOOL(0) ? lease_rows_read_all()
		: PG_ARGISNULL(1) ? LeaseRows{}
		: lease_rows_read_now(Key{PG_GETARG_INT64(1)}, false);

	tell_reader_of_standby();
	InitMaterializedSRF(fcinfo, 0);
	show_each(leases.count, [&](int i) {
		const LeaseRow &lease = leases.rows[i];
		bool		is_visible = may_see_role(lease.role);
		Row			row;

		row.add_text(is_visible ? lease.ns : HIDDEN);
		row.add_text(is_visible ? lease.name : HIDDEN);
		row.add_text(is_visible ? lease.owner : HIDDEN);
		row.add(Int64GetDatum(lease.token), !has_privileges_of(lease.role));
		row.add_text(lease.state_at(now));
		row.add_interval(lease.ttl);
		row.add_time(lease.acquired_at);
		row.add_time(lease.renewed_at);
		row.add_time(lease.ends_at);
		row.add_interval(Max(lease.ends_at - now, 0));
		row.add_int64(lease.renewals);
		row.add(Int32GetDatum(lease.slot), lease.slot == NO_SLOT);
		if (lease.max_hold > 0)
			row.add_interval(lease.max_hold);
		else
			row.add_reference(Datum(0));
		/*
		 * The key of a name that can be guessed tells the name, and no lock in pg_locks shows it.
		 */
		row.add(Int64GetDatum(lease.key.value), !is_visible);
		row.add_text(is_visible ? join_name(lease.ns, lease.name) : HIDDEN);
		row.put(result);
	});
	return Datum(0);
}

ADVISORY_SQL_FUNCTION(advisory_leases, lease_rows);

}								/* namespace advisory */
