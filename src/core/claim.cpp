/*
 * core/claim.cpp
 *		Windows of time that are claimed once.
 */
#include "base/pg.h"

#include "core/claim.h"
#include "core/namecache.h"
#include "core/owntables.h"
#include "server/backends.h"
#include "server/xact.h"
#include "base/errors.h"
#include "shmem/sessiontable.h"

namespace advisory
{

/* 2001-01-01 00:00 UTC, in the first days of a century, of a year and of a week. */
static constexpr TimestampTz ORIGIN = 366 * USECS_PER_DAY;

TimestampTz
whole_milliseconds(TimestampTz time) noexcept
{
	return time - (time % 1000 + 1000) % 1000;
}

TimestampTz
window_at(TimestampTz at, int64 length, Datum zone)
{
	auto		local = [=](TimestampTz time) {
		return DatumGetTimestamp(DirectFunctionCall2(timestamptz_zone, zone,
													 TimestampTzGetDatum(time)));
	};
	auto		time_of = [=](Timestamp shown) {
		return DatumGetTimestampTz(DirectFunctionCall2(timestamp_zone, zone,
													   TimestampGetDatum(shown)));
	};
	TimestampTz window;

	if (!TIMESTAMP_NOT_FINITE(at))
	{
		/* A timestamp is days below the greatest number. */
		TimestampTz counts_as = at + Min(length / 2, USECS_PER_MINUTE);

		if (zone != Datum(0))
			counts_as = local(counts_as);

		int64		since = (counts_as - ORIGIN) % length;

		if (since < 0)
			since += length;
		if (!pg_sub_s64_overflow(counts_as, since, &window) && IS_VALID_TIMESTAMP(window))
		{
			if (zone == Datum(0))
				return window;

			/* A midnight that is there twice was there first before the clocks were put back. */
			TimestampTz first = time_of(window - 4 * USECS_PER_HOUR) + 4 * USECS_PER_HOUR;

			return local(first) == window ? Min(first, time_of(window)) : time_of(window);
		}
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

/*
 * Record window $4, of length $10, as the last claimed one, unless the recorded one is later than
 * $9, or without a length was claimed later than that.
 */
static OwnStatement ADVANCE_CLAIM = {
	"_claims",
	"INSERT INTO advisory._claims AS c (key, namespace, name, last_window, window_before,"
	" claimed_at, claimed_by, role, role_name, server, finished_at, every, pid)"
	" SELECT $1, $2, $3, $4, '-infinity', $5, $6, $7, pg_get_userbyid($7), $11,"
	" CASE WHEN $8 THEN $5 END, $10, pg_backend_pid()"
	" WHERE NOT EXISTS (SELECT FROM advisory._claims WHERE key = $1"
	" AND greatest(last_window, CASE WHEN $10 IS NULL THEN claimed_at END) > $9)"
	" ON CONFLICT (key) DO UPDATE SET namespace = EXCLUDED.namespace, name = EXCLUDED.name,"
	" last_window = EXCLUDED.last_window, window_before = c.last_window,"
	" claimed_at = EXCLUDED.claimed_at, claimed_by = EXCLUDED.claimed_by, role = EXCLUDED.role,"
	" role_name = EXCLUDED.role_name, server = EXCLUDED.server,"
	" finished_at = EXCLUDED.finished_at, every = EXCLUDED.every, pid = EXCLUDED.pid"
	" WHERE greatest(c.last_window, CASE WHEN $10 IS NULL THEN c.claimed_at END) <= $9",
	SPI_OK_INSERT, false};

/* The claim of this transaction is made at $2, in window $3. */
static OwnStatement MOVE_CLAIM = {
	"_claims",
	"UPDATE advisory._claims SET claimed_at = $2, last_window = $3,"
	" finished_at = CASE WHEN finished_at IS NOT NULL THEN $2 END WHERE key = $1",
	SPI_OK_UPDATE, false};

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

static OwnStatement DESCRIBE_CLAIM = {
	"_claims",
	"SELECT advisory_internal.describe_claim(c, $2) FROM advisory._claims AS c WHERE key = $1",
	SPI_OK_SELECT, true};

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
			NameHandle	asked = name_ask(name);

			with_published_wait(lock_tag(MyDatabaseId, name.key), asked->used(), [&]() {
				is_changed = run_own_statement(statement, arguments) > 0;
			});
			name_end(asked);
			return is_changed;
		});
	});
	return is_changed;
}

bool
claim_window(const LockName &name, WindowClaim *claim, bool is_with_work)
{
	PreventCommandIfReadOnly(claim->every != nullptr ? "advisory.claim()"
							 : "advisory.claim_apart()");
	claim->claimed_at = GetCurrentTimestamp();
	claim->window = whole_milliseconds(claim->every != nullptr ? claim->window
									   : claim->claimed_at);
	if (!change_claim(
			"claiming", name, claim->window, &ADVANCE_CLAIM,
			{argument(name.key.value), argument(name.ns), argument(name.name),
			 time_argument(claim->window), time_argument(claim->claimed_at),
			 argument(own_description()), Argument{ObjectIdGetDatum(GetUserId()), OIDOID},
			 Argument{BoolGetDatum(is_with_work), BOOLOID},
			 time_argument((claim->every != nullptr ? claim->window : claim->claimed_at) -
						   claim->distance),
			 Argument{IntervalPGetDatum(claim->every), INTERVALOID, claim->every == nullptr},
			 argument(server_identifier())}))
		return false;

	/* If it has waited for a transaction that rolled back, the next one must be apart from now. */
	if (claim->every == nullptr &&
		GetCurrentTimestamp() - claim->claimed_at >= USECS_PER_SEC / 1000)
	{
		claim->claimed_at = GetCurrentTimestamp();
		claim->window = whole_milliseconds(claim->claimed_at);
		run_own_statement(&MOVE_CLAIM, {argument(name.key.value),
										time_argument(claim->claimed_at),
										time_argument(claim->window)});
	}
	return true;
}

void
claim_finish(const LockName &name, const WindowClaim &claim)
{
	if (is_read_only_transaction())
		ereport(WARNING,
				(errmsg("the end of window %s of \"%s\" is not recorded, "
						"because the transaction is read-only",
						display_window(claim.window), display_name(name))));
	else if (OidIsValid(lock_own_relation("_claims", RELKIND_RELATION, RowExclusiveLock, false)))
		run_own_statement(&FINISH_CLAIM,
						  {argument(name.key.value), time_argument(claim.window),
						   time_argument(claim.claimed_at)});
}

bool
claim_undo(const LockName &name, TimestampTz window)
{
	PreventCommandIfReadOnly("advisory.unclaim()");
	return change_claim("unclaiming", name, window, &UNDO_CLAIM,
						{argument(name.key.value), time_argument(window)});
}

char *
describe_claim(const LockName &name)
{
	char	   *text = nullptr;

	run_own_statement(&DESCRIBE_CLAIM, {argument(name.key.value),
										Argument{ObjectIdGetDatum(GetUserId()), OIDOID}},
					  [&](const OwnRow &row) { text = row.text(1); });
	return text;
}

}								/* namespace advisory */
