/*
 * core/errors.h
 *		The errors of locks that were not obtained, with the names of locks in them.
 */
#pragma once

#include "core/acquire.h"

namespace advisory
{

/*
 * What the name table or this session calls a lock, if the current user may see it; else
 * null.  Like billing/invoice:42, palloc'd.  May ereport.  Not to be called among the
 * arguments of ereport(), since it can have an error of its own to clear.
 */
char	   *visible_name(const LOCKTAG &tag);

/*
 * The lock as messages name it (lockname.h): a lock by key, without a label, by what
 * visible_name() has for it.  palloc'd.  The same holds for it.
 */
char	   *display_lock(const LockName &name);

/*
 * Raise 55P03, which says who is in the way: outcome is that of asking for it, and limit the
 * timeout that the caller gave.
 */
[[noreturn]] void raise_not_available(const LockRequest &request, Outcome outcome, Timeout limit);

/*
 * Raise the error that ended a wait, once everything is released that has to be.  A deadlock's
 * DETAIL gets the names of locks, and a HINT says which locks survive.
 */
[[noreturn]] void raise_wait_error(ErrorData *error);

/*
 * A session-level lock that is released if an error ends what runs under it, and the one around
 * it.  A deadlock's hint does not count it among the locks that survive.  Whoever called
 * begin_passing() calls set_passing(passing.outer) at the end.
 */
struct PassingLock
{
	LOCKTAG		tag;
	const PassingLock *outer;
};

void		begin_passing(PassingLock *passing, const LOCKTAG &tag) noexcept;
void		set_passing(const PassingLock *passing) noexcept;

}								/* namespace advisory */
