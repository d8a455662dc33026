/*
 * server/standby.cpp
 *		What a session on a standby is told, once: that it has locks of its own.
 *
 * A setting remembers it, because DISCARD ALL resets settings, and nothing else of ours.
 */
#include "base/pg.h"

#include "base/guc.h"
#include "server/standby.h"

namespace advisory
{

bool
is_to_be_told(OnStandby what)
{
	int			told = setting::told | static_cast<int>(what);

	if (setting::standby_locks == ALLOWED_ON || told == setting::told || !RecoveryInProgress())
		return false;
	if (!IsInParallelMode())	/* which refuses to set anything */
		SetConfigOption("advisory_ext.told", psprintf("%d", told), PGC_USERSET, PGC_S_SESSION);
	return true;
}

void
tell_reader_of_standby()
{
	if (is_to_be_told(OnStandby::reads_views))
		ereport(NOTICE,
				(errmsg("this server is a standby: it shows its own locks, not those of the "
						"primary"),
				 errdetail("Leases and claims are those of the primary, as far as they have been "
						   "replicated."),
				 errhint("Look on the primary. To look here without this notice, SET "
						 "advisory_ext.standby_locks = on.")));
}

}								/* namespace advisory */
