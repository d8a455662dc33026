/*
 * core/lease.cpp
 *		Leases: holds that outlive a session or a server.
 */
#include "base/pg.h"

extern "C" {
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
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
#include "server/locktable.h"

namespace advisory
{

static constexpr char LEASES[] = "_leases";

/* The first in the queue looks again so often, whatever it was told: the server's clock may have been set. */
static constexpr int LOOK_AFTER_MS = 5000;

/* ---- The table ---- */

namespace
{

/* A statement on the table, whose plan is kept. */
struct Statement
{
	const char *text;
	int			result;			/* of SPI */
	int			argument_count;
	Oid			types[10];
	SPIPlanPtr	plan;
};

/* The present lease of a name. */
struct LeaseRow
{
	int64		token;
	int64		era;			/* of its last renewal */
	TimestampTz expires_at;		/* in that era */
	TimestampTz ttl_from_era;	/* when its TTL would be over if it began with the present era */
	TimestampTz acquired_at;
	int64		lock_delay;		/* in microseconds */
	char	   *owner;			/* or null */
	char	   *role;
};

}								/* anonymous namespace */

/* In all of them $1 is the key. */

/* A LeaseRow, where $2 is when the present era began. */
#define LEASE_COLUMNS "token, era, expires_at, $2 OPERATOR(pg_catalog.+) ttl, acquired_at, lock_delay, owner, role"

static Statement SELECT_LEASE = {
	"SELECT " LEASE_COLUMNS " FROM advisory._leases WHERE key OPERATOR(pg_catalog.=) $1",
	SPI_OK_SELECT, 2, {INT8OID, TIMESTAMPTZOID}};

static Statement GRANT_LEASE = {
	"INSERT INTO advisory._leases (key, token, namespace, name, owner, role, era, ttl, lock_delay, acquired_at, renewed_at, expires_at, renewals)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $10 OPERATOR(pg_catalog.+) $8, 0)"
	" ON CONFLICT (key) DO UPDATE SET token = EXCLUDED.token, namespace = EXCLUDED.namespace, name = EXCLUDED.name, owner = EXCLUDED.owner,"
	" role = EXCLUDED.role, era = EXCLUDED.era, ttl = EXCLUDED.ttl, lock_delay = EXCLUDED.lock_delay, acquired_at = EXCLUDED.acquired_at,"
	" renewed_at = EXCLUDED.renewed_at, expires_at = EXCLUDED.expires_at, renewals = 0"
	" RETURNING expires_at",
	SPI_OK_INSERT_RETURNING, 10, {INT8OID, INT8OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT8OID, INTERVALOID, INTERVALOID, TIMESTAMPTZOID}};

static Statement RENEW_LEASE = {
	"UPDATE advisory._leases SET ttl = COALESCE($3, ttl), era = $4, renewed_at = $5, expires_at = $5 OPERATOR(pg_catalog.+) COALESCE($3, ttl),"
	" renewals = renewals OPERATOR(pg_catalog.+) 1"
	" WHERE key OPERATOR(pg_catalog.=) $1 AND token OPERATOR(pg_catalog.=) $2 RETURNING expires_at",
	SPI_OK_UPDATE_RETURNING, 5, {INT8OID, INT8OID, INTERVALOID, INT8OID, TIMESTAMPTZOID}};

static Statement END_LEASE = {
	"DELETE FROM advisory._leases WHERE key OPERATOR(pg_catalog.=) $1 AND token OPERATOR(pg_catalog.=) $3 RETURNING " LEASE_COLUMNS,
	SPI_OK_DELETE_RETURNING, 3, {INT8OID, TIMESTAMPTZOID, INT8OID}};

/* The row stays for the sake of its lock_delay, with a token that nobody has. */
static Statement BREAK_LEASE = {
	"UPDATE advisory._leases SET token = $2, expires_at = $3, era = $4 WHERE key OPERATOR(pg_catalog.=) $1",
	SPI_OK_UPDATE, 4, {INT8OID, INT8OID, TIMESTAMPTZOID, INT8OID}};

/*
 * Run a statement as the table's owner, and then use() on its rows, of which there are so many; its
 * result is in memory that is freed behind it.  The statement sees what is committed now, whatever the
 * isolation level: a lease that was taken since the transaction's snapshot must not count as lost.  May ereport.
 */
template <typename Use>
static void
run_statement(Statement *statement, const NullableDatum *arguments, Use use)
{
	Datum		values[lengthof(statement->types)];
	char		nulls[lengthof(statement->types)];

	for (int i = 0; i < statement->argument_count; i++)
	{
		values[i] = arguments[i].value; // NOLINT(clang-analyzer-core.uninitialized.Assign): there are argument_count
		nulls[i] = arguments[i].isnull ? 'n' : ' ';
	}
	as_owner_of(own_relation(LEASES), [&]() {
		SPI_connect();
		if (statement->plan == nullptr)
		{
			SPIPlanPtr	prepared = SPI_prepare(statement->text, statement->argument_count, statement->types);

			if (prepared == nullptr || SPI_keepplan(prepared) != 0)
				elog(ERROR, "could not prepare a statement on leases");
			statement->plan = prepared;
		}

		/* A parallel operation can get no other snapshot than its own. */
		int			result = SPI_execute_snapshot(statement->plan, values, nulls, IsInParallelMode() ? GetActiveSnapshot() : GetLatestSnapshot(),
												  InvalidSnapshot, statement->result == SPI_OK_SELECT, true, 0);

		if (result != statement->result)
			elog(ERROR, "could not run a statement on leases: %s", SPI_result_code_string(result));
		use(SPI_processed);
		SPI_finish();
	});
}

static NullableDatum
datum(Datum value) noexcept
{
	return NullableDatum{value, false};
}

static Datum
result_column(int column, uint64 row = 0)
{
	bool		is_null;

	return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column, &is_null);
}

/* A text of the result in the memory of SPI's caller; null for null. */
static char *
result_text(int column, uint64 row = 0)
{
	char	   *text = SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column);

	return text != nullptr ? strcpy(static_cast<char *>(SPI_palloc(strlen(text) + 1)), text) : nullptr;
}

