/*
 * core/lease.cpp
 *		Leases and lease slots: holds that outlive a session or a server.
 */
#include "base/pg.h"

#include "base/errors.h"
#include "core/boundedwait.h"
#include "core/deadlocks.h"
#include "core/lease.h"
#include "core/namecache.h"
#include "core/notavailable.h"
#include "core/owntables.h"
#include "core/poolguard.h"
#include "core/token.h"
#include "server/latch.h"
#include "server/locallock.h"
#include "server/locktable.h"
#include "server/resowner.h"
#include "server/vxidlock.h"
#include "server/xact.h"
#include "shmem/root.h"
#include "shmem/sessiontable.h"

namespace advisory
{

/*
 * Modes of a lease's lock.  A transaction that changes the owner takes ExclusiveLock, and a session
 * that checks whether the lease is free takes RowShareLock.  The two modes below conflict with
 * ExclusiveLock.  Renewals conflict with each other, but transactions that rely on the lease do not
 * conflict with renewals or with each other.
 */
static constexpr LOCKMODE LEASE_RENEWED = ShareUpdateExclusiveLock;
static constexpr LOCKMODE LEASE_RELIED_ON = RowExclusiveLock;

/* How often the first in the queue looks at least: the server's clock may have been set. */
static constexpr int LOOK_AFTER_MS = 5000;

/*
 * The same while only the lock of a slot is in the way: the end of a savepoint or of a prepared
 * transaction wakes nobody.
 */
static constexpr int LOOK_AT_LOCKED_SLOT_MS = 1000;

/* ---- Locks ---- */

/* Take the lock of a lease or slot.  With dont_wait: false if it cannot be had at once. */
static bool
lock_lease(const LOCKTAG &tag, LOCKMODE mode, bool dont_wait)
{
	if (LockAcquire(&tag, mode, false, dont_wait) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	lease_locks_taken++;
	return true;
}

/* A lease that this transaction has locked, in the transaction's memory. */
struct LockedLease
{
	CachedName *name;			/* in use until the end, so that the views can show it */
	bool		is_slot;
	LockedLease *next;
};

static LockedLease *locked = nullptr;

/*
 * Keep the name until the transaction ends, as it does the lease's lock, and wake the first in the
 * queue then: perhaps the lease was ended or renewed for a shorter time, or the lock of a slot was
 * in the way.  Call this before a change, because it can fail; it also attaches to the lock table.
 */
static void
wake_at_end(CachedName *name, bool is_slot)
{
	auto	   *lease = static_cast<LockedLease *>(MemoryContextAlloc(TopTransactionContext,
																	  sizeof(LockedLease)));

	lock_tables();
	*lease = {name, is_slot, locked};
	locked = lease;
	name->uses++;
}

void
lease_transaction_released() noexcept
{
	lease_locks_taken = 0;
	for (; locked != nullptr; locked = locked->next)
	{
		wake_holders(lease_queue_tag(MyDatabaseId, locked->name->key, locked->is_slot));
		name_release(locked->name);
	}
}

/* ---- Taking ---- */

namespace
{

struct LeaseAttempt : Attempt
{
	Lease	   *lease;
};

}								/* anonymous namespace */

void
lease_check_can_change(const char *function)
{
	PreventCommandIfReadOnly(function);
	PreventCommandIfParallelMode(function);
}

/* The lock of the lease, or of the slot that was found. */
static LOCKTAG
tag_of(const Lease *lease) noexcept
{
	return lease_tag(MyDatabaseId, lease->name.key, lease->wanted.slot);
}

/*
 * Find the lowest slot from this one on that is free according to its row, or has none; or find out
 * whether the lease is, which stands for slot 0.  Sets wanted.slot if it is found, and lets free_at
 * be the time at which the first of the others is free: what is free, but locked, becomes free at
 * no time that is known.
 */
static bool
find_free(Lease *lease, int slot)
{
	LeaseRows	rows = lease_rows_read(lease->name.key, slot, lease->is_slot() ? MAX_SLOTS : slot);
	TimestampTz now = GetCurrentTimestamp();
	bool		is_restarted = false;

	for (const LeaseRow &row : rows)
	{
		if (now >= row.free_at())
			continue;
		slot += row.slot == slot;
		is_restarted |= row.is_restarted;
		if (row.slot <= lease->wanted.slots)
			lease->free_at = Min(lease->free_at, row.free_at());
		if (row.slots != lease->wanted.slots && !lease->other.is_there)
			lease->other = row;
	}
	pfree(rows.rows);			/* who waits comes here again and again */
	/*
	 * Record the present era, so that leases are restarted once.  But who waits without a snapshot
	 * must not get a transaction ID.
	 */
	if (is_restarted && !sleeps_without_vxid_lock)
		token_era();
	if (slot > lease->wanted.slots)
		return false;
	lease->wanted.slot = slot;
	return true;
}

/*
 * The same from the first slot on, for the first in the queue, which waits for transactions that
 * are taking or ending the lease.
 *
 * It must not request ExclusiveLock.  If that request waited for a transaction that has renewed the
 * lease, or relies on it, later requests would have to wait behind it, and the owner could not
 * renew the lease.  RowShareLock conflicts with ExclusiveLock only.
 *
 * It goes on waiting while the server's lock table is full, like a session that waits for a lock.
 * The end of the subtransaction releases the locks on the lease and on the table, because no
 * session may have to wait for them while this one waits.
 */
static bool
becomes_free(Lease *lease)
{
	LOCKTAG		tag = tag_of(lease);
	bool		is_free = false;

	lease->free_at = DT_NOEND;
	in_subtransaction([&]() {
		if (!lease->is_slot())
			sleeping([&]() { LockAcquire(&tag, RowShareLock, false, false); });
		is_free = find_free(lease, lease->is_slot());
		return false;
	}, ERRCODE_OUT_OF_MEMORY);
	InvalidateCatalogSnapshot();
	return is_free;
}

/*
 * Leases that expired and are not taken again leave their rows.  Delete those that nobody has
 * wanted for a week, among the neighbours of a lease that was just granted and had no row.  So the
 * table has few of them, and a grant costs the same for any number of leases.  One grant in four
 * looks, at sixteen rows.  Nobody can take such a lease until this transaction ends, so this is not
 * for transaction blocks.
 *
 * Their names stay unknown: this role must not count as one that has used them.
 */
static void
delete_forgotten_neighbours(Key key, int slot)
{
	if ((key.value + slot) % 4 != 0 || IsTransactionBlock() || IsolationUsesXactSnapshot())
		return;
	for (const LeaseRow &row : lease_rows_read_neighbours(key, slot))
		if (row.is_over_for(7 * USECS_PER_DAY, GetCurrentTimestamp()) &&
			lock_lease(lease_tag(MyDatabaseId, row.key, row.slot), ExclusiveLock, true))
			lease_row_delete(row);
}

/*
 * Take the lease, whose lock was granted in ExclusiveLock mode: nobody changes its row now.  False
 * if it is not free any more; the caller then releases the locks.
 */
static bool
take(Lease *lease)
{
	/* Under the lock, so that it is greater than the token of every owner before. */
	lease->wanted.token = token_make(&lease->wanted.era);
	lease->before = lease_row_read(lease->name.key, lease->wanted.slot);
	if (GetCurrentTimestamp() < lease->before.free_at())
	{
		lease->free_at = Min(lease->free_at, lease->before.free_at());
		return false;
	}
	lease_row_grant(lease->name, &lease->wanted);
	commit_synchronously();
	if (!lease->before.is_there)
		delete_forgotten_neighbours(lease->name.key, lease->wanted.slot);
	return true;
}

/* Take the lease, or the lowest slot that is free, unless another session has locked it. */
static bool
take_free(Lease *lease)
{
	lease->free_at = DT_NOEND;
	for (int slot = lease->is_slot(); slot <= lease->wanted.slots && find_free(lease, slot);
		 slot = lease->wanted.slot + 1)
	{
		if (keeping_locks_if([&]() {
			return lock_lease(tag_of(lease), ExclusiveLock, true) && take(lease);
		}))
			return true;
	}
	return false;
}

static LOCKTAG
queue_tag_of(const Lease *lease) noexcept
{
	return lease_queue_tag(MyDatabaseId, lease->name.key, lease->is_slot());
}

/* Take the lease if it is free and nobody waits for it. */
static bool
try_lease_now(Attempt *attempt)
{
	Lease	   *lease = static_cast<LeaseAttempt *>(attempt)->lease;

	/*
	 * Do not wait for a session that has locked the table, and do not overtake sessions that wait.
	 * Take no lock before the lease looks free, because another session that tries at the same time
	 * would find the lock taken.
	 */
	return keeping_locks_if([&]() {
		return lease_table_lock_now(RowExclusiveLock) &&
			!is_held_by_anybody(queue_tag_of(lease)) && take_free(lease);
	});
}

/* Raise 55000 if this transaction has taken or ended the lease, or all of the slots. */
static void
check_not_own(const Lease *lease)
{
	const char *function = lease->is_slot() ? "lease_slot" : "lease";

	for (int slot = lease->is_slot(); slot <= lease->wanted.slots; slot++)
	{
		LOCKTAG		tag = lease_tag(MyDatabaseId, lease->name.key, slot);

		if (!is_held_by_me(tag, Mode::exclusive))
			return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("this transaction has already taken or ended %slease \"%s\"",
					lease->is_slot() ? "all slots of " : "", display_name(lease->name)),
			 errdetail("It would wait for itself."),
			 errhint("(advisory.%s(...)).* calls the function %s. "
					 "Use SELECT * FROM advisory.%s(...).",
					 function, lease->is_slot() ? "four times" : "twice", function),
			 set_lock_fields(lease->name)));
}

/* Publish the wait, wait for the lease, and take it. */
static void
wait_for_lease(Attempt *attempt)
{
	Lease	   *lease = static_cast<LeaseAttempt *>(attempt)->lease;
	LOCKTAG		queue = queue_tag_of(lease);
	Deadline	deadline(Timeout{LockTimeout > 0 ? LockTimeout : -1});

	/* lock_timeout limits all steps of the wait together.  The caller restores the setting. */
	auto		limit_step = [&deadline]() {
		if (LockTimeout > 0)
			LockTimeout = Max(deadline.remaining().milliseconds, 1);
	};

	check_not_own(lease);
	publish_wait(queue, lease->wanted.slots, 0, attempt->name->used());
	sleeping([&]() { LockAcquire(&queue, ExclusiveLock, false, false); });
	for (;;)
	{
		int			look_after = LOOK_AFTER_MS;

		check_client();
		limit_step();
		if (becomes_free(lease))
		{
			limit_step();
			if (keeping_locks_if([&]() {
				if (lease->is_slot())
					return take_free(lease);
				sleeping([&]() { lock_lease(tag_of(lease), ExclusiveLock, false); });
				check_client();
				return take(lease);
			}))
				break;
			if (lease->is_slot())
				look_after = LOOK_AT_LOCKED_SLOT_MS;
		}

		int64		until_free = TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
																 lease->free_at);
		int			sleep = deadline.most(static_cast<int>(Min(until_free, look_after)));

		if (deadline.is_over())
		{
			token_era();		/* see find_free() */
			raise_lock_timeout();
		}
		sleeping([&]() { sleep_until_woken(sleep, lease_wait_event); });
	}
	LockRelease(&queue, ExclusiveLock, false);
}

