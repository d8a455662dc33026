/*
 * core/lease.cpp
 *		Leases: holds that outlive a session or a server.
 */
#include "base/pg.h"

#include "base/encoding.h"
#include "base/errors.h"
#include "core/acquire.h"
#include "core/boundedwait.h"
#include "core/lease.h"
#include "core/namecache.h"
#include "core/owntables.h"
#include "core/token.h"
#include "server/backends.h"
#include "server/client.h"
#include "server/locallock.h"
#include "server/locktable.h"
#include "server/vxidlock.h"
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

/*
 * The first in the queue looks again at least this often, because the server's clock may have been
 * set.
 */
static constexpr int LOOK_AFTER_MS = 5000;

/* ---- The rows of advisory._leases ---- */

static constexpr char LEASES[] = "_leases";

/*
 * No view shows more.  Any role can take any number of leases, and must not make the views too slow
 * for others.
 */
static constexpr int SHOWN_LEASES = 10000;

/*
 * Every statement sees the latest committed data, because a lease that was taken after the
 * transaction's snapshot must not count as lost.
 *
 * The columns are a LeaseRow, and their numbers are those of row_of().  A restored dump may contain
 * any text, so no more of it is read than the functions of this extension write.
 */
#define LEASE_COLUMNS "key, left(namespace, 1024), left(name, 1024), role, left(owner, 256), token, era, ttl," \
	" lock_delay, acquired_at, renewed_at, expires_at, renewals"

static OwnStatement SELECT_LEASE = {
	LEASES,
	"SELECT " LEASE_COLUMNS " FROM advisory._leases WHERE key = $1",
	SPI_OK_SELECT, true, false, {INT8OID}, nullptr};

static OwnStatement SELECT_LEASES = {
	LEASES,
	"SELECT " LEASE_COLUMNS " FROM advisory._leases LIMIT $1",
	SPI_OK_SELECT, true, false, {INT8OID}, nullptr};

static OwnStatement SELECT_NEIGHBOURS = {
	LEASES,
	"(SELECT " LEASE_COLUMNS " FROM advisory._leases WHERE key > $1 ORDER BY key LIMIT 2) UNION ALL"
	" (SELECT " LEASE_COLUMNS " FROM advisory._leases WHERE key < $1 ORDER BY key DESC LIMIT 2)",
	SPI_OK_SELECT, true, false, {INT8OID}, nullptr};

static OwnStatement GRANT_LEASE = {
	LEASES,
	"INSERT INTO advisory._leases (key, token, namespace, name, owner, role, era, ttl, lock_delay, acquired_at, renewed_at, expires_at, renewals)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $10 + $8, 0)"
	" ON CONFLICT (key) DO UPDATE SET token = EXCLUDED.token, namespace = EXCLUDED.namespace, name = EXCLUDED.name, owner = EXCLUDED.owner,"
	" role = EXCLUDED.role, era = EXCLUDED.era, ttl = EXCLUDED.ttl, lock_delay = EXCLUDED.lock_delay, acquired_at = EXCLUDED.acquired_at,"
	" renewed_at = EXCLUDED.renewed_at, expires_at = EXCLUDED.expires_at, renewals = 0",
	SPI_OK_INSERT, true, true,
	{INT8OID, INT8OID, TEXTOID, TEXTOID, TEXTOID, REGROLEOID, INT8OID, INTERVALOID, INTERVALOID, TIMESTAMPTZOID}, nullptr};

static OwnStatement RENEW_LEASE = {
	LEASES,
	"UPDATE advisory._leases SET ttl = COALESCE($3, ttl), era = $4, renewed_at = $5, expires_at = $5 + COALESCE($3, ttl),"
	" renewals = renewals + 1"
	" WHERE key = $1 AND token = $2 RETURNING expires_at",
	SPI_OK_UPDATE_RETURNING, true, true, {INT8OID, INT8OID, INTERVALOID, INT8OID, TIMESTAMPTZOID}, nullptr};

static OwnStatement DELETE_LEASE = {
	LEASES,
	"DELETE FROM advisory._leases WHERE key = $1 AND token = $2 AND renewals = $3",
	SPI_OK_DELETE, true, false, {INT8OID, INT8OID, INT8OID}, nullptr};

/*
 * A TTL or lock_delay.  The functions of this extension write nothing else than a number of
 * microseconds within these limits.
 */
static int64
length_of(Datum interval) noexcept
{
	return Max(Min(DatumGetIntervalP(interval)->time, LONGEST_LEASE_DAYS * USECS_PER_DAY), 0);
}

