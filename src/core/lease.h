/*
 * core/lease.h
 *		Leases: holds that outlive a session or a server.
 *
 * The rows of advisory._leases are the truth; two advisory locks order those who change them:
 *
 *		the lease queue		exclusive: a session that takes the lease, or waits until it
 *							can; the others wait for this lock, so they come in order
 *		the lease's lock	exclusive: a transaction that takes or ends the lease, until its end;
 *							weaker modes: one that renews it, or relies on it, until its end;
 *							or that is first in the queue, and looks whether it is free
 *
 * Both are transaction-level.  A session that only tries waits for neither.  The first in the
 * queue sleeps until the lease expires, or a commit that ends it wakes the session.
 *
 * A lease of an older era (core/token.h) is held for its whole TTL from the beginning of the
 * present era on, since it is not known how much of it was left when the old server ended.
 */
#pragma once

#include "core/request.h"

namespace advisory
{

/* What a lease is asked for with, and what was granted. */
struct Lease
{
	int64		ttl;			/* in microseconds, as all lengths of time here */
	int64		lock_delay;		/* how long it stays taken after it has expired */
	const char *owner;			/* as the caller calls itself; null: its role */
	int64		token;			/* if it was granted */
	TimestampTz expires_at;
	TimestampTz free_at;		/* if not: when it can be taken at the earliest; 0 where not known */
	TimestampTz replaced_from;	/* when the lease before it was granted, and when that ended; 0 if there was none */
	TimestampTz replaced_until;
};

/* The request for a lease. */
inline LockRequest
lease_request(const LockName &name, Lease *lease)
{
	return LockRequest{name, Mode::exclusive, Scope::transaction, 0, lease};
}

/* Raise 25006 in a READ ONLY transaction or on a standby, 25000 in a parallel operation.  function is for the message. */
void		lease_check_can_change(const char *function);

/* Take the lease if it is free and nobody waits for it.  It takes effect at commit.  May ereport. */
bool		lease_take_if_free(const LockRequest &request);

/* Wait until it is taken.  Ends as the wait for a lock does.  Changes LockTimeout, which the caller restores. */
void		lease_wait(const LockRequest &request);

/* Who holds it, as far as the current user may see that, and until when: for a DETAIL.  Null if nobody does. */
char	   *lease_describe_holder(Key key);

/*
 * The following wait for the lease's lock, and keep it until the transaction ends, unless they find that the lease is lost.  They
 * raise what lease_check_can_change() raises; lease_check() does in recovery and parallel operations only.
 */

/* Renew it: sets *expires_at.  False if the token is not that of the present lease.  With ttl 0 it keeps the one that it has. */
bool		lease_renew(const LockName &name, int64 token, int64 ttl, TimestampTz *expires_at);

/* End it.  False if the token is not that of the present lease. */
bool		lease_end(const LockName &name, int64 token);

/* End whatever lease there is; its lock_delay runs from now on.  False if there is none.  Raises 42501 unless the user owns the table. */
bool		lease_break(const LockName &name);

/* Raise 55000 unless the token is that of the present lease, which nobody then takes before this transaction ends. */
void		lease_check(const LockName &name, int64 token);

/* A row of the table of leases. */
struct LeaseRow
{
	Key			key;
	char	   *ns;
	char	   *name;
	Oid			role;			/* that took it; invalid if there is none of that name any more */
	char	   *owner;			/* as it calls itself; else that role's name */
	int64		token;
	Datum		ttl;			/* an interval */
	int64		lock_delay;		/* in microseconds */
	TimestampTz acquired_at;
	TimestampTz renewed_at;
	TimestampTz ends_at;
	int64		renewals;
	bool		is_of_older_era;	/* so that it has its whole TTL from the beginning of this one on */
};

/* May the current user see its name, owner and token? */
bool		lease_is_visible(const LeaseRow &lease);

/*
 * All leases of this database, palloc'd; none if they cannot be read without waiting, or the server's lock table
 * is too full to read them.  May ereport.
 */
LeaseRow   *lease_read_all(int *count);

/* A transaction has ended, and its locks are released: wake those who wait for leases that it ended. */
void		lease_wake_waiters() noexcept;

}								/* namespace advisory */