static const WaitRoutine LEASE_ROUTINE = {
	try_lease_now, wait_for_lease,
	/* An error ends its row and its locks, which are transaction-level: nothing survives. */
	[](Attempt *) { return false; },
	[](Attempt *) {},
	[](const Attempt &attempt, const char *name) {
		return describe_lease(
			name, static_cast<const LeaseAttempt &>(attempt).lease->is_slot(), NO_SLOT);
	},
	nullptr, nullptr, nullptr, nullptr};

static void
count_grant(const CachedName *name, const LeaseRow &before)
{
	count_event(name, Event::acquired);
	if (NameStats *stats = stats_of_name(name))
	{
		raise_to(&stats->last_acquired_at, GetCurrentTimestamp());
		/* The lease before it had expired.  If there was none this adds nothing. */
		stats_add(&stats->hold, Max(before.acquired_at, stats_reset_at(stats)), before.ends_at);
	}
}

/*
 * Raise a WARNING, once per session and name, if the taker of another slot gave another number of
 * slots.
 */
static void
warn_of_other_slots(const Lease *lease)
{
	static HTAB *reported;
	bool		is_known;

	if (!lease->other.is_there)
		return;
	if (reported == nullptr)
		reported = make_hash_table<Key, Key>("advisory_ext lease slots", 16, TopMemoryContext);
	hash_search(reported, &lease->name.key, HASH_ENTER, &is_known);
	if (!is_known)
		ereport(WARNING,
				(errmsg("the slots of lease \"%s\" are used with different numbers of slots",
						display_name(lease->name)),
				 errdetail("The number of slots is %d in this session, but the owner of slot %d "
						   "gave %d.",
						   lease->wanted.slots, lease->other.slot, lease->other.slots),
				 errhint("Use the same number everywhere. A caller with a smaller number uses "
						 "fewer slots; a caller with a larger number can get a slot in addition "
						 "to all others.")));
}

