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
static constexpr char LEASES_KEY[] = "_leases_pkey";

/* The places of columns in the table, where it is read without a statement. */
enum Column
{
	COLUMN_SLOT = 2,
	COLUMN_SLOTS = 3,
	COLUMN_TOKEN = 4,
	COLUMN_ERA = 8,
	COLUMN_TTL = 9,
	COLUMN_EXPIRES_AT = 13
};

/* No view shows more of a role: one that takes very many must not hide the leases of others. */
static constexpr int SHOWN_LEASES = 10000;

/* How many slots an error message describes. */
static constexpr int DESCRIBED_SLOTS = 5;

/* ---- Statements ---- */

/*
 * Every statement sees the latest committed data, because a lease that was taken after the
 * transaction's snapshot must not count as lost.
 *
 * The columns are a LeaseRow, and their numbers are those of row_of().  A restored dump may contain
 * any text, so no more of it is read than the functions of this extension write.
 */
#define STATE "key, slot, slots, role, role_name, server, token, era, ttl, lock_delay," \
	" acquired_at, renewed_at, expires_at, renewals, coalesce(max_hold, '0')"
#define TEXTS ", left(namespace, 1024), left(name, 1024), left(owner, 256)"

static OwnStatement SELECT_STATE = {
	LEASES,
	"SELECT " STATE " FROM advisory._leases WHERE key = $1 AND slot = $2",
	SPI_OK_SELECT, true};

static OwnStatement SELECT_LEASE = {
	LEASES,
	"SELECT " STATE TEXTS ", 1::bigint FROM advisory._leases"
	" WHERE key = $1 AND (slot > 0) = $2 ORDER BY expires_at, slot",
	SPI_OK_SELECT, true};

static OwnStatement SELECT_LEASES = {
	LEASES,
	"SELECT " STATE TEXTS ", place FROM advisory._leases JOIN (SELECT key, slot, row_number() OVER"
	" (PARTITION BY role ORDER BY expires_at DESC) AS place FROM advisory._leases) AS placed"
	" USING (key, slot) WHERE place <= $1",
	SPI_OK_SELECT, true};

static OwnStatement SELECT_NEIGHBOURS = {
	LEASES,
	"(SELECT " STATE " FROM advisory._leases WHERE (key, slot) > ($1, $2)"
	" ORDER BY key, slot LIMIT 8) UNION ALL"
	" (SELECT " STATE " FROM advisory._leases WHERE (key, slot) < ($1, $2)"
	" ORDER BY key DESC, slot DESC LIMIT 8)",
	SPI_OK_SELECT, true};

/* Both have the same arguments. */
static OwnStatement INSERT_LEASE = {
	LEASES,
	"INSERT INTO advisory._leases (key, token, namespace, name, owner, role, role_name, server,"
	" era, ttl, lock_delay, acquired_at, renewed_at, expires_at, renewals, slot, slots, max_hold)"
	" VALUES ($1, $2, $3, $4, $5, $6, pg_get_userbyid($6), $13, $7, $8, $9, $10, $10, $10 + $8, 0,"
	" $14, $15, $16)"
	" ON CONFLICT DO NOTHING",
	SPI_OK_INSERT, true};

static OwnStatement REPLACE_LEASE = {
	LEASES,
	"UPDATE advisory._leases SET token = $2, namespace = $3, name = $4, owner = $5, role = $6,"
	" role_name = pg_get_userbyid($6), server = $13, era = $7, ttl = $8, lock_delay = $9,"
	" acquired_at = $10, renewed_at = $10, expires_at = $10 + $8, renewals = 0, slots = $15,"
	" max_hold = $16"
	" WHERE key = $1 AND slot = $14 AND token = $11 AND renewals = $12",
	SPI_OK_UPDATE, true};

