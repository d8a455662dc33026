/*
 * server/standby.h
 *		What a session on a standby is told, once: that it has locks of its own.
 */
#pragma once

namespace advisory
{

/* What it does there; a bit of advisory_ext.told. */
enum class OnStandby
{
	takes_locks = 1,
	reads_views = 2
};

/*
 * Is this a standby, and has the session not been told so yet?  Then it counts as told from now on,
 * until the end of the session, or DISCARD ALL, by which a session pooler prepares a connection for
 * the next client.  False if advisory_ext.standby_locks is "on".  May ereport.
 */
bool		is_to_be_told(OnStandby what);

/*
 * Raise the NOTICE that a view shows locks of the standby, unless the session was told.  May
 * ereport.
 */
void		tell_reader_of_standby();

}								/* namespace advisory */
