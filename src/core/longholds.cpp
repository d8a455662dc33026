/*
 * core/longholds.cpp
 *		Locks that are held for long: advisory_ext.log_hold and advisory_ext.idle_holder_timeout.
 */
#include "base/pg.h"

#include "base/encoding.h"
#include "base/guc.h"
#include "core/longholds.h"
#include "server/latch.h"

namespace advisory
{

/* How many locks the message about an idle holder names. */
static constexpr int NAMED = 10;

bool
is_long_hold(const Hold *hold, TimestampTz now) noexcept
{
	return setting::log_hold >= 0 && now - hold->since >= setting::log_hold * INT64CONST(1000);
}

/* What a hold is called in the log, palloc'd. */
static char *
display_held(const Hold *hold)
{
	const CachedName *name = hold->name;
	char	   *shown = name->has_text()
		? join_name(name->ns(), name->name()) : psprintf(INT64_FORMAT, name->key.value);

	make_printable(shown);
	return shown;
}

void
log_hold(const Hold *hold, TimestampTz now)
{
	TimestampTz length = now - hold->since;
	char	   *shown = display_held(hold);

	/* Not to the client, where sending it could fail. */
	ereport(LOG_SERVER_ONLY,
			(errmsg("session held advisory lock \"%s\" in %s mode for " INT64_FORMAT ".%03d ms",
					shown, mode_name(hold->key.mode), length / 1000,
					static_cast<int>(length % 1000))));
	pfree(shown);
}

/* ---- Idle holders ---- */

/* The server's number for the timer; MAX_TIMEOUTS until it is registered. */
static TimeoutId timer = MAX_TIMEOUTS;
static volatile sig_atomic_t is_expired = false;

/* The start of the statement after which the timer was started. */
static TimestampTz statement_before = 0;

/*
 * In a transaction that the server itself has begun since then: has no statement run since the
 * timer was started?
 */
static bool
is_still_idle() noexcept
{
	return debug_query_string == nullptr && GetCurrentStatementStartTimestamp() == statement_before;
}

/* End the session, if it holds a lock. */
static pg_noinline void
end_idle_holder()
{
	StringInfoData names;
	int			count = 0;

	initStringInfo(&names);
	for (const Hold *hold : holds_in(HoldState::session))
	{
		if (!is_lost(hold) && count++ < NAMED)
			appendStringInfo(&names, "%s\"%s\"", count > 1 ? ", " : "", display_held(hold));
	}
	if (count > NAMED)
		appendStringInfo(&names, " and %d more", count - NAMED);
	if (count > 0)
		ereport(FATAL,
				(errcode(ERRCODE_IDLE_SESSION_TIMEOUT),
				 errmsg("terminating connection due to \"advisory_ext.idle_holder_timeout\""),
				 errdetail_log("The session was idle and held %s.", names.data)));
}

void
idle_holder_check()
{
	if (setting::idle_holder_timeout <= 0)
		return;
	/* A process has few timers, so one that does not need this one does not register it. */
	if (timer == MAX_TIMEOUTS && MyBackendType == B_BACKEND)
		timer = RegisterTimeout(USER_TIMEOUT, []() {
			is_expired = true;
			stir_if_idle();
		});
	if (is_expired && is_still_idle())
		end_idle_holder();
}

void
idle_holder_start_timer(bool is_abort) noexcept
{
	/*
	 * A procedure that commits is not idle.  A session that has only read invalidation messages is;
	 * it never aborts.
	 */
	if (timer == MAX_TIMEOUTS || setting::idle_holder_timeout == 0 || ActivePortal != nullptr ||
		(is_still_idle() && !is_abort))
		return;
	is_expired = false;
	statement_before = GetCurrentStatementStartTimestamp();
	enable_timeout_after(timer, setting::idle_holder_timeout);
}

}								/* namespace advisory */
