/*
 * base/guc.h
 *		The settings advisory_ext.*
 */
#ifndef ADVISORY_EXT_BASE_GUC_H
#define ADVISORY_EXT_BASE_GUC_H

namespace advisory
{

enum class SessionLocks
{
	on,
	warn,
	off
};

/* What is remembered about locks, in the memory that sessions share. */
enum class Track
{
	none,
	names,
	all							/* and statistics */
};

/* May session-level functions be called?  advisory_ext.session_locks. */
SessionLocks session_locks_setting() noexcept;

/* advisory_ext.track. */
Track		track_setting() noexcept;

/* How many names the directory may hold.  advisory_ext.max_names. */
int			max_names_setting() noexcept;

/* Waits and holds longer than so many milliseconds are logged; -1 for none. */
int			log_wait_setting() noexcept;
int			log_hold_setting() noexcept;

/* How many seconds a session may be idle with a session-level lock.  advisory_ext.leak_after. */
int			leak_after_setting() noexcept;

/*
 * In percent of what the server's lock table is estimated to hold: when it is nearly full
 * to the guard (0: never), and when advisory.pressure says so.  advisory_ext.pool_limit,
 * pressure_warning, pressure_critical.
 */
int			pool_limit_setting() noexcept;
int			pressure_warning_setting() noexcept;
int			pressure_critical_setting() noexcept;

/* Called from _PG_init: defines the settings and reserves their prefix. */
void		guc_init();

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_BASE_GUC_H */
