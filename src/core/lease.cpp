/*
 * core/lease.cpp
 *		Leases: holds that outlive a session or a server.
 */
#include "base/pg.h"

extern "C" {
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
}

#include "base/encoding.h"
#include "base/errors.h"
#include "base/guc.h"
#include "core/lease.h"
#include "core/namecache.h"
#include "core/owntables.h"
#include "core/token.h"
#include "server/backends.h"
#include "server/locallock.h"
#include "server/lockhash.h"
#include "server/locktable.h"
#include "server/vxidlock.h"

namespace advisory
{

static constexpr char LEASES[] = "_leases";

/*
 * Modes of a lease's lock.  A transaction that changes the owner takes ExclusiveLock, and a session that checks whether the
 * lease is free takes RowShareLock.  The two modes below conflict with ExclusiveLock.  Renewals conflict with each other, but
 * transactions that rely on the lease do not conflict with renewals or with each other.
 */
static constexpr LOCKMODE LEASE_RENEWED = ShareUpdateExclusiveLock;
static constexpr LOCKMODE LEASE_RELIED_ON = RowExclusiveLock;

/* The first in the queue looks again at least this often, because the server's clock may have been set. */
static constexpr int LOOK_AFTER_MS = 5000;

/* ---- The table ---- */

/*
 * The statements see the latest committed data, because a lease that was taken after the transaction's snapshot must not count
 * as lost.  $1 is the key, if a statement has one.
 */

/* A LeaseRow. */
#define LEASE_COLUMNS "key, namespace, name, role, owner, token, era, ttl, lock_delay, acquired_at, renewed_at, expires_at, renewals"

static OwnStatement SELECT_LEASE = {
	LEASES,
	"SELECT " LEASE_COLUMNS " FROM advisory._leases WHERE key OPERATOR(pg_catalog.=) $1",
	SPI_OK_SELECT, true, false, {INT8OID}, nullptr};

static OwnStatement SELECT_LEASES = {
	LEASES,
	"SELECT " LEASE_COLUMNS " FROM advisory._leases",
	SPI_OK_SELECT, true, false, {}, nullptr};

static OwnStatement GRANT_LEASE = {
	LEASES,
	"INSERT INTO advisory._leases (key, token, namespace, name, owner, role, era, ttl, lock_delay, acquired_at, renewed_at, expires_at, renewals)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $10 OPERATOR(pg_catalog.+) $8, 0)"
	" ON CONFLICT (key) DO UPDATE SET token = EXCLUDED.token, namespace = EXCLUDED.namespace, name = EXCLUDED.name, owner = EXCLUDED.owner,"
	" role = EXCLUDED.role, era = EXCLUDED.era, ttl = EXCLUDED.ttl, lock_delay = EXCLUDED.lock_delay, acquired_at = EXCLUDED.acquired_at,"
	" renewed_at = EXCLUDED.renewed_at, expires_at = EXCLUDED.expires_at, renewals = 0"
	" RETURNING expires_at",
	SPI_OK_INSERT_RETURNING, true, true,
	{INT8OID, INT8OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT8OID, INTERVALOID, INTERVALOID, TIMESTAMPTZOID}, nullptr};

static OwnStatement RENEW_LEASE = {
	LEASES,
	"UPDATE advisory._leases SET ttl = COALESCE($3, ttl), era = $4, renewed_at = $5, expires_at = $5 OPERATOR(pg_catalog.+) COALESCE($3, ttl),"
	" renewals = renewals OPERATOR(pg_catalog.+) 1"
	" WHERE key OPERATOR(pg_catalog.=) $1 AND token OPERATOR(pg_catalog.=) $2 RETURNING expires_at",
	SPI_OK_UPDATE_RETURNING, true, false, {INT8OID, INT8OID, INTERVALOID, INT8OID, TIMESTAMPTZOID}, nullptr};

static OwnStatement END_LEASE = {
	LEASES,
	"DELETE FROM advisory._leases WHERE key OPERATOR(pg_catalog.=) $1 AND token OPERATOR(pg_catalog.=) $2 RETURNING " LEASE_COLUMNS,
	SPI_OK_DELETE_RETURNING, true, false, {INT8OID, INT8OID}, nullptr};

/* The row stays because of its lock_delay.  It gets a token that no session has, and a TTL of 0 for the case of a later era. */
static OwnStatement BREAK_LEASE = {
	LEASES,
	"UPDATE advisory._leases SET token = $2, ttl = '0', expires_at = $3, era = $4 WHERE key OPERATOR(pg_catalog.=) $1",
	SPI_OK_UPDATE, true, false, {INT8OID, INT8OID, TIMESTAMPTZOID, INT8OID}, nullptr};

/* A row with LEASE_COLUMNS, in the memory of SPI's caller. */
static LeaseRow
lease_of(const OwnRow &row, const Era &era)
{
	LeaseRow	lease = {};
	char	   *role = row.text(4, NAMEOID);
	char	   *owner = result_text(5, row.number);

	lease.key = Key{row.bigint(1)};
	lease.ns = row.text(2, TEXTOID);
	lease.name = row.text(3, TEXTOID);
	lease.owner = owner != nullptr ? owner : role;
	lease.role = get_role_oid(role, true);
	lease.token = row.bigint(6);
	lease.is_of_older_era = row.bigint(7) != era.number;
	lease.ttl = SPI_datumTransfer(row.column(8, INTERVALOID), false, sizeof(Interval));
	lease.lock_delay = DatumGetIntervalP(row.column(9, INTERVALOID))->time;
	lease.acquired_at = row.time(10);
	lease.renewed_at = row.time(11);
	lease.ends_at = lease.is_of_older_era
		? DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval, TimestampTzGetDatum(era.began_at), lease.ttl))
		: row.time(12);
	lease.renewals = row.bigint(13);
	return lease;
}

