/*
 * core/claim.h
 *		Windows of time that are claimed once.
 *
 * A window is a period of time; the time at which it begins stands for it.  For each name only the
 * last claimed window is kept.  So windows must be claimed in order, and windows before the last
 * claimed one cannot be claimed any more.  Claims that only have to be apart are windows that begin
 * when they are claimed.  A window is whole milliseconds: many drivers keep no more of a time, and
 * unclaim() must know it again.
 */
#pragma once

#include "core/request.h"

namespace advisory
{

struct WindowClaim
{
	const Interval *every;		/* how long it is; null if it begins when it is claimed */
	TimestampTz window;			/* its beginning; set by claim_window() without every */
	int64		distance;		/* how long after the last claimed window it begins at least */
	TimestampTz claimed_at;		/* set by claim_window() */
};

/* The beginning of the millisecond. */
TimestampTz whole_milliseconds(TimestampTz time) noexcept;

/*
 * The window that contains a time, among windows of this length in microseconds, which must be
 * greater than zero.  A time up to one minute (up to half a window, if that is shorter) before a
 * window begins counts for it, because clocks differ.  Windows are counted from Monday, 2001-01-01
 * 00:00 UTC, or in days of a time zone (a text; 0: none).  Raises 22008 if the time is infinite, or
 * if the window would be out of range.
 */
TimestampTz window_at(TimestampTz at, int64 length, Datum zone);

/*
 * Claim a window for this transaction, which loses it if it rolls back.  Returns false, and keeps
 * nothing locked, if this window or a later one has been claimed before.  Waits for the end of
 * other transactions that have claimed a window of this name.  A claim without every must also be
 * apart from the time at which the last window was claimed.
 *
 * If the work is in this transaction as well, the claim counts as finished.
 */
bool		claim_window(const LockName &name, WindowClaim *claim, bool is_with_work);

/*
 * Record that the work of a claim is done, if this transaction commits.  Does nothing if the row is
 * not that claim any more, if another session has locked the row or the table, or if the work has
 * dropped the extension: the work must not fail, or wait for others, because of its record.
 */
void		claim_finish(const LockName &name, const WindowClaim &claim);

/*
 * Take the last claim of a name back: the window that was claimed before it is the last one again.
 * Returns false if the last claim is not of this window, or was taken back already.  Waits as
 * claim_window(), but not for a name that was never claimed before.
 */
bool		claim_undo(const LockName &name, TimestampTz window);

/* For a DETAIL: the last claim of a name, as far as the current user may see it.  May ereport. */
char	   *describe_claim(const LockName &name);

/* A window as messages show it. */
char	   *display_window(TimestampTz window);

}								/* namespace advisory */
