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

extern int	session_locks;		/* an Allowed: session-level functions */
extern int	reentrant;			/* an Allowed: taking a lock that the session already holds */
extern int	warn_no_transaction;	/* an Allowed: a transaction-level lock that ends with its statement */
extern int	idle_holder_timeout;	/* in milliseconds; 0 for none */
extern bool lease_sync;			/* raise synchronous_commit in transactions that grant or renew a lease? */
extern int	track;				/* a Track */
extern int	max_names;			/* how many names the name table may hold */
extern int	log_wait;			/* in milliseconds; -1 for none */
extern int	log_hold;			/* in milliseconds; -1 for none */
extern int	leak_after;			/* in seconds */
extern int	pool_limit;			/* in percent; 0: no limit */
extern int	pressure_warning;	/* in percent */
extern int	pressure_critical;	/* in percent */

}								/* namespace setting */

/* Define the settings and reserve their prefix.  Called from _PG_init. */
void		guc_init();

}								/* namespace advisory */