/* A time that has passed, so neither infinite nor before 2000. */
static TimestampTz
past(Datum time) noexcept
{
	return Max(Min(DatumGetTimestampTz(time), GetCurrentTimestamp()), 0);
}

/* A time to which years can be added, or infinity. */
static TimestampTz
future(Datum time) noexcept
{
	if (DatumGetTimestampTz(time) > DT_NOEND - 4 * LONGEST_LEASE_DAYS * USECS_PER_DAY)
		return DT_NOEND;
	return Max(DatumGetTimestampTz(time), 0);
}

/* A row with LEASE_COLUMNS, in the memory of SPI's caller. */
static LeaseRow
row_of(const OwnRow &row, const Era &era)
{
	LeaseRow	lease = {};

	lease.key = Key{row.bigint(1)};
	lease.ns = row.text(2);
	lease.name = row.text(3);
	lease.role = DatumGetObjectId(row.column(4, REGROLEOID));
	lease.owner = row.text(5);
	lease.token = row.bigint(6);
	lease.ttl = length_of(row.column(8, INTERVALOID));
	lease.lock_delay = length_of(row.column(9, INTERVALOID));
	lease.acquired_at = past(row.column(10, TIMESTAMPTZOID));
	lease.renewed_at = past(row.column(11, TIMESTAMPTZOID));
	lease.ends_at = future(row.column(12, TIMESTAMPTZOID));
	lease.renewals = row.bigint(13);

	/*
	 * Nobody knows how much of the TTL was left when the server of the older era ended.  Their
	 * clocks may differ by a minute.
	 */
	lease.is_restarted = row.bigint(7) != era.number && !lease.is_over_for(USECS_PER_MINUTE, era.began_at);
	if (lease.is_restarted)
		lease.ends_at = era.began_at + lease.ttl;
	return lease;
}

/*
 * Lock the table in the mode of the statements that read or write it, without waiting.  Returns its
 * OID; InvalidOid if another session has locked it.
 */
static Oid
lock_table_now(LOCKMODE mode)
{
	Oid			table = own_relation(LEASES, RELKIND_RELATION);

	return ConditionalLockRelationOid(table, mode) ? table : InvalidOid;
}

/* The rows that a statement finds, palloc'd; null if there are none. */
static LeaseRow *
read_rows(OwnStatement *select, int64 value, int *count)
{
	Era			era = token_era_seen();
	LeaseRow   *rows = nullptr;

	*count = static_cast<int>(run_own_statement(select, {argument(value)}, [&](const OwnRow &row) {
		if (rows == nullptr)
			rows = static_cast<LeaseRow *>(SPI_palloc(sizeof(LeaseRow) * SPI_processed));
		rows[row.number] = row_of(row, era);
	}));
	return rows;
}

/* The lease with this key, palloc'd; null if there is none. */
static LeaseRow *
read_row(Key key)
{
	int			count;

	return read_rows(&SELECT_LEASE, key.value, &count);
}

LeaseRow *
lease_row_read_now(Key key)
{
	LeaseRow   *lease = nullptr;
	bool		has_memory = unless_lock_table_is_full([&]() {
		if (OidIsValid(lock_table_now(AccessShareLock)))
			lease = read_row(key);
	});

	return has_memory ? lease : nullptr;
}

LeaseRow *
lease_rows_read(int *count)
{
	LeaseRow   *leases = nullptr;
	bool		is_locked = false;
	bool		has_memory = unless_lock_table_is_full([&]() {
		is_locked = !OidIsValid(lock_table_now(AccessShareLock));
		if (!is_locked)
			leases = read_rows(&SELECT_LEASES, SHOWN_LEASES + 1, count);
	});

	if (is_locked || !has_memory)
	{
		*count = 0;
		ereport(NOTICE,
				(errcode(is_locked ? ERRCODE_LOCK_NOT_AVAILABLE : ERRCODE_OUT_OF_MEMORY),
				 errmsg("leases are not shown"),
				 is_locked
				 ? errdetail("Another session has locked table \"advisory._leases\".")
				 : errdetail("The server's lock table is full.")));
	}
	else if (*count > SHOWN_LEASES)
	{
		*count = SHOWN_LEASES;
		ereport(NOTICE, (errmsg("only %d leases are shown", SHOWN_LEASES)));
	}
	return leases;
}

/*
 * Insert or replace the row of a lease with this token, which is granted to the current user.
 * Returns when it expires.
 */
