/*
 * core/longholds.h
 *		Locks that are held for long: advisory_ext.log_hold and advisory_ext.idle_holder_timeout.
 *
 * Idle holders
 *
 * The second setting ends a session that holds a session-level lock or slot and is idle outside a
 * transaction for long.  The server has no hook for a session that becomes idle, nor for one that
 * has been idle for long.  So a timer starts at the end of the last transaction of each statement.
 * When it expires, its handler asks the server to read invalidation messages, as other sessions do
 * when this one has read none for long.  An idle session does that in an empty transaction, whose
 * commit calls idle_holder_check(), where an error may end the session.  If a statement runs or has
 * run since, nothing happens, and the timer starts again at its end.
 */
#pragma once

#include "core/hold.h"

namespace advisory
{

/* Must a hold that ends now be logged? */
bool		is_long_hold(const Hold *hold, TimestampTz now) noexcept;

/* Log a hold that ends now.  May ereport. */
void		log_hold(const Hold *hold, TimestampTz now);

/*
 * Call this before a lock is asked for, and before a commit.  Registers the timer if it is needed;
 * FATAL (57P05) if the time is up.
 */
void		idle_holder_check();

/* Call this after a transaction, with session-level holds left.  is_abort: it has aborted. */
void		idle_holder_start_timer(bool is_abort) noexcept;

}								/* namespace advisory */
