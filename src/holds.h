/*
 * holds.h
 *		What this session holds through this extension, and under which names.
 *
 * This is the session's own memory and nobody else's.  It is a notebook, not
 * the truth: the built-in functions, pg_advisory_unlock_all() and DISCARD ALL
 * release locks without telling us.  So before a note is read or added to, it is
 * compared with what the lock manager says (lock_counts) and the smaller number
 * stays.  What the built-in functions release and take again in between cannot be
 * told from ours.
 *
 * A note is taken when a lock has been granted.  That can fail (out of memory), so
 * whoever takes it releases the lock again if it does.
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
	int64		session_by_name[MODES]; /* session-level ones that were taken by name */
	TimestampTz acquired_at[MODES]; /* when the first of the present ones was granted */
};

/* How often the lock manager says that this session holds a lock. */
struct LockCounts
{
	int64		session;
	int64		transaction;
};

/* Does this session hold the lock, in any mode and scope, however taken? */
bool		is_held_by_me(const LOCKTAG &tag) noexcept;

/*
 * Ask the lock manager how often this session holds the lock in this mode, by
 * scope, however it was taken.  Touches no shared memory.  May ereport (out of
 * memory), changing nothing.
 */
LockCounts	lock_counts(const LOCKTAG &tag, Mode mode);

/*
 * Note one hold that was just granted, and the name that it was taken by.  May
 * ereport (out of memory); nothing is noted then.
 */
void		hold_note(const LockName &name, Mode mode, Scope scope);

/*
 * Strike out session-level holds that were just released.  Those taken by name
 * are struck out first if they were released by name.  Does not ereport.
 */
void		hold_strike(const LockName &name, Mode mode, int64 count) noexcept;

/*
 * What the session still holds of a lock as noted; null if nothing.  Good until
 * the next call of any of these.  May ereport (out of memory).
 */
const Hold *hold_find(Key key);

/* How often it is held in this mode, in either scope. */
int64		hold_count(const Hold *hold, Mode mode) noexcept;

/*
 * The keys of a namespace of which the session still has session-level holds
 * as noted; palloc'd, *count of them.  May ereport (out of memory).
 */
Key		   *hold_session_keys(std::string_view ns, int *count);

/* The lock as the note names it; points into the note. */
LockName	hold_name(const Hold *hold) noexcept;

/* Called from _PG_init: hears about ends of transactions. */
void		holds_init();

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_HOLDS_H */
