/*
 * core/lease.cpp
 *		Leases: holds that outlive a session or a server.
 */
#include "base/pg.h"

#include "base/encoding.h"
#include "base/errors.h"
#include "core/lease.h"
#include "core/namecache.h"
#include "core/synccommit.h"
#include "server/backends.h"
#include "server/client.h"
#include "server/locallock.h"
#include "server/locktable.h"
#include "server/vxidlock.h"
#include "shmem/root.h"

namespace advisory
{

/*
 * Modes of a lease's lock.  A transaction that changes the owner takes ExclusiveLock, and a session that checks whether the
 * lease is free takes RowShareLock.  The two modes below conflict with ExclusiveLock.  Renewals conflict with each other, but
 * transactions that rely on the lease do not conflict with renewals or with each other.
 */
static constexpr LOCKMODE LEASE_RENEWED = ShareUpdateExclusiveLock;
static constexpr LOCKMODE LEASE_RELIED_ON = RowExclusiveLock;

/* The first in the queue looks again at least this often, because the server's clock may have been set. */
static constexpr int LOOK_AFTER_MS = 5000;

void
lease_check_can_change(const char *function)
{
	PreventCommandIfReadOnly(function);
	PreventCommandIfParallelMode(function);
}

/* ---- Locks ---- */

/* How many locks of leases this transaction holds; too many if a savepoint was rolled back. */
static int	locks_taken = 0;

int
lease_lock_estimate() noexcept
{
	return locks_taken;
}

/* Wait for a lease's lock, and keep it until the transaction ends.  The context of an error names the lease. */
static void
lock_lease(const LockName &name, LOCKMODE mode)
{
	LOCKTAG		tag = lease_tag(MyDatabaseId, name.key);

	if (LockAcquire(&tag, mode, false, true) == LOCKACQUIRE_NOT_AVAIL)
		with_error_context(psprintf("while waiting for lease \"%s\"", display_name(name)), [&]() {
			LockAcquire(&tag, mode, false, false);
		});
	locks_taken++;
}

/* Release the lock if nothing was changed, so that no session waits for the end of this transaction without need. */
static void
unlock_lease(Key key, LOCKMODE mode)
{
	LOCKTAG		tag = lease_tag(MyDatabaseId, key);

	LockRelease(&tag, mode, false);
	locks_taken--;
}

/* A queue to wake when this transaction has ended, in the transaction's memory. */
struct EndedLease
{
	LOCKTAG		queue;
	EndedLease *next;
};

static EndedLease *ended = nullptr;

/* Remember to wake the queue.  Call this before any change, because it can fail; it also attaches to the lock table. */
static void
wake_at_end(Key key)
{
	auto	   *lease = static_cast<EndedLease *>(MemoryContextAlloc(TopTransactionContext, sizeof(EndedLease)));

	lock_tables();
	*lease = EndedLease{lease_queue_tag(MyDatabaseId, key), ended};
	ended = lease;
}

void
lease_transaction_released() noexcept
{
	locks_taken = 0;
	for (; ended != nullptr; ended = ended->next)
		wake_holders(ended->queue);
}

/* ---- Taking ---- */

/*
 * Is the lease free, according to its row?  Sets free_at, replaced_from and replaced_until.  The end of the subtransaction
 * releases the locks on the table, because no session may have to wait for them while this session waits.
 */
static bool
looks_free(const LockRequest &request)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "advisory_ext lease", ALLOCSET_SMALL_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	Lease	   *lease = request.lease;

	lease->free_at = lease->replaced_from = lease->replaced_until = 0;
	in_subtransaction([&]() {
		LeaseRow	row;

		/* The restart of leases must be stored once.  But who waits without a snapshot must not get a transaction ID. */
		if (!sleeps_without_vxid_lock)
			token_era();
		if (lease_row_read(request.name.key, &row))
		{
			lease->free_at = row.free_at();
			lease->replaced_from = row.acquired_at;
			lease->replaced_until = row.ends_at;
		}
		return false;
	});
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
	InvalidateCatalogSnapshot();
	return GetCurrentTimestamp() >= lease->free_at;
}

/*
 * The same for the first in the queue, which waits for transactions that are taking or ending the lease.
 *
 * It must not request ExclusiveLock.  If that request waited for a transaction that has renewed the lease, or relies on it, later requests
 * would have to wait behind it, and the owner could not renew the lease.  RowShareLock conflicts with ExclusiveLock only.
 *
 * It goes on waiting while the server's lock table is full, like a session that waits for a lock.
 */