static OwnStatement RENEW_LEASE = {
	LEASES,
	"UPDATE advisory._leases SET ttl = $3, era = $4, renewed_at = $5, expires_at = $5 + $3,"
	" renewals = renewals + 1, role = $6, role_name = pg_get_userbyid($6), server = $7"
	" WHERE key = $1 AND slot = $9 AND token = $2 AND renewals = $8",
	SPI_OK_UPDATE, true};

static OwnStatement DELETE_LEASE = {
	LEASES,
	"DELETE FROM advisory._leases WHERE key = $1 AND slot = $4 AND token = $2 AND renewals = $3",
	SPI_OK_DELETE, true};

/* ---- Reading ---- */

/* A length of time: microseconds within these limits, unless a restored dump has others. */
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

/* A slot, or a number of slots, or 0. */
static int
slot_number(int32 number) noexcept
{
	return Max(Min(number, MAX_SLOTS), NO_SLOT);
}

/* A row with STATE, and perhaps TEXTS, in the memory of the caller; as in lease_row_read(). */
static LeaseRow
row_of(const OwnRow &row, bool has_texts)
{
	LeaseRow	lease = {};

	lease.is_there = true;
	lease.key = Key{row.bigint(1)};
	lease.slot = slot_number(row.integer(2));
	lease.slots = slot_number(row.integer(3));
	lease.role = role_here(DatumGetObjectId(row.column(4, OIDOID)),
						   NameStr(*DatumGetName(row.column(5, NAMEOID))), row.bigint(6));
	lease.token = row.bigint(7);
	lease.era = row.bigint(8);
	lease.ttl = length_of(row.column(9, INTERVALOID));
	lease.lock_delay = length_of(row.column(10, INTERVALOID));
	lease.acquired_at = past(row.column(11, TIMESTAMPTZOID));
	lease.renewed_at = past(row.column(12, TIMESTAMPTZOID));
	lease.ends_at = future(row.column(13, TIMESTAMPTZOID));
	lease.renewals = row.bigint(14);
	lease.max_hold = length_of(row.column(15, INTERVALOID));
	if (has_texts)
	{
		lease.ns = row.text(16);
		lease.name = row.text(17);
		lease.owner = row.text(18);
		lease.place = row.bigint(19);
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

/* The rows that a statement finds, palloc'd; null if there are none. */
static LeaseRow *
read_rows(OwnStatement *select, std::initializer_list<Argument> arguments, bool has_texts,
		  int *count)
{
	LeaseRow   *rows = nullptr;

	*count = static_cast<int>(run_own_statement(select, arguments, [&](const OwnRow &row) {
		if (rows == nullptr)
			rows = static_cast<LeaseRow *>(SPI_palloc(sizeof(LeaseRow) * SPI_processed));
		rows[row.number] = row_of(row, has_texts);
	}));
	lease_rows_obey_era(rows, *count, false);
	return rows;
}

bool
lease_table_lock_now(LOCKMODE mode)
{
	return ConditionalLockRelationOid(own_relation(LEASES, RELKIND_RELATION), mode);
}

LeaseRow
lease_row_read(Key key, int slot)
{
	LeaseRow	lease = {};

	run_own_statement(&SELECT_STATE, {argument(key.value), argument(slot)}, [&](const OwnRow &row) {
		lease = row_of(row, false);
	});
	return lease;
}

LeaseRow *
lease_slots_read(Key key, int first, int *count)
{
	OwnScan		scan(LEASES, LEASES_KEY, key.value, first);
	OwnRow		row;
	int			room = 16;
	auto	   *slots = static_cast<LeaseRow *>(palloc(sizeof(LeaseRow) * room));

	for (*count = 0; scan.next(&row); ++*count)
	{
		if (*count == room)
			slots = static_cast<LeaseRow *>(repalloc_huge(
				slots, sizeof(LeaseRow) * (room *= 2)));

		LeaseRow   &slot = slots[*count] = {};

		slot.slot = slot_number(row.integer(COLUMN_SLOT));
		slot.slots = slot_number(row.integer(COLUMN_SLOTS));
		slot.token = row.bigint(COLUMN_TOKEN);
		slot.era = row.bigint(COLUMN_ERA);
		slot.ttl = length_of(row.column(COLUMN_TTL, INTERVALOID));
		slot.ends_at = future(row.column(COLUMN_EXPIRES_AT, TIMESTAMPTZOID));
		slot.is_there = true;
	}
	scan.end();
	return slots;
}

/* The token and slot that this session took or found last: who renews a slot needs no search. */
static int64 last_token;
static int	last_slot;

LeaseRow
lease_row_find(Key key, int64 token)
{
	LeaseRow	lease = lease_row_read(key, token == last_token ? last_slot : NO_SLOT);
	int			count;

	if (lease.is_there && lease.token == token)
		return lease;

	const LeaseRow *slots = lease_slots_read(key, NO_SLOT, &count);
	const LeaseRow *found = std::find_if(slots, slots + count, [=](const LeaseRow &slot) {
		return slot.token == token;
	});

	if (found == slots + count)
		return LeaseRow{};
	last_token = token;
	last_slot = found->slot;
	lease = lease_row_read(key, found->slot);
	return lease.token == token ? lease : LeaseRow{};
}

int64
lease_rows_obey_era(LeaseRow *leases, int count, bool may_write)
{
	int64		era = may_write ? token_era() : 0;
	Era			present;

	/* Leases of the present era need no look at when that began. */
	if (may_write && std::all_of(leases, leases + count, [=](const LeaseRow &lease) {
		return lease.era == era;
	}))
		return era;
	present = token_era_seen();
	for (int i = 0; i < count; i++)
		restart(&leases[i], present);
	return present.number;
}

int
lease_count_held(Key key, bool of_slots)
{
	TimestampTz now;
	LeaseRow	lease;
	LeaseRow   *rows = &lease;
	int			count;

	if (of_slots)
		rows = lease_slots_read(key, 1, &count);
	else
	{
		lease = lease_row_read(key, NO_SLOT);
		count = lease.is_there;
	}
	lease_rows_obey_era(rows, count, false);
	now = GetCurrentTimestamp();	/* the table may have been locked */
	return static_cast<int>(std::count_if(rows, rows + count, [=](const LeaseRow &row) {
		return now < row.ends_at;
	}));
}

LeaseRow *
lease_rows_read_neighbours(Key key, int slot, int *count)
{
	return read_rows(&SELECT_NEIGHBOURS, {argument(key.value), argument(slot)}, false, count);
}

LeaseRow *
lease_rows_read_now(Key key, bool of_slots, int *count)
{
	LeaseRow   *leases = nullptr;

	*count = NOT_READ;
	unless_lock_table_is_full([&]() {
		if (lease_table_lock_now(AccessShareLock))
			leases = read_rows(&SELECT_LEASE, {argument(key.value),
				Argument{BoolGetDatum(of_slots), BOOLOID}}, true, count);
	});
	return leases;
}

LeaseRow *
lease_rows_read(int *count)
{
	LeaseRow   *leases = nullptr;
	bool		is_locked = false;
	bool		has_memory = unless_lock_table_is_full([&]() {
		is_locked = !lease_table_lock_now(AccessShareLock);
		if (!is_locked)
			leases = read_rows(&SELECT_LEASES, {argument(int64{SHOWN_LEASES})}, true, count);
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

/* The owner, or what a stranger may know: "worker-3" holds, It was held. */
static void
append_holder(StringInfo out, const LeaseRow &row, bool is_over, const char *what)
{
	if (may_see_role(row.role))
		appendStringInfo(out, "\"%s\" %s %s", row.owner, is_over ? "held" : "holds", what);
	else
		appendStringInfo(out, "%c%s %s held", pg_ascii_toupper(what[0]), what + 1,
						 is_over ? "was" : "is");
	appendStringInfo(out, " until %s.", timestamptz_to_str(row.ends_at));
}

char *
lease_describe_slots(Key key, int slots, Bitmapset **taken_slots)
{
	TimestampTz now = GetCurrentTimestamp();
	int			count;
	const LeaseRow *rows = lease_rows_read_now(key, true, &count);
	int			taken = 0;
	TimestampTz free_at = DT_NOEND;
	StringInfoData out;

	if (count == NOT_READ)
		return nullptr;
	initStringInfo(&out);
	for (int i = 0; i < count; i++)
	{
		const LeaseRow &row = rows[i];

		if (now >= row.ends_at || row.slot > slots)
			continue;
		free_at = Min(free_at, row.ends_at);
		*taken_slots = bms_add_member(*taken_slots, row.slot);
		if (taken++ >= DESCRIBED_SLOTS)
			continue;
		appendStringInfoChar(&out, '\n');

		int			start = out.len;

		append_holder(&out, row, false, psprintf("slot %d", row.slot));
		/* Names of owners must not look like further lines. */
		make_printable(out.data + start);
		out.len = static_cast<int>(strlen(out.data));
	}
	if (taken > DESCRIBED_SLOTS)
		appendStringInfo(&out, "\n%d more are held.", taken - DESCRIBED_SLOTS);
	if (taken == 0)
		return psprintf("0 of %d taken.", slots);
	return psprintf("%d of %d taken, the first until %s.%s", taken, slots,
					timestamptz_to_str(free_at), out.data);
}

char *
lease_describe_holder(Key key)
{
	int			count;
	const LeaseRow *row = lease_rows_read_now(key, false, &count);
	TimestampTz now = GetCurrentTimestamp();
	StringInfoData out;

	if (row == nullptr || now >= row->free_at())
		return nullptr;

	/* After its end only its lock_delay is in the way. */
	initStringInfo(&out);
	append_holder(&out, *row, now >= row->ends_at, "it");
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
	int64		length = lease->max_hold == 0 ? lease->ttl : Min(lease->ttl, lease->max_hold);
	Interval	ttl = {length, 0, 0};
	Interval	lock_delay = {lease->lock_delay, 0, 0};
	Interval	max_hold = {lease->max_hold, 0, 0};

	lease->ends_at = now + length;
	last_token = lease->token;
	last_slot = lease->slot;
	return run_own_statement(
		seen.is_there ? &REPLACE_LEASE : &INSERT_LEASE,
		{argument(name.key.value), argument(lease->token), argument(name.ns), argument(name.name),
		 argument(lease->owner), Argument{ObjectIdGetDatum(GetUserId()), OIDOID},
		 argument(lease->era), argument(&ttl), argument(&lock_delay), time_argument(now),
		 argument(seen.token), argument(seen.renewals), argument(server_identifier()),
		 argument(lease->slot), argument(lease->slots),
		 Argument{IntervalPGetDatum(&max_hold), INTERVALOID, lease->max_hold == 0}}) == 1;
}

TimestampTz
lease_row_renew(const LeaseRow &seen, int64 ttl, int64 era, TimestampTz now)
{
	Interval	interval = {ttl, 0, 0};
	Oid			role = OidIsValid(seen.role) ? seen.role : GetUserId();

	if (run_own_statement(&RENEW_LEASE, {argument(seen.key.value), argument(seen.token),
										 argument(&interval), argument(era), time_argument(now),
										 Argument{ObjectIdGetDatum(role), OIDOID},
										 argument(server_identifier()),
										 argument(seen.renewals), argument(seen.slot)}) == 0)
		return 0;
	return now + ttl;
}

bool
lease_row_delete(const LeaseRow &seen)
{
	return run_own_statement(&DELETE_LEASE, {argument(seen.key.value), argument(seen.token),
											 argument(seen.renewals), argument(seen.slot)}) == 1;
}

}								/* namespace advisory */
