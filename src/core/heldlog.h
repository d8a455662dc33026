/*
 * core/heldlog.h
 *		The log of long holds: advisory_ext.log_hold.
 *
 * A callback at the end of a transaction must not log, because logging can fail.  So a hold that ends with a commit is logged before the
 * commit.  A hold that ends in another way is kept, and logged by log_ended_holds(): when the release function returns, at the next request
 * for a lock, at the next commit or at the end of the session, whichever comes first.
 */
#pragma once

#include "core/heldlock.h"

namespace advisory
{

/* What a hold is called in the log, palloc'd. */
char	   *display_held(const HeldLock *held);

/* Must a hold that ends now be logged? */
bool		is_long_hold(const HeldLock *held, TimestampTz now) noexcept;

/* Log a long hold that will end with the commit, unless it is logged already.  May ereport. */
void		log_hold_before_commit(HeldLock *held, TimestampTz now);

/* Keep an entry that has ended, to be logged and freed by log_ended_holds(). */
void		log_hold_later(HeldLock *held) noexcept;

/* Log the holds that were kept.  May ereport. */
void		log_ended_holds();

}								/* namespace advisory */
