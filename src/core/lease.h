/*
 * core/lease.h
 *		Leases: holds that outlive a session or a server.
 *
 * The rows of advisory._leases are the truth.  Two advisory locks order the sessions that change
 * them:
 *
 *		the lease queue		exclusive: a session that takes the lease, or is first in the queue
 *							and waits until it can; later sessions wait for this lock, in order
 *		the lease's lock	exclusive: a transaction that takes or ends the lease, until it ends;
 *							weaker modes: a transaction that renews the lease, or relies on it,
 *							until it ends; or the first in the queue, while it checks whether
 *							the lease is free
 *
 * Both are transaction-level.  A session that only tries waits for neither.  The first in the
 * queue sleeps until the lease expires, or until a commit that ends the lease wakes it.
 *
 * A lease of an older era (core/token.h) is held for its whole TTL from the beginning of the
 * present era on, because it is unknown how much of the TTL was left when the old server ended;
 * unless it had been free for a while by then.
 *
 * The role that took a lease, and members of that role, renew, check and end it, with its token.
 */
#pragma once

#include "core/request.h"

namespace advisory
{

/* The longest TTL, and the longest lock_delay. */
constexpr int64 LONGEST_LEASE_DAYS = 366;

/* The most bytes of an owner. */
constexpr int LEASE_OWNER_BYTES = 256;

/* A lease, as its row says. */
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

	/*
	 * Did the current user, or a role that it is a member of, take it?  Nobody else may see its
	 * token.
	 */
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
 * Raise 25006 in a READ ONLY transaction or on a standby, 25000 in a parallel operation.  function
 * is for the message.
 */
void		lease_check_can_change(const char *function);

/* As lock_take().  The lease takes effect at commit. */
Outcome		lease_take(const LockRequest &request, Timeout timeout);

/*
 * Take the lease if it is free and nobody waits for it.  It takes effect at commit.  May ereport.
 */
bool		lease_take_if_free(const LockRequest &request);

/*
 * Wait for the lease, and take it.  Ends like a wait for a lock.  Changes LockTimeout, which the
 * caller restores.
 */
void		lease_wait(const LockRequest &request);

/*
 * The lease with this key, palloc'd.  Null if there is none, or if its row cannot be read without
 * waiting, or if the server's lock table is too full to read it.  May ereport.
 */
LeaseRow   *lease_row_read_now(Key key);

/*
 * The leases of this database, palloc'd, but not more than 10,000.  None, and a NOTICE that says
 * so, if they cannot be read without waiting, or if the server's lock table is too full to read
 * them.  May ereport.
 */
LeaseRow   *lease_rows_read(int *count);

/*
 * The holder, if the current user may see it, and until when it holds the lease: for a DETAIL.
 * Null if there is none, or if the server's lock table is too full to read it.
 */
char	   *lease_describe_holder(Key key);

/*
 * The following functions wait for the lease's lock, and keep it until the transaction ends, unless
 * the lease is lost: it has another token, or it was taken by a role that the current user is no
 * member of.  They raise the same errors as lease_check_can_change(); but lease_check() may be
 * called in a READ ONLY transaction.
 */

/* Renew the lease.  Returns when it expires; 0 if it is lost.  ttl 0 keeps the present TTL. */
TimestampTz lease_renew(const LockName &name, int64 token, int64 ttl);

/*
 * End the lease, and its lock_delay.  False if it is lost.  ANY_TOKEN ends the lease of any owner;
 * false if there is none.
 */
bool		lease_end(const LockName &name, int64 token);

constexpr int64 ANY_TOKEN = 0;

/*
 * Raise 55000 if the lease is lost.  No session can take the lease over before this transaction
 * ends.
 */
void		lease_check(const LockName &name, int64 token);

/* How many locks of leases this transaction holds at most.  Costs nothing. */
int			lease_lock_estimate() noexcept;

/*
 * After a transaction has ended and its locks are released: wake the sessions that wait for leases
 * that it ended.
 */
void		lease_transaction_released() noexcept;

}								/* namespace advisory */
