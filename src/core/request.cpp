/*
 * core/request.cpp
 *		What somebody asks for.
 */
#include "base/pg.h"

#include "core/request.h"

namespace advisory
{

Timeout
Deadline::remaining() const noexcept
{
	if (timeout.is_forever() || timeout.is_immediate())
		return timeout;

	TimestampTz end = TimestampTzPlusMilliseconds(start, timeout.milliseconds());
	int64		left = end - GetCurrentTimestamp();

	if (left <= 0)
		return Timeout::immediate();

	/* A clock that was set back must not make the wait longer. */
	int64		milliseconds = (left + 999) / 1000;

	return Timeout::of(static_cast<int>(Min(milliseconds, timeout.milliseconds())));
}

}								/* namespace advisory */