Outcome
lease_take(Lease *lease, Timeout timeout)
{
	LeaseAttempt attempt = {{LEASE_ROUTINE, lease->name}, lease};
	Outcome		outcome = Outcome::granted;

	CHECK_FOR_INTERRUPTS();
	check_pool_limit(lease->name);
	attempt.name = name_ask(lease->name);
	if (!try_lease_now(&attempt))
	{
		warn_of_other_slots(lease);
		outcome = timeout.is_immediate()
			? Outcome::not_free : bounded_wait(&attempt, timeout);
	}
	warn_of_other_slots(lease);
	if (outcome == Outcome::granted)
	{
		wake_at_end(attempt.name, lease->is_slot());
		count_grant(attempt.name, lease->before);
		log_wait(attempt, "and obtained it");
		CHECK_FOR_INTERRUPTS();
	}
	else
	{
		count_event(attempt.name, attempt.wait_start == 0 ? Event::failed : Event::timed_out);
		log_wait(attempt, "and timed out");
	}
	name_end(attempt.name);
	return outcome;
}

/* ---- For its owner ---- */

/* Read the lease.  Is it this one, and may the current user use it? */
static bool
find_lease(Key key, int64 token, bool of_any_role, LeaseRow *lease)
{
	*lease = token == ANY_TOKEN ? lease_row_read(key, NO_SLOT) : lease_row_find(key, token);
	return lease->is_there && (of_any_role || lease->is_mine());
}