static TimestampTz
grant_row(const LockName &name, const Lease &lease)
{
	int64		era = token_era();
	TimestampTz now = GetCurrentTimestamp();
	Interval	ttl = {lease.ttl, 0, 0};
	Interval	lock_delay = {lease.lock_delay, 0, 0};

	run_own_statement(
		&GRANT_LEASE,
		{argument(name.key.value), argument(lease.token), argument(name.ns), argument(name.name), argument(lease.owner),
		 NullableDatum{ObjectIdGetDatum(GetUserId()), false}, argument(era), NullableDatum{IntervalPGetDatum(&ttl), false},
		 NullableDatum{IntervalPGetDatum(&lock_delay), false}, argument(now)});
	return now + lease.ttl;
}

/*
 * Renew the lease, which must still have this token; ttl 0 keeps its TTL.  Returns when it expires.
 */
static TimestampTz
renew_row(const LeaseRow &lease, int64 ttl)
{
	int64		era = token_era();
	Interval	new_ttl = {ttl, 0, 0};
	TimestampTz expires_at = 0;

	run_own_statement(
		&RENEW_LEASE,
		{argument(lease.key.value), argument(lease.token), NullableDatum{IntervalPGetDatum(&new_ttl), ttl == 0}, argument(era),
		 argument(GetCurrentTimestamp())},
		[&](const OwnRow &row) {
			expires_at = DatumGetTimestampTz(row.column(1, TIMESTAMPTZOID));
		});
	return expires_at;
}

/* Delete the row if it still has this token and was renewed as often. */
static void
delete_row(const LeaseRow &lease)
{
	run_own_statement(&DELETE_LEASE, {argument(lease.key.value), argument(lease.token), argument(lease.renewals)});
}

/* ---- Locks ---- */

/* How many locks of leases this transaction holds; too many if a subtransaction was rolled back. */
static int	locks_taken = 0;

int
lease_lock_estimate() noexcept
{
	return locks_taken;
}

/*
 * Take a lease's lock until the transaction ends.  With dont_wait returns false if it cannot be had
 * at once.
 */
