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

/* What is stored about locks in shared memory. */
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

/* How many names the name table may hold.  advisory_ext.max_names. */
int			max_names_setting() noexcept;

/* Waits and holds longer than this are logged, in milliseconds; -1 for none. */
int			log_wait_setting() noexcept;
int			log_hold_setting() noexcept;

/* How many seconds a session may be idle with a session-level lock.  advisory_ext.leak_after. */
int			leak_after_setting() noexcept;

/*
 * Percentages of what the server's lock table is estimated to hold: above the first one
 * a session with many locks is refused more (0: never), from the others on
 * advisory.pressure has the status warning or critical.
 */
int			pool_limit_setting() noexcept;
int			pressure_warning_setting() noexcept;
int			pressure_critical_setting() noexcept;

/* Define the settings and reserve their prefix.  Called from _PG_init. */
void		guc_init();

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_BASE_GUC_H */
