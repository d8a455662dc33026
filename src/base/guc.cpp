/*
 * base/guc.cpp
 *		The settings advisory_ext.*
 */
#include "base/pg.h"

#include "base/guc.h"

namespace advisory
{

/* The other ways to write on and off. */
#define SPELLINGS_OF_ON_AND_OFF(on, off) \
	{"true", on, true}, {"yes", on, true}, {"1", on, true}, \
	{"false", off, true}, {"no", off, true}, {"0", off, true}, \
	{nullptr, 0, false}

static const config_enum_entry allowed_options[] = {
	{"on", ALLOWED_ON, false},
	{"warn", ALLOWED_WARN, false},
	{"off", ALLOWED_OFF, false},
	SPELLINGS_OF_ON_AND_OFF(ALLOWED_ON, ALLOWED_OFF)
};

static const config_enum_entry warn_no_transaction_options[] = {
	{"on", ALLOWED_WARN, false},
	{"off", ALLOWED_ON, false},
	{"error", ALLOWED_OFF, false},
	SPELLINGS_OF_ON_AND_OFF(ALLOWED_WARN, ALLOWED_ON)
};

static const config_enum_entry on_or_warn_options[] = {
	{"on", ALLOWED_ON, false},
	{"warn", ALLOWED_WARN, false},
	{"true", ALLOWED_ON, true}, {"yes", ALLOWED_ON, true}, {"1", ALLOWED_ON, true},
	{nullptr, 0, false},
};

static const config_enum_entry warn_or_error_options[] = {
	{"warn", ALLOWED_WARN, false},
	{"error", ALLOWED_OFF, false},
	{nullptr, 0, false},
};

static const config_enum_entry track_options[] = {
	{"none", TRACK_NONE, false},
	{"names", TRACK_NAMES, false},
	{"all", TRACK_ALL, false},
	{nullptr, 0, false},
};

/* More names would take hundreds of megabytes. */
static constexpr int MAX_MAX_NAMES = 1000000;

/* A setting whose value is one of these options, or if there are none a number. */
struct Setting
{
	const char *name;
	int		   *value;
	int			boot_value;
	GucContext	context;
	const char *short_description;
	const char *long_description;
	const config_enum_entry *options;
	int			min;
	int			max;
	int			flags;
};

static const Setting settings[] = {
	{"advisory_ext.session_locks", &setting::session_locks, ALLOWED_ON, PGC_USERSET,
		"Allows functions that take session-level locks.",
		"With \"warn\" these functions raise a warning, and with \"off\" an error, that names the "
		"transaction-level function to use. This is meant for roles behind a transaction pooler.",
		allowed_options},
	{"advisory_ext.reentrant", &setting::reentrant, ALLOWED_ON, PGC_USERSET,
		"Allows a session to take a lock in exclusive mode that it already holds in this mode.",
		"With \"warn\" it gets a warning, and with \"off\" it does not get the lock.",
		allowed_options},
	{"advisory_ext.standby_locks", &setting::standby_locks, ALLOWED_WARN, PGC_USERSET,
		"Allows taking locks on a standby.",
		"Such locks do not exclude sessions of the primary. With \"warn\" a session gets a "
		"warning, once, and with \"off\" an error.",
		allowed_options},
	{"advisory_ext.track", &setting::track, TRACK_ALL, PGC_SUSET,
		"Selects what is recorded about locks: nothing (\"none\"), their names (\"names\"), or "
		"names and statistics (\"all\").",
		nullptr, track_options},
	{"advisory_ext.warn_no_transaction", &setting::warn_no_transaction, ALLOWED_WARN, PGC_USERSET,
		"Warns when a SELECT takes nothing but transaction-level locks outside a transaction "
		"block.",
		"Such locks are released at the end of that SELECT. With \"error\" it fails instead.",
		warn_no_transaction_options},
	{"advisory_ext.unlock_before_commit", &setting::unlock_before_commit, ALLOWED_WARN, PGC_USERSET,
		"Allows releasing a session-level lock before the transaction commits that has written "
		"under it.",
		"With \"warn\" it raises a warning: until COMMIT other sessions see the old rows, although "
		"they can have the lock.",
		on_or_warn_options},
	{"advisory_ext.unlock_not_held", &setting::unlock_not_held, ALLOWED_WARN, PGC_USERSET,
		"Sets what happens when a session releases a lock or slot that it does not hold.",
		"With \"warn\" the function returns false, with a warning. With \"error\" it fails.",
		warn_or_error_options},
	{"advisory_ext.max_names", &setting::max_names, 10000, PGC_SIGHUP,
		"Sets how many names of locks the server remembers.",
		"When a new name needs room, a name that was not used for a long time is removed, unless "
		"its lock is held or waited for.", nullptr, 0, MAX_MAX_NAMES},
	{"advisory_ext.log_wait", &setting::log_wait, -1, PGC_SUSET,
		"Logs waits for locks that took longer than this.", "-1 turns it off, 0 logs all waits.",
		nullptr, -1, INT_MAX, GUC_UNIT_MS},
	{"advisory_ext.log_hold", &setting::log_hold, -1, PGC_SUSET,
		"Logs locks that were held longer than this, when they are released.",
		"-1 turns it off, 0 logs all.", nullptr, -1, INT_MAX, GUC_UNIT_MS},
	{"advisory_ext.leak_after", &setting::leak_after, 10 * 60, PGC_USERSET,
		"Sets how long a session may be idle before its locks are shown in advisory.leaks.",
		nullptr, nullptr, 0, INT_MAX / 1000, GUC_UNIT_S},
	{"advisory_ext.idle_holder_timeout", &setting::idle_holder_timeout, 0, PGC_USERSET,
		"Ends a session that holds a session-level lock or slot and has been idle outside a "
		"transaction for longer than this.",
		"Only locks that were taken through this extension count. 0 turns it off.",
		nullptr, 0, INT_MAX, GUC_UNIT_MS},
	{"advisory_ext.pool_limit", &setting::pool_limit, 90, PGC_SUSET,
		"Sets how full the server's lock table may be, in percent of its estimated capacity, "
		"before sessions with many locks cannot take more.",
		"A session has many locks if it holds more than max_locks_per_transaction advisory locks "
		"taken through this extension. 0 turns it off.", nullptr, 0, 100},
	{"advisory_ext.pressure_warning", &setting::pressure_warning, 50, PGC_SUSET,
		"Sets the fill level of the server's lock table, in percent, at which advisory.pressure "
		"shows the status \"warning\".", nullptr, nullptr, 1, 100},
	{"advisory_ext.pressure_critical", &setting::pressure_critical, 75, PGC_SUSET,
		"Sets the fill level of the server's lock table, in percent, at which advisory.pressure "
		"shows the status \"critical\".", nullptr, nullptr, 1, 100},
};

void
guc_init()
{
	for (const Setting &s : settings)
	{
		if (s.options != nullptr)
			DefineCustomEnumVariable(s.name, s.short_description, s.long_description, s.value,
									 s.boot_value, s.options, s.context, 0, nullptr, nullptr,
									 nullptr);
		else
			DefineCustomIntVariable(s.name, s.short_description, s.long_description, s.value,
									s.boot_value, s.min, s.max, s.context, s.flags, nullptr,
									nullptr, nullptr);
	}
	DefineCustomBoolVariable("advisory_ext.lease_sync",
							 "Raises synchronous_commit to \"on\" in transactions that grant or "
							 "renew a lease.",
							 "With a synchronous standby, a failover to that standby then loses no "
							 "lease.",
							 &setting::lease_sync, true, PGC_USERSET, 0, nullptr, nullptr, nullptr);
	/* No setting for users: a variable that DISCARD ALL resets. */
	DefineCustomIntVariable("advisory_ext.told", "What the session was told once.", nullptr,
							&setting::told, 0, 0, INT_MAX, PGC_USERSET,
							GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE, nullptr,
							nullptr, nullptr);
	MarkGUCPrefixReserved("advisory_ext");
}

}								/* namespace advisory */