static bool
lock_lease(Key key, LOCKMODE mode, bool dont_wait)
{
	LOCKTAG		tag = lease_tag(MyDatabaseId, key);

	if (LockAcquire(&tag, mode, false, dont_wait) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	locks_taken++;
	return true;
}

/*
 * Release the lock if nothing was changed, so that no session waits for the end of this transaction
 * without need.
 */
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

/*
 * Remember to wake the queue.  Call this before any change, because it can fail; it also attaches
 * to the lock table.
 */
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

void
lease_check_can_change(const char *function)
{
	PreventCommandIfReadOnly(function);
	PreventCommandIfParallelMode(function);
}

/*
 * Is the lease free, according to its row?  Sets lease->before.  The end of the subtransaction
 * releases the locks on the table, because no session may have to wait for them while this session
 * waits; and the memory.
 */
static bool
looks_free(const LockRequest &request)
{
	Lease	   *lease = request.lease;

	lease->before = {};
	in_subtransaction([&]() {
		MemoryContextSwitchTo(CurTransactionContext);
		/*
		 * The restart of leases must be stored once.  But who waits without a snapshot must not get
		 * a transaction ID.
		 */
		if (!sleeps_without_vxid_lock)
			token_era();
		if (const LeaseRow *row = read_row(request.name.key))
			lease->before = *row;
		return false;
	});
	/* Gone with that memory. */
	lease->before.ns = lease->before.name = lease->before.owner = nullptr;
	InvalidateCatalogSnapshot();
	return GetCurrentTimestamp() >= lease->before.free_at();
}

/*
 * The same for the first in the queue, which waits for transactions that are taking or ending the
 * lease.
 *
 * It must not request ExclusiveLock.  If that request waited for a transaction that has renewed the
 * lease, or relies on it, later requests would have to wait behind it, and the owner could not
 * renew the lease.  RowShareLock conflicts with ExclusiveLock only.
 *
 * It goes on waiting while the server's lock table is full, like a session that waits for a lock.
 */
static bool
becomes_free(const LockRequest &request)
{
	Key			key = request.name.key;
	bool		is_free = false;

	if (!unless_lock_table_is_full([&]() {
		sleeping([&]() { lock_lease(key, RowShareLock, false); });
		is_free = looks_free(request);
		unlock_lease(key, RowShareLock);
	}))
		request.lease->before.ends_at = DT_NOEND;
	return is_free;
}

/*
 * Leases that expired and are not taken again leave their rows.  Delete those that nobody has
 * wanted for a week, among the neighbours of a lease that was just granted.  So the table has few
 * of them, and a grant costs the same for any number of leases. Nobody can take such a lease until
 * this transaction ends, so this is not for transaction blocks.
 */
static void
delete_forgotten_neighbours(Key key)
{
	LeaseRow   *rows;
	int			count;

	if (IsTransactionBlock() || IsolationUsesXactSnapshot())
		return;
	rows = read_rows(&SELECT_NEIGHBOURS, key.value, &count);
	for (int i = 0; i < count; i++)
		if (rows[i].is_over_for(7 * USECS_PER_DAY, GetCurrentTimestamp()) && lock_lease(rows[i].key, ExclusiveLock, true))
			delete_row(rows[i]);
}

/*
 * Take the lease if it is still free.  The caller holds its lock in ExclusiveLock mode, and keeps
 * it if the lease was taken; otherwise it is released.
 */
static bool
take_or_unlock(const LockRequest &request)
{
	Lease	   *lease = request.lease;
	Key			key = request.name.key;

	check_client();
	/* In a subtransaction first, because below a lock on the table is kept. */
	if (!looks_free(request))
	{
		unlock_lease(key, ExclusiveLock);
		return false;
	}
	commit_synchronously();
	lease->token = token_make();
	lease->expires_at = grant_row(request.name, *lease);
	delete_forgotten_neighbours(key);
	return true;
}

bool
lease_take_if_free(const LockRequest &request)
{
	/*
	 * Do not wait for a session that has locked the table, and do not overtake sessions that wait.
	 * Take no lock before the lease looks free, because another session that tries at the same time
	 * would find the lock taken.
	 */
	Oid			table = lock_table_now(RowExclusiveLock);
	bool		is_taken;

	if (!OidIsValid(table))
		return false;
	is_taken = !is_held_by_anybody(request.tag()) && looks_free(request) &&
		lock_lease(request.name.key, ExclusiveLock, true) && take_or_unlock(request);
	if (!is_taken)
		UnlockRelationOid(table, RowExclusiveLock);
	return is_taken;
}

void
lease_wait(const LockRequest &request)
{
	LOCKTAG		queue = request.tag();
	Key			key = request.name.key;
	Deadline	deadline(Timeout{LockTimeout > 0 ? LockTimeout : -1});

	/*
	 * lock_timeout limits the whole wait, which has several steps.  The caller restores the
	 * setting.
	 */
	auto		limit_step = [&deadline]() {
		if (LockTimeout > 0)
			LockTimeout = Max(deadline.remaining().milliseconds, 1);
	};

	if (is_held_by_me(lease_tag(MyDatabaseId, key), Mode::exclusive))
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
			sleeping([&]() { lock_lease(key, ExclusiveLock, false); });
			if (take_or_unlock(request))
				break;
		}

		Timeout		left = deadline.remaining();
		long		until_free = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), request.lease->before.free_at());
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

static bool
try_lease_now(Attempt *attempt)
{
	return lease_take_if_free(attempt->request);
}

static void
wait_for_lease(Attempt *attempt)
{
	const LockRequest &request = attempt->request;

	publish_wait(request.tag(), 0, attempt->name->used());
	lease_wait(request);
}

static char *
describe_lease(const LockRequest &, const char *name)
{
	return psprintf("lease \"%s\"", name);
}

static const WaitRoutine LEASE_ROUTINE = {
	nullptr, nullptr, try_lease_now, nullptr, wait_for_lease, nullptr, nullptr, describe_lease};

Outcome
lease_take(const LockRequest &request, Timeout timeout)
{
	Attempt		attempt = {request};
	Outcome		outcome = Outcome::granted;

	CHECK_FOR_INTERRUPTS();
	check_pool_limit(request);
	attempt.name = name_ask(request.name);
	if (!try_lease_now(&attempt))
		outcome = timeout.is_immediate()
			? Outcome::not_free : bounded_wait(LEASE_ROUTINE, &attempt, timeout);

	/*
	 * The statements on the table of leases may have called functions that asked for other locks:
	 * ask for the name again.
	 */
	attempt.name = name_ask(request.name);
	if (outcome == Outcome::granted)
	{
		const Lease &lease = *request.lease;

		count_event(attempt.name, Event::acquired);
		if (NameStats *stats = stats_of_name(attempt.name))
		{
			stats_note_acquired(stats, GetCurrentTimestamp());
			/* The lease before it had expired.  If there was none this adds nothing. */
			stats_add(&stats->hold, Max(lease.before.acquired_at, stats_reset_at(stats)),
					  lease.before.ends_at);
		}
		log_wait(LEASE_ROUTINE, attempt, "and obtained it");
		CHECK_FOR_INTERRUPTS();
	}
	else
	{
		count_event(attempt.name, attempt.wait_start == 0 ? Event::failed : Event::timed_out);
		log_wait(LEASE_ROUTINE, attempt, "and timed out");
	}
	name_end_asking();
	return outcome;
}

