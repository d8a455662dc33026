/*
 * core/token.cpp
 *		Fencing tokens: numbers that grow with every holder of a lock.
 *
 * The era
 *
 * The sequence's value packs an era, the timeline that it belongs to, and a hash of the cluster and
 * the database.  On a later timeline of the same cluster the era grows by as much as the timeline,
 * so it does not matter whether a failover lost a change of the sequence.  In another cluster or
 * database, after pg_upgrade or a restored dump, it grows by the timeline of the cluster; so it
 * does on an earlier timeline of the same one, which only a restored dump can bring about.  The
 * first session that finds a sequence of another timeline or database brings it up to date, and
 * stores the time of that change, with the era again, in a second sequence.
 *
 * Somebody else may have written the first one: logical replication of all sequences, or a dump
 * that is restored into this one.  Then the two do not agree, or it is of another database, and the
 * era does not fall below that of any lease or fence.
 */
#include "base/pg.h"

#include "base/errors.h"
#include "core/namecache.h"
#include "core/owntables.h"
#include "core/token.h"
#include "server/backends.h"
#include "server/locallock.h"
#include "server/sequence.h"
#include "server/wal.h"

namespace advisory
{

/* A token, from the highest bit on: 0, the era, the position in units of 8 bytes. */
static constexpr int POSITION_BITS = 50;
static constexpr int64 LAST_ERA = (1 << 13) - 1;

/* The value of the sequence: 0, the era, the timeline, the system. */
static constexpr int ERA_BITS = 13;
static constexpr int TIMELINE_BITS = 13;
static constexpr int SYSTEM_BITS = 37;

static constexpr char ERA[] = "_era";
static constexpr char ERA_BEGAN[] = "_era_began";

/* ---- The era ---- */

/* The values of both sequences.  The second one has milliseconds since 2000, and the era. */
struct Cells
{
	int64		value;
	int64		began;

	/* 0 if there was none yet */
	int64		era() const noexcept { return value >> (TIMELINE_BITS + SYSTEM_BITS); }
	int64		era_that_began() const noexcept { return began & LAST_ERA; }
	TimestampTz began_at() const noexcept { return (began >> ERA_BITS) * 1000; }
};

static int64
read_cell(const char *name)
{
	return sequence_read(lock_own_relation(name, RELKIND_SEQUENCE, AccessShareLock));
}

static void
write_cell(const char *name, int64 value)
{
	sequence_write(own_relation(name, RELKIND_SEQUENCE), value);
}

/* This database of this cluster, in a value of the sequence. */
static int64
system_here()
{
	uint64		identifiers[] = {GetSystemIdentifier(), MyDatabaseId};
	auto	   *bytes = reinterpret_cast<const unsigned char *>(identifiers);

	return static_cast<int64>(hash_bytes_extended(bytes, sizeof(identifiers), 0) >>
							  (64 - SYSTEM_BITS));
}

static Cells
read_cells()
{
	return Cells{read_cell(ERA), read_cell(ERA_BEGAN)};
}

static OwnStatement SELECT_HIGHEST = {
	"fences",
	"SELECT coalesce(max(token), 0) FROM (SELECT token FROM advisory.fences"
	" UNION ALL SELECT token FROM advisory._leases) AS given"
	/* Who may restore a dump must not use up all eras. */
	" WHERE token >> 50 < 4096",
	SPI_OK_SELECT, true};

/*
 * The era that this database must have, given the cells, and whether they have it.  It is the one
 * in the cells only if that is of this timeline.
 */
static int64
era_due(const Cells &cells, bool *is_recorded)
{
	TimeLineID	timeline = GetWALInsertionTimeLine();
	int64		last_timeline =
		(cells.value >> SYSTEM_BITS) & ((INT64CONST(1) << TIMELINE_BITS) - 1);
	int64		last_system = cells.value & ((INT64CONST(1) << SYSTEM_BITS) - 1);
	int64		era = cells.era() + timeline;
	int64		highest = 0;

	if (cells.era() > 0 && last_system == system_here() && last_timeline <= timeline)
		era -= last_timeline;
	*is_recorded = era == cells.era() && era == cells.era_that_began();
	if (*is_recorded)
		return era;
	run_own_statement(&SELECT_HIGHEST, {}, [&](const OwnRow &row) { highest = row.bigint(1); });
	return Max(Max(era, cells.era_that_began()), highest >> POSITION_BITS);
}

int64
token_era(int64 above)
{
	bool		is_recorded;
	int64		era = era_due(read_cells(), &is_recorded);
	Oid			sequence;

	if (is_recorded && era > above)
		return era;
	/* No other session changes the sequence at the same time. */
	sequence = lock_own_relation(ERA, RELKIND_SEQUENCE, ShareUpdateExclusiveLock);
	era = Max(era_due(read_cells(), &is_recorded), above + 1);
	if (era > LAST_ERA)
		ereport(ERROR,
				(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
				 errmsg("there are no tokens left"),
				 errdetail("This server needs era " INT64_FORMAT
						   ", but the last possible era is " INT64_FORMAT ".", era, LAST_ERA)));
	if (!is_recorded || era > read_cells().era())
		as_superuser([&]() {
			Era			seen = token_era_seen();
			TimestampTz began_at = seen.number == era ? seen.began_at : GetCurrentTimestamp();
			int64		value = (era << TIMELINE_BITS) | GetWALInsertionTimeLine();

			/* In this order: or the new era would briefly have the beginning of the old one. */
			write_cell(ERA_BEGAN, ((began_at + 999) / 1000) << ERA_BITS | era);
			write_cell(ERA, (value << SYSTEM_BITS) | system_here());
		});
	UnlockRelationOid(sequence, ShareUpdateExclusiveLock);
	return era;
}

Era
token_era_seen()
{
	static Era	noted;
	Cells		cells = read_cells();
	bool		is_recorded;
	int64		era = RecoveryInProgress() ? cells.era() : era_due(cells, &is_recorded);

	if (RecoveryInProgress() || era == cells.era_that_began())
		return Era{era, cells.began_at()};
	if (noted.number != era)
		noted = Era{era, GetCurrentTimestamp()};
	return noted;
}

/* ---- Tokens ---- */

int64
token_make(int64 *era)
{
	*era = token_era();

	uint64		position = wal_write_mark() / 8;

	if (position >> POSITION_BITS != 0)
		ereport(ERROR,
				(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
				 errmsg("there are no tokens left"),
				 errdetail("The position in the write-ahead log does not fit into a token.")));
	return (*era << POSITION_BITS) | static_cast<int64>(position);
}

int64
token_next(const LockName &name, int slot)
{
	LOCKTAG		tag = slot == NO_SLOT
		? lock_tag(MyDatabaseId, name.key) : slot_tag(MyDatabaseId, name.key, slot);
	int64		era;

	PreventCommandDuringRecovery("advisory.token()");
	if (!is_held_by_me(tag, Mode::exclusive))
	{
		char	   *shown = display_lock(name);

		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 slot == NO_SLOT
				 ? errmsg("this session does not hold advisory lock \"%s\" in exclusive mode",
						  shown)
				 : errmsg("this session does not have slot %d of semaphore \"%s\"", slot, shown),
				 errdetail("A session can get a token only for a lock or slot that it holds in "
						   "exclusive mode."),
				 set_lock_fields(name)));
	}
	return token_make(&era);
}