static bool
becomes_free(const LockRequest &request)
{
	LOCKTAG		tag = lease_tag(MyDatabaseId, request.name.key);
	bool		is_free = false;

	if (!unless_lock_table_is_full([&]() {
		sleeping([&]() { LockAcquire(&tag, RowShareLock, false, false); });
		/* The table may have been changed or replaced while this session waited. */
		AcceptInvalidationMessages();
		is_free = looks_free(request);
		LockRelease(&tag, RowShareLock, false);
	}))
		request.lease->free_at = DT_NOEND;
	return is_free;
}

/*
 * Leases that expired and are not taken again leave their rows.  Delete those that nobody has wanted for a week, among the
 * neighbours of a lease that was just granted.  So the table has few of them, and a grant costs the same for any number of leases.
 * Nobody can take such a lease until this transaction ends, so this is not for transaction blocks.
 */
static void
delete_forgotten_neighbours(Key key)
{
	LeaseRow	rows[LEASE_NEIGHBOURS];
	int			count;

	if (IsTransactionBlock() || IsolationUsesXactSnapshot())
		return;
	count = lease_rows_beside(key, rows);
	for (int i = 0; i < count; i++)
	{
		LOCKTAG		tag = lease_tag(MyDatabaseId, rows[i].key);

		if (rows[i].is_over_for(7 * USECS_PER_DAY, GetCurrentTimestamp()) && LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL)
		{
			locks_taken++;
			lease_row_delete(rows[i]);
		}
	}
}

/*
 * Take the lease if it is still free.  The caller holds its lock in ExclusiveLock mode, and keeps it if the lease was
 * taken; otherwise it is released.
 */
static bool
take_or_unlock(const LockRequest &request)
{
	Lease	   *lease = request.lease;
	Key			key = request.name.key;

	locks_taken++;
	check_client();
	/* In a subtransaction first, because below a lock on the table is kept. */
	if (!looks_free(request))
	{
		unlock_lease(key, ExclusiveLock);
		return false;
	}
	commit_synchronously();
	lease->token = token_make();
	lease->expires_at = lease_row_grant(request.name, *lease);
	delete_forgotten_neighbours(key);
	return true;
}

bool
lease_take_if_free(const LockRequest &request)
{
	LOCKTAG		queue = request.tag();
	LOCKTAG		tag = lease_tag(MyDatabaseId, request.name.key);
	bool		is_taken;

	/*
	 * Do not wait for a session that has locked the table, and do not overtake sessions that wait.  Take no lock before the lease
	 * looks free, because another session that tries at the same time would find the lock taken.
	 */
	if (!lease_table_lock(RowExclusiveLock))
		return false;
	is_taken = !is_held_by_anybody(queue) && looks_free(request) &&
		LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL && take_or_unlock(request);
	if (!is_taken)
		lease_table_unlock();
	return is_taken;
}

void
lease_wait(const LockRequest &request)
{
	LOCKTAG		queue = request.tag();
	LOCKTAG		tag = lease_tag(MyDatabaseId, request.name.key);
	Deadline	deadline(Timeout{LockTimeout > 0 ? LockTimeout : -1});

	/* lock_timeout limits the whole wait, which has several steps.  The caller restores the setting. */
	auto		limit_step = [&deadline]() {
		if (LockTimeout > 0)
			LockTimeout = Max(deadline.remaining().milliseconds, 1);
	};

	if (is_held_by_me(tag, Mode::exclusive))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("this transaction has already taken or ended lease \"%s\"", display_name(request.name)),
				 errdetail("It would wait for itself."),
				 errhint("(advisory.lease(...)).* calls the function twice. Use SELECT * FROM advisory.lease(...)."),
				 set_lock_fields(request.name)));
	sleeping([&]() { LockAcquire(&queue, ExclusiveLock, false, false); });
	for (;;)
	{
		check_client();
		limit_step();
		if (becomes_free(request))
		{
			limit_step();
			sleeping([&]() { LockAcquire(&tag, ExclusiveLock, false, false); });
			if (take_or_unlock(request))
				break;
			InvalidateCatalogSnapshot();
		}

		Timeout		left = deadline.remaining();
		long		until_free = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), request.lease->free_at);
		int			sleep = static_cast<int>(Min(until_free, LOOK_AFTER_MS));

		if (left.is_immediate())
		{
			token_era();		/* see looks_free() */
			ereport(ERROR,		/* as the server does */
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("canceling statement due to lock timeout")));
		}
		sleeping([&]() {
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							 left.is_forever() ? sleep : Min(sleep, left.milliseconds),
							 lease_wait_event);
		});
		ResetLatch(MyLatch);
	}
	LockRelease(&queue, ExclusiveLock, false);
}

