/*
 * core/claim.cpp
 *		Windows of time that are claimed once.
 */
#include "base/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "common/int.h"
#include "miscadmin.h"
#include "utils/fmgrprotos.h"
}

#include "core/claim.h"
#include "core/namecache.h"
#include "core/owntables.h"
#include "base/errors.h"
#include "shmem/waiters.h"

namespace advisory
{

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

/* Record window $2 as the last claimed one of this key, unless the recorded one is the same or later. */
static OwnStatement ADVANCE_CLAIM = {
	"claims",
	"INSERT INTO advisory.claims AS c (key, last_window)"
	" SELECT $1, $2 WHERE NOT EXISTS (SELECT FROM advisory.claims WHERE key = $1 AND last_window >= $2)"
	" ON CONFLICT (key) DO UPDATE SET last_window = EXCLUDED.last_window WHERE c.last_window < EXCLUDED.last_window",
	SPI_OK_INSERT, false, false, {INT8OID, TIMESTAMPTZOID}, nullptr};

/*
 * Run the statement; returns whether it wrote the window.  If another transaction claimed the window while this one waited,
 * the statement writes nothing but locks the row.  The end of the subtransaction releases that lock.
 */
static bool
advance_claim(const LockName &name, TimestampTz window)
{
	bool		is_advanced = false;

	in_subtransaction([&]() {
		/* Views show that a session which waits for another transaction meanwhile waits for this name. */
		with_published_wait(lock_tag(MyDatabaseId, name.key), name_ask(name)->used(), [&]() {
			is_advanced = run_own_statement(&ADVANCE_CLAIM, {argument(name.key.value), argument(window)}) > 0;
		});
		return is_advanced;
	});
	return is_advanced;
}

bool
claim_window(const LockName &name, TimestampTz window)
{
	bool		is_claimed = false;

	PreventCommandIfReadOnly("advisory.claim()");
	with_error_context(psprintf("while claiming window %s of \"%s\"", display_window(window), display_name(name)), [&]() {
		is_claimed = advance_claim(name, window);
	});
	return is_claimed;
}

}								/* namespace advisory */
