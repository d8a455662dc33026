/*
 * core/claim.cpp
 *		Windows of time that are claimed once.
 */
#include "base/pg.h"

#include "core/claim.h"
#include "core/namecache.h"
#include "core/owntables.h"
#include "server/backends.h"
#include "base/errors.h"
#include "shmem/sessiontable.h"

namespace advisory
{

/* 2001-01-01 00:00 UTC, in the first days of a century, of a year and of a week. */
static constexpr TimestampTz ORIGIN = 366 * USECS_PER_DAY;

TimestampTz
window_at(TimestampTz at, int64 length)
{
	TimestampTz window;

	if (!TIMESTAMP_NOT_FINITE(at))
	{
		/* A timestamp is days below the greatest number. */
		TimestampTz counts_as = at + Min(length / 2, USECS_PER_MINUTE);
		int64		since = (counts_as - ORIGIN) % length;

		if (since < 0)
			since += length;
		if (!pg_sub_s64_overflow(counts_as, since, &window) && IS_VALID_TIMESTAMP(window))
			return window;
	}
	ereport(ERROR,
			(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
			 errmsg("timestamp out of range")));
}

char *
display_window(TimestampTz window)
{
	return DatumGetCString(DirectFunctionCall1(timestamptz_out, TimestampTzGetDatum(window)));
}

/* ---- The rows of advisory._claims ---- */

/* Record window $4 as the last claimed one, unless the recorded one is the same or later. */
static OwnStatement ADVANCE_CLAIM = {
	"_claims",
	"INSERT INTO advisory._claims AS c (key, namespace, name, last_window, window_before,"
	" claimed_at, claimed_by, role, finished_at)"
	" SELECT $1, $2, $3, $4, '-infinity', $5, $6, $7, CASE WHEN $8 THEN $5 END"
	" WHERE NOT EXISTS (SELECT FROM advisory._claims WHERE key = $1 AND last_window >= $4)"
	" ON CONFLICT (key) DO UPDATE SET namespace = EXCLUDED.namespace, name = EXCLUDED.name,"
	" last_window = EXCLUDED.last_window, window_before = c.last_window,"
	" claimed_at = EXCLUDED.claimed_at, claimed_by = EXCLUDED.claimed_by, role = EXCLUDED.role,"
	" finished_at = EXCLUDED.finished_at WHERE c.last_window < EXCLUDED.last_window",
	SPI_OK_INSERT, false};

static OwnStatement FINISH_CLAIM = {
	"_claims",
	"UPDATE advisory._claims SET finished_at = clock_timestamp()"
	" WHERE key = (SELECT key FROM advisory._claims"
	" WHERE key = $1 AND last_window = $2 AND claimed_at = $3 FOR UPDATE SKIP LOCKED)",
	SPI_OK_UPDATE, true};

/*
 * The window before it is the last one again, so that no window before that can be claimed once
 * more.  Its facts are lost.
 */
static OwnStatement UNDO_CLAIM = {
	"_claims",
	"UPDATE advisory._claims SET last_window = window_before, claimed_at = NULL,"
	" claimed_by = NULL, finished_at = NULL"
	" WHERE key = $1 AND last_window = $2 AND claimed_at IS NOT NULL",
	SPI_OK_UPDATE, false};

/*
 * Run a statement that claims a window or takes that back.  Returns whether it has changed the row.
 * If another transaction changed it while this one waited, the statement may write nothing, but
 * lock the row.  The end of the subtransaction releases that lock.
 */
static bool
change_claim(const char *doing, const LockName &name, TimestampTz window, OwnStatement *statement,
			 std::initializer_list<Argument> arguments)
{
	bool		is_changed = false;

	with_error_context([&]() {
		errcontext("while %s window %s of \"%s\"", doing, display_window(window),
				   display_name(name));
	}, [&]() {
		in_subtransaction([&]() {
			/* Views show that a session which waits for another transaction waits for this name. */
			with_published_wait(lock_tag(MyDatabaseId, name.key), name_ask(name)->used(), [&]() {
				is_changed = run_own_statement(statement, arguments) > 0;
			});
			return is_changed;
		});
	});
	return is_changed;
}

bool
claim_window(const LockName &name, TimestampTz window, TimestampTz *claimed_at)
{
	TimestampTz now = GetCurrentTimestamp();

	PreventCommandIfReadOnly("advisory.claim()");
	if (claimed_at != nullptr)
		*claimed_at = now;
	return change_claim(
		"claiming", name, window, &ADVANCE_CLAIM,
		{argument(name.key.value), argument(name.ns), argument(name.name), time_argument(window),
		 time_argument(now), argument(own_description()),
		 Argument{ObjectIdGetDatum(GetUserId()), OIDOID},
		 Argument{BoolGetDatum(claimed_at == nullptr), BOOLOID}});
}

void
claim_finish(const LockName &name, TimestampTz window, TimestampTz claimed_at)
{
	if (XactReadOnly)
		ereport(WARNING,
				(errmsg("the end of window %s of \"%s\" is not recorded, "
						"because the transaction is read-only",
						display_window(window), display_name(name))));
	else if (OidIsValid(lock_own_relation("_claims", RELKIND_RELATION, RowExclusiveLock, false)))
		run_own_statement(&FINISH_CLAIM,
						  {argument(name.key.value), time_argument(window),
						   time_argument(claimed_at)});
}

bool
claim_undo(const LockName &name, TimestampTz window)
{
	PreventCommandIfReadOnly("advisory.unclaim()");
	return change_claim("unclaiming", name, window, &UNDO_CLAIM,
						{argument(name.key.value), time_argument(window)});
}

}								/* namespace advisory */
