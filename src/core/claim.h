/*
 * core/claim.h
 *		Windows of time that are claimed once.
 *
 * A window is a point in time: the nominal time of the work to do once.  For each name only the
 * last claimed window is kept.  So windows must be claimed in order, and windows before the last
 * claimed one cannot be claimed any more.
 */
#pragma once

#include "core/request.h"

namespace advisory
{

/*
 * The window nearest to a time, among windows of this length in microseconds, which must be greater than zero.
 * Windows are counted from Monday, 2001-01-01 00:00 UTC.  A time halfway between two windows belongs to the later one.
 * Raises 22008 if the time is infinite, or if the window would be out of range.
 */
TimestampTz window_nearest(TimestampTz at, int64 length);

/*
 * Claim a window for this transaction, which loses it if it rolls back.  Returns false, and keeps nothing locked, if
 * this window or a later one has been claimed before.  Waits for the end of other transactions that have claimed a
 * window of this name.
 */
bool		claim_window(const LockName &name, TimestampTz window);

/* A window as messages show it. */
char	   *display_window(TimestampTz window);

}								/* namespace advisory */