static NullableDatum
interval_datum(int64 microseconds)
{
	auto	   *interval = static_cast<Interval *>(palloc0(sizeof(Interval)));

	interval->time = microseconds;
	return datum(IntervalPGetDatum(interval));
}

/* The first row of a result with LEASE_COLUMNS. */
static LeaseRow
result_lease()
{
	LeaseRow	row;

	row.token = DatumGetInt64(result_column(1));
	row.era = DatumGetInt64(result_column(2));
	row.expires_at = DatumGetTimestampTz(result_column(3));
	row.ttl_from_era = DatumGetTimestampTz(result_column(4));
	row.acquired_at = DatumGetTimestampTz(result_column(5));
	row.lock_delay = DatumGetIntervalP(result_column(6))->time;
	row.owner = result_text(7);
	row.role = result_text(8);
	return row;
}

static bool
read_lease(Key key, const Era &era, LeaseRow *row)
{
	NullableDatum arguments[] = {datum(Int64GetDatum(key.value)), datum(TimestampTzGetDatum(era.began_at))};
	bool		is_there = false;

	run_statement(&SELECT_LEASE, arguments, [&](uint64 count) {
		is_there = count > 0;
		if (is_there)
			*row = result_lease();
	});
	return is_there;
}

/* When a lease ends; one of an older era has its whole TTL from the beginning of this one on. */
static TimestampTz
end_of_lease(const LeaseRow &row, const Era &era) noexcept
{
	return row.era == era.number ? row.expires_at : row.ttl_from_era;
}

