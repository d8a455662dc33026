/*
 * core/leaserows.h
 *		The rows of advisory._leases, which say who has a lease, or a lease slot.
 *
 * A lease is the row with NO_SLOT of its key.  The lease slots of the same name are the rows with
 * the slots from 1 on; each is a lease of its own.
 *
 * A lease of an older era (core/token.h) is held for its whole TTL from the beginning of the
 * present era on, because it is unknown how much of the TTL was left when the old server ended;
 * unless it had been free for a while by then.
 *
 * Only a session that has locked the lease (core/lease.h) changes its row.
 */
#pragma once

#include "base/lockname.h"

namespace advisory
{

/* The longest TTL and lock_delay; the longest window of a claim, and distance between claims. */
constexpr int64 LONGEST_DAYS = 366;

/* The most bytes of an owner. */
constexpr int LEASE_OWNER_BYTES = 256;

/* A lease or a lease slot, as its row says. */
struct LeaseRow
{
	Key			key;
	int			slot;			/* NO_SLOT for a lease */
	int			slots;			/* the number of slots that its taker gave; 0 for a lease */
	Oid			role;			/* that took it; it may have been dropped (role_here()) */
	int64		token;
	int64		era;			/* in which it was last renewed */
	int64		ttl;			/* in microseconds, as all lengths of time here */
	int64		lock_delay;		/* how long it stays taken after it has expired */
	int64		max_hold;		/* it is renewed until acquired_at + max_hold; 0: for ever */
	TimestampTz acquired_at;
	TimestampTz renewed_at;
	TimestampTz ends_at;
	int64		renewals;
	bool		is_there;		/* false for a lease that has no row; all else is 0 then */
	bool		is_restarted;	/* it has its whole TTL from the beginning of the present era on */

	/* Only in rows that are read to be shown; and owner in a row to be written. */
	const char *ns;
	const char *name;
	const char *owner;			/* the name that the owner gave itself, or was given */

	/* When another session can take it over. */
	TimestampTz free_at() const noexcept
	{
		return TIMESTAMP_IS_NOEND(ends_at) ? ends_at : ends_at + lock_delay;
	}

	/* The TTL from this time on, if this one is wanted; not positive if it cannot be renewed. */
	int64		ttl_within_max_hold(int64 wanted, TimestampTz time) const noexcept
	{
		return max_hold == 0 ? wanted : Min(wanted, acquired_at + max_hold - time);
	}

	/* "held", "expired" or "restarted", as in the views. */
	const char *state_at(TimestampTz now) const noexcept
	{
		return now >= ends_at ? "expired" : is_restarted ? "restarted" : "held";
	}

	/* Did the current user, or a role that it is in, take it?  Nobody else may see its token. */
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

/* Rows that were read, palloc'd. */
struct LeaseRows
{
	LeaseRow   *rows;
	int			count;
	int			room;			/* for so many rows */

	const LeaseRow *begin() const noexcept { return rows; }
	const LeaseRow *end() const noexcept { return rows + count; }
};

/*
 * The table in the mode of the statements that read or write it; false if another session has
 * locked it.  The lock is kept until the transaction ends.
 */
bool		lease_table_lock_now(LOCKMODE mode);

/*
 * Each of the following functions has restarted those of the rows that are of an older era than
 * the present one.  They may ereport.
 */

/*
 * The lease (NO_SLOT) and the slots of this key, from the first to the last one, in their order.
 * Costs less for a hundred slots than a statement for one.
 */
LeaseRows	lease_rows_read(Key key, int first, int last, bool has_texts = false);

/* One of them, or the one that has this token; is_there is false if there is none. */
LeaseRow	lease_row_read(Key key, int slot);
LeaseRow	lease_row_find(Key key, int64 token);

/* The next eight leases and slots on each side of this one, without texts. */
LeaseRows	lease_rows_read_neighbours(Key key, int slot);

/* How many of the slots of this key are held; without of_slots, 1 if its lease is. */
int			lease_count_held(Key key, bool of_slots);

/* Which of so many slots of a key are held. */
struct LeasedSlots
{
	bool		is_known;		/* they could be read without waiting */
	Bitmapset  *slots;
};

LeasedSlots lease_slots_held(Key key, int slots);

/*
 * The lease with this key, or with of_slots its slots, the one that expires first at first.  rows
 * is null if they cannot be read without waiting, or if the server's lock table is too full.
 */
LeaseRows	lease_rows_read_now(Key key, bool of_slots);

/*
 * The leases of this database, but not more than 10,000 of a role.  None, and a NOTICE that says
 * so, if they cannot be read without waiting, or if the server's lock table is too full.
 */
LeaseRows	lease_rows_read_all();

/*
 * The holder, if the current user may see it, and until when it holds the lease: for a DETAIL.
 * Null if there is none, or if the server's lock table is too full to read it.
 */
char	   *lease_describe_holder(Key key);

/*
 * How many of so many slots are taken, until when, and who holds a few of them: for a DETAIL.  Sets
 * the numbers of those that are taken.  Null if they cannot be read now.
 */
char	   *lease_describe_slots(Key key, int slots, Bitmapset **taken_slots);

/*
 * The following functions are for a session that has locked the lease.  The first two raise 42804
 * if a trigger or rule prevents the row from being written.
 */

/* Grant the lease to the current user, with these values.  Sets when it ends. */
void		lease_row_grant(const LockName &name, LeaseRow *lease);

/* Renew the lease for so long, from this time on, in the present era. */
void		lease_row_renew(const LeaseRow &lease, int64 ttl, TimestampTz now);

/* Delete the row if it is still the one that was seen.  False if it has changed. */
bool		lease_row_delete(const LeaseRow &seen);

}								/* namespace advisory */
