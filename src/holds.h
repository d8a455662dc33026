/*
 * holds.h
 *		What this session holds through this extension, and under which names.
 *
 * This is the session's own memory and nobody else's.  It is a notebook, not
 * the truth: the built-in functions, pg_advisory_unlock_all() and DISCARD ALL
 * release locks without telling us, so whoever reads it asks the lock manager
 * (lock_counts) what is left, and the smaller of the two counts.
 *
 * Taking a note must not fail once a lock has been granted, or an error would
 * leave it held.  So a note is opened before (which may ereport) and counted
 * after (which cannot).
 */
#ifndef ADVISORY_EXT_HOLDS_H
#define ADVISORY_EXT_HOLDS_H

#include "lockname.h"

namespace advisory
{

/* What one session holds of one lock through this extension. */
struct Hold
{
	int64		key;			/* hash key */
	char	   *ns;				/* zero-terminated; null if only taken by key */
	char	   *name;			/* zero-terminated; null if no name or label */
	int64		counts[SCOPES][MODES];	/* as noted */
	TimestampTz acquired_at[MODES]; /* when the first of the present ones was granted */
};

/* How often the lock manager says that this session holds a lock. */
struct LockCounts
{
	int64		session;
	int64		transaction;
};

/*
 * Ask the lock manager how often this session holds the lock in this mode, by
 * scope, however it was taken.  Touches no shared memory.  May ereport (out of
 * memory), changing nothing.
 */
LockCounts	lock_counts(const LOCKTAG &tag, Mode mode);

/*
 * Open the note for a lock of this database that is about to be taken.  May
 * ereport (out of memory), changing nothing that is visible.
 */
Hold	   *hold_open(const LockName &name, Scope scope);

/* Count one hold that was just granted.  Does not ereport. */
void		hold_granted(Hold *hold, Mode mode, Scope scope) noexcept;

/* Count holds that were just released.  Does not ereport. */
void		hold_released(Key key, Mode mode, Scope scope, int64 count) noexcept;

/* Close a note that was opened for nothing.  Does not ereport. */
void		hold_close(Hold *hold) noexcept;

/* The note on a key of this database, or null. */
const Hold *hold_find(Key key) noexcept;

/*
 * How often the session still holds the lock as noted, by scope and mode: the
 * smaller of what was noted and what the lock manager says.
 */
int64		hold_count(const Hold *hold, Mode mode, Scope scope);

/*
 * The keys of a namespace of which the session still has session-level holds
 * as noted; palloc'd, *count of them.  A null namespace stands for all.  May
 * ereport (out of memory).
 */
Key		   *hold_session_keys(const std::string_view *ns, int *count);

/* The lock as the note names it; points into the note. */
LockName	hold_name(const Hold *hold) noexcept;

/* Called from _PG_init: hears about ends of transactions. */
void		holds_init();

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_HOLDS_H */