static bool
read_lease(Key key, const Era &era, LeaseRow *lease)
{
	return run_own_statement(&SELECT_LEASE, {argument(key.value)}, [&](const OwnRow &row) {
		*lease = lease_of(row, era);
	}) > 0;
}

/* Lock the table for reading, and get the era.  False if that is impossible without waiting, because views must not wait. */
static bool
can_read_leases(Era *era)
{
	return ConditionalLockRelationOid(own_relation(LEASES, RELKIND_RELATION), AccessShareLock) && token_era_seen(era);
}

bool
lease_read(Key key, LeaseRow *lease)
{
	bool		is_found = false;

	return unless_lock_table_is_full([&]() {
		Era			era;

		is_found = can_read_leases(&era) && read_lease(key, era, lease);
	}) && is_found;
}

LeaseRow *
lease_read_all(int *count)
{
	LeaseRow   *leases = nullptr;

	*count = 0;
	bool		has_read = unless_lock_table_is_full([&]() {
		Era			era;

		if (!can_read_leases(&era))
			return;
		run_own_statement(&SELECT_LEASES, {}, [&](const OwnRow &row) {
			if (leases == nullptr)
				leases = static_cast<LeaseRow *>(SPI_palloc(sizeof(LeaseRow) * row.count));
			leases[(*count)++] = lease_of(row, era);
		});
	});
	if (!has_read)
		*count = 0;
	return leases;
}

bool
lease_is_visible(const LeaseRow &lease)
{
	return OidIsValid(lease.role) ? may_see_role(lease.role) : may_see_all();
}

void
lease_check_can_change(const char *function)
{
	PreventCommandIfReadOnly(function);
	PreventCommandIfParallelMode(function);
}

/* ---- Taking ---- */

/*
 * If a standby is promoted, commits that it has not received are lost.  So a transaction that grants or renews a
 * lease waits for the synchronous standby, if there is one.
 */
