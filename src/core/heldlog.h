/*
 * core/heldlog.h
 *		The log line of a hold that was longer than log_hold.
 */
#pragma once

#include "core/held.h"

namespace advisory
{

/* Is a lock that is held until now to be logged? */
bool		is_long_hold(const HeldLock *held, TimestampTz now) noexcept;

/* Write the line.  May ereport, so not to be called where a transaction or a session ends. */
void		log_hold(const HeldLock *held, TimestampTz now);

}								/* namespace advisory */