char *
lease_describe_holder(Key key)
{
	LeaseRow	row = {};
	bool		is_over;
	StringInfoData out;

	if (!lease_row_read_now(key, &row) || GetCurrentTimestamp() >= row.free_at())
		return nullptr;

	/* After its end only its lock_delay is in the way. */
	is_over = GetCurrentTimestamp() >= row.ends_at;
	initStringInfo(&out);
	if (may_see_role(row.role))
		appendStringInfo(&out, "\"%s\" %s it", row.owner, is_over ? "held" : "holds");
	else
		appendStringInfo(&out, "It %s held", is_over ? "was" : "is");
	appendStringInfo(&out, " until %s.", timestamptz_to_str(row.ends_at));
	if (row.lock_delay > 0)
		appendStringInfo(&out, " Nobody else can take it before %s.", timestamptz_to_str(row.free_at()));
	make_printable(out.data);
	return out.data;
}

/* ---- For its owner ---- */

bool
lease_is_mine(const LeaseRow &lease)
{
	return has_privs_of_role(GetUserId(), lease.role);
}

/*
 * Lock the lease in this mode, if matches() is true.  A call that is late, or has a foreign token, finds that out without the lock, because
 * the owner would have to wait behind it.  The end of the subtransaction releases the lock on the table before this session waits.
 */
template <typename Matches>
static bool
lock_if(Matches matches, const LockName &name, LOCKMODE mode)
{
	bool		does_match = false;

	in_subtransaction([&]() {
		does_match = matches();
		return false;
	});
	if (!does_match)
		return false;
	lock_lease(name, mode);
	if (matches())
		return true;
	unlock_lease(name.key, mode);
	return false;
}

/* The same, if the lease has this token, and the current user may use it. */
static bool
lock_mine(const LockName &name, int64 token, LOCKMODE mode, LeaseRow *lease)
{
	return lock_if([&]() { return lease_row_read(name.key, lease) && lease->token == token && lease_is_mine(*lease); }, name, mode);
}

bool
lease_renew(const LockName &name, int64 token, int64 ttl, TimestampTz *expires_at)
{
	LeaseRow	lease;

	lease_check_can_change("advisory.renew_lease()");
	/* Wait for a session that takes the lease over; and for another renewal, so that the new time is later than its time. */
	if (!lock_mine(name, token, LEASE_RENEWED, &lease))
		return false;
	wake_at_end(name.key);
	commit_synchronously();
	*expires_at = lease_row_renew(name.key, token, ttl);
	/* The first in the queue sleeps until the lease expires, unless that is earlier now. */
	if (*expires_at >= lease.ends_at)
		ended = ended->next;
	return true;
}

bool
lease_end(const LockName &name, int64 token)
{
	LeaseRow	lease;

	lease_check_can_change("advisory.end_lease()");
	if (!lock_mine(name, token, ExclusiveLock, &lease))
		return false;
	wake_at_end(name.key);
	lease_row_delete(lease);
	if (NameStats *stats = stats_of_name(name_ask(name)))
		stats_add(&stats->hold, Max(lease.acquired_at, stats_reset_at(stats)), Min(lease.ends_at, GetCurrentTimestamp()));
	name_end_asking();
	return true;
}

bool
lease_break(const LockName &name)
{
	LeaseRow	lease;

	lease_check_can_change("advisory.break_lease()");
	if (!lock_if([&]() { return lease_row_read(name.key, &lease); }, name, ExclusiveLock))
		return false;
	wake_at_end(name.key);
	return lease_row_delete(lease);
}

void
lease_check(const LockName &name, int64 token)
{
	LeaseRow	lease;

	PreventCommandDuringRecovery("advisory.check_lease()");
	PreventCommandIfParallelMode("advisory.check_lease()");
	if (!lock_mine(name, token, LEASE_RELIED_ON, &lease))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("lease \"%s\" with token " INT64_FORMAT " is lost", display_name(name), token),
				 errdetail("The lease was ended, or it expired and was taken over, or it belongs to another role."),
				 set_lock_fields(name)));
}

}								/* namespace advisory */
