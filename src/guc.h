/*
 * guc.h
 *		The settings advisory_ext.*
 */
#ifndef ADVISORY_EXT_GUC_H
#define ADVISORY_EXT_GUC_H

namespace advisory
{

enum class SessionLocks
{
	on,
	warn,
	off
};

/* May session-level functions be called?  advisory_ext.session_locks. */
SessionLocks session_locks_setting() noexcept;

/* Called from _PG_init: defines the settings and reserves their prefix. */
void		guc_init();

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_GUC_H */
