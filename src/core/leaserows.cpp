/*
 * core/leaserows.cpp
 *		The rows of advisory._leases, which say who has a lease.
 */
#include "base/pg.h"

#include "base/encoding.h"
#include "base/errors.h"
#include "core/leaserows.h"
#include "core/owntables.h"
#include "core/token.h"
#include "server/backends.h"

namespace advisory
{

static constexpr char LEASES[] = "_leases";

/* No view shows more of a role: one that takes very many must not hide the leases of others. */
static constexpr int SHOWN_LEASES = 10000;

/* ---- Statements ---- */

/*
 * Every statement sees the latest committed data, because a lease that was taken after the
 * transaction's snapshot must not count as lost.
 *
 * The columns are a LeaseRow, and their numbers are those of row_of().  A restored dump may contain
 * any text, so no more of it is read than the functions of this extension write.
 */
#define STATE "key, role, role_name, server, token, era, ttl, lock_delay, acquired_at," \
	" renewed_at, expires_at, renewals"
#define TEXTS ", left(namespace, 1024), left(name, 1024), left(owner, 256)"

static OwnStatement SELECT_STATE = {
	LEASES,
	"SELECT " STATE " FROM advisory._leases WHERE key = $1",
	SPI_OK_SELECT, true};

static OwnStatement SELECT_LEASE = {
	LEASES,
	"SELECT " STATE TEXTS ", 1::bigint FROM advisory._leases WHERE key = $1",
	SPI_OK_SELECT, true};

static OwnStatement SELECT_LEASES = {
	LEASES,
	"SELECT " STATE TEXTS ", place FROM advisory._leases JOIN (SELECT key, row_number() OVER"
	" (PARTITION BY role ORDER BY expires_at DESC) AS place FROM advisory._leases) AS placed"
	" USING (key) WHERE place <= $1",
	SPI_OK_SELECT, true};

static OwnStatement SELECT_NEIGHBOURS = {
	LEASES,
	"(SELECT " STATE " FROM advisory._leases WHERE key > $1 ORDER BY key LIMIT 8) UNION ALL"
	" (SELECT " STATE " FROM advisory._leases WHERE key < $1 ORDER BY key DESC LIMIT 8)",
	SPI_OK_SELECT, true};

/* Both have the same arguments. */
static OwnStatement INSERT_LEASE = {
	LEASES,
	"INSERT INTO advisory._leases (key, token, namespace, name, owner, role, role_name, server,"
	" era, ttl, lock_delay, acquired_at, renewed_at, expires_at, renewals)"
	" VALUES ($1, $2, $3, $4, $5, $6, pg_get_userbyid($6), $13, $7, $8, $9, $10, $10, $10 + $8, 0)"
	" ON CONFLICT DO NOTHING",
	SPI_OK_INSERT, true};

static OwnStatement REPLACE_LEASE = {
	LEASES,
	"UPDATE advisory._leases SET token = $2, namespace = $3, name = $4, owner = $5, role = $6,"
	" role_name = pg_get_userbyid($6), server = $13, era = $7, ttl = $8, lock_delay = $9,"
	" acquired_at = $10, renewed_at = $10, expires_at = $10 + $8, renewals = 0"
	" WHERE key = $1 AND token = $11 AND renewals = $12",
	SPI_OK_UPDATE, true};

static OwnStatement RENEW_LEASE = {
	LEASES,
	"UPDATE advisory._leases SET ttl = $3, era = $4, renewed_at = $5, expires_at = $5 + $3,"
	" renewals = renewals + 1, role = $6, role_name = pg_get_userbyid($6), server = $7"
	" WHERE key = $1 AND token = $2 AND renewals = $8",
	SPI_OK_UPDATE, true};

static OwnStatement DELETE_LEASE = {
	LEASES,
	"DELETE FROM advisory._leases WHERE key = $1 AND token = $2 AND renewals = $3",
	SPI_OK_DELETE, true};

/* ---- Reading ---- */

/* A TTL or lock_delay: microseconds within these limits, unless a restored dump has others. */
static int64
length_of(Datum interval) noexcept
{
	return Max(Min(DatumGetIntervalP(interval)->time, LONGEST_DAYS * USECS_PER_DAY), 0);
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
	if (DatumGetTimestampTz(time) > DT_NOEND - 4 * LONGEST_DAYS * USECS_PER_DAY)
		return DT_NOEND;
	return Max(DatumGetTimestampTz(time), 0);
}

/* A row with STATE, and perhaps TEXTS, in the memory of the caller; as in lease_row_read(). */
static LeaseRow
row_of(const OwnRow &row, bool has_texts)
{
	LeaseRow	lease = {};

	lease.is_there = true;
	lease.key = Key{row.bigint(1)};
	lease.role = role_here(DatumGetObjectId(row.column(2, OIDOID)),
						   NameStr(*DatumGetName(row.column(3, NAMEOID))), row.bigint(4));
	lease.token = row.bigint(5);
	lease.era = row.bigint(6);
	lease.ttl = length_of(row.column(7, INTERVALOID));
	lease.lock_delay = length_of(row.column(8, INTERVALOID));
	lease.acquired_at = past(row.column(9, TIMESTAMPTZOID));
	lease.renewed_at = past(row.column(10, TIMESTAMPTZOID));
	lease.ends_at = future(row.column(11, TIMESTAMPTZOID));
	lease.renewals = row.bigint(12);
	if (has_texts)
	{
		lease.ns = row.text(13);
		lease.name = row.text(14);
		lease.owner = row.text(15);
		lease.place = row.bigint(16);
	}
	return lease;
}

/* Restart the lease if it is of an older era than the present one. */
static void
restart(LeaseRow *lease, const Era &present) noexcept
{
	/* The clocks of the two servers may differ by a minute. */
	lease->is_restarted = lease->era != present.number &&
		!lease->is_over_for(USECS_PER_MINUTE, present.began_at);
	if (lease->is_restarted)
		lease->ends_at = present.began_at + lease->ttl;
}

/* The rows that a statement finds for a value, palloc'd; null if there are none. */
static LeaseRow *
read_rows(OwnStatement *select, int64 value, bool has_texts, int *count)
{
	Era			present = token_era_seen();
	LeaseRow   *rows = nullptr;

	*count = static_cast<int>(run_own_statement(select, {argument(value)}, [&](const OwnRow &row) {
		if (rows == nullptr)
			rows = static_cast<LeaseRow *>(SPI_palloc(sizeof(LeaseRow) * SPI_processed));
		rows[row.number] = row_of(row, has_texts);
		restart(&rows[row.number], present);
	}));
	return rows;
}

bool
lease_table_lock_now(LOCKMODE mode)
{
	return ConditionalLockRelationOid(own_relation(LEASES, RELKIND_RELATION), mode);
}

LeaseRow
lease_row_read(Key key)
{
	LeaseRow	lease = {};

	run_own_statement(&SELECT_STATE, {argument(key.value)}, [&](const OwnRow &row) {
		lease = row_of(row, false);
	});
	return lease;
}

int64
lease_row_obey_era(LeaseRow *lease, bool may_write)
{
	int64		era = may_write ? token_era() : 0;
	Era			present;

	/* A lease of the present era needs no look at when that began. */
	if (may_write && lease->era == era)
		return era;
	present = token_era_seen();
	restart(lease, present);
	return present.number;
}

LeaseRow *
lease_rows_read_neighbours(Key key, int *count)
{
	return read_rows(&SELECT_NEIGHBOURS, key.value, false, count);
}

LeaseRow *
lease_row_read_now(Key key)
{
	LeaseRow   *lease = nullptr;
	int			count;

	unless_lock_table_is_full([&]() {
		if (lease_table_lock_now(AccessShareLock))
			lease = read_rows(&SELECT_LEASE, key.value, true, &count);
	});
	return lease;
}

LeaseRow *
lease_rows_read(int *count)
{
	LeaseRow   *leases = nullptr;
	bool		is_locked = false;
	bool		has_memory = unless_lock_table_is_full([&]() {
		is_locked = !lease_table_lock_now(AccessShareLock);
		if (!is_locked)
			leases = read_rows(&SELECT_LEASES, SHOWN_LEASES, true, count);
	});

	if (is_locked || !has_memory)
		ereport(NOTICE,
				(errcode(is_locked ? ERRCODE_LOCK_NOT_AVAILABLE : ERRCODE_OUT_OF_MEMORY),
				 errmsg("leases are not shown"),
				 is_locked
				 ? errdetail("Another session has locked table \"advisory._leases\".")
				 : errdetail("The server's lock table is full.")));
	else if (std::any_of(leases, leases + *count, [](const LeaseRow &lease) {
		return lease.place == SHOWN_LEASES;
	}))
		ereport(NOTICE, (errmsg("only %d leases of each role are shown", SHOWN_LEASES)));
	return leases;
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
		appendStringInfo(&out, " Nobody else can take it before %s.",
						 timestamptz_to_str(row->free_at()));
	make_printable(out.data);
	return out.data;
}

/* ---- Writing ---- */

bool
lease_row_grant(const LockName &name, LeaseRow *lease, const LeaseRow &seen)
{
	TimestampTz now = GetCurrentTimestamp();
	Interval	ttl = {lease->ttl, 0, 0};
	Interval	lock_delay = {lease->lock_delay, 0, 0};

	lease->ends_at = now + lease->ttl;
	return run_own_statement(
		seen.is_there ? &REPLACE_LEASE : &INSERT_LEASE,
		{argument(name.key.value), argument(lease->token), argument(name.ns), argument(name.name),
		 argument(lease->owner), Argument{ObjectIdGetDatum(GetUserId()), OIDOID},
		 argument(lease->era), argument(&ttl), argument(&lock_delay), time_argument(now),
		 argument(seen.token), argument(seen.renewals), argument(server_identifier())}) == 1;
}

TimestampTz
lease_row_renew(const LeaseRow &seen, int64 ttl, int64 era)
{
	TimestampTz now = GetCurrentTimestamp();
	Interval	interval = {ttl, 0, 0};
	Oid			role = OidIsValid(seen.role) ? seen.role : GetUserId();

	if (run_own_statement(&RENEW_LEASE, {argument(seen.key.value), argument(seen.token),
										 argument(&interval), argument(era), time_argument(now),
										 Argument{ObjectIdGetDatum(role), OIDOID},
										 argument(server_identifier()),
										 argument(seen.renewals)}) == 0)
		return 0;
	return now + ttl;
}

bool
lease_row_delete(const LeaseRow &seen)
{
	return run_own_statement(&DELETE_LEASE, {argument(seen.key.value), argument(seen.token),
											 argument(seen.renewals)}) == 1;
}

}								/* namespace advisory */
