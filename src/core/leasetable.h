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
	int64		ttl;			/* in microseconds, as all lengths of time here */
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

	/* Had it been free for so long at this time? */
	bool		is_over_for(int64 microseconds, TimestampTz time) const noexcept
	{
		return !TIMESTAMP_IS_NOEND(ends_at) && free_at() + microseconds < time;
	}
};

/* Lock the table as the statements that write it do, without waiting.  False if another session has locked it. */
bool		lease_table_lock();
void		lease_table_unlock();

/*
 * The lease with this key, its values palloc'd.  False if there is none.  The second function returns false as well if the
 * row cannot be read without waiting, or if the server's lock table is too full to read it.  May ereport.
 */
bool		lease_row_read(Key key, LeaseRow *lease);
bool		lease_row_read_now(Key key, LeaseRow *lease);

/*
 * The leases of this database, palloc'd, but not more than 10,000.  None, and a NOTICE that says so, if they cannot be read
 * without waiting, or if the server's lock table is too full to read them.  May ereport.
 */
LeaseRow   *lease_rows_read(int *count);

/* The leases with the nearest keys, palloc'd.  Returns how many there are. */
constexpr int LEASE_NEIGHBOURS = 4;
int			lease_rows_beside(Key key, LeaseRow rows[LEASE_NEIGHBOURS]);

/* What a request gets. */
struct LeaseGrant
{
	int64		token;
	const char *owner;
	int64		ttl;
	int64		lock_delay;
};

/* Insert or replace the row.  The lease is granted to the current user.  Returns when it expires. */
TimestampTz lease_row_grant(const LockName &name, const LeaseGrant &grant, TimestampTz now);

/* Renew the lease with this token; ttl 0 keeps its TTL.  Returns when it expires; 0 if there is no such lease. */
TimestampTz lease_row_renew(Key key, int64 token, int64 ttl);

/* Delete the row if it still has this token and was renewed as often.  Returns whether it did. */
bool		lease_row_delete(const LeaseRow &lease);

}								/* namespace advisory */