static Statement SELECT_LEASES = {
	"SELECT namespace, name, role, owner, token, ttl, acquired_at, renewed_at,"
	" CASE WHEN era OPERATOR(pg_catalog.=) $1 THEN expires_at ELSE $2 OPERATOR(pg_catalog.+) ttl END,"
	" renewals, era OPERATOR(pg_catalog.<>) $1, key FROM advisory._leases",
	SPI_OK_SELECT, 2, {INT8OID, TIMESTAMPTZOID}};

ShownLease *
lease_read_all(int *count)
{
	ShownLease *leases = nullptr;

	*count = 0;
	bool		has_read = unless_lock_table_is_full([&]() {
		Era			era = token_era_seen();
		NullableDatum arguments[] = {datum(Int64GetDatum(era.number)), datum(TimestampTzGetDatum(era.began_at))};

		run_statement(&SELECT_LEASES, arguments, [&](uint64 rows) {
			leases = static_cast<ShownLease *>(SPI_palloc(sizeof(ShownLease) * Max(rows, 1)));
			for (uint64 row = 0; row < rows; row++)
			{
				ShownLease &lease = leases[(*count)++];

				lease.ns = result_text(1, row);
				lease.name = result_text(2, row);
				lease.role = get_role_oid(result_text(3, row), true);
				lease.owner = result_text(4, row);
				lease.token = DatumGetInt64(result_column(5, row));
				lease.ttl = SPI_datumTransfer(result_column(6, row), false, sizeof(Interval));
				lease.acquired_at = DatumGetTimestampTz(result_column(7, row));
				lease.renewed_at = DatumGetTimestampTz(result_column(8, row));
				lease.expires_at = DatumGetTimestampTz(result_column(9, row));
				lease.renewals = DatumGetInt64(result_column(10, row));
				lease.is_of_older_era = DatumGetBool(result_column(11, row));
				lease.key = Key{DatumGetInt64(result_column(12, row))};
			}
		});
	});
	if (!has_read)
		*count = 0;
	return leases;
}

bool
lease_is_visible(const ShownLease &lease)
{
	return may_see_all() || (OidIsValid(lease.role) && may_see_role(lease.role));
}

const char *
lease_owner(const ShownLease &lease)
{
	return lease.owner != nullptr ? lease.owner : role_name(lease.role);
}

void
lease_check_can_change(const char *function)
{
	PreventCommandIfReadOnly(function);
	PreventCommandIfParallelMode(function);
}

/* ---- Taking ---- */

/*
 * A commit that the standby has not got is lost if the standby is promoted.  So a transaction that grants
 * or renews a lease waits for the standby, where there is a synchronous one.
 */