static void
raise_synchronous_commit()
{
	if (setting::lease_sync && synchronous_commit < SYNCHRONOUS_COMMIT_REMOTE_FLUSH)
		(void) set_config_option("synchronous_commit", "on", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}

/* When a lease can be taken over. */
static TimestampTz
end_of_delay(const LeaseRow &row) noexcept
{
	/* The owner of the table can make it last for ever. */
	return TIMESTAMP_IS_NOEND(row.ends_at) ? row.ends_at : row.ends_at + row.lock_delay;
}

/* Wait for a lease's lock, and keep it until the transaction ends.  The context of an error names the lease. */
static void
lock_lease(const LockName &name, LOCKMODE mode)
{
	LOCKTAG		tag = lease_tag(MyDatabaseId, name.key);

	if (LockAcquire(&tag, mode, false, true) != LOCKACQUIRE_NOT_AVAIL)
		return;
	with_error_context(psprintf("while waiting for lease \"%s\"", display_name(name)), [&]() {
		LockAcquire(&tag, mode, false, false);
	});
}

/* Take the lease if it is free; else set free_at.  The caller holds the lease's lock, and keeps it if the lease was taken. */
static bool
take(const LockRequest &request)
{
	Lease	   *lease = request.lease;
	Key			key = request.name.key;
	Era			era = token_era();
	LeaseRow	row = {};

	lease->free_at = 0;
	lease->replaced_from = lease->replaced_until = 0;
	if (read_lease(key, era, &row))
	{
		lease->free_at = end_of_delay(row);
		lease->replaced_from = row.acquired_at;
		lease->replaced_until = row.ends_at;
	}

	TimestampTz now = GetCurrentTimestamp();

	if (now < lease->free_at)
		return false;
	raise_synchronous_commit();
	lease->token = token_make();

	run_own_statement(
		&GRANT_LEASE,
		{argument(key.value), argument(lease->token), argument(request.name.ns), argument(request.name.name),
		 lease->owner != nullptr ? argument(lease->owner) : NULL_ARGUMENT, argument(GetUserNameFromId(GetUserId(), false)),
		 argument(era.number), interval_argument(lease->ttl), interval_argument(lease->lock_delay), argument(now)},
		[&](const OwnRow &granted) {
			lease->expires_at = granted.time(1);
		});
	return true;
}

/* If nothing was changed, release the lease's lock, so that no session waits for the end of this transaction without need. */
static bool
unlock_unless(bool is_changed, Key key, LOCKMODE mode)
{
	LOCKTAG		tag = lease_tag(MyDatabaseId, key);

	if (!is_changed)
		LockRelease(&tag, mode, false);
	return is_changed;
}

/* Wait for a lock of a lease until it is granted. */
static void
sleep_for(const LOCKTAG &tag, LOCKMODE mode)
{
	sleeping([&]() { LockAcquire(&tag, mode, false, false); });
}

/*
 * Is the lease free?  Sets free_at.  Waits for transactions that are taking or ending the lease; with dont_wait it counts as
 * not free then.
 *
 * This must not request ExclusiveLock.  If that request waited for a transaction that has renewed the lease, or relies on it,
 * later requests would have to wait behind it, and the owner could not renew the lease.  RowShareLock conflicts with
 * ExclusiveLock only.
 *
 * The end of the subtransaction releases the locks on the table, because no session may have to wait for them while this
 * session waits.
 */
static bool
looks_free(const LockRequest &request, bool dont_wait)
{
	LOCKTAG		tag = lease_tag(MyDatabaseId, request.name.key);
	LeaseRow	row = {};

	request.lease->free_at = 0;
	if (LockAcquire(&tag, RowShareLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
	{
		if (dont_wait)
			return false;
		sleep_for(tag, RowShareLock);
	}
	/* The table may have been changed or replaced while this session waited. */
	AcceptInvalidationMessages();
	in_subtransaction([&]() {
		if (read_lease(request.name.key, token_era(), &row))
			request.lease->free_at = end_of_delay(row);
		return false;
	});
	LockRelease(&tag, RowShareLock, false);
	InvalidateCatalogSnapshot();
	return GetCurrentTimestamp() >= request.lease->free_at;
}

/*
 * As take(), but releases the lease's lock if the lease is not free.  That is found out in a subtransaction first, because
 * take() keeps a lock on the table.
 */
static bool
take_or_unlock(const LockRequest &request)
{
	return unlock_unless(looks_free(request, true) && take(request), request.name.key, ExclusiveLock);
}

bool
lease_take_if_free(const LockRequest &request)
{
	LOCKTAG		queue = request.tag();
	LOCKTAG		tag = lease_tag(MyDatabaseId, request.name.key);
	bool		is_taken;

	/* Do not overtake sessions that wait. */
	if (LockAcquire(&queue, ExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	is_taken = looks_free(request, true) &&
		LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL && take_or_unlock(request);
	LockRelease(&queue, ExclusiveLock, false);
	return is_taken;
}

/* The time that is left until a deadline, in milliseconds. */
static int
milliseconds_until(TimestampTz deadline) noexcept
{
	return static_cast<int>(Min(TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline), PG_INT32_MAX));
}

void
lease_wait(const LockRequest &request)
{
	LOCKTAG		queue = request.tag();
	LOCKTAG		tag = lease_tag(MyDatabaseId, request.name.key);
	TimestampTz deadline = LockTimeout > 0 ? TimestampTzPlusMilliseconds(GetCurrentTimestamp(), LockTimeout) : DT_NOEND;

	/* lock_timeout limits the whole wait, which has several steps.  The caller restores the setting. */
	auto		limit_step = [deadline]() {
		if (LockTimeout > 0)
			LockTimeout = Max(milliseconds_until(deadline), 1);
	};

	sleep_for(queue, ExclusiveLock);
	for (;;)
	{
		limit_step();
		if (looks_free(request, false))
		{
			limit_step();
			sleep_for(tag, ExclusiveLock);
			if (take_or_unlock(request))
				break;
			InvalidateCatalogSnapshot();
		}
		if (milliseconds_until(deadline) == 0)
			ereport(ERROR,		/* as the server does */
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("canceling statement due to lock timeout")));
		sleeping([&]() {
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							 Min(milliseconds_until(Min(request.lease->free_at, deadline)), LOOK_AFTER_MS),
							 PG_WAIT_LOCK | LOCKTAG_ADVISORY);
		});
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	LockRelease(&queue, ExclusiveLock, false);
}

char *
lease_describe_holder(Key key)
{
	LeaseRow	row = {};
	bool		is_over;
	StringInfoData out;

	if (!lease_read(key, &row) || GetCurrentTimestamp() >= end_of_delay(row))
		return nullptr;

	/* After its end only its lock_delay is in the way. */
	is_over = GetCurrentTimestamp() >= row.ends_at;
	initStringInfo(&out);
	if (lease_is_visible(row))
		appendStringInfo(&out, "\"%s\" %s it", row.owner, is_over ? "held" : "holds");
	else
		appendStringInfo(&out, "It %s held", is_over ? "was" : "is");
	appendStringInfo(&out, " until %s.", timestamptz_to_str(row.ends_at));
	if (row.lock_delay > 0)
		appendStringInfo(&out, " Nobody else can take it before %s.", timestamptz_to_str(end_of_delay(row)));
	make_printable(out.data);
	return out.data;
}

/* ---- Leases that end ---- */

/* The queues to wake when this transaction has ended. */
static LOCKTAG *ended = nullptr;
static int	ended_count = 0;
static int	ended_capacity = 0;

/* Remember to wake the queue.  Call this before any change, because it can fail; it also attaches to the lock table. */
static void
wake_at_end(Key key)
{
	lock_tables();
	if (ended_count == ended_capacity)
	{
		int			capacity = Max(2 * ended_capacity, 8);

		ended = static_cast<LOCKTAG *>(ended == nullptr
									   ? MemoryContextAlloc(TopMemoryContext, sizeof(LOCKTAG) * capacity)
									   : repalloc(ended, sizeof(LOCKTAG) * capacity));
		ended_capacity = capacity;
	}
	ended[ended_count++] = lease_queue_tag(MyDatabaseId, key);
}

void
lease_wake_waiters() noexcept
{
	while (ended_count > 0)
		wake_holders(ended[--ended_count]);
}

bool
lease_renew(const LockName &name, int64 token, int64 ttl, TimestampTz *expires_at)
{
	lease_check_can_change("advisory.renew_lease()");
	/* Wait for a session that takes the lease over; and for another renewal, so that the time below is later than its time. */
	lock_lease(name, LEASE_RENEWED);
	raise_synchronous_commit();

	uint64		renewed = run_own_statement(
		&RENEW_LEASE,
		{argument(name.key.value), argument(token), ttl > 0 ? interval_argument(ttl) : NULL_ARGUMENT, argument(token_era().number),
		 argument(GetCurrentTimestamp())},
		[&](const OwnRow &row) {
			*expires_at = row.time(1);
		});

	return unlock_unless(renewed > 0, name.key, LEASE_RENEWED);
}

bool
lease_end(const LockName &name, int64 token)
{
	LeaseRow	lease = {};

	lease_check_can_change("advisory.end_lease()");
	wake_at_end(name.key);
	lock_lease(name, ExclusiveLock);

	Era			era = token_era();
	uint64		ended_rows = run_own_statement(&END_LEASE, {argument(name.key.value), argument(token)}, [&](const OwnRow &row) {
		lease = lease_of(row, era);
	});

	if (!unlock_unless(ended_rows > 0, name.key, ExclusiveLock))
		return false;
	if (NameStats *stats = stats_of_name(name_ask(name)))
		stats_add(&stats->hold, Max(lease.acquired_at, stats_reset_at(stats)), Min(lease.ends_at, GetCurrentTimestamp()));
	name_end_asking();
	return true;
}

bool
lease_break(const LockName &name)
{
	if (!has_privs_of_role(GetUserId(), owner_of_relation(own_relation(LEASES, RELKIND_RELATION))))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to break a lease"),
				 errdetail("Only the owner of table \"advisory._leases\" may break leases.")));
	lease_check_can_change("advisory.break_lease()");
	wake_at_end(name.key);
	lock_lease(name, ExclusiveLock);

	uint64		broken = run_own_statement(&BREAK_LEASE, {argument(name.key.value), argument(token_make()),
														  argument(GetCurrentTimestamp()), argument(token_era().number)});

	return unlock_unless(broken > 0, name.key, ExclusiveLock);
}

void
lease_check(const LockName &name, int64 token)
{
	LeaseRow	row = {};

	PreventCommandDuringRecovery("advisory.check_lease()");
	PreventCommandIfParallelMode("advisory.check_lease()");
	lock_lease(name, LEASE_RELIED_ON);
	if (!read_lease(name.key, token_era(), &row) || row.token != token)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("lease \"%s\" with token " INT64_FORMAT " is lost", display_name(name), token),
				 errdetail("The lease was ended, or it expired and was taken over."),
				 set_lock_fields(name)));
}

}								/* namespace advisory */
