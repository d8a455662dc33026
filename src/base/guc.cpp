/*
 * base/guc.cpp
 *		The settings advisory_ext.*
 */
#include "base/pg.h"

#include "base/guc.h"

namespace advisory
{

static int	session_locks = static_cast<int>(SessionLocks::on);

static const config_enum_entry session_locks_options[] = {
	{"on", static_cast<int>(SessionLocks::on), false},
	{"warn", static_cast<int>(SessionLocks::warn), false},
	{"off", static_cast<int>(SessionLocks::off), false},
	/* other ways to write on and off */
	{"true", static_cast<int>(SessionLocks::on), true},
	{"yes", static_cast<int>(SessionLocks::on), true},
	{"1", static_cast<int>(SessionLocks::on), true},
	{"false", static_cast<int>(SessionLocks::off), true},
	{"no", static_cast<int>(SessionLocks::off), true},
	{"0", static_cast<int>(SessionLocks::off), true},
	{nullptr, 0, false},
};

static int	track = static_cast<int>(Track::all);

static const config_enum_entry track_options[] = {
	{"none", static_cast<int>(Track::none), false},
	{"names", static_cast<int>(Track::names), false},
	{"all", static_cast<int>(Track::all), false},
	{nullptr, 0, false},
};

/* More names would take hundreds of megabytes. */
static constexpr int MAX_MAX_NAMES = 1000000;

static int	max_names = 10000;
static int	log_wait = -1;
static int	log_hold = -1;
static int	leak_after = 10 * 60;
static int	pool_limit = 90;
static int	pressure_warning = 50;
static int	pressure_critical = 75;

SessionLocks
session_locks_setting() noexcept
{
	return static_cast<SessionLocks>(session_locks);
}

Track
track_setting() noexcept
{
	return static_cast<Track>(track);
}

int
max_names_setting() noexcept
{
	return max_names;
}

int
log_wait_setting() noexcept
{
	return log_wait;
}

int
log_hold_setting() noexcept
{
	return log_hold;
}

int
leak_after_setting() noexcept
{
	return leak_after;
}

int
pool_limit_setting() noexcept
{
	return pool_limit;
}

int
pressure_warning_setting() noexcept
{
	return pressure_warning;
}

int
pressure_critical_setting() noexcept
{
	return pressure_critical;
}

void
guc_init()
{
	DefineCustomEnumVariable("advisory_ext.session_locks",
							 "Allows functions that take session-level locks.",
							 "With \"warn\" or \"off\" they warn or fail and name the "
							 "transaction-level function to use, for roles behind a "
							 "transaction pooler.",
							 &session_locks,
							 static_cast<int>(SessionLocks::on),
							 session_locks_options,
							 PGC_USERSET, 0,
							 nullptr, nullptr, nullptr);

	DefineCustomIntVariable("advisory_ext.max_names",
							"Sets how many names of locks the server remembers.",
							"When there are more, those that were not used for the longest "
							"time make room, unless their lock is held or waited for.",
							&max_names,
							10000, 0, MAX_MAX_NAMES,
							PGC_SIGHUP, 0,
							nullptr, nullptr, nullptr);

	DefineCustomEnumVariable("advisory_ext.track",
							 "Selects what is remembered about locks: \"none\", their "
							 "\"names\", or \"all\" with statistics.",
							 nullptr,
							 &track,
							 static_cast<int>(Track::all),
							 track_options,
							 PGC_SUSET, 0,
							 nullptr, nullptr, nullptr);

	DefineCustomIntVariable("advisory_ext.log_wait",
							"Logs waits for locks that took longer than this.",
							"-1 turns it off, 0 logs all waits.",
							&log_wait,
							-1, -1, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS,
							nullptr, nullptr, nullptr);

	DefineCustomIntVariable("advisory_ext.log_hold",
							"Logs locks that were held longer than this, when they are released.",
							"-1 turns it off, 0 logs all.",
							&log_hold,
							-1, -1, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS,
							nullptr, nullptr, nullptr);

	DefineCustomIntVariable("advisory_ext.leak_after",
							"Sets how long a session may be idle before its session-level "
							"locks are shown in advisory.leaks.",
							nullptr,
							&leak_after,
							10 * 60, 0, INT_MAX / 1000,
							PGC_USERSET, GUC_UNIT_S,
							nullptr, nullptr, nullptr);

	DefineCustomIntVariable("advisory_ext.pool_limit",
							"Sets how full the server's lock table may be, in percent of what "
							"it is estimated to hold, before sessions with many locks are refused more.",
							"Many are more than max_locks_per_transaction advisory locks taken "
							"through this extension. 0 turns it off.",
							&pool_limit,
							90, 0, 100,
							PGC_SUSET, 0,
							nullptr, nullptr, nullptr);

	DefineCustomIntVariable("advisory_ext.pressure_warning",
							"Sets how full the server's lock table is, in percent, when "
							"advisory.pressure says \"warning\".",
							nullptr,
							&pressure_warning,
							50, 1, 100,
							PGC_SUSET, 0,
							nullptr, nullptr, nullptr);

	DefineCustomIntVariable("advisory_ext.pressure_critical",
							"Sets how full the server's lock table is, in percent, when "
							"advisory.pressure says \"critical\".",
							nullptr,
							&pressure_critical,
							75, 1, 100,
							PGC_SUSET, 0,
							nullptr, nullptr, nullptr);

	MarkGUCPrefixReserved("advisory_ext");
}

}								/* namespace advisory */