static void
raise_synchronous_commit()
{
	if (setting::lease_sync && synchronous_commit < SYNCHRONOUS_COMMIT_REMOTE_FLUSH)
		(void) set_config_option("synchronous_commit", "on", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}

/* When a lease can be taken over. */
static TimestampTz
end_of_delay(const LeaseRow &row, const Era &era) noexcept
{
	TimestampTz end = end_of_lease(row, era);

	/* The owner of the table can make it last for ever. */
	return TIMESTAMP_IS_NOEND(end) ? end : end + row.lock_delay;
}

/* Wait for a lease's lock, which stays until the transaction ends.  An error says which lease it is about. */
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

/* With the lease's lock held, which stays until the transaction ends: take the lease if it is free; else free_at is set. */
static bool
take(const LockRequest &request)
{
	Lease	   *lease = request.lease;
	Key			key = request.name.key;
	Era			era = token_era();
	LeaseRow	row;

	lease->free_at = 0;
	lease->replaced_from = lease->replaced_until = 0;
	if (read_lease(key, era, &row))
	{
		lease->free_at = end_of_delay(row, era);
		lease->replaced_from = row.acquired_at;
		lease->replaced_until = end_of_lease(row, era);
	}

	TimestampTz now = GetCurrentTimestamp();

	if (now < lease->free_at)
		return false;
	raise_synchronous_commit();
	lease->token = token_make();

	NullableDatum arguments[] = {
		datum(Int64GetDatum(key.value)), datum(Int64GetDatum(lease->token)),
		datum(PointerGetDatum(cstring_to_text_with_len(request.name.ns.data(), static_cast<int>(request.name.ns.size())))),
		datum(PointerGetDatum(cstring_to_text_with_len(request.name.name.data(), static_cast<int>(request.name.name.size())))),
		lease->owner != nullptr ? datum(CStringGetTextDatum(lease->owner)) : NullableDatum{Datum(0), true},
		datum(CStringGetTextDatum(GetUserNameFromId(GetUserId(), false))),
		datum(Int64GetDatum(era.number)), interval_datum(lease->ttl), interval_datum(lease->lock_delay), datum(TimestampTzGetDatum(now))};

	run_statement(&GRANT_LEASE, arguments, [&](uint64) {
		lease->expires_at = DatumGetTimestampTz(result_column(1));
	});
	return true;
}

/* The same, which releases that lock if the lease is not free. */
static bool
take_or_unlock(const LockRequest &request)
{
	LOCKTAG		tag = lease_tag(MyDatabaseId, request.name.key);

	if (take(request))
		return true;
	LockRelease(&tag, ExclusiveLock, false);
	return false;
}

/*
 * Is the lease free?  Sets free_at.  Waits for those who are taking or ending it; with dont_wait it is not free then.
 *
 * Those who renew it, or rely on it, hold its lock in ShareLock mode.  A request for ExclusiveLock that waits for them
 * makes later requests for ShareLock wait, too, so that the owner could not renew the lease while a transaction
 * relies on it.  RowShareLock conflicts with ExclusiveLock, but not with ShareLock.
 */
static bool
looks_free(const LockRequest &request, bool dont_wait)
{
	LOCKTAG		tag = lease_tag(MyDatabaseId, request.name.key);
	LeaseRow	row;

	request.lease->free_at = 0;
	if (LockAcquire(&tag, RowShareLock, false, dont_wait) == LOCKACQUIRE_NOT_AVAIL)
		return false;

	Era			era = token_era();

	if (read_lease(request.name.key, era, &row))
		request.lease->free_at = end_of_delay(row, era);
	LockRelease(&tag, RowShareLock, false);
	return GetCurrentTimestamp() >= request.lease->free_at;
}

bool
lease_take_if_free(const LockRequest &request)
{
	LOCKTAG		queue = request.tag();
	LOCKTAG		tag = lease_tag(MyDatabaseId, request.name.key);
	bool		is_taken;

	/* Not ahead of those who wait. */
	if (LockAcquire(&queue, ExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	is_taken = looks_free(request, true) &&
		LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL && take_or_unlock(request);
	LockRelease(&queue, ExclusiveLock, false);
	return is_taken;
}

/* What is left until a deadline, in milliseconds. */
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

	/* It is one wait, of several steps.  The caller restores the setting. */
	auto		limit_step = [deadline]() {
		if (LockTimeout > 0)
			LockTimeout = Max(milliseconds_until(deadline), 1);
	};

	LockAcquire(&queue, ExclusiveLock, false, false);
	for (;;)
	{
		limit_step();
		if (looks_free(request, false))
		{
			limit_step();
			LockAcquire(&tag, ExclusiveLock, false, false);
			if (take_or_unlock(request))
				break;
		}
		if (milliseconds_until(deadline) == 0)
			ereport(ERROR,		/* as the server does */
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("canceling statement due to lock timeout")));
		InvalidateCatalogSnapshot();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min(milliseconds_until(Min(request.lease->free_at, deadline)), LOOK_AFTER_MS),
						 PG_WAIT_LOCK | LOCKTAG_ADVISORY);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	LockRelease(&queue, ExclusiveLock, false);
}

char *
lease_describe_holder(Key key)
{
	LeaseRow	row;
	Era			era = token_era_seen();
	StringInfoData out;

	if (!read_lease(key, era, &row) || GetCurrentTimestamp() >= end_of_delay(row, era))
		return nullptr;

	Oid			role = get_role_oid(row.role, true);

	initStringInfo(&out);
	if (may_see_all() || (OidIsValid(role) && may_see_role(role)))
		appendStringInfo(&out, "\"%s\" holds it", row.owner != nullptr ? row.owner : row.role);
	else
		appendStringInfoString(&out, "It is held");
	appendStringInfo(&out, " until %s.", timestamptz_to_str(end_of_lease(row, era)));
	if (row.lock_delay > 0)
		appendStringInfo(&out, " Nobody else can take it before %s.", timestamptz_to_str(end_of_delay(row, era)));
	make_printable(out.data);
	return out.data;
}

/* ---- Leases that end ---- */

/* The queues to wake when this transaction has ended. */
static LOCKTAG *ended = nullptr;
static int	ended_count = 0;
static int	ended_capacity = 0;

/* Remember it; before anything is changed, since this can fail. */
static void
wake_at_end(Key key)
{
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
	bool		is_there = false;

	lease_check_can_change("advisory.renew_lease()");
	/* Whoever is taking the lease over decides first. */
	lock_lease(name, ShareLock);
	raise_synchronous_commit();

	NullableDatum arguments[] = {datum(Int64GetDatum(name.key.value)), datum(Int64GetDatum(token)),
								 ttl > 0 ? interval_datum(ttl) : NullableDatum{Datum(0), true},
								 datum(Int64GetDatum(token_era().number)), datum(TimestampTzGetDatum(GetCurrentTimestamp()))};

	run_statement(&RENEW_LEASE, arguments, [&](uint64 count) {
		is_there = count > 0;
		if (is_there)
			*expires_at = DatumGetTimestampTz(result_column(1));
	});
	return is_there;
}

bool
lease_end(const LockName &name, int64 token)
{
	LeaseRow	row;
	bool		is_there = false;

	lease_check_can_change("advisory.end_lease()");
	wake_at_end(name.key);
	lock_lease(name, ExclusiveLock);

	Era			era = token_era();
	NullableDatum arguments[] = {datum(Int64GetDatum(name.key.value)), datum(TimestampTzGetDatum(era.began_at)), datum(Int64GetDatum(token))};

	run_statement(&END_LEASE, arguments, [&](uint64 count) {
		is_there = count > 0;
		if (is_there)
			row = result_lease();
	});
	if (is_there)
	{
		if (NameStats *stats = stats_of_name(name_ask(name)))
			stats_add(&stats->hold, Max(row.acquired_at, stats_reset_at(stats)), Min(end_of_lease(row, era), GetCurrentTimestamp()));
		name_end_asking();
	}
	return is_there;
}

bool
lease_break(const LockName &name)
{
	bool		is_there = false;

	if (!has_privs_of_role(GetUserId(), owner_of_relation(own_relation(LEASES))))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to break a lease"),
				 errdetail("Only the owner of the extension's table of leases may do that.")));
	lease_check_can_change("advisory.break_lease()");
	wake_at_end(name.key);
	lock_lease(name, ExclusiveLock);

	NullableDatum arguments[] = {datum(Int64GetDatum(name.key.value)), datum(Int64GetDatum(token_make())),
								 datum(TimestampTzGetDatum(GetCurrentTimestamp())), datum(Int64GetDatum(token_era().number))};

	run_statement(&BREAK_LEASE, arguments, [&](uint64 count) {
		is_there = count > 0;
	});
	return is_there;
}

void
lease_check(const LockName &name, int64 token)
{
	LeaseRow	row;

	PreventCommandDuringRecovery("advisory.check_lease()");
	PreventCommandIfParallelMode("advisory.check_lease()");
	lock_lease(name, ShareLock);
	if (!read_lease(name.key, token_era(), &row) || row.token != token)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("lease \"%s\" with token " INT64_FORMAT " is lost", display_name(name), token),
				 errdetail("It was ended, or has expired and was taken over."),
				 set_lock_fields(name)));
}

}								/* namespace advisory */
