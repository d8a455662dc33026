/*
 * core/leasetable.h
 *		The rows of advisory._leases.
 *
 * Every statement sees the latest committed data, because a lease that was taken after the transaction's snapshot must
 * not count as lost.  Who may change which row, and when, is decided in lease.cpp.
 */
#pragma once

#include "core/request.h"
#include "core/token.h"

namespace advisory
{

/* The longest TTL, and the longest lock_delay. */
constexpr int64 LONGEST_LEASE_DAYS = 366;

/* The most bytes of an owner. */
constexpr int LEASE_OWNER_BYTES = 256;

struct LeaseRow
{
	Key			key;
	char	   *ns;
	char	   *name;
	Oid			role;			/* that took it; it may have been dropped */
	char	   *owner;			/* the name that the owner gave itself, or was given */
	int64		token;
	int64		ttl;
	int64		lock_delay;
	TimestampTz acquired_at;
	TimestampTz renewed_at;
	TimestampTz ends_at;
	int64		renewals;
	bool		is_restarted;	/* it is of an older era, and has its whole TTL from the beginning of the present one on */

	/* When another session can take it over. */
	TimestampTz free_at() const noexcept
	{
		return TIMESTAMP_IS_NOEND(ends_at) ? ends_at : ends_at + lock_delay;
	}

	/* Did the current user, or a role that it is a member of, take it?  Nobody else may see its token. */
	bool		is_mine() const
	{
		return has_privs_of_role(GetUserId(), role);
	}

	/* Had it been free for so long at this time? */
	bool		is_over_for(int64 microseconds, TimestampTz time) const noexcept
	{
		return !TIMESTAMP_IS_NOEND(ends_at) && free_at() + microseconds < time;
	}
};

/* The parameters of a request for a lease, and its results. */
struct Lease
{
	int64		ttl;			/* in microseconds, as all lengths of time here */
	int64		lock_delay;		/* how long it stays taken after it has expired */
	const char *owner;			/* the name that the caller gives itself; for others to see */
	int64		token;			/* if it was granted */
	TimestampTz expires_at;
	LeaseRow	before;			/* the previous lease, without its texts; zero if there was none */
};

/*
 * Lock the table in the mode of the statements that read or write it, without waiting.  Returns its OID; InvalidOid if another session has
 * locked it.
 */
Oid			lease_table_lock(LOCKMODE mode);

/*
 * The lease with this key, palloc'd; null if there is none.  The second function returns null as well if the row cannot be read
 * without waiting, or if the server's lock table is too full to read it.  May ereport.
 */
LeaseRow   *lease_row_read(Key key);
LeaseRow   *lease_row_read_now(Key key);

/* The leases with the nearest keys, palloc'd: a few, if there are any. */
LeaseRow   *lease_rows_beside(Key key, int *count);

/*
 * The leases of this database, palloc'd, but not more than 10,000.  None, and a NOTICE that says so, if they cannot be read
 * without waiting, or if the server's lock table is too full to read them.  May ereport.
 */
LeaseRow   *lease_rows_read(int *count);

/* Insert or replace the row of a lease with this token, which is granted to the current user.  Returns when it expires. */
TimestampTz lease_row_grant(const LockName &name, const Lease &lease);

/* Renew the lease, which must still have this token, with a TTL.  Returns when it expires. */
TimestampTz lease_row_renew(const LeaseRow &lease, int64 ttl);

/* Delete the row if it still has this token and was renewed as often.  Returns whether it did. */
bool		lease_row_delete(const LeaseRow &lease);

}								/* namespace advisory */