/* Wait for the lease's lock, as its owner.  The views and the errors show for what. */
static void
wait_for_others(const LockName &name, const LOCKTAG &tag, LOCKMODE mode, const CachedName *cached)
{
	MemoryContext context = CurrentMemoryContext;

	PG_TRY();
	{
		with_error_context([&]() {
			int			slot = decode_tag(tag).slot;

			errcontext("while waiting for %s",
					   describe_lease(display_name(name), slot != NO_SLOT, slot));
		}, [&]() {
			with_published_wait(tag, cached->used(), [&]() { lock_lease(tag, mode, false); });
		});
	}
	PG_CATCH();
	{
		clean_up_wait();
		raise_wait_error(catch_error(context), name);
	}
	PG_END_TRY();
}

/*
 * Lock the lease in this mode, read it, and return use(lease, name); false if the lease is lost.
 *
 * A call that is late, or has a foreign token, finds that out without the lock, because the owner
 * would have to wait behind it, and does not register the name.  No lock on the table is kept while
 * this session waits.
 */
template <typename Use>
static bool
with_own_lease(const LockName &name, int64 token, LOCKMODE mode, bool of_any_role, Use use)
{
	bool		is_found = false;
	LeaseRow	lease;
	NameHandle	asked;

	keeping_locks_if([&]() {
		is_found = find_lease(name.key, token, of_any_role, &lease);
		return false;
	});
	if (!is_found)
		return false;
	asked = name_ask(name);

	LOCKTAG		tag = lease_tag(MyDatabaseId, name.key, lease.slot);
	bool		was_held = compat::lock_held_by_me(&tag, mode);

	is_found = keeping_locks_if([&]() {
		if (!lock_lease(tag, mode, true))
			wait_for_others(name, tag, mode, asked);
		if (!was_held)
			wake_at_end(asked, lease.slot != NO_SLOT);
		return find_lease(name.key, token, of_any_role, &lease) && use(lease, asked);
	});
	name_end(asked);
	return is_found;
}

TimestampTz
lease_renew(const LockName &name, int64 token, int64 ttl)
{
	TimestampTz expires_at = 0;

	lease_check_can_change("advisory.renew_lease()");
	/*
	 * Wait for a session that takes the lease over; and for another renewal, so that the new time
	 * is later than its time.
	 */
	with_own_lease(name, token, LEASE_RENEWED, false,
				   [&](const LeaseRow &lease, const CachedName *) {
		TimestampTz now = GetCurrentTimestamp();
		int64		new_ttl = lease.ttl_within_max_hold(ttl != 0 ? ttl : lease.ttl, now);

		if (new_ttl <= 0)
			return false;
		commit_synchronously();
		lease_row_renew(lease, new_ttl, now);
		expires_at = now + new_ttl;
		return true;
	});
	return expires_at;
}

bool
lease_end(const LockName &name, int64 token, bool of_any_role)
{
	lease_check_can_change(of_any_role ? "advisory.break_lease()" : "advisory.end_lease()");
	return with_own_lease(name, token, ExclusiveLock, of_any_role,
						  [](const LeaseRow &lease, const CachedName *cached) {
		if (!lease_row_delete(lease))
			raise_row_prevented("_leases");
		if (NameStats *stats = stats_of_name(cached))
			stats_add(&stats->hold, Max(lease.acquired_at, stats_reset_at(stats)),
					  Min(lease.ends_at, GetCurrentTimestamp()));
		return true;
	});
}

void
lease_check(const LockName &name, int64 token)
{
	PreventCommandDuringRecovery("advisory.check_lease()");
	PreventCommandIfParallelMode("advisory.check_lease()");
	if (!with_own_lease(name, token, LEASE_RELIED_ON, false,
						[](const LeaseRow &, const CachedName *) { return true; }))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("lease \"%s\" with token " INT64_FORMAT " is lost",
						display_name(name), token),
				 errdetail("The lease was ended, or it expired and was taken over, "
						   "or it belongs to another role."),
				 set_lock_fields(name)));
}

}								/* namespace advisory */
