/*
 * server/xact.cpp
 *		This transaction: may it write, and for what does its commit wait?
 *
 * The setting is raised at once, so that users see it.  But the end of a function with its own SET,
 * or a SET LOCAL, can lower it again.  So the level is raised once more for the commit itself, and
 * restored after it.  That does not use set_config_option(), because a commit must not fail.
 */
#include "base/pg.h"

#include "base/guc.h"
#include "server/xact.h"

namespace advisory
{

static constexpr int LEAST_LEVEL = SYNCHRONOUS_COMMIT_REMOTE_FLUSH; /* "on" */

static bool is_wanted = false;
static bool is_raised = false;
static int	users_level;

int
commit_synchronously()
{
	if (setting::lease_sync)
	{
		is_wanted = true;
		if (synchronous_commit < LEAST_LEVEL)
			(void) set_config_option("synchronous_commit", "on", PGC_USERSET, PGC_S_SESSION,
									 GUC_ACTION_LOCAL, true, 0, false);
	}
	return synchronous_commit;
}

/* Change the variable as SET does, but without its memory. */
static void
set_level(int level) noexcept
{
	synchronous_commit = level;
	assign_synchronous_commit(level, nullptr);
}

void
synccommit_at_xact_end(XactEvent event) noexcept
{
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
	{
		if (is_wanted && synchronous_commit < LEAST_LEVEL)
		{
			is_raised = true;
			users_level = synchronous_commit;
			set_level(LEAST_LEVEL);
		}
	}
	else
	{
		if (is_raised)
			set_level(users_level);
		is_wanted = is_raised = false;
	}
}

}								/* namespace advisory */