char *
lease_describe_holder(Key key)
{
	const LeaseRow *row = lease_row_read_now(key);
	TimestampTz now = GetCurrentTimestamp();
	bool		is_over;
	StringInfoData out;

	if (row == nullptr || now >= row->free_at())
		return nullptr;

	/* After its end only its lock_delay is in the way. */
	is_over = now >= row->ends_at;
	initStringInfo(&out);
	if (may_see_role(row->role))
		appendStringInfo(&out, "\"%s\" %s it", row->owner, is_over ? "held" : "holds");
	else
		appendStringInfo(&out, "It %s held", is_over ? "was" : "is");
	appendStringInfo(&out, " until %s.", timestamptz_to_str(row->ends_at));
	if (row->lock_delay > 0)
		appendStringInfo(&out, " Nobody else can take it before %s.", timestamptz_to_str(row->free_at()));
	make_printable(out.data);
	return out.data;
}

/* ---- For its owner ---- */

/*
 * The lease, if it has this token and the current user may use it, or with ANY_TOKEN; null
 * otherwise.
 */
static LeaseRow *
find_lease(Key key, int64 token)
{
	LeaseRow   *lease = read_row(key);

	if (lease == nullptr || token == ANY_TOKEN || (lease->token == token && lease->is_mine()))
		return lease;
	return nullptr;
}

/*
 * The same, and lock it in this mode.  A call that is late, or has a foreign token, finds that out
 * without the lock, because the owner would have to wait behind it.  The end of the subtransaction
 * releases the lock on the table before this session waits.
 */
static LeaseRow *
find_and_lock_lease(const LockName &name, int64 token, LOCKMODE mode)
{
	LeaseRow   *lease = nullptr;

	in_subtransaction([&]() {
		lease = find_lease(name.key, token);
		return false;
	});
	if (lease == nullptr)
		return nullptr;
	if (!lock_lease(name.key, mode, true))
		with_error_context([&]() {
		errcontext("while waiting for lease \"%s\"", display_name(name));
	}, [&]() {
			lock_lease(name.key, mode, false);
		});
	lease = find_lease(name.key, token);
	if (lease == nullptr)
		unlock_lease(name.key, mode);
	return lease;
}

TimestampTz
lease_renew(const LockName &name, int64 token, int64 ttl)
{
	const LeaseRow *lease;

	lease_check_can_change("advisory.renew_lease()");
	/*
	 * Wait for a session that takes the lease over; and for another renewal, so that the new time
	 * is later than its time.
	 */
	lease = find_and_lock_lease(name, token, LEASE_RENEWED);
	if (lease == nullptr)
		return 0;
	/* The first in the queue sleeps until the lease expires, unless that is earlier now. */
	if (GetCurrentTimestamp() + (ttl > 0 ? ttl : lease->ttl) < lease->ends_at)
		wake_at_end(name.key);
	commit_synchronously();
	return renew_row(*lease, ttl);
}

bool
lease_end(const LockName &name, int64 token)
{
	const LeaseRow *lease;

	lease_check_can_change(token == ANY_TOKEN ? "advisory.break_lease()" : "advisory.end_lease()");
	lease = find_and_lock_lease(name, token, ExclusiveLock);
	if (lease == nullptr)
		return false;
	wake_at_end(name.key);
	delete_row(*lease);
	if (NameStats *stats = stats_of_name(name_ask(name)))
		stats_add(&stats->hold, Max(lease->acquired_at, stats_reset_at(stats)), Min(lease->ends_at, GetCurrentTimestamp()));
	name_end_asking();
	return true;
}

void
lease_check(const LockName &name, int64 token)
{
	PreventCommandDuringRecovery("advisory.check_lease()");
	PreventCommandIfParallelMode("advisory.check_lease()");
	if (find_and_lock_lease(name, token, LEASE_RELIED_ON) == nullptr)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("lease \"%s\" with token " INT64_FORMAT " is lost", display_name(name), token),
				 errdetail("The lease was ended, or it expired and was taken over, or it belongs to another role."),
				 set_lock_fields(name)));
}

}								/* namespace advisory */
