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

/* No view shows more of a role: one that takes very many must not hide the leases of others. */
static constexpr int SHOWN_LEASES = 10000;

/* How many slots an error message describes. */
static constexpr int DESCRIBED_SLOTS = 5;

/* ---- Statements ---- */

/*
 * Every statement sees the latest committed data, because a lease that was taken after the
 * transaction's snapshot must not count as lost.
 */
static OwnStatement SELECT_LEASES = {
	LEASES,
	"SELECT lease.*, place FROM advisory._leases AS lease JOIN (SELECT key, slot, row_number() OVER"
	" (PARTITION BY role ORDER BY expires_at DESC) AS place FROM advisory._leases) AS placed"
	" USING (key, slot) WHERE place <= $1",
	SPI_OK_SELECT, true};

static OwnStatement SELECT_NEIGHBOURS = {
	LEASES,
	"(SELECT * FROM advisory._leases WHERE (key, slot) > ($1, $2)"
	" ORDER BY key, slot LIMIT 8) UNION ALL"
	" (SELECT * FROM advisory._leases WHERE (key, slot) < ($1, $2)"
	" ORDER BY key DESC, slot DESC LIMIT 8)",
	SPI_OK_SELECT, true};

static OwnStatement GRANT_LEASE = {
	LEASES,
	"INSERT INTO advisory._leases (key, slot, slots, token, role, role_name, server, era, ttl,"
	" lock_delay, acquired_at, renewed_at, expires_at, renewals, namespace, name, owner, max_hold)"
	" VALUES ($1, $2, $3, $4, $5, pg_get_userbyid($5), $6, $7, $8, $9, $10, $10, $10 + $8, 0, $11,"
	" $12, $13, $14)"
	" ON CONFLICT (key, slot) DO UPDATE SET slots = $3, token = $4, role = $5,"
	" role_name = EXCLUDED.role_name, server = $6, era = $7, ttl = $8, lock_delay = $9,"
	" acquired_at = $10, renewed_at = $10, expires_at = EXCLUDED.expires_at, renewals = 0,"
	" namespace = $11, name = $12, owner = $13, max_hold = $14",
	SPI_OK_INSERT, true};

