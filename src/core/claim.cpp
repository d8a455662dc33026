/*
 * core/claim.cpp
 *		Windows of time that are claimed once.
 */
#include "base/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "common/int.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/fmgrprotos.h"
}

#include "core/claim.h"
#include "core/owntables.h"
#include "base/errors.h"

namespace advisory
{

static constexpr char CLAIMS[] = "claims";

/* 2001-01-01 00:00 UTC, in the first days of a century, of a year and of a week. */
static constexpr TimestampTz ORIGIN = 366 * USECS_PER_DAY;

TimestampTz
window_nearest(TimestampTz at, int64 length)
{
	TimestampTz window = at;

	if (!TIMESTAMP_NOT_FINITE(at))
	{
		int64		since = (at - ORIGIN) % length;

		if (since < 0)
			since += length;
		if (!pg_sub_s64_overflow(at, since, &window) &&
			(since < length - since || !pg_add_s64_overflow(window, length, &window)) &&
			IS_VALID_TIMESTAMP(window))
			return window;
	}
	ereport(ERROR,
			(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
			 errmsg("timestamp out of range")));
	pg_unreachable();
}

char *
display_window(TimestampTz window)
{
	return DatumGetCString(DirectFunctionCall1(timestamptz_out, TimestampTzGetDatum(window)));
}

/*
 * Write the window down as the last one claimed of this key, unless one is there that is not earlier.
 * Returns whether it was written.  The current user must be the table's owner.
 *
 * Operators are looked up in the caller's search_path, where anybody's may come first.
 */
static bool
advance_claim(Key key, TimestampTz window)
{
	static SPIPlanPtr plan = nullptr;
	Oid			types[] = {INT8OID, TIMESTAMPTZOID};
	Datum		values[] = {Int64GetDatum(key.value), TimestampTzGetDatum(window)};
	bool		is_advanced;

	SPI_connect();
	if (plan == nullptr)
	{
		SPIPlanPtr	prepared = SPI_prepare("INSERT INTO advisory.claims AS c (key, last_window)"
										   " SELECT $1, $2 WHERE NOT EXISTS (SELECT FROM advisory.claims"
										   " WHERE key OPERATOR(pg_catalog.=) $1 AND last_window OPERATOR(pg_catalog.>=) $2)"
										   " ON CONFLICT (key) DO UPDATE SET last_window = EXCLUDED.last_window"
										   " WHERE c.last_window OPERATOR(pg_catalog.<) EXCLUDED.last_window",
										   lengthof(types), types);

		if (prepared == nullptr || SPI_keepplan(prepared) != 0)
			elog(ERROR, "could not prepare the claim of a window");
		plan = prepared;
	}
	if (SPI_execute_plan(plan, values, nullptr, false, 0) != SPI_OK_INSERT)
		elog(ERROR, "could not claim a window");
	is_advanced = SPI_processed > 0;
	SPI_finish();
	return is_advanced;
}

/*
 * The same.  Where another transaction has claimed the window while this one waited for it, the statement
 * writes nothing, but locks the row.  The end of the subtransaction releases that.
 */
static bool
advance_or_unlock(Key key, TimestampTz window)
{
	Subtransaction subtransaction;
	volatile bool is_advanced = false;

	PG_TRY();
	{
		is_advanced = advance_claim(key, window);
	}
	PG_CATCH();
	{
		subtransaction.roll_back();
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (is_advanced)
		subtransaction.release();
	else
		subtransaction.roll_back();
	return is_advanced;
}

bool
claim_window(const LockName &name, TimestampTz window)
{
	bool		is_claimed = false;

	PreventCommandIfReadOnly("advisory.claim()");
	with_error_context(psprintf("while claiming window %s of \"%s\"", display_window(window), display_name(name)), [&]() {
		as_owner_of(own_relation(CLAIMS), [&]() {
			is_claimed = advance_or_unlock(name.key, window);
		});
	});
	return is_claimed;
}

}								/* namespace advisory */
