/*
 * core/claim.h
 *		Windows of time that are claimed once.
 *
 * A window is a point in time: the nominal time of what is to be done once.  Of each name only the
 * last window that was claimed is kept.  Windows are claimed in their order, and those before the last one never again.
 */
#pragma once

#include "core/request.h"

namespace advisory
{

/*
 * The window nearest to a time, of windows of this length in microseconds, which is greater than zero.
 * They are counted from Monday, 2001-01-01 00:00 UTC.  A time halfway between two windows belongs to the later one.
 * Raises 22008 for what is no timestamp, or near the last one.
 */
TimestampTz window_nearest(TimestampTz at, int64 length);

/*
 * Claim a window for this transaction, which loses it if it rolls back.  Returns false if this window, or a later one,
 * has been claimed before.  Waits for the end of other transactions that have claimed a window of this
 * name.  Where it returns false it keeps nothing locked.
 */
bool		claim_window(const LockName &name, TimestampTz window);

/* A window as messages show it. */
char	   *display_window(TimestampTz window);

}								/* namespace advisory */
