/*
 * base/guc.h
 *		The settings advisory_ext.*
 */
#pragma once

namespace advisory
{

/* Is something allowed, or does it raise a warning or an error? */
enum Allowed
{
	ALLOWED_ON,
	ALLOWED_WARN,
	ALLOWED_OFF
};

/* The data about locks to store in shared memory. */
enum Track
{
	TRACK_NONE,
	TRACK_NAMES,
	TRACK_ALL					/* and statistics */
};

/* The values of the settings with these names. */
namespace setting
{

inline int	session_locks = ALLOWED_ON;	/* an Allowed: session-level functions */
inline int	reentrant = ALLOWED_ON; /* an Allowed: taking a lock that the session already holds */
inline int	standby_locks = ALLOWED_WARN;	/* an Allowed: taking locks on a standby */
inline int	told;				/* see server/standby.h */
/* An Allowed: releasing a lock before the transaction commits that has written under it. */
inline int	unlock_before_commit = ALLOWED_WARN;
/* An Allowed, never on: releasing what the session does not hold. */
inline int	unlock_not_held = ALLOWED_WARN;
/* An Allowed: a transaction-level lock that ends with its statement. */
inline int	warn_no_transaction = ALLOWED_WARN;
inline int	idle_holder_timeout;	/* in milliseconds; 0 for none */
/* Raise synchronous_commit in transactions that grant or renew a lease? */
inline bool lease_sync;
inline int	track = TRACK_ALL;	/* a Track */
inline int	max_names;			/* how many names the name table may hold */
inline int	log_wait;			/* in milliseconds; -1 for none */
inline int	log_hold;			/* in milliseconds; -1 for none */
inline int	leak_after;			/* in seconds */
inline int	pool_limit;			/* in percent; 0: no limit */
inline int	pressure_warning;	/* in percent */
inline int	pressure_critical;	/* in percent */

}								/* namespace setting */

/* Define the settings and reserve their prefix.  Called from _PG_init. */
void		guc_init();

}								/* namespace advisory */