static OwnStatement RENEW_LEASE = {
	LEASES,
	"UPDATE advisory._leases SET ttl = $3, era = $4, renewed_at = $5, expires_at = $5 + $3,"
	" renewals = renewals + 1, role = $6, role_name = pg_get_userbyid($6), server = $7"
	" WHERE key = $1 AND slot = $2",
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

/* A time to which years can be added, or infinity. */
static TimestampTz
time_of(Datum time) noexcept
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

/*
 * Restart those leases that are of an older era than the present one.  None was acquired or renewed
 * in the future.
 */
static void
settle(LeaseRows *leases)
{
	TimestampTz now = GetCurrentTimestamp();
	Era			present;

	if (leases->count == 0)
		return;
	present = token_era_seen();
	for (int i = 0; i < leases->count; i++)
	{
		LeaseRow   &lease = leases->rows[i];

		lease.acquired_at = Min(lease.acquired_at, now);
		lease.renewed_at = Min(lease.renewed_at, now);
		/* The clocks of the two servers may differ by a minute. */
		lease.is_restarted = lease.era != present.number &&
			!lease.is_over_for(USECS_PER_MINUTE, present.began_at);
		if (lease.is_restarted)
			lease.ends_at = present.began_at + lease.ttl;
	}
}

/* No rows yet. */
static LeaseRows
no_rows()
{
	constexpr int room = 16;

	return LeaseRows{static_cast<LeaseRow *>(palloc(sizeof(LeaseRow) * room)), 0, room};
}

/*
 * Add a row of the table, perhaps with its texts.  A restored dump may contain any text, so no more
 * of it is read than the functions of this extension write.
 */
static void
add_row(LeaseRows *leases, const OwnRow &row, bool has_texts)
{
	if (leases->count == leases->room)
		leases->rows = static_cast<LeaseRow *>(repalloc_huge(
			leases->rows, sizeof(LeaseRow) * (leases->room *= 2)));

	LeaseRow   &lease = leases->rows[leases->count++] = {};

	lease.is_there = true;
	lease.key = Key{row.bigint(1)};
	lease.slot = slot_number(row.integer(2));
	lease.slots = slot_number(row.integer(3));
	lease.token = row.bigint(4);
	lease.role = role_here(DatumGetObjectId(row.column(5, OIDOID)),
						   NameStr(*DatumGetName(row.column(6, NAMEOID))), row.bigint(7));
	lease.era = row.bigint(8);
	lease.ttl = length_of(row.column(9, INTERVALOID));
	lease.lock_delay = length_of(row.column(10, INTERVALOID));
	lease.acquired_at = time_of(row.column(11, TIMESTAMPTZOID));
	lease.renewed_at = time_of(row.column(12, TIMESTAMPTZOID));
	lease.ends_at = time_of(row.column(13, TIMESTAMPTZOID));
	lease.renewals = row.bigint(14);
	if (has_texts)
	{
		lease.ns = row.text(15, KEPT_NAME_BYTES);
		lease.name = row.text(16, KEPT_NAME_BYTES);
		lease.owner = row.text(17, LEASE_OWNER_BYTES);
	}
	if (!row.is_null(18))
		lease.max_hold = length_of(row.column(18, INTERVALOID));
}

LeaseRows
lease_rows_read(Key key, int first, int last, bool has_texts)
{
	LeaseRows	leases = no_rows();
	OwnScan		scan(LEASES, LEASES_KEY, key.value, first, last);

	while (scan.next())
		add_row(&leases, scan.row, has_texts);
	scan.end();
	settle(&leases);
	return leases;
}

bool
lease_table_lock_now(LOCKMODE mode)
{
	return ConditionalLockRelationOid(own_relation(LEASES, RELKIND_RELATION), mode);
}

LeaseRow
lease_row_read(Key key, int slot)
{
	LeaseRows	found = lease_rows_read(key, slot, slot);

	return found.count > 0 ? found.rows[0] : LeaseRow{};
}

/* The token and slot that this session took or found last: who renews a slot needs no search. */
static int64 last_token;
static int	last_slot;

LeaseRow
lease_row_find(Key key, int64 token)
{
	LeaseRow	lease = lease_row_read(key, token == last_token ? last_slot : NO_SLOT);

	if (lease.token == token)
		return lease;
	for (const LeaseRow &row : lease_rows_read(key, NO_SLOT, MAX_SLOTS))
	{
		if (row.token != token)
			continue;
		last_token = token;
		last_slot = row.slot;
		return row;
	}
	return LeaseRow{};
}

int
lease_count_held(Key key, bool of_slots)
{
	LeaseRows	leases = lease_rows_read(key, of_slots, of_slots ? MAX_SLOTS : NO_SLOT);
	TimestampTz now = GetCurrentTimestamp();	/* the table may have been locked */

	return static_cast<int>(std::count_if(leases.begin(), leases.end(), [=](const LeaseRow &row) {
		return now < row.ends_at;
	}));
}

LeaseRows
lease_rows_read_neighbours(Key key, int slot)
{
	LeaseRows	leases = no_rows();

	run_own_statement(&SELECT_NEIGHBOURS, {argument(key.value), argument(slot)},
					  [&](const OwnRow &row) { add_row(&leases, row, false); });
	settle(&leases);
	return leases;
}

LeaseRows
lease_rows_read_now(Key key, bool of_slots)
{
	LeaseRows	leases = {};

	unless_lock_table_is_full([&]() {
		if (lease_table_lock_now(AccessShareLock))
			leases = lease_rows_read(key, of_slots, of_slots ? MAX_SLOTS : NO_SLOT, true);
	});
	std::sort(leases.rows, leases.rows + leases.count, [](const LeaseRow &a, const LeaseRow &b) {
		return std::tie(a.ends_at, a.slot) < std::tie(b.ends_at, b.slot);
	});
	return leases;
}

LeasedSlots
lease_slots_held(Key key, int slots)
{
	TimestampTz now = GetCurrentTimestamp();
	LeaseRows	leases = lease_rows_read_now(key, true);
	LeasedSlots held = {leases.rows != nullptr};

	for (const LeaseRow &row : leases)
	{
		if (now < row.ends_at && row.slot <= slots)
			held.slots = bms_add_member(held.slots, row.slot);
	}
	return held;
}

LeaseRows
lease_rows_read_all()
{
	LeaseRows	leases = no_rows();
	bool		is_cut = false;
	bool		is_locked = false;
	bool		has_memory = unless_lock_table_is_full([&]() {
		is_locked = !lease_table_lock_now(AccessShareLock);
		if (is_locked)
			return;
		run_own_statement(&SELECT_LEASES, {argument(SHOWN_LEASES)}, [&](const OwnRow &row) {
			add_row(&leases, row, true);
			is_cut |= row.bigint(19) == SHOWN_LEASES;	/* its place */
		});
		settle(&leases);
	});

	if (is_locked || !has_memory)
	{
		ereport(NOTICE,
				(errcode(is_locked ? ERRCODE_LOCK_NOT_AVAILABLE : ERRCODE_OUT_OF_MEMORY),
				 errmsg("leases are not shown"),
				 is_locked
				 ? errdetail("Another session has locked table \"advisory._leases\".")
				 : errdetail("The server's lock table is full.")));
		return LeaseRows{};
	}
	if (is_cut)
		ereport(NOTICE, (errmsg("only %d leases of each role are shown", SHOWN_LEASES)));
	return leases;
}

/* The owner, or what a stranger may know: "worker-3" holds, It was held.  palloc'd. */
static char *
describe_holder(const LeaseRow &row, bool is_over, const char *what)
{
	bool		is_visible = may_see_role(row.role);
	const char *until = timestamptz_to_str(row.ends_at);
	char	   *text = is_visible
		? psprintf("\"%s\" %s %s until %s.", row.owner, is_over ? "held" : "holds", what, until)
		: psprintf("%c%s %s held until %s.", pg_ascii_toupper(what[0]), what + 1,
				   is_over ? "was" : "is", until);

	/* Names of owners must not look like further lines. */
	make_printable(text);
	return text;
}

char *
lease_describe_slots(Key key, int slots, Bitmapset **taken_slots)
{
	TimestampTz now = GetCurrentTimestamp();
	LeaseRows	leases = lease_rows_read_now(key, true);
	int			taken = 0;
	StringInfoData out;

	if (leases.rows == nullptr)
		return nullptr;
	initStringInfo(&out);
	for (const LeaseRow &row : leases)
	{
		if (now >= row.ends_at || row.slot > slots)
			continue;
		*taken_slots = bms_add_member(*taken_slots, row.slot);
		if (taken == 0)
			appendStringInfo(&out, ", the first until %s.", timestamptz_to_str(row.ends_at));
		if (taken++ < DESCRIBED_SLOTS)
			appendStringInfo(&out, "\n%s",
							 describe_holder(row, false, psprintf("slot %d", row.slot)));
	}
	if (taken > DESCRIBED_SLOTS)
		appendStringInfo(&out, "\n%d more are held.", taken - DESCRIBED_SLOTS);
	return psprintf("%d of %d taken%s", taken, slots, taken == 0 ? "." : out.data);
}

char *
lease_describe_holder(Key key)
{
	LeaseRows	leases = lease_rows_read_now(key, false);
	TimestampTz now = GetCurrentTimestamp();
	char	   *text;

	if (leases.count == 0 || now >= leases.rows[0].free_at())
		return nullptr;

	/* After its end only its lock_delay is in the way. */
	const LeaseRow &row = leases.rows[0];

	text = describe_holder(row, now >= row.ends_at, "it");
	return row.lock_delay == 0 ? text
		: psprintf("%s Nobody else can take it before %s.", text,
				   timestamptz_to_str(row.free_at()));
}

/* ---- Writing ---- */

void
lease_row_grant(const LockName &name, LeaseRow *lease)
{
	TimestampTz now = GetCurrentTimestamp();
	int64		length = lease->max_hold == 0 ? lease->ttl : Min(lease->ttl, lease->max_hold);
	Interval	ttl = {length, 0, 0};
	Interval	lock_delay = {lease->lock_delay, 0, 0};
	Interval	max_hold = {lease->max_hold, 0, 0};

	lease->ends_at = now + length;
	last_token = lease->token;
	last_slot = lease->slot;
	if (run_own_statement(
			&GRANT_LEASE,
			{argument(name.key.value), argument(lease->slot), argument(lease->slots),
			 argument(lease->token), Argument{ObjectIdGetDatum(GetUserId()), OIDOID},
			 argument(server_identifier()), argument(lease->era), argument(&ttl),
			 argument(&lock_delay), time_argument(now), argument(name.ns), argument(name.name),
			 argument(lease->owner),
			 Argument{IntervalPGetDatum(&max_hold), INTERVALOID, lease->max_hold == 0}}) == 0)
		raise_row_prevented(LEASES);
}

void
lease_row_renew(const LeaseRow &lease, int64 ttl, TimestampTz now)
{
	Interval	interval = {ttl, 0, 0};
	Oid			role = OidIsValid(lease.role) ? lease.role : GetUserId();

	if (run_own_statement(
			&RENEW_LEASE,
			{argument(lease.key.value), argument(lease.slot), argument(&interval),
			 argument(token_era()), time_argument(now), Argument{ObjectIdGetDatum(role), OIDOID},
			 argument(server_identifier())}) == 0)
		raise_row_prevented(LEASES);
}

bool
lease_row_delete(const LeaseRow &seen)
{
	return run_own_statement(&DELETE_LEASE, {argument(seen.key.value), argument(seen.token),
											 argument(seen.renewals), argument(seen.slot)}) == 1;
}

}								/* namespace advisory */
