/*
 * core/leasetable.cpp
 *		The rows of advisory._leases.
 */
#include "base/pg.h"

#include "base/errors.h"
#include "core/leasetable.h"
#include "core/owntables.h"

namespace advisory
{

static constexpr char LEASES[] = "_leases";

/* No view shows more.  Any role can take any number of leases, and must not make the views too slow for others. */
static constexpr int SHOWN_LEASES = 10000;

/*
 * A LeaseRow.  A restored dump may contain any text, so no more of it is read than the functions of this extension write.
 * Column numbers are those of row_of().
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
	"UPDATE advisory._leases SET ttl = $3, era = $4, renewed_at = $5, expires_at = $5 + $3, renewals = renewals + 1"
	" WHERE key = $1 AND token = $2",
	SPI_OK_UPDATE, true, true, {INT8OID, INT8OID, INTERVALOID, INT8OID, TIMESTAMPTZOID}, nullptr};

static OwnStatement DELETE_LEASE = {
	LEASES,
	"DELETE FROM advisory._leases WHERE key = $1 AND token = $2 AND renewals = $3",
	SPI_OK_DELETE, true, false, {INT8OID, INT8OID, INT8OID}, nullptr};

/* A TTL or lock_delay.  The functions of this extension write nothing else than a number of microseconds within these limits. */
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

	/* Nobody knows how much of the TTL was left when the server of the older era ended.  Their clocks may differ by a minute. */
	lease.is_restarted = row.bigint(7) != era.number && !lease.is_over_for(USECS_PER_MINUTE, era.began_at);
	if (lease.is_restarted)
		lease.ends_at = era.began_at + lease.ttl;
	return lease;
}

Oid
lease_table_lock(LOCKMODE mode)
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

LeaseRow *
lease_row_read(Key key)
{
	int			count;

	return read_rows(&SELECT_LEASE, key.value, &count);
}

LeaseRow *
lease_row_read_now(Key key)
{
	LeaseRow   *lease = nullptr;

	return unless_lock_table_is_full([&]() {
		if (OidIsValid(lease_table_lock(AccessShareLock)))
			lease = lease_row_read(key);
	}) ? lease : nullptr;
}

LeaseRow *
lease_rows_beside(Key key, int *count)
{
	return read_rows(&SELECT_NEIGHBOURS, key.value, count);
}

LeaseRow *
lease_rows_read(int *count)
{
	LeaseRow   *leases = nullptr;
	bool		is_locked = false;
	bool		has_memory = unless_lock_table_is_full([&]() {
		is_locked = !OidIsValid(lease_table_lock(AccessShareLock));
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

TimestampTz
lease_row_grant(const LockName &name, const Lease &lease)
{
	TimestampTz now = GetCurrentTimestamp();
	Interval	ttl = {lease.ttl, 0, 0};
	Interval	lock_delay = {lease.lock_delay, 0, 0};

	run_own_statement(
		&GRANT_LEASE,
		{argument(name.key.value), argument(lease.token), argument(name.ns), argument(name.name), argument(lease.owner),
		 NullableDatum{ObjectIdGetDatum(GetUserId()), false}, argument(token_era()), NullableDatum{IntervalPGetDatum(&ttl), false},
		 NullableDatum{IntervalPGetDatum(&lock_delay), false}, argument(now)});
	return now + lease.ttl;
}

TimestampTz
lease_row_renew(const LeaseRow &lease, int64 ttl)
{
	TimestampTz now = GetCurrentTimestamp();
	Interval	new_ttl = {ttl, 0, 0};

	run_own_statement(
		&RENEW_LEASE,
		{argument(lease.key.value), argument(lease.token), NullableDatum{IntervalPGetDatum(&new_ttl), false}, argument(token_era()),
		 argument(now)});
	return now + ttl;
}

bool
lease_row_delete(const LeaseRow &lease)
{
	return run_own_statement(&DELETE_LEASE, {argument(lease.key.value), argument(lease.token), argument(lease.renewals)}) > 0;
}

}								/* namespace advisory */
