/*
 * guc.cpp
 *		The settings advisory_ext.*
 */
#include "pg.h"

#include "guc.h"

namespace advisory
{

static int	session_locks = static_cast<int>(SessionLocks::on);

static const config_enum_entry session_locks_options[] = {
	{"on", static_cast<int>(SessionLocks::on), false},
	{"warn", static_cast<int>(SessionLocks::warn), false},
	{"off", static_cast<int>(SessionLocks::off), false},
	/* what people write for on and off */
	{"true", static_cast<int>(SessionLocks::on), true},
	{"yes", static_cast<int>(SessionLocks::on), true},
	{"1", static_cast<int>(SessionLocks::on), true},
	{"false", static_cast<int>(SessionLocks::off), true},
	{"no", static_cast<int>(SessionLocks::off), true},
	{"0", static_cast<int>(SessionLocks::off), true},
	{nullptr, 0, false},
};

SessionLocks
session_locks_setting() noexcept
{
	return static_cast<SessionLocks>(session_locks);
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

	MarkGUCPrefixReserved("advisory_ext");
}

}								/* namespace advisory */
