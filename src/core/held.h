/*
 * core/held.h
 *		What this session knows of locks: their names, and what it holds through this
 *		extension.
 *
 * This is the session's own memory and nobody else's.  It is a notebook, not
 * the truth: the built-in functions, pg_advisory_unlock_all() and DISCARD ALL
 * release locks without telling us.  So before a note is read or added to, it is
 * compared with what the lock manager says (lock_counts) and the smaller number
 * stays.  What the built-in functions release and take again in between cannot be
 * told from ours.
 *
 * A note outlives the hold for a while: it remembers the key of a name, and where
 * the name stands in the directory.
 *
 * A lock is noted in two steps.  hold_open() comes first and does what can
 * fail for want of memory; hold_note() comes when the lock has been granted.  What
 * others are to see of it (directory.h, published.h) is taken care of here.
 */
#ifndef ADVISORY_EXT_CORE_HELD_H
#define ADVISORY_EXT_CORE_HELD_H

#include "shmem/nametable.h"
#include "base/lockname.h"

namespace advisory
{

/* Namespaces and names up to so many bytes together are kept in the note itself. */
constexpr int NOTE_TEXT_BYTES = 48;

struct Hold;

/* What not every call needs. */
struct HoldRest
{
	int64		session_count[MODES];
	int64		session_by_name[MODES]; /* those of them that were taken by name */
	uint32		ns_length;		/* before they were cut */
	uint32		name_length;
	int64		ns_key;			/* of a namespace that was cut */
	int			slots;			/* of the semaphore of this name that the session has */
	Hold	   *next_kept;		/* while notes are being dropped */
};

/*
 * What one session knows of one lock.  Where there are thousands, to fetch one
 * from memory is what a call costs: so it is kept small, and the rest apart.
 */
struct alignas(PG_CACHE_LINE_SIZE) Hold
{
	Key			key;
	DirectoryReference entry;	/* the name in the directory */
	char	   *long_text;		/* where short_text is too short for it; else null */
	uint16		ns_kept;		/* how long namespace and name are there, each with a zero behind it */
	uint16		name_kept;
	Oid			role;			/* that used the name last; its entry in the directory knows it */
	int			xact_record[MODES]; /* the newest, or NO_RECORD; it knows how often */
	int			session_record[MODES];	/* as published; NO_RECORD while there is no session-level hold */
	bool		has_name;
	bool		by_name;		/* else the name is a label */
	bool		is_found_by_name;
	bool		goes_with_holds;	/* the name is published with what is held by it */
	bool		clash_reported;
	bool		gave_name;		/* the directory has this name, or is to have it, and that this role gave it */
	bool		has_slots;		/* rest->slots is not 0 */
	bool		wants_label;	/* the directory has another, which will be replaced once the lock is had */
	HoldRest   *rest;			/* never null */
	char		short_text[NOTE_TEXT_BYTES];

	/* Zero-terminated; empty where there is none. */
	const char *text() const noexcept
	{
		return long_text != nullptr ? long_text : short_text;
	}
	/* Zero-terminated; null where there is none. */
	const char *ns() const noexcept
	{
		return by_name ? text() : nullptr;
	}
	const char *name() const noexcept
	{
		return has_name ? text() + ns_kept + 1 : nullptr;
	}
};

/* Does this session hold the lock, in any mode and scope, however taken? */
bool		is_held_by_me(const LOCKTAG &tag) noexcept;

/*
 * Ask the lock manager how often this session holds the lock in this mode, by
 * scope, however it was taken.  Touches no shared memory.  May ereport (out of
 * memory), changing nothing.
 */
struct LockCounts
{
	int64		session;
	int64		transaction;
};

LockCounts	lock_counts(const LOCKTAG &tag, Mode mode);

/*
 * The lock that a namespace and a name stand for, by way of the notebook if it
 * is there.  May ereport (22021).
 */
LockName	named_lock(std::string_view ns, std::string_view name);

/*
 * The note on a lock that is about to be asked for, under its name, with room for
 * one more hold of this scope.  Registers the name in the directory.  Good until
 * the next call for another lock.  May ereport (out of memory).
 */
Hold	   *hold_open(const LockName &name, Scope scope);

/*
 * Note one hold that was just granted, on the note that hold_open gave.  May
 * ereport (out of memory); nothing is noted then.
 */
void		hold_note(Hold *hold, const LockName &name, Mode mode, Scope scope);

/*
 * Note that a session-level hold, which is about to be released, goes on as one of the
 * transaction, on the note that hold_open gave for it.  That counts as one hold, not as two.
 */
void		hold_note_kept(Hold *hold, Mode mode);

/*
 * Note a slot of the semaphore of this name that was just taken, by one who says
 * that it has so many.  Returns where a session-level one stands in the list of
 * session-level holds.  May ereport (out of memory); nothing is noted then.
 */
int			hold_note_slot(Hold *hold, const LockName &name, int slot, int slots, Scope scope);

/* The same as hold_note_kept for a slot, whose session-level record stands there. */
void		hold_note_kept_slot(Hold *hold, int slot, int place);

/*
 * Strike out a session-level slot that stands there.  If it was released by its
 * holder it counts as held until now, and a long hold is logged, which may ereport
 * with all done.  Otherwise it is not known how long it was held.
 */
void		hold_strike_slot(int place, bool released);

/*
 * Strike out session-level holds that were just released.  Those taken by name
 * are struck out first if they were released by name.  May ereport (writing to the
 * log), with all done.
 */
void		hold_strike(const LockName &name, Mode mode, int64 count);

/*
 * What the session still holds of a lock as noted; null if nothing.  Good until
 * the next call of any of these.  May ereport (out of memory).
 */
const Hold *hold_find(Key key);

/* The note on a lock, whether or not it is held; null if there is none. */
const Hold *hold_remembered(Key key) noexcept;

/*
 * Has the current user shown to know the name that the directory has?  To have used
 * a namespace and name is proof, since the key is made of them; a label is none.
 */
bool		hold_proves_name(const Hold *hold) noexcept;

/* Was it last used by a name in this namespace?  May ereport (22021). */
bool		hold_is_in_namespace(const Hold *hold, std::string_view ns);

/* How often it is held in this mode, in either scope. */
int64		hold_count(const Hold *hold, Mode mode) noexcept;

/*
 * How many locks and slots this session holds through this extension, each once, as the
 * lock manager confirms.  Looks at every one.  May ereport (out of memory).
 */
int			hold_count_locks();

/*
 * The keys of a namespace of which the session still has session-level holds
 * as noted; palloc'd, *count of them.  May ereport (out of memory).
 */
Key		   *hold_session_keys(std::string_view ns, int *count);

/*
 * The lock was not free, asked for under this name: see that others can learn it.
 * May ereport for a cancel.
 */
void		hold_not_free(Hold *hold, const LockName &name);

/* Count an event, or a wait, in the statistics of the lock's name. */
void		hold_count_event(Hold *hold, Event event) noexcept;
void		hold_count_wait(Hold *hold, TimestampTz from, TimestampTz to) noexcept;

/* Called from _PG_init: hears about ends of transactions. */
void		holds_init();

}								/* namespace advisory */

#endif							/* ADVISORY_EXT_CORE_HELD_H */