void
token_check_given(int64 token)
{
	int64		era = token_era();
	int64		last = (era << POSITION_BITS) | static_cast<int64>(GetXLogInsertRecPtr() / 8);

	if (token > last)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("token " INT64_FORMAT " is greater than all tokens of this database",
						token),
				 errdetail("If it counted as used, no later holder's token would be accepted.")));
}

void
token_raise_above(int64 token)
{
	int64		era = token >> POSITION_BITS;

	PreventCommandDuringRecovery("advisory.tokens_above()");
	if (era >= LAST_ERA)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("token " INT64_FORMAT " is too large", token)));
	token_era(era);
	wal_write_mark();
}

/* ---- Fences ---- */

/* Record the highest token of a key, and return it. */
static OwnStatement RAISE_FENCE = {
	"fences",
	"INSERT INTO advisory.fences AS f (key, token) VALUES ($1, $2)"
	" ON CONFLICT (key) DO UPDATE SET token = GREATEST(f.token, EXCLUDED.token) RETURNING token",
	SPI_OK_INSERT_RETURNING, false};

void
token_check(const LockName &name, int64 token)
{
	static bool is_era_settled = false;
	int64		highest = 0;

	PreventCommandIfReadOnly("advisory.check_token()");
	/* Before this token counts as one that was given. */
	if (!is_era_settled)
		is_era_settled = unless_lock_table_is_full([]() { token_era(); });
	with_error_context([&]() {
		errcontext("while checking token " INT64_FORMAT " of \"%s\"", token, display_name(name));
	}, [&]() {
		if (run_own_statement(&RAISE_FENCE, {argument(name.key.value), argument(token)},
							  [&](const OwnRow &row) { highest = row.bigint(1); }) == 0)
			raise_row_prevented("fences");
	});
	if (highest > token)
	{
		/* Not within ereport(): see unless_lock_table_is_full(). */
		bool		sees_highest = may_see_all();

		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("stale token " INT64_FORMAT " of \"%s\"", token, display_name(name)),
				 sees_highest
				 ? errdetail("A later holder has already used token " INT64_FORMAT ".", highest)
				 : errdetail("A later holder has already used a greater token."),
				 set_lock_fields(name)));
	}
	/*
	 * The error undoes the statement.  A stale token does not need the locks on the sequence, for
	 * which there may be no room.
	 */
	token_check_given(token);
}

}								/* namespace advisory */
